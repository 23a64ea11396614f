//! The crash sweep of `batch-testing` on servers.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use batch_runtime::prelude::*;
use batch_test_servers::{Kind, shared};
use batch_testing::{CrashSweep, crash_sweep};
use batch_tests::database::{Database, Place, execute};
use diesel::prelude::*;

/// Writes numbers in the transaction of the chunk, or with a mistake.
#[derive(BatchArtifact)]
struct SweptNumbers {
    /// `outside`: on its own connection. `counts`: with a count that a rollback does not undo.
    #[batch_property(name = "mistake", value = "none")]
    mistake: String,
    count: usize,
    #[batch_context]
    job: JobContext,
}

#[item_writer("SweptNumbers")]
impl SweptNumbers {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let mut row = |number| {
            self.count += 1;
            let count = if self.mistake == "counts" { self.count } else { 0 };
            format!("({number}, {count})")
        };
        let rows: Vec<_> = numbers.iter().map(&mut row).collect();
        let insert = format!("INSERT INTO number VALUES {}", rows.join(", "));
        if self.mistake != "outside" {
            return execute(tx, &insert);
        }
        let mut connection = self.job.connect()?;
        diesel::sql_query(insert).execute(connection.postgres()?)?;
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

const JOB: &str = r#"<job id="numbers"><step id="load">
  <chunk reader="Numbers" processor="Unchanged" writer="SweptNumbers" commit-interval="3">
    <properties>
      <property name="to" value="7"/><property name="log" value="sweep"/><property name="mistake" value="${mistake}"/>
    </properties>
  </chunk>
</step></job>"#;

/// The faults of a sweep that finds nothing, at other places in each run. The slow tier injects all.
const SAMPLE: usize = 40;

/// Returns a sweep, and the database that its runs are created in.
fn sweep(
    kind: Kind,
    mistake: &str,
    options: &'static str,
    faults: usize,
) -> (tempfile::TempDir, CrashSweep, Arc<OnceLock<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.xml");
    fs::write(&file, JOB).unwrap();
    let url = Arc::new(OnceLock::new());
    let of_sweep = Arc::clone(&url);
    let sweep = crash_sweep(file)
        .parameter("mistake", mistake)
        .sample(faults)
        // Only in the process of the sweep itself.
        .repository(move || {
            format!(
                "{}{options}",
                of_sweep.get_or_init(|| shared(kind).new_database())
            )
        })
        .prepare(|database| database.execute("CREATE TABLE number (number INTEGER, count INTEGER)"));
    (folder, sweep, url)
}

/// Returns the message of a sweep that finds a defect.
fn problem(sweep: CrashSweep) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| sweep.run())).expect_err("the defect is found");
    *panic.downcast::<String>().unwrap()
}

/// Nothing is left of the runs.
#[test]
fn a_correct_job_passes_on_postgresql() {
    let (_folder, sweep, url) = sweep(Kind::Postgres, "none", "", SAMPLE);
    sweep.run();
    let database = Place::existing(Database::Postgres, url.get().unwrap().clone());
    let left = "SELECT nspname::text AS text FROM pg_namespace WHERE nspname LIKE 'sweep%'";
    assert!(database.connect().rows(left).is_empty());
}

/// The tables may have another prefix.
#[test]
fn a_correct_job_passes_on_mariadb() {
    let (_folder, sweep, url) = sweep(Kind::Mariadb, "none", "&table_prefix=NIGHT_", SAMPLE);
    sweep.run();
    let database = Place::existing(Database::Mariadb, url.get().unwrap().clone());
    let left = "SELECT schema_name AS text FROM information_schema.schemata WHERE schema_name LIKE 'sweep%'";
    assert!(database.connect().rows(left).is_empty());
}

#[test]
fn a_writer_outside_of_the_transaction_is_found_on_postgresql() {
    let (_folder, sweep, _) = sweep(Kind::Postgres, "outside", "", usize::MAX);
    let message = problem(sweep);
    assert!(message.contains("extra rows"), "{message}");
    assert!(
        message.contains("`number` is written outside of the transaction"),
        "{message}"
    );
}

/// Only a lost connection reveals it: the same process continues with the same writer.
#[test]
fn a_writer_that_forgets_a_rollback_is_found_on_postgresql() {
    let (_folder, sweep, _) = sweep(Kind::Postgres, "counts", "", usize::MAX);
    let message = problem(sweep);
    assert!(message.contains("all connections were lost"), "{message}");
    assert!(
        message.contains("table `number`: 7 rows, expected 7"),
        "{message}"
    );
}
