//! The tables of the program, created before its first job.

use std::sync::Barrier;
use std::thread;

use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus};
use batch_tests::database::Database;
use batch_tests::stage::Stage;

/// Inserts a row into `program_order`.
#[derive(BatchArtifact)]
struct InsertsOrder {
    #[batch_context]
    job: JobContext,
}

#[batchlet]
impl InsertsOrder {
    #[process]
    fn process(&self) -> Result<(), BatchError> {
        let id = self.job.execution_id();
        let statement = format!(
            "INSERT INTO program_order (id) VALUES ({id}); INSERT INTO program_item (id) VALUES ({id})"
        );
        Ok(self.job.connect()?.batch_execute(&statement)?)
    }
}

const JOB: &str = r#"<job id="job"><step id="one"><batchlet ref="InsertsOrder"/></step></job>"#;
const TABLES: &str = "CREATE TABLE IF NOT EXISTS program_order (id BIGINT NOT NULL PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS program_item (id BIGINT NOT NULL PRIMARY KEY);";

fn with_tables(stage: &Stage, statements: &str) -> BatchRuntime {
    stage.another_runtime_with(|builder| builder.schema_sql(statements))
}

/// Eight runtimes create them at the same time; nothing is created before.
///
/// Spec: SCHEMA-01
#[test]
fn tables_of_the_program_are_created_before_its_first_job() {
    for database in Database::ALL {
        let stage = Stage::on(database, JOB);
        let runtimes: Vec<_> = (0..8).map(|_| with_tables(&stage, TABLES)).collect();
        assert!(
            runtimes[0]
                .job_operator()
                .find_executions(&Default::default())
                .unwrap()
                .is_empty()
        );
        assert!(
            stage
                .outside()
                .execute("INSERT INTO program_order VALUES (0)")
                .is_err(),
            "it exists"
        );
        let barrier = Barrier::new(runtimes.len());
        thread::scope(|scope| {
            for (number, runtime) in runtimes.iter().enumerate() {
                let barrier = &barrier;
                scope.spawn(move || {
                    let operator = runtime.job_operator();
                    barrier.wait();
                    let id = operator.start("job", [("number", number.to_string())]).unwrap();
                    assert_eq!(operator.wait(id).unwrap().status, BatchStatus::Completed);
                });
            }
        });
        assert_eq!(stage.outside().number("SELECT COUNT(*) FROM program_order"), 8);
        assert_eq!(stage.outside().number("SELECT COUNT(*) FROM program_item"), 8);
    }
}

/// The start fails, and nothing is recorded; the next one tries again.
///
/// Spec: SCHEMA-01
#[test]
fn wrong_statements_fail_the_start() {
    for database in Database::ALL {
        let stage = Stage::on(database, JOB);
        let runtime = with_tables(&stage, "CREATE TABEL program_order (id BIGINT)");
        let operator = runtime.job_operator();
        for _ in 0..2 {
            let error = operator.start("job", ()).unwrap_err().to_string();
            assert!(
                error.starts_with("cannot start job `job`: its tables cannot be created: failed to execute the statements of `schema_sql`: "),
                "{error}"
            );
            assert!(error.contains("TABEL"), "{error}");
        }
        assert!(operator.find_executions(&Default::default()).unwrap().is_empty());
        let later = with_tables(&stage, TABLES).job_operator();
        let ended = later.wait(later.start("job", ()).unwrap()).unwrap();
        assert_eq!(ended.status, BatchStatus::Completed);
    }
}
