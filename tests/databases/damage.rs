//! Damaged or deleted metadata: no item is silently processed again, and no unreadable entry is replaced.

use std::fs;

use batch_runtime::{BatchStatus, JobExecutionId, JobOperatorError, JobParameters};
use batch_tests::database::Database;
use batch_tests::stage::Stage;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::jobs::{CHUNK, SUM};
use super::sqlite::die;

/// Two partitions of the chunk step.
const PARTITION: &str = r#"<partition instances="2"><properties>
    <property name="to.1" value="25"/>
    <property name="from.2" value="100"/><property name="to.2" value="101"/>
</properties></partition></step>"#;

fn stage(database: Database, xml: &str) -> Stage {
    let stage = Stage::on(database, xml);
    let table = "CREATE TABLE written (n INTEGER)";
    stage.outside().execute(table).unwrap();
    stage
}

/// An instance that fails at a number, after it has committed the first ten.
fn failing(fails_at: &str) -> JobParameters {
    JobParameters::from([("to", "25")]).with_non_identifying("fails-at", fails_at)
}

fn ended(stage: &Stage, execution: JobExecutionId) -> (BatchStatus, String) {
    let execution = stage.operator().job_execution(execution).unwrap().unwrap();
    (execution.status, execution.exit_message)
}

/// Lets wrong rows of a table through.
fn drop_triggers(stage: &Stage, database: Database, table: &str, rules: &[&str]) {
    let on_table = match database {
        Database::Sqlite | Database::Mariadb => String::new(),
        Database::Postgres => format!(" ON {table}"),
    };
    for rule in rules {
        let name = match *rule {
            "balance" => rule.to_string(),
            _ => format!("{rule}_{table}"),
        };
        stage
            .outside()
            .execute(&format!("DROP TRIGGER {name}{on_table}"))
            .unwrap();
    }
}

fn executions(stage: &Stage) -> i64 {
    stage.outside().number("SELECT COUNT(*) FROM BATCH_JOB_EXECUTION")
}

/// A chunk step with commits and without a reader checkpoint fails, at each launch, and writes nothing.
///
/// Spec: RESTART-17, CHUNK-LOOP-16
#[test]
fn a_lost_checkpoint_fails_the_step() {
    for database in Database::ALL {
        for damage in [
            "DELETE FROM BATCH_STEP_EXECUTION_CONTEXT",
            "UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = '{}'",
        ] {
            let stage = stage(database, CHUNK);
            stage.launch("job", failing("13"));
            let written = stage.outside().number(SUM);
            stage.outside().execute(damage).unwrap();
            for _ in 0..2 {
                let (status, message) = ended(&stage, stage.launch("job", failing("0")));
                assert_eq!(status, BatchStatus::Failed, "{database:?} {damage}");
                assert!(
                    message.contains("step `one` has committed 1 chunks, but the context of its step execution 1 has no reader checkpoint"),
                    "{database:?} {damage}: {message}"
                );
            }
            assert_eq!(stage.outside().number(SUM), written, "{database:?} {damage}");
        }
    }
}

/// The same for a partition.
///
/// Spec: RESTART-17, PART-32
#[test]
fn a_lost_checkpoint_fails_the_partition() {
    for database in Database::ALL {
        let stage = stage(database, &CHUNK.replace("</step>", PARTITION));
        stage.launch("job", failing("13"));
        let written = stage.outside().number(SUM);
        let damage = "UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = '{}'";
        stage.outside().execute(damage).unwrap();
        let (status, message) = ended(&stage, stage.launch("job", failing("0")));
        assert_eq!(status, BatchStatus::Failed, "{database:?}");
        assert!(
            message.contains("has no reader checkpoint"),
            "{database:?}: {message}"
        );
        assert_eq!(stage.outside().number(SUM), written, "{database:?}");
    }
}

/// A context that cannot be read keeps the job from starting: nothing is inserted, and once it is repaired, the job resumes.
///
/// Spec: REPO-69, RESTART-08
#[test]
fn an_unreadable_context_is_left_alone() {
    for database in Database::ALL {
        for (table, of) in [
            ("BATCH_STEP_EXECUTION_CONTEXT", "step execution 1"),
            ("BATCH_JOB_EXECUTION_CONTEXT", "job execution 1"),
        ] {
            let stage = stage(database, CHUNK);
            stage.launch("job", failing("13"));
            let context = &stage
                .outside()
                .rows(&format!("SELECT SHORT_CONTEXT AS text FROM {table}"))[0];
            let set = |context: &str| {
                let statement = format!("UPDATE {table} SET SHORT_CONTEXT = '{context}'");
                stage.outside().execute(&statement).unwrap();
            };
            let entry = if of.starts_with("step") {
                "batch.reader.checkpoint"
            } else {
                "batch.parallel.elements"
            };
            let no_text = format!(r#"{{"{entry}":7}}"#);
            for (broken, problem) in [
                ("garbage {", "does not contain a JSON object"),
                ("rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA", "was serialized by Java"),
                (no_text.as_str(), "that is not a JSON string"),
            ] {
                set(broken);
                let error = stage.operator().launch("job", failing("0")).unwrap_err();
                assert!(matches!(error, JobOperatorError::Repository(_)), "{error:?}");
                let error = error.to_string();
                assert!(
                    error.contains(&format!("the context of {of}")) && error.contains(problem),
                    "{database:?}: {error}"
                );
            }
            assert_eq!(executions(&stage), 1, "{database:?} {of}");
            set(context);
            let (status, message) = ended(&stage, stage.launch("job", failing("0")));
            assert_eq!(status, BatchStatus::Completed, "{database:?} {of}: {message}");
            assert_eq!(stage.outside().number(SUM), 25_000_325, "{database:?} {of}");
        }
    }
}

/// A counter that is missing is not a zero: without the number of commits, a lost checkpoint would go unnoticed.
///
/// Spec: REPO-43, REPO-54, CHUNK-LOOP-16
#[test]
fn a_missing_counter_keeps_the_job_from_starting() {
    for database in Database::ALL {
        for (table, column, of) in [
            ("BATCH_STEP_EXECUTION", "COMMIT_COUNT", "step execution 1"),
            ("BATCH_STEP_EXECUTION", "READ_COUNT", "step execution 1"),
            ("BATCH_JOB_EXECUTION", "VERSION", "job execution 1"),
        ] {
            let stage = stage(database, CHUNK);
            stage.launch("job", failing("13"));
            let written = stage.outside().number(SUM);
            drop_triggers(&stage, database, table, &["final", "version"]);
            let damage = format!("UPDATE {table} SET {column} = NULL");
            stage.outside().execute(&damage).unwrap();
            let error = stage
                .operator()
                .launch("job", failing("0"))
                .unwrap_err()
                .to_string();
            let expected = format!("{of} of the repository has no {column}");
            assert!(error.contains(&expected), "{database:?}: {error}");
            assert_eq!(executions(&stage), 1, "{database:?}");
            assert_eq!(stage.outside().number(SUM), written, "{database:?}");
        }
    }
}

/// The same for a job whose process died: it ends FAILED with the cause, which the first launch records.
///
/// Spec: OP-35, REPO-69
#[test]
fn an_unreadable_context_of_a_dead_job_is_recorded() {
    let stage = stage(Database::Sqlite, CHUNK);
    let dead = stage.launch("job", failing("13"));
    die(&stage, dead, "", "0");
    let damage = "UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = 'garbage {'";
    stage.outside().execute(damage).unwrap();
    for _ in 0..2 {
        let error = stage
            .operator()
            .launch("job", failing("0"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("the context of step execution 1"), "{error}");
        let (status, message) = ended(&stage, dead);
        assert_eq!(status, BatchStatus::Failed);
        assert!(
            message.contains("lost its lease")
                && message.contains("it cannot be resumed: the context of step"),
            "{message}"
        );
    }
    assert_eq!(executions(&stage), 1);
}

/// Damage that appears while the job runs fails it, with the cause.
///
/// Spec: REPO-69, RESTART-08
#[test]
fn a_context_that_is_damaged_while_the_job_runs_fails_it() {
    let first = r#"<step id="first" next="one" allow-start-if-complete="true"><batchlet ref="Meddler"/></step><step id="one">"#;
    let stage = stage(Database::Sqlite, &CHUNK.replace(r#"<step id="one">"#, first));
    stage.launch("job", failing("13"));
    let written = stage.outside().number(SUM);
    let damage =
        "UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = 'garbage {' WHERE STEP_EXECUTION_ID = 2";
    let damaging = failing("0").with_non_identifying("statement", damage);
    let (status, message) = ended(&stage, stage.launch("job", damaging));
    assert_eq!(status, BatchStatus::Failed);
    assert!(message.contains("the context of step execution 2"), "{message}");
    assert_eq!(stage.outside().number(SUM), written);
}

/// A damaged index of SQLite hides rows. It is detected before a step whose row it hides starts from the beginning.
///
/// Spec: OP-35, RESTART-08
#[test]
fn a_damaged_index_keeps_the_job_from_starting() {
    let stage = stage(Database::Sqlite, CHUNK);
    stage.launch("job", failing("13"));
    let written = stage.outside().number(SUM);
    let root = "SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'BATCH_STEP_EXECUTION' AND sql IS NOT NULL";
    // The log is written back and every connection is closed, so the file is complete.
    let copy = stage.path().join("copy.db");
    stage
        .outside()
        .execute(&format!("VACUUM INTO '{}'", copy.display()))
        .unwrap();
    let number = |query: &str| -> i64 {
        let number = diesel::dsl::sql::<BigInt>(&format!("({query})"));
        diesel::select(number)
            .get_result(&mut batch_tests::sqlite::open(&copy))
            .unwrap()
    };
    let size = number("SELECT page_size FROM pragma_page_size");
    let at = usize::try_from((number(root) - 1) * size).unwrap();
    let mut bytes = fs::read(&copy).unwrap();
    // The entry of the step in the index gets another name; the row keeps its own.
    let index = &mut bytes[at..at + usize::try_from(size).unwrap()];
    let name = index.windows(3).position(|name| name == b"one").unwrap();
    index[name..name + 3].copy_from_slice(b"onx");
    fs::write(&copy, bytes).unwrap();
    let runtime = batch_runtime::BatchRuntime::builder()
        .repository(format!("sqlite://{}", copy.display()))
        .job_path(stage.path().join("jobs").display().to_string())
        .system_property("log", stage.log_name())
        .build()
        .unwrap();
    let error = runtime
        .job_operator()
        .launch("job", failing("0"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is damaged (") && error.contains("restore the file from a backup"),
        "{error}"
    );
    drop(runtime);
    assert_eq!(number(SUM), written);
}

/// A number that no program has counted rejects the launch and names its row, instead of an overflow.
///
/// Spec: LOSS-02
#[test]
fn an_impossible_number_is_named_with_its_row() {
    let impossible = [
        (
            "UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = 9223372036854775807",
            "FENCE 9223372036854775807",
        ),
        (
            "UPDATE BATCH_JOB_INSTANCE_LEASE SET TAKEOVERS = 9223372036854775807",
            "TAKEOVERS 9223372036854775807",
        ),
        (
            "UPDATE BATCH_JOB_EXECUTION SET VERSION = 9223372036854775807",
            "VERSION 9223372036854775807",
        ),
        (
            "UPDATE BATCH_STEP_EXECUTION SET READ_COUNT = 9223372036854775807",
            "READ_COUNT 9223372036854775807",
        ),
        ("UPDATE BATCH_STEP_EXECUTION SET VERSION = -1", "VERSION -1"),
    ];
    for database in Database::ALL {
        for (damage, shown) in impossible {
            let stage = stage(database, CHUNK);
            stage.launch("job", failing("13"));
            let written = stage.outside().number(SUM);
            for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
                drop_triggers(&stage, database, table, &["version", "final", "edge", "ended"]);
            }
            drop_triggers(&stage, database, "BATCH_STEP_EXECUTION", &["balance"]);
            stage.outside().execute(damage).unwrap();
            let message = match stage.operator().launch("job", failing("0")) {
                Ok(execution) => match stage.operator().wait(execution) {
                    Ok(ended) => ended.exit_message,
                    Err(error) => error.to_string(),
                },
                Err(error) => error.to_string(),
            };
            assert!(message.contains(shown), "{database:?} {damage}: {message}");
            assert!(!message.contains("overflow"), "{message}");
            assert_eq!(stage.outside().number(SUM), written, "{database:?} {damage}");
        }
    }
}
