//! Data of jobs on each database: changed by several threads at the same time, and committed with the output of its chunk.

use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_tests::database::{Database, Place, execute};

/// The number of items of each flow.
const ITEMS: u64 = 40;

/// Reads the numbers to [`ITEMS`].
#[derive(BatchArtifact)]
struct DataNumbers {
    next: u64,
}

#[item_reader("DataNumbers")]
impl DataNumbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.next = checkpoint.unwrap_or(1);
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.next += 1;
        (self.next - 1 <= ITEMS).then_some(self.next - 1)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.next
    }
}

#[derive(BatchArtifact)]
struct DataSame;

#[item_processor("DataSame")]
impl DataSame {
    #[process_item]
    fn process(&mut self, number: u64) -> Option<u64> {
        Some(number)
    }
}

/// Inserts rows, and keeps their number under the name of the step. Fails at one item.
#[derive(BatchArtifact)]
struct DataRows {
    #[batch_property(value = "0")]
    fail: u64,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[item_writer("DataRows")]
impl DataRows {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let name = self.step.id();
        for number in numbers {
            execute(tx, &format!("INSERT INTO written VALUES ({number})"))?;
        }
        let rows = self.job.persistent_data::<u64>(name)?.unwrap_or(0) + numbers.len() as u64;
        self.job.set_persistent_data(name, &rows)?;
        match numbers.contains(&self.fail) {
            true => Err(BatchError::msg("as requested")),
            false => Ok(()),
        }
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Flows change data in many chunks at the same time. No change is lost, and data and rows agree after a failure, and after the restart.
///
/// Spec: DATA-01
#[test]
fn data_is_committed_with_its_rows_by_several_threads() {
    for database in Database::ALL {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a", "b", "c"];
        let flow = |name: &str| {
            format!(
                r#"<flow id="f{name}"><step id="{name}">
                    <chunk reader="DataNumbers" processor="DataSame" writer="DataRows" commit-interval="1"/>
                </step></flow>"#
            )
        };
        let job = format!(
            r#"<job id="job"><split id="all">{}</split></job>"#,
            names.map(flow).concat()
        );
        std::fs::write(folder.path().join("job.xml"), job).unwrap();
        let place = Place::new(database, folder.path());
        let operator = BatchRuntime::builder()
            .repository(place.url())
            .job_path(folder.path().display().to_string())
            .build()
            .unwrap()
            .job_operator();
        place
            .connect()
            .execute("CREATE TABLE written (n INTEGER)")
            .unwrap();
        let run = |fail: &str| {
            let execution = operator
                .launch(
                    "job",
                    JobParameters::from([("day", "1")]).with_non_identifying("fail", fail),
                )
                .unwrap();
            let status = operator.wait(execution).unwrap().status;
            let data = operator.persistent_data(execution).unwrap();
            let rows = names.map(|name| data.get::<u64>(name).unwrap().unwrap_or(0));
            (status, rows)
        };
        let written = || place.connect().number("SELECT COUNT(*) FROM written");
        let (status, rows) = run("17");
        assert_eq!(status, BatchStatus::Failed, "{database:?}");
        assert_eq!(
            rows.iter().sum::<u64>(),
            u64::try_from(written()).unwrap(),
            "{database:?}"
        );
        assert!(rows.iter().all(|rows| *rows <= 16), "{database:?} {rows:?}");
        let (status, rows) = run("0");
        assert_eq!(
            (status, rows),
            (BatchStatus::Completed, [ITEMS; 3]),
            "{database:?}"
        );
        assert_eq!(written(), 3 * i64::try_from(ITEMS).unwrap(), "{database:?}");
    }
}
