//! Lost connections: at every request to the database, before it or after it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use batch_items::Record;
use batch_runtime::execution::JobExecution;
use batch_runtime::operator::LaunchStatus;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobOperator};
use batch_test_servers::{Kind, Server, shared};
use batch_tests::database::{Database, Place};
use batch_tests::fleet::until;
use batch_tests::proxy::{Cut, Proxy};
use batch_tests::slow::stride;

use batch_tests::database::execute;
use diesel::connection::SimpleConnection;

const KINDS: [(Kind, Database); 2] = [
    (Kind::Postgres, Database::Postgres),
    (Kind::Mariadb, Database::Mariadb),
];

/// MariaDB's library makes three requests for each statement: to prepare it, to run it, to close it.
fn every((kind, _): (Kind, Database)) -> usize {
    if kind == Kind::Mariadb { 3 } else { 1 }
}

/// Writes the numbers of a run in the transaction of the checkpoint, and names the item if that fails. The table has no
/// key, so a duplicate would be visible.
#[derive(BatchArtifact)]
struct RowsOfRun {
    #[batch_property(name = "run")]
    run: i64,
    #[batch_context]
    step: StepContext,
}

#[item_writer("RowsOfRun")]
impl RowsOfRun {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        // The items of a rolled-back interval are not counted.
        let counted: Option<usize> = self.step.persistent_user_data()?;
        let counted = counted.unwrap_or(0);
        for (index, number) in numbers.iter().enumerate() {
            let insert = format!(
                "INSERT INTO written VALUES ({}, {number}, {})",
                self.run,
                counted + index + 1
            );
            execute(tx, &insert).map_err(|error| BatchError::at_item(index, error))?;
        }
        self.step.set_persistent_user_data(&(counted + numbers.len()))?;
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

#[derive(BatchArtifact)]
struct Nothing {}

#[batchlet("Nothing")]
impl Nothing {
    #[process]
    fn process(&self) -> String {
        "COMPLETED".into()
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Runs until it is requested to stop, and then until the test lets it end.
#[derive(BatchArtifact)]
struct Held {
    /// The index of its events.
    #[batch_property(name = "hold")]
    hold: usize,
}

/// What happens to a batchlet.
struct Hold {
    /// It runs.
    held: Event,
    cancelled: Event,
    /// It may end.
    released: Event,
}

/// One for each test.
static HOLDS: [Hold; 4] = [const { Hold::new() }; 4];

impl Hold {
    const fn new() -> Self {
        Self {
            held: Event::new(),
            cancelled: Event::new(),
            released: Event::new(),
        }
    }

    /// Takes the table of the leases away until the batchlet is cancelled, and lets it end.
    fn lose_lease(&self, place: &Place) {
        // The start of a step needs the lease.
        self.held.wait();
        let mut outside = place.connect();
        outside
            .execute("ALTER TABLE BATCH_JOB_INSTANCE_LEASE RENAME TO AWAY")
            .unwrap();
        self.cancelled.wait();
        outside
            .execute("ALTER TABLE AWAY RENAME TO BATCH_JOB_INSTANCE_LEASE")
            .unwrap();
        self.released.set();
    }
}

#[batchlet("Held")]
impl Held {
    #[process]
    fn process(&self) -> String {
        HOLDS[self.hold].held.set();
        HOLDS[self.hold].released.wait();
        "COMPLETED".into()
    }
    #[cancel]
    fn cancel(&self) {
        HOLDS[self.hold].cancelled.set();
    }
}

/// Something that happens once.
struct Event(Mutex<bool>, Condvar);

impl Event {
    const fn new() -> Self {
        Self(Mutex::new(false), Condvar::new())
    }
    fn set(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
    fn wait(&self) {
        let limit = Duration::from_secs(60);
        let waited = self
            .1
            .wait_timeout_while(self.0.lock().unwrap(), limit, |happened| !*happened);
        assert!(*waited.unwrap().0, "it did not happen");
    }
}

/// Three checkpoints in a step that may skip every exception, and a batchlet.
const JOB: &str = r#"<job id="job">
  <step id="load" next="close">
    <chunk reader="Numbers" processor="Unchanged" writer="RowsOfRun" commit-interval="4" skip-limit="99">
      <properties><property name="to" value="10"/></properties>
      <skippable-exception-classes><include class="Exception"/></skippable-exception-classes>
    </chunk>
  </step>
  <step id="close"><batchlet ref="Nothing"/></step>
</job>"#;

/// As many checkpoints as items, a number that a parameter sets.
const CHECKPOINTS: &str = r#"<job id="job">
  <step id="load"><chunk reader="Numbers" processor="Unchanged" writer="RowsOfRun" commit-interval="1"/></step>
</job>"#;

/// Two partitions, one after the other.
const PARTITIONS: &str = r#"<job id="job">
  <properties><property name="batch.partition.threads" value="1"/></properties>
  <step id="load">
    <partition instances="2">
      <properties>
        <property name="from.1" value="0"/><property name="to.1" value="5"/>
        <property name="from.2" value="5"/><property name="to.2" value="10"/>
      </properties>
    </partition>
    <chunk reader="Numbers" processor="Unchanged" writer="RowsOfRun" commit-interval="3">
      <properties><property name="from" value="${from}"/><property name="to" value="${to}"/></properties>
    </chunk>
  </step>
</job>"#;

/// A runtime that reaches its database through a proxy, and a table.
struct Line {
    place: Place,
    proxy: Proxy,
    operator: JobOperator,
    run: i64,
}

impl Line {
    fn new(server: &Server, (kind, database): (Kind, Database), folder: &Path, xml: &str) -> Self {
        let place = Place::existing(database, server.new_database());
        let address = place.url().split('?').next().unwrap();
        let (_, name) = address.rsplit_once('/').unwrap();
        let proxy = Proxy::start(kind, server.socket());
        fs::write(folder.join("job.xml"), xml).unwrap();
        let operator = BatchRuntime::builder()
            .repository(proxy.url(name))
            .job_path(folder.display().to_string())
            .system_property("log", "lost")
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
            .job_operator();
        let mut outside = place.connect();
        outside
            .execute("CREATE TABLE written (run INTEGER, n INTEGER, counted INTEGER)")
            .unwrap();
        outside.reject_wrong_rows();
        Self {
            place,
            proxy,
            operator,
            run: 0,
        }
    }

    /// Runs the job with the connection cut at a request, and checks the result.
    ///
    /// Returns the number of cuts.
    fn run(&mut self, strike: impl FnOnce(&Proxy)) -> u64 {
        self.run += 1;
        let run = self.run;
        strike(&self.proxy);
        let ended = self.launch();
        let steps = self.operator.step_executions(ended.id).unwrap();
        // The run may have ended before that request.
        let struck = self.proxy.rest();
        assert_eq!(
            ended.status,
            BatchStatus::Completed,
            "run {run}: {}",
            ended.exit_message
        );
        let written = format!("SELECT COUNT(*) * 1000 + SUM(n) FROM written WHERE run = {run}");
        assert_eq!(self.place.connect().number(&written), 10_055, "run {run}");
        // Each step, or partition, counts from 1.
        let counted = format!("SELECT SUM(counted) FROM written WHERE run = {run}");
        let expected = if steps.iter().any(|step| step.step_name.contains(':')) {
            30
        } else {
            55
        };
        assert_eq!(self.place.connect().number(&counted), expected, "run {run}");
        let counters = steps.iter().map(|step| step.counters);
        let sums = counters.fold((0, 0, 0), |(reads, writes, skips), of| {
            let skipped = of.read_skips + of.process_skips + of.write_skips;
            (reads + of.reads, writes + of.writes, skips + skipped)
        });
        assert_eq!(sums, (10, 10, 0), "run {run}");
        struck
    }

    fn launch(&self) -> JobExecution {
        let parameters = [("run", self.run.to_string())];
        let execution = self.operator.launch("job", parameters);
        let execution = execution.unwrap_or_else(|error| panic!("run {}: {error}", self.run));
        self.operator.wait(execution).unwrap()
    }

    /// Cuts the connection at every n-th request, until a run ends before it. Only the slow tier strikes at all of them.
    fn strike_everywhere(&mut self, every: usize, mut strike: impl FnMut(&Proxy, u64)) {
        for request in (1..).step_by(every * stride(2) as usize) {
            if self.run(|proxy| strike(proxy, request)) == 0 {
                assert!(request > 60, "only {request} requests");
                return;
            }
        }
    }
}

/// Whichever request or answer is lost, even a COMMIT's, the execution continues and completes; nothing is lost,
/// doubled or skipped.
///
/// Spec: CHUNK-LOOP-12, OP-34, REPO-02, REPO-15, REPO-62
#[test]
fn a_connection_lost_at_any_request_is_replaced() {
    // Most of the time is spent waiting, for the server or before the next attempt to connect.
    thread::scope(|scope| {
        for kind in KINDS {
            for xml in [JOB, PARTITIONS] {
                for cut in [Cut::Request, Cut::Answer, Cut::AtWork] {
                    scope.spawn(move || {
                        let folder = tempfile::tempdir().unwrap();
                        let mut line = Line::new(shared(kind.0), kind, folder.path(), xml);
                        line.strike_everywhere(every(kind), |proxy, request| proxy.cut(cut, request));
                    });
                }
            }
        }
    });
}

/// An administrator closes all connections.
///
/// Spec: REPO-02, REPO-15, REPO-62
#[test]
fn connections_closed_by_the_server_are_replaced() {
    thread::scope(|scope| {
        for kind in KINDS {
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let mut line = Line::new(shared(kind.0), kind, folder.path(), JOB);
                let place = line.place.clone();
                line.strike_everywhere(every(kind), |proxy, request| {
                    let place = place.clone();
                    proxy.call_before(request, Box::new(move || end_connections(&place)));
                });
            });
        }
    });
}

fn end_connections(place: &Place) {
    let mut outside = place.connect();
    match place.database() {
        Database::Postgres => {
            outside.rows(
                "SELECT CAST(pg_terminate_backend(pid) AS TEXT) AS text FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            );
        }
        _ => {
            let ids = outside.rows(
                "SELECT CAST(ID AS CHAR(20)) AS text FROM information_schema.PROCESSLIST
                 WHERE DB = DATABASE() AND ID <> CONNECTION_ID()",
            );
            for id in ids {
                // The connection may have closed already.
                let _ = outside.execute(&format!("KILL {id}"));
            }
        }
    }
}

/// The server crashes and restarts later.
///
/// Spec: REPO-02, REPO-15, REPO-62
#[test]
fn a_server_crash_at_any_request_loses_nothing() {
    thread::scope(|scope| {
        // MariaDB takes longer to restart.
        for (kind, every) in [(KINDS[0], 2), (KINDS[1], 11)] {
            scope.spawn(move || {
                let server = Server::start(kind.0);
                let folder = tempfile::tempdir().unwrap();
                let mut line = Line::new(&server, kind, folder.path(), JOB);
                let server = Arc::new(Mutex::new(server));
                line.strike_everywhere(every, |proxy, request| {
                    let server = Arc::clone(&server);
                    proxy.call_before(request, Box::new(move || server.lock().unwrap().crash()));
                });
            });
        }
    });
}

/// A COMMIT that the server executes only after its connection was lost: the query for its outcome waits for it.
///
/// Spec: CHUNK-LOOP-12, REPO-15, REPO-62
#[test]
fn a_late_commit_is_awaited() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let mut line = Line::new(shared(kind.0), kind, folder.path(), JOB);
        let place = line.place.clone();
        for number in 1.. {
            let place = place.clone();
            let struck =
                line.run(|proxy| proxy.commit_late(number, Box::new(move || a_transaction_waits(&place))));
            if struck == 0 {
                assert!(number > 8, "{kind:?}: only {number} commits");
                break;
            }
        }
    }
}

/// Returns whether a transaction waits for a lock.
fn a_transaction_waits(place: &Place) -> bool {
    let waiting = match place.database() {
        Database::Postgres => {
            "SELECT COUNT(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
                WHERE NOT granted AND datname = current_database()"
        }
        _ => {
            // A view of the whole server. A connection that polls it without a pause always sees the same snapshot.
            "SELECT CAST(VARIABLE_VALUE AS INTEGER) FROM information_schema.GLOBAL_STATUS
                WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'"
        }
    };
    place.connect().number(waiting) > 0
}

/// A job whose lease cannot be renewed stops, and fails with the reason: it was not requested to stop.
///
/// Spec: OP-35, STATUS-08
#[test]
fn a_lease_that_cannot_be_renewed_fails_the_job() {
    let (place, runtime, _folder) = with_a_short_lease();
    let operator = runtime.job_operator();
    let execution = operator.launch("held", [("hold", "0")]).unwrap();
    HOLDS[0].lose_lease(&place);
    let ended = operator.wait(execution).unwrap();
    assert_eq!(ended.status, BatchStatus::Failed);
    let steps = operator.step_executions(execution).unwrap();
    for message in [&ended.exit_message, &steps[0].exit_message] {
        assert!(
            message.contains("the lease could not be renewed in 1s"),
            "{message}"
        );
    }
}

/// Copies a record, and ends all sessions of the server once, in the middle.
#[derive(BatchArtifact)]
struct EndsSessions {
    #[batch_context]
    job: JobContext,
    copied: u32,
}

static SESSIONS_ENDED: AtomicBool = AtomicBool::new(false);

#[item_processor("EndsSessions")]
impl EndsSessions {
    #[process_item]
    fn process(&mut self, record: &Record) -> Result<Option<Record>, BatchError> {
        self.copied += 1;
        if self.copied == 55 && !SESSIONS_ENDED.swap(true, Ordering::SeqCst) {
            let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                          WHERE datname = current_database() AND pid <> pg_backend_pid()";
            self.job.connect()?.postgres()?.batch_execute(others)?;
        }
        Ok(Some(record.clone()))
    }
}

/// The query reader has its own connection. If that is lost, the step resumes from its last checkpoint; no rule for items counts it.
///
/// Spec: D-104, OP-36
#[test]
fn a_reader_whose_connection_was_lost_resumes() {
    let kind = KINDS[0];
    let folder = tempfile::tempdir().unwrap();
    let place = Place::existing(kind.1, shared(kind.0).new_database());
    let xml = r#"<job id="copy"><step id="copy">
      <chunk reader="queryRecordReader" processor="EndsSessions" writer="recordTableWriter" commit-interval="10" skip-limit="0">
        <properties>
          <property name="query" value="SELECT id FROM source" target="reader"/>
          <property name="key" value="id" target="reader"/>
          <property name="page.size" value="20" target="reader"/>
          <property name="table" value="target" target="writer"/>
        </properties>
        <skippable-exception-classes><include class="*"/></skippable-exception-classes>
      </chunk>
    </step></job>"#;
    fs::write(folder.path().join("copy.xml"), xml).unwrap();
    let operator = BatchRuntime::builder()
        .repository(place.url())
        .job_path(folder.path().display().to_string())
        .build()
        .unwrap()
        .job_operator();
    let mut outside = place.connect();
    outside
        .execute("CREATE TABLE source AS SELECT generate_series(1, 200) AS id")
        .unwrap();
    outside
        .execute("CREATE TABLE target (id INTEGER NOT NULL)")
        .unwrap();
    let execution = operator.launch("copy", [("run", "1")]).unwrap();
    let ended = operator.wait(execution).unwrap();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    assert!(SESSIONS_ENDED.load(Ordering::SeqCst));
    let mut outside = place.connect();
    let [rows, ids] = ["COUNT(*)", "COUNT(DISTINCT id)"]
        .map(|count| outside.number(&format!("SELECT {count} FROM target")));
    assert_eq!((rows, ids), (200, 200));
    let step = &operator.step_executions(execution).unwrap()[0];
    assert_eq!((step.counters.read_skips, step.counters.rollbacks), (0, 1));
}

/// No scheduler repeats a remote launch: a worker does, when the database is back.
///
/// Spec: DISP-15
#[test]
fn a_remote_launch_whose_lease_was_lost_runs_again() {
    let (place, runtime, _folder) = with_a_short_lease();
    let operator = runtime.job_operator();
    let worker = runtime.worker().slots(1).start().unwrap();
    let launch = operator
        .launch_remote("held", [("hold", "1")], "default")
        .unwrap();
    HOLDS[1].lose_lease(&place);
    let status = || {
        operator
            .launches()
            .unwrap()
            .into_iter()
            .find(|found| found.id == launch)
            .unwrap()
            .status
    };
    until("the job is complete", || {
        (status() == LaunchStatus::Ended(BatchStatus::Completed)).then_some(())
    });
    let count = |status: &str| {
        place.connect().number(&format!(
            "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION WHERE STATUS = '{status}'"
        ))
    };
    assert_eq!((count("FAILED"), count("COMPLETED")), (1, 1));
    worker.drain();
    worker.wait().unwrap();
}

/// An execution that waits for its turn and loses its lease was not requested to stop: it fails, and a worker runs its launch again.
///
/// Spec: DISP-15, TURN-02
#[test]
fn a_remote_launch_that_waits_for_its_turn_survives_a_lost_lease() {
    let (place, runtime, folder) = with_a_short_lease();
    let xml = r#"<job id="queued"><properties><property name="batch.job.concurrency" value="queue"/></properties>
        <step id="hold"><batchlet ref="Held"/></step></job>"#;
    fs::write(folder.path().join("queued.xml"), xml).unwrap();
    let operator = runtime.job_operator();
    let first = operator.launch("queued", [("hold", "2")]).unwrap();
    HOLDS[2].held.wait();
    HOLDS[3].released.set();
    let worker = runtime.worker().slots(1).start().unwrap();
    operator
        .launch_remote("queued", [("hold", "3")], "default")
        .unwrap();
    let launch = || operator.launches().unwrap().remove(0);
    let waiting = until("the launch waits for its turn", || {
        let execution = launch().execution?;
        operator.waits_for(execution).unwrap().map(|_| execution)
    });
    place
        .connect()
        .execute(&format!(
            "CREATE FUNCTION deny() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'denied'; END $$ LANGUAGE plpgsql;
            CREATE TRIGGER deny BEFORE UPDATE ON BATCH_JOB_INSTANCE_LEASE FOR EACH ROW
            WHEN (NEW.JOB_EXECUTION_ID = {waiting} AND NEW.EXPIRES_AT > 0) EXECUTE FUNCTION deny()"
        ))
        .unwrap();
    let ended = until("the execution has ended", || {
        let execution = operator.job_execution(waiting).unwrap().unwrap();
        execution.status.is_final().then_some(execution)
    });
    assert_eq!(ended.status, BatchStatus::Failed);
    assert!(
        ended.exit_message.contains("the lease could not be renewed"),
        "{}",
        ended.exit_message
    );
    HOLDS[2].released.set();
    assert_eq!(operator.wait(first).unwrap().status, BatchStatus::Completed);
    until("the launch has completed", || {
        (launch().status == LaunchStatus::Ended(BatchStatus::Completed)).then_some(())
    });
    worker.drain();
    worker.wait().unwrap();
}

/// Returns a database of PostgreSQL, and a runtime on it whose leases are short, with the job `held`.
fn with_a_short_lease() -> (Place, BatchRuntime, tempfile::TempDir) {
    let kind = KINDS[0];
    let folder = tempfile::tempdir().unwrap();
    let place = Place::existing(kind.1, shared(kind.0).new_database());
    let xml = r#"<job id="held"><step id="hold"><batchlet ref="Held"/></step></job>"#;
    fs::write(folder.path().join("held.xml"), xml).unwrap();
    let runtime = BatchRuntime::builder()
        .repository(place.url())
        .job_path(folder.path().display().to_string())
        .lease_time(Duration::from_secs(1))
        .build()
        .unwrap();
    (place, runtime, folder)
}

/// On PostgreSQL a checkpoint takes three round trips, besides the writer's.
///
/// Spec: CHUNK-LOOP-12
#[test]
fn a_checkpoint_is_three_requests() {
    let kind = KINDS[0];
    let folder = tempfile::tempdir().unwrap();
    let line = Line::new(shared(kind.0), kind, folder.path(), CHECKPOINTS);
    let [few, many] = ["10", "1010"].map(|to| {
        line.proxy.count();
        let execution = line.operator.launch("job", [("run", "1"), ("to", to)]).unwrap();
        let ended = line.operator.wait(execution).unwrap();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        line.proxy.requests()
    });
    // One in four is the writer's. The keeper's are timed and few; other checkpoints renew the lease.
    assert_eq!((many - few + 500) / 1000, 4, "{few} and {many} requests");
}
