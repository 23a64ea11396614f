//! Chunk transactions that end early, and a database that another connection has locked.

use std::sync::mpsc;
use std::thread;

use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_tests::sqlite;
use batch_tests::stage::{Stage, say};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::rows;

/// Reads 1 to `items`.
#[derive(BatchArtifact)]
struct Counter {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "items", value = "20")]
    items: u32,
    last: u32,
}

#[item_reader]
impl Counter {
    #[open]
    fn open(&mut self, checkpoint: Option<u32>) {
        say(&self.log, format!("open {checkpoint:?}"));
        self.last = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<u32> {
        (self.last < self.items).then(|| {
            self.last += 1;
            self.last
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u32 {
        self.last
    }
}

#[derive(BatchArtifact)]
struct Passed {}

#[item_processor]
impl Passed {
    #[process_item]
    fn process(&mut self, number: u32) -> Option<u32> {
        Some(number)
    }
}

/// Runs a statement for each item, and ignores its errors.
#[derive(BatchArtifact)]
struct Careless {
    #[batch_property(name = "each")]
    each: String,
    #[batch_property(name = "nested")]
    nested: Option<String>,
}

#[item_writer]
impl Careless {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> QueryResult<()> {
        for number in numbers {
            let statement = self.each.replace("{n}", &number.to_string());
            let connection = tx.sqlite()?;
            let _ = match self.nested {
                Some(_) => connection.transaction(|connection| connection.batch_execute(&statement)),
                None => connection.batch_execute(&statement),
            };
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

const CHUNK: &str = r#"<job id="job"><step id="one">
    <chunk reader="Counter" processor="Passed" writer="Careless" commit-interval="10"/>
</step></job>"#;

const ENDED: &str = "the chunk transaction has ended early";

/// If a writer ignores an error that made SQLite roll the transaction back, or ends the transaction itself, the
/// step fails with the reason, and its checkpoint is unchanged.
///
/// Spec: CHUNK-LOOP-12, CHUNK-LOOP-13, REPO-62, STATUS-13
#[test]
fn a_transaction_that_ended_before_its_time_fails_the_step() {
    for (each, nested) in [
        ("INSERT OR ROLLBACK INTO written VALUES ({n})", None),
        ("INSERT OR ROLLBACK INTO written VALUES ({n})", Some("nested")),
        ("INSERT INTO watched VALUES ({n})", None),
        ("INSERT INTO watched VALUES ({n})", Some("nested")),
        ("COMMIT", None),
        ("ROLLBACK", None),
        ("COMMIT; BEGIN", None),
        ("ROLLBACK; BEGIN", None),
    ] {
        let stage = Stage::new(CHUNK);
        stage
            .connection()
            .batch_execute(
                "CREATE TABLE written (n INTEGER UNIQUE); INSERT INTO written VALUES (10);
                 CREATE TABLE watched (n INTEGER);
                 CREATE TRIGGER never_ten BEFORE INSERT ON watched WHEN NEW.n = 10
                 BEGIN SELECT RAISE(ROLLBACK, 'ten is refused'); END;",
            )
            .unwrap();
        let mut parameters = JobParameters::new().with("each", each);
        if let Some(nested) = nested {
            parameters = parameters.with("nested", nested);
        }
        let first = stage.launch("job", parameters);
        let job = stage.operator().job_execution(first).unwrap().unwrap();
        let step = &stage.operator().step_executions(first).unwrap()[0];
        assert_eq!(
            (job.status, step.status),
            (BatchStatus::Failed, BatchStatus::Failed),
            "{each}"
        );
        assert!(step.exit_message.contains(ENDED), "{each}: {}", step.exit_message);
        assert_eq!(
            (
                step.counters.reads,
                step.counters.commits,
                step.counters.rollbacks
            ),
            (0, 0, 1),
            "{each}"
        );
        // The next execution starts at the last commit: the beginning.
        stage.restart(first);
        assert_eq!(stage.log(), ["open None", "open None"], "{each}");
    }
}

/// The writer may handle an error that keeps the transaction, or that its own savepoint undoes.
///
/// Spec: CHUNK-LOOP-12
#[test]
fn a_writer_may_ignore_an_error_that_keeps_the_transaction() {
    for nested in [None, Some("nested")] {
        let stage = Stage::new(CHUNK);
        let table = "CREATE TABLE written (n INTEGER UNIQUE); INSERT INTO written VALUES (10)";
        stage.connection().batch_execute(table).unwrap();
        let mut parameters = JobParameters::new().with("each", "INSERT INTO written VALUES ({n})");
        if let Some(nested) = nested {
            parameters = parameters.with("nested", nested);
        }
        let execution = stage.launch("job", parameters);
        let job = stage.operator().job_execution(execution).unwrap().unwrap();
        assert_eq!(job.status, BatchStatus::Completed, "{}", job.exit_message);
        let written = "SELECT '' || COUNT(*) AS text FROM written";
        assert_eq!(rows(&mut stage.connection(), written), ["20"]);
    }
}

/// Fails at once.
#[derive(BatchArtifact)]
struct Refusing {}

#[item_writer]
impl Refusing {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, _numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        tx.sqlite()?
            .batch_execute("CREATE TABLE rolled_back (n INTEGER)")?;
        Err(BatchError::msg("no disk"))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// The connection of a failed chunk is closed, and may have been the only one to the database in memory.
///
/// Spec: DOM-31, CHUNK-LOOP-13
#[test]
fn a_repository_in_memory_survives_a_failure_in_the_first_chunk() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("job.xml"),
        CHUNK.replace("Careless", "Refusing"),
    )
    .unwrap();
    let operator = BatchRuntime::builder()
        .repository("sqlite://:memory:")
        .job_path(folder.path().display().to_string())
        .system_property("log", "in memory")
        .build()
        .unwrap()
        .job_operator();
    for number in 1..=3 {
        let execution = operator.start("job", JobParameters::new()).unwrap();
        let ended = operator.wait(execution).unwrap();
        assert_eq!(ended.status, BatchStatus::Failed);
        assert!(ended.exit_message.contains("no disk"), "{}", ended.exit_message);
        assert_eq!(
            operator.step_executions(execution).unwrap()[0].status,
            BatchStatus::Failed
        );
        assert_eq!(operator.job_instance_count("job").unwrap(), number);
    }
}

/// Another connection takes the lock before the batchlet returns, and keeps it for a while.
#[derive(BatchArtifact)]
struct Locking {
    #[batch_property(name = "folder")]
    folder: std::path::PathBuf,
    #[batch_property(name = "log")]
    log: String,
}

#[batchlet]
impl Locking {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let (locked, is_locked) = mpsc::channel();
        let (database, log) = (self.folder.join("batch.db"), self.log.clone());
        thread::spawn(move || {
            let mut connection = sqlite::open(&database);
            connection.batch_execute("BEGIN IMMEDIATE").unwrap();
            locked.send(()).unwrap();
            // As long as two thousand polls of the repository, while the step waits for its end.
            for _ in 0..2_000 {
                let open = "SELECT STATUS AS text FROM BATCH_STEP_EXECUTION";
                assert_eq!(rows(&mut connection, open), ["STARTED"]);
            }
            say(&log, "unlocked");
            connection.batch_execute("COMMIT").unwrap();
        });
        is_locked.recv()?;
        Ok("DONE".into())
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Spec: REPO-16, STATUS-14
#[test]
fn a_lock_of_another_connection_only_delays_the_end() {
    let stage = Stage::new(r#"<job id="job"><step id="one"><batchlet ref="Locking"/></step></job>"#);
    let execution = stage.start("job", JobParameters::new());
    assert_eq!(stage.log(), ["unlocked"]);
    let job = stage.operator().job_execution(execution).unwrap().unwrap();
    assert_eq!(job.status, BatchStatus::Completed, "{}", job.exit_message);
}
