//! The crash sweep of `batch-testing` on servers.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use batch_runtime::prelude::*;
use batch_test_servers::{Kind, shared};
use batch_testing::{CrashSweep, crash_sweep};
use batch_tests::database::execute;
use diesel::prelude::*;

/// Writes numbers in the transaction of the chunk, or on a connection of its own.
#[derive(BatchArtifact)]
struct SweptNumbers {
    #[batch_property(name = "outside", value = "false")]
    outside: bool,
    #[batch_context]
    job: JobContext,
}

#[item_writer("SweptNumbers")]
impl SweptNumbers {
    #[open]
    fn open(&mut self, _: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let rows: Vec<_> = numbers.iter().map(|number| format!("({number})")).collect();
        let insert = format!("INSERT INTO number VALUES {}", rows.join(", "));
        if !self.outside {
            return execute(tx, &insert);
        }
        let mut connection = self.job.connect()?;
        Ok(diesel::sql_query(insert)
            .execute(connection.postgres()?)
            .map(|_| ())?)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

const JOB: &str = r#"<job id="numbers"><step id="load">
  <chunk reader="Numbers" processor="Unchanged" writer="SweptNumbers" commit-interval="3">
    <properties>
      <property name="to" value="7"/><property name="log" value="sweep"/><property name="outside" value="${outside}"/>
    </properties>
  </chunk>
</step></job>"#;

fn sweep(kind: Kind, outside: bool) -> (tempfile::TempDir, CrashSweep) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.xml");
    fs::write(&file, JOB).unwrap();
    let sweep = crash_sweep(file)
        .parameter("outside", outside)
        // Only in the process of the sweep itself.
        .repository(move || shared(kind).new_database())
        .prepare(|database| database.execute("CREATE TABLE number (number INTEGER)"));
    (folder, sweep)
}

#[test]
fn a_correct_job_passes_on_postgresql() {
    let (_folder, sweep) = sweep(Kind::Postgres, false);
    sweep.run();
}

#[test]
fn a_correct_job_passes_on_mariadb() {
    let (_folder, sweep) = sweep(Kind::Mariadb, false);
    sweep.run();
}

#[test]
fn a_writer_outside_of_the_transaction_is_found_on_postgresql() {
    let (_folder, sweep) = sweep(Kind::Postgres, true);
    let panic = catch_unwind(AssertUnwindSafe(|| sweep.run())).expect_err("the defect is found");
    let message = panic.downcast::<String>().unwrap();
    assert!(message.contains("rows too often"), "{message}");
    assert!(
        message.contains("`number` is written outside of the transaction"),
        "{message}"
    );
}
