//! Leases while a job runs: how they are renewed, and what happens to a job that loses its lease.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use batch_runtime::prelude::*;
use batch_runtime::{
    BatchRuntimeBuilder, BatchStatus, JobExecutionId, JobOperatorError, JobParameters, Timestamp, time::Clock,
};
use batch_tests::sqlite;
use batch_tests::stage::{Stage, say};
use diesel::connection::SimpleConnection;

use super::{JOB, die, rows};

/// A limit that only ends a hanging test.
const NEVER: Duration = Duration::from_secs(60);

/// The shortest lease; the keeper checks it every half second.
pub(super) fn short_lease(builder: BatchRuntimeBuilder) -> BatchRuntimeBuilder {
    builder.lease_time(Duration::from_secs(1))
}

/// Runs a statement on the repository, then waits until it is cancelled or a query finds a row.
#[derive(BatchArtifact)]
struct Beating {
    #[batch_property(name = "folder")]
    folder: std::path::PathBuf,
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "statement")]
    statement: Option<String>,
    #[batch_property(name = "until")]
    until: Option<String>,
    cancelled: Cancelled,
}

struct Cancelled(Mutex<Sender<()>>, Mutex<Receiver<()>>);

impl Default for Cancelled {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self(Mutex::new(sender), Mutex::new(receiver))
    }
}

#[batchlet]
impl Beating {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let mut connection = sqlite::open(&self.folder.join("batch.db"));
        if let Some(statement) = &self.statement {
            connection.batch_execute(statement)?;
        }
        let cancelled = self.cancelled.1.lock().unwrap();
        let begin = Instant::now();
        while begin.elapsed() < NEVER {
            if cancelled.recv_timeout(Duration::from_millis(20)).is_ok() {
                say(&self.log, "cancelled");
                return Ok("CANCELLED".into());
            }
            if let Some(query) = &self.until
                && !rows(&mut connection, query).is_empty()
            {
                say(&self.log, "found");
                return Ok("FOUND".into());
            }
        }
        Err(BatchError::msg("nobody came"))
    }
    #[cancel]
    fn cancel(&self) {
        let _ = self.cancelled.0.lock().unwrap().send(());
    }
}

const PATIENT: &str = r#"<job id="job"><step id="one"><batchlet ref="Beating"/></step></job>"#;

/// Records each renewal; a released lease expires at -1.
const NOTE_RENEWALS: &str = "CREATE TABLE renewal (expires_at INTEGER);
     CREATE TRIGGER note_renewals AFTER UPDATE OF EXPIRES_AT ON BATCH_JOB_INSTANCE_LEASE WHEN NEW.EXPIRES_AT >= 0
     BEGIN INSERT INTO renewal VALUES (NEW.EXPIRES_AT); END;";

/// A lease that was taken over, or that could not be renewed until it expired: the batchlet is cancelled.
///
/// Spec: OP-35, REPO-15, BLET-06
#[test]
fn a_job_that_has_lost_its_lease_is_stopped() {
    for (statement, reason) in [
        (
            "UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = FENCE + 1",
            "another runtime has taken this execution over",
        ),
        (
            "CREATE TRIGGER refuse BEFORE UPDATE ON BATCH_JOB_INSTANCE_LEASE
             BEGIN SELECT RAISE(ABORT, 'no renewal any more'); END",
            "no renewal any more",
        ),
    ] {
        let stage = Stage::configured(PATIENT, short_lease);
        let execution = stage.operator().start("job", [("statement", statement)]).unwrap();
        let lost = stage.operator().wait(execution).unwrap_err().to_string();
        assert!(lost.contains(reason), "{lost}");
        assert_eq!(stage.log(), ["cancelled"], "{statement}");
    }
}

/// A batchlet that runs longer than the lease time keeps its lease, because the keeper renews it.
///
/// Spec: OP-34, OP-35
#[test]
fn the_lease_of_a_long_batchlet_is_renewed() {
    let stage = Stage::configured(PATIENT, short_lease);
    stage.connection().batch_execute(NOTE_RENEWALS).unwrap();
    // Long after the initial lease would have expired.
    let until =
        "SELECT 'renewed' AS text FROM renewal GROUP BY 1 HAVING MAX(expires_at) - MIN(expires_at) >= 1000";
    let execution = stage.operator().launch("job", [("until", until)]).unwrap();
    while rows(&mut stage.connection(), until).is_empty() {
        let refused = stage
            .another_runtime()
            .job_operator()
            .launch("job", [("until", until)]);
        assert!(
            matches!(
                &refused,
                Err(JobOperatorError::JobExecutionAlreadyRunning { .. }
                    | JobOperatorError::JobInstanceAlreadyComplete { .. })
            ),
            "{refused:?}"
        );
    }
    assert_eq!(
        stage.operator().wait(execution).unwrap().status,
        BatchStatus::Completed
    );
    assert_eq!(stage.log(), ["found"]);
}

/// Reads one item, until a third of the shortest lease has passed by the database's clock.
#[derive(BatchArtifact)]
struct Slow {
    #[batch_property(name = "folder")]
    folder: std::path::PathBuf,
    read: bool,
}

#[item_reader]
impl Slow {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[read_item]
    fn read(&mut self) -> Option<u32> {
        (!std::mem::replace(&mut self.read, true)).then(|| {
            let mut connection = sqlite::open(&self.folder.join("batch.db"));
            let mut now =
                || rows(&mut connection, "SELECT '' || unixepoch('subsec') AS text")[0].parse::<f64>();
            let begin = now().unwrap();
            while now().unwrap() < begin + 0.35 {}
            1
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct SlowSame {}

#[item_processor]
impl SlowSame {
    #[process_item]
    fn process(&mut self, number: u32) -> Option<u32> {
        Some(number)
    }
}

#[derive(BatchArtifact)]
struct SlowNowhere {}

#[item_writer]
impl SlowNowhere {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, _numbers: &[u32]) {}
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// The job ends before the keeper's first check; the commit renews the lease.
///
/// Spec: OP-35, CHUNK-LOOP-12
#[test]
fn a_commit_renews_the_lease_when_it_is_time() {
    let job = r#"<job id="job"><step id="one"><chunk reader="Slow" processor="SlowSame" writer="SlowNowhere"/></step></job>"#;
    let stage = Stage::configured(job, short_lease);
    stage.connection().batch_execute(NOTE_RENEWALS).unwrap();
    // A new runtime: its keeper's half second starts now.
    let operator = short_runtime(&stage);
    let folder = stage.path().display().to_string();
    let execution = operator.start("job", [("folder", folder)]).unwrap();
    assert_eq!(operator.wait(execution).unwrap().status, BatchStatus::Completed);
    let renewals = rows(
        &mut stage.connection(),
        "SELECT '' || COUNT(*) AS text FROM renewal",
    );
    // On a slow machine a second one may be due.
    assert_ne!(renewals, ["0"]);
}

fn short_runtime(stage: &Stage) -> batch_runtime::JobOperator {
    short_lease(batch_runtime::BatchRuntime::builder())
        .repository(format!("sqlite://{}", stage.database().display()))
        .job_path(stage.path().join("jobs").display().to_string())
        .build()
        .unwrap()
        .job_operator()
}

/// The reason why an end could not be recorded is returned to every caller, and the lease is released at once.
///
/// Spec: OP-34, OP-35, REPO-15
#[test]
fn every_wait_reports_why_an_end_was_not_recorded() {
    let stage = Stage::new(JOB);
    let refuse =
        "CREATE TRIGGER refuse BEFORE UPDATE OF END_TIME ON BATCH_JOB_EXECUTION WHEN NEW.STATUS = 'COMPLETED'
                  BEGIN SELECT RAISE(ROLLBACK, 'the true cause'); END";
    let operator = stage.operator();
    let first = operator.launch("job", [("statement", refuse)]).unwrap();
    let reasons: Vec<String> = (0..3)
        .map(|_| operator.wait(first).unwrap_err().to_string())
        .collect();
    assert!(reasons[0].contains("the true cause"), "{}", reasons[0]);
    assert!(reasons.iter().all(|again| *again == reasons[0]), "{reasons:?}");

    // Another runtime reads the repository, which only shows that the execution has no owner.
    let elsewhere = stage.another_runtime().job_operator();
    let lost = elsewhere.wait(first).unwrap_err().to_string();
    assert!(lost.contains("its process is dead"), "{lost}");
    stage.connection().batch_execute("DROP TRIGGER refuse").unwrap();
    let second = elsewhere.restart(first, JobParameters::new()).unwrap();
    elsewhere.wait(second).unwrap();
    assert_eq!(
        elsewhere.wait(first).unwrap().status,
        BatchStatus::Failed,
        "closed by the next launch"
    );
    // The runtime that ran it still returns the reason.
    assert_eq!(operator.wait(first).unwrap_err().to_string(), reasons[0]);
}

/// Steps back by a second at each call.
struct Backwards(Mutex<i64>);

impl Clock for Backwards {
    fn now(&self) -> Timestamp {
        let mut now = self.0.lock().unwrap();
        *now -= 1_000;
        Timestamp(*now)
    }
}

/// Spec: REPO-42, REPO-43, REPO-50
#[test]
fn no_end_precedes_its_start_when_the_clock_goes_back() {
    let clock = Arc::new(Backwards(Mutex::new(1_700_000_000_000)));
    let stage = Stage::configured(JOB, |builder| builder.clock(clock));
    stage.start("job", JobParameters::new());
    stage.launch("job", [("fail", "x")]);
    let wrong = |table: &str| {
        format!(
            "SELECT START_TIME || ' ' || END_TIME AS text FROM {table} WHERE END_TIME IS NULL OR END_TIME < START_TIME"
        )
    };
    for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
        assert_eq!(rows(&mut stage.connection(), &wrong(table)), [""; 0], "{table}");
    }
}

/// A table that ends the batchlet once it has a row.
const GO: &str = "CREATE TABLE go (text TEXT)";
const UNTIL_GO: &str = "SELECT text FROM go";

fn let_go(stage: &Stage) {
    stage
        .connection()
        .batch_execute("INSERT INTO go VALUES ('go')")
        .unwrap();
}

fn is_running(launched: &Result<JobExecutionId, JobOperatorError>) -> bool {
    matches!(launched, Err(JobOperatorError::JobExecutionAlreadyRunning { .. }))
}

/// The host's clock steps forward: by it the lease has expired, but the process that holds the lock is alive.
///
/// Spec: OP-34, OP-35
#[test]
fn a_clock_that_steps_takes_no_job_from_a_living_process() {
    let stage = Stage::configured(PATIENT, short_lease);
    stage.connection().batch_execute(GO).unwrap();
    let execution = stage.operator().launch("job", [("until", UNTIL_GO)]).unwrap();
    let other = stage.another_runtime().job_operator();
    for _ in 0..20 {
        stage
            .connection()
            .batch_execute("UPDATE BATCH_JOB_INSTANCE_LEASE SET EXPIRES_AT = 0")
            .unwrap();
        let second = other.launch("job", [("until", UNTIL_GO)]);
        assert!(is_running(&second), "{second:?}");
        assert!(other.is_alive(execution).unwrap());
    }
    let_go(&stage);
    assert_eq!(
        stage.operator().wait(execution).unwrap().status,
        BatchStatus::Completed
    );
}

/// A process without its lock file is not taken for dead; and it creates the file again.
///
/// Spec: OP-34, OP-35
#[test]
fn a_removed_lock_file_takes_no_job_from_a_living_process() {
    let stage = Stage::configured(PATIENT, short_lease);
    stage.connection().batch_execute(GO).unwrap();
    let owners = stage.path().join("batch.db-owners");
    let execution = stage.operator().launch("job", [("until", UNTIL_GO)]).unwrap();
    let owner = &rows(
        &mut stage.connection(),
        "SELECT OWNER AS text FROM BATCH_JOB_INSTANCE_LEASE",
    )[0];
    let nonce = owner.split('/').nth(2).unwrap();
    let lock = owners.join(format!("{nonce}.lock"));
    assert!(lock.exists());
    std::fs::remove_dir_all(&owners).unwrap();
    let other = stage.another_runtime().job_operator();
    let second = other.launch("job", [("until", UNTIL_GO)]);
    assert!(is_running(&second), "{second:?}");
    let begin = Instant::now();
    while !lock.exists() {
        assert!(begin.elapsed() < NEVER, "the lock file stays away");
        std::thread::yield_now();
    }
    let_go(&stage);
    assert_eq!(
        stage.operator().wait(execution).unwrap().status,
        BatchStatus::Completed
    );
}

/// A holder on another host, whose lease has expired by this host's clock, is observed: while it renews the lease it is
/// alive, and after a lease time without a renewal it is dead.
///
/// Spec: OP-34, OP-35
#[test]
fn a_holder_on_another_host_is_watched_before_it_counts_as_dead() {
    let stage = Stage::configured(JOB, short_lease);
    let first = stage.launch("job", [("fail", "x")]);
    die(&stage, first, "elsewhere/1/00ff00ff00ff00ff/locked", "1");
    let mut connection = stage.connection();
    let launched = std::thread::scope(|scope| {
        let launched = scope.spawn(|| stage.operator().launch("job", [("fail", "x")]));
        while !launched.is_finished() {
            connection
                .batch_execute("UPDATE BATCH_JOB_INSTANCE_LEASE SET EXPIRES_AT = EXPIRES_AT + 1 WHERE OWNER LIKE 'elsewhere%'")
                .unwrap();
        }
        launched.join().unwrap()
    });
    assert!(is_running(&launched), "{launched:?}");
    let begin = Instant::now();
    let mut second = stage.operator().launch("job", [("fail", "x")]);
    while is_running(&second) {
        assert!(begin.elapsed() < NEVER, "{second:?}");
        std::thread::yield_now();
        second = stage.operator().launch("job", [("fail", "x")]);
    }
    stage.operator().wait(second.unwrap()).unwrap();
    assert_eq!(
        stage
            .operator()
            .job_execution(first)
            .unwrap()
            .unwrap()
            .exit_status,
        "CRASHED"
    );
}
