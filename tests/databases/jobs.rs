//! Chunks, restarts, partitions, stops: the same on each database.

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobParameters};
use batch_tests::database::{Database, execute};
use batch_tests::stage::{Stage, say};

/// Reads the numbers after `from` up to `to`.
#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(name = "from", value = "0")]
    from: u32,
    #[batch_property(name = "to")]
    to: u32,
    #[batch_property(name = "log")]
    log: String,
    last: u32,
}

#[item_reader("Numbers")]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u32>) {
        say(&self.log, format!("open {checkpoint:?}"));
        self.last = checkpoint.unwrap_or(self.from);
    }
    #[read_item]
    fn read(&mut self) -> Option<u32> {
        (self.last < self.to).then(|| {
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
struct Unchanged {}

#[item_processor("Unchanged")]
impl Unchanged {
    #[process_item]
    fn process(&mut self, number: u32) -> Option<u32> {
        Some(number)
    }
}

#[derive(Debug, BatchException)]
#[batch_exception(class = "test.NoDisk")]
struct NoDisk;

impl std::fmt::Display for NoDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no disk")
    }
}

impl std::error::Error for NoDisk {}

/// Writes the numbers in the transaction of the checkpoint, and fails after the row of `fails-at`.
#[derive(BatchArtifact)]
struct Rows {
    #[batch_property(name = "fails-at")]
    fails_at: Option<u32>,
    #[batch_property(name = "then")]
    then: Option<String>,
}

#[item_writer("Rows")]
impl Rows {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        for number in numbers {
            execute(tx, &format!("INSERT INTO written VALUES ({number})"))?;
            if self.fails_at == Some(*number) {
                match &self.then {
                    Some(statement) => drop(execute(tx, statement)),
                    None => return Err(NoDisk.into()),
                }
            }
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Without a key, so that a duplicate row would be visible.
fn stage(database: Database, xml: &str) -> Stage {
    let stage = Stage::on(database, xml);
    stage
        .outside()
        .execute("CREATE TABLE written (n INTEGER)")
        .unwrap();
    stage
}

pub(super) const CHUNK: &str = r#"<job id="job"><step id="one">
    <chunk reader="Numbers" processor="Unchanged" writer="Rows" commit-interval="10"/>
</step></job>"#;

pub(super) const SUM: &str = "SELECT COUNT(*) * 1000000 + SUM(n) FROM written";

/// Committed rows remain, uncommitted ones are rolled back, and a restart resumes from there.
///
/// Spec: CHUNK-LOOP-12, ENV-05, REPO-02, REPO-03, REPO-04, REPO-06, REPO-15, REPO-62, REPO-63, RESTART-08
#[test]
fn a_failed_chunk_step_is_restarted() {
    for database in Database::ALL {
        let stage = stage(database, CHUNK);
        let parameters = JobParameters::from([("to", "35")]).with_non_identifying("fails-at", "27");
        let first = stage.launch("job", parameters);
        let expected = "job job FAILED FAILED\n  | no disk\n  | thrown by #[write_items] of item writer `Rows`\n\
                        \x20 | in the chunk of items 21 to 30 of `one`\n\
                        \x20 step one FAILED FAILED read 20 filter 0 write 20 commit 2 rollback 1\n    | no disk\n\
                        \x20   | thrown by #[write_items] of item writer `Rows`\n\
                        \x20   | in the chunk of items 21 to 30 of `one`\n";
        assert_eq!(stage.tree(first), expected, "{database:?}");
        assert_eq!(stage.outside().number(SUM), 20_000_210, "{database:?}");
        let again = JobParameters::from([("to", "35")]).with_non_identifying("fails-at", "0");
        let second = stage.launch("job", again);
        let expected = "job job COMPLETED COMPLETED\n\
                        \x20 step one COMPLETED COMPLETED read 15 filter 0 write 15 commit 2 rollback 0\n";
        assert_eq!(stage.tree(second), expected, "{database:?}");
        assert_eq!(stage.outside().number(SUM), 35_000_630, "{database:?}");
        assert_eq!(stage.log(), ["open None", "open Some(20)"], "{database:?}");
    }
}

/// Wider columns, or columns of another text type, need no changes in the program.
///
/// Spec: REPO-77
#[test]
fn columns_may_be_wider() {
    for database in Database::ALL {
        let stage = stage(database, CHUNK);
        let statements: &[&str] = match database {
            // SQLite ignores widths.
            Database::Sqlite => &[],
            Database::Postgres => &[
                "ALTER TABLE BATCH_JOB_EXECUTION ALTER COLUMN EXIT_CODE TYPE VARCHAR(4000)",
                "ALTER TABLE BATCH_STEP_EXECUTION ALTER COLUMN EXIT_MESSAGE TYPE VARCHAR(4000)",
                "ALTER TABLE BATCH_STEP_EXECUTION_CONTEXT ALTER COLUMN SHORT_CONTEXT TYPE TEXT",
            ],
            Database::Mariadb => &[
                "ALTER TABLE BATCH_JOB_EXECUTION MODIFY EXIT_CODE NVARCHAR(4000)",
                "ALTER TABLE BATCH_STEP_EXECUTION MODIFY EXIT_MESSAGE NVARCHAR(4000)",
                "ALTER TABLE BATCH_STEP_EXECUTION_CONTEXT MODIFY SHORT_CONTEXT NVARCHAR(4000) NOT NULL",
            ],
        };
        for statement in statements {
            stage.outside().execute(statement).unwrap();
        }
        let parameters = JobParameters::from([("to", "35")]).with_non_identifying("fails-at", "27");
        stage.launch("job", parameters);
        let again = JobParameters::from([("to", "35")]).with_non_identifying("fails-at", "0");
        let second = stage.another_runtime().job_operator();
        let second = second
            .launch("job", again)
            .and_then(|execution| second.wait(execution))
            .unwrap();
        assert_eq!(second.status, BatchStatus::Completed, "{database:?}");
        assert_eq!(stage.outside().number(SUM), 35_000_630, "{database:?}");
    }
}

/// Partitions commit independently; a failed one is restarted alone.
///
/// Spec: PART-32, PART-34, REPO-16, REPO-53, RESTART-08
#[test]
fn a_failed_partition_is_restarted() {
    let properties: String = (1..=8)
        .map(|number| {
            let (from, to) = ((number - 1) * 100, number * 100);
            format!(
                r#"<property name="from.{number}" value="{from}"/><property name="to.{number}" value="{to}"/>"#
            )
        })
        .collect();
    let partitions =
        format!(r#"<partition instances="8"><properties>{properties}</properties></partition></step>"#);
    let xml = CHUNK.replace("</step>", &partitions);
    for database in Database::ALL {
        let stage = stage(database, &xml);
        let first = stage.launch(
            "job",
            JobParameters::new().with_non_identifying("fails-at", "455"),
        );
        let job = stage.operator().job_execution(first).unwrap().unwrap();
        assert_eq!(job.status, BatchStatus::Failed, "{database:?}");
        let committed = stage.outside().number("SELECT COUNT(*) FROM written");
        assert!(committed >= 50, "{database:?}: {committed}");
        stage.log();
        let again = JobParameters::new().with_non_identifying("fails-at", "0");
        let second = stage.launch("job", again);
        let job = stage.operator().job_execution(second).unwrap().unwrap();
        assert_eq!(
            job.status,
            BatchStatus::Completed,
            "{database:?}: {}",
            job.exit_message
        );
        assert_eq!(stage.outside().number(SUM), 800_320_400, "{database:?}");
        assert!(stage.log().contains(&"open Some(450)".to_owned()), "{database:?}");
    }
}

/// If the writer ends the transaction, or hides an error that ended it, the step fails, and its earlier rows are not
/// committed with the checkpoint.
///
/// Spec: CHUNK-LOOP-12, CHUNK-LOOP-13, REPO-62
#[test]
fn a_transaction_that_ended_before_its_time_fails_the_step() {
    let ends = |database| match database {
        // Any error ends the transaction.
        Database::Postgres => ["SELECT no_such_column", "COMMIT", "ROLLBACK", "COMMIT; BEGIN"],
        // So does a schema change, by a commit.
        Database::Mariadb => [
            "CREATE TABLE other (n INTEGER)",
            "COMMIT",
            "ROLLBACK",
            "COMMIT; BEGIN",
        ],
        Database::Sqlite => [
            "INSERT OR ROLLBACK INTO one VALUES (1)",
            "COMMIT",
            "ROLLBACK",
            "COMMIT; BEGIN",
        ],
    };
    for database in Database::ALL {
        for statement in ends(database) {
            let stage = stage(database, CHUNK);
            let one = "CREATE TABLE one (n INTEGER PRIMARY KEY)";
            stage.outside().execute(one).unwrap();
            stage.outside().execute("INSERT INTO one VALUES (1)").unwrap();
            let parameters = JobParameters::from([("to", "20"), ("then", statement)]).with("fails-at", "10");
            let execution = stage.launch("job", parameters);
            let step = &stage.operator().step_executions(execution).unwrap()[0];
            assert_eq!(step.status, BatchStatus::Failed, "{database:?} {statement}");
            assert!(
                step.exit_message.contains("has ended early"),
                "{database:?} {statement}: {}",
                step.exit_message
            );
            assert_eq!(step.counters.commits, 0, "{database:?} {statement}");
        }
    }
}

/// An item that cannot be written is searched for with savepoints, and omitted.
///
/// Spec: CHUNK-LOOP-12, REPO-59, REPO-60
#[test]
fn a_bad_item_is_skipped() {
    let chunk = r#"writer="Rows" commit-interval="10" skip-limit="1"><skippable-exception-classes>
        <include class="test.NoDisk"/></skippable-exception-classes></chunk>"#;
    let xml = CHUNK.replace(r#"writer="Rows" commit-interval="10"/>"#, chunk);
    for database in Database::ALL {
        let stage = stage(database, &xml);
        let execution = stage.launch("job", [("to", "30"), ("fails-at", "17")]);
        let step = &stage.operator().step_executions(execution).unwrap()[0];
        assert_eq!(
            step.status,
            BatchStatus::Completed,
            "{database:?}: {}",
            step.exit_message
        );
        assert_eq!(step.counters.write_skips, 1, "{database:?}");
        assert_eq!(stage.outside().number(SUM), 29_000_448, "{database:?}");
    }
}

/// Waits until it is cancelled.
#[derive(BatchArtifact)]
struct Patient {
    cancelled: std::sync::Mutex<bool>,
    notified: std::sync::Condvar,
}

#[batchlet("Patient")]
impl Patient {
    #[process]
    fn process(&self) -> String {
        let cancelled = self.cancelled.lock().unwrap();
        drop(
            self.notified
                .wait_while(cancelled, |cancelled| !*cancelled)
                .unwrap(),
        );
        "CANCELLED".into()
    }
    #[cancel]
    fn cancel(&self) {
        *self.cancelled.lock().unwrap() = true;
        self.notified.notify_all();
    }
}

/// A stop from another runtime, as another process would request it.
///
/// Spec: OP-17, REPO-17, STATUS-26
#[test]
fn a_stop_from_another_runtime_is_adopted() {
    for database in Database::ALL {
        let stage = Stage::on(
            database,
            r#"<job id="job"><step id="one"><batchlet ref="Patient"/></step></job>"#,
        );
        let execution = stage.operator().start("job", JobParameters::new()).unwrap();
        stage.another_runtime().job_operator().stop(execution).unwrap();
        let ended = stage.operator().wait(execution).unwrap();
        assert_eq!(ended.status, BatchStatus::Stopped, "{database:?}");
    }
}
