//! Coordinators and workers in separate processes, which are killed, frozen and drained, and what they leave.
//!
//! Each test of a dispatcher has a `Fleet`: a folder with the Job XML, a repository, and the setting `dispatch`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::database::{Database, Outside, Place};
use crate::deadline;
use crate::process;

/// The environment variable with the path of the file that holds a partition while it exists.
pub const HOLD: &str = "FLEET_HOLD";

/// A partitioned chunk step with all companions, a partitioned flow, and a step of tiny batchlets.
const JOB: &str = r#"<job id="fleet">
  <properties>
    <property name="parts" value="4"/>
    <property name="items" value="50"/>
    <property name="commit.interval" value="10"/>
  </properties>
  <step id="load">
    <chunk reader="Numbers" writer="Rows" processor="Same" checkpoint-policy="item" commit-interval="${commit.interval}"/>
    <partition>
      <algorithm ref="PlanParts"/>
      <collector ref="Progress"/>
      <analyzer ref="Total"/>
    </partition>
  </step>
</job>
"#;

const FLOW: &str = r#"<job id="flow">
  <properties>
    <property name="parts" value="4"/>
    <property name="items" value="50"/>
  </properties>
  <flow id="each">
    <step id="load" next="tell">
      <chunk reader="Numbers" writer="Rows" processor="Same" commit-interval="10"/>
    </step>
    <step id="tell"><batchlet ref="Tiny"/></step>
    <partition>
      <algorithm ref="PlanParts"/>
      <logicalTX ref="Transaction"/>
    </partition>
  </flow>
</job>
"#;

/// Two partitioned steps at the same time, of 2 and 5 partitions.
const TWINS: &str = r#"<job id="twins">
  <split id="both">
    <flow id="first">
      <step id="small">
        <properties><property name="parts" value="2"/><property name="run" value="1"/></properties>
        <chunk reader="Numbers" writer="Rows" processor="Same" commit-interval="10"/>
        <partition><algorithm ref="PlanParts"/><collector ref="Progress"/><analyzer ref="Total"/></partition>
      </step>
    </flow>
    <flow id="second">
      <step id="large">
        <properties><property name="parts" value="5"/><property name="run" value="2"/></properties>
        <chunk reader="Numbers" writer="Rows" processor="Same" commit-interval="10"/>
        <partition><algorithm ref="PlanParts"/><collector ref="Progress"/><analyzer ref="Total"/></partition>
      </step>
    </flow>
  </split>
</job>
"#;

const TINY: &str = r#"<job id="tiny">
  <properties><property name="parts" value="500"/></properties>
  <step id="all">
    <batchlet ref="Tiny"/>
    <partition><algorithm ref="PlanParts"/><analyzer ref="Total"/></partition>
  </step>
</job>
"#;

/// The lease time of the processes, in seconds: the time until a dead worker is noticed.
const LEASE: &str = "2";

/// The longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `happened` returns a value.
///
/// # Panics
/// If it does not happen.
pub fn until<T>(what: &str, mut happened: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = happened() {
            return value;
        }
        assert!(begin.elapsed() < PATIENCE, "has not happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The queue of tickets, as the tests see and disturb it.
pub trait Queue {
    /// Returns the number of tickets that wait for workers.
    fn waiting(&self, fleet: &Fleet) -> i64;
    /// Removes the tickets that wait. Returns their number.
    fn lose(&self, fleet: &Fleet) -> i64;
    /// Keeps copies of the tickets that wait.
    fn keep(&self, fleet: &Fleet);
    /// Queues the copies.
    fn repeat(&self, fleet: &Fleet);
}

/// The queue in the repository.
struct Tables;

impl Queue for Tables {
    fn waiting(&self, fleet: &Fleet) -> i64 {
        fleet.number("SELECT COUNT(*) AS n FROM BATCH_PARTITION_TICKET")
    }
    fn lose(&self, fleet: &Fleet) -> i64 {
        let tickets = self.waiting(fleet);
        fleet
            .connect()
            .execute("DELETE FROM BATCH_PARTITION_TICKET")
            .unwrap();
        tickets
    }
    fn keep(&self, fleet: &Fleet) {
        let copy = "CREATE TABLE kept AS SELECT * FROM BATCH_PARTITION_TICKET";
        fleet.connect().execute(copy).unwrap();
    }
    fn repeat(&self, fleet: &Fleet) {
        let repeat = "INSERT INTO BATCH_PARTITION_TICKET SELECT * FROM kept WHERE STEP_EXECUTION_ID NOT IN
            (SELECT STEP_EXECUTION_ID FROM BATCH_PARTITION_TICKET)";
        fleet.connect().execute(repeat).unwrap();
    }
}

/// A repository, a folder and a setting that all processes share.
pub struct Fleet {
    program: PathBuf,
    folder: tempfile::TempDir,
    /// The repository.
    pub place: Place,
    dispatch: String,
    queue: Box<dyn Queue>,
    variables: Vec<(String, String)>,
    processes: AtomicU32,
}

impl Fleet {
    /// Creates the folder, the tables and the jobs. `program` is the path of `fleet`.
    pub fn new(program: &str, place: impl FnOnce(&Path) -> Place, dispatch: impl Into<String>) -> Self {
        let folder = crate::folder::new();
        for (name, text) in [("load", JOB), ("flow", FLOW), ("tiny", TINY), ("twins", TWINS)] {
            fs::create_dir_all(folder.path().join("jobs")).unwrap();
            fs::write(folder.path().join("jobs").join(format!("{name}.xml")), text).unwrap();
        }
        let place = place(folder.path());
        batch_runtime::BatchRuntime::builder()
            .repository(place.url())
            .build()
            .unwrap();
        let columns = "run INTEGER NOT NULL, part INTEGER NOT NULL, item INTEGER NOT NULL";
        let table = format!("CREATE TABLE processed ({columns})");
        place.connect().execute(&table).unwrap();
        Self {
            program: program.into(),
            folder,
            place,
            dispatch: dispatch.into(),
            queue: Box::new(Tables),
            variables: Vec::new(),
            processes: AtomicU32::new(0),
        }
    }

    /// Makes processes that start later look as if each was on another host: no lock shows that one is alive or dead.
    pub fn on_other_hosts(&self) {
        let locks = self.path().join("batch.db-owners");
        let _ = fs::remove_dir_all(&locks);
        fs::write(locks, "").unwrap();
    }

    /// Sets the queue, if it is not in the repository.
    pub fn with_queue(mut self, queue: impl Queue + 'static) -> Self {
        self.queue = Box::new(queue);
        self
    }

    /// Sets an environment variable of all processes.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a folder with another version of the job `fleet`, and returns its name.
    pub fn other_jobs(&self) -> String {
        let newer = JOB.replace("name=\"items\" value=\"50\"", "name=\"items\" value=\"51\"");
        assert_ne!(newer, JOB);
        fs::create_dir(self.path().join("other")).unwrap();
        fs::write(self.path().join("other/load.xml"), newer).unwrap();
        "other".into()
    }

    /// Starts a process of the program.
    pub fn start(&self, arguments: &[&str]) -> Process {
        self.start_in("jobs", arguments)
    }

    /// Starts a process whose Job XML is in another folder.
    pub fn start_in(&self, jobs: &str, arguments: &[&str]) -> Process {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let log = self.path().join(format!("process-{number}.log"));
        let output = fs::File::create(&log).unwrap();
        let (waited_for, of_process) = (arguments.join(" "), log.clone());
        deadline::waits_for(move || {
            let printed = fs::read_to_string(&of_process).unwrap_or_default();
            format!("something after the start of `{waited_for}`, which printed\n{printed}")
        });
        let child = Command::new(&self.program)
            .args(["--repository", self.place.url()])
            .args(["--job-path", jobs])
            .args(arguments)
            .env("BATCH_DISPATCH", &self.dispatch)
            .env("BATCH_LEASE_TIME", LEASE)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env(HOLD, self.held())
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Process { child, log }
    }

    /// Starts a worker, and returns when it takes partitions.
    pub fn worker(&self, arguments: &[&str]) -> Process {
        self.worker_in("jobs", arguments)
    }

    /// Starts a worker whose Job XML is in another folder.
    pub fn worker_in(&self, jobs: &str, arguments: &[&str]) -> Process {
        let slots: &[&str] = match arguments.contains(&"--slots") {
            true => &[],
            false => &["--slots", "2"],
        };
        let arguments = [&["worker"], slots, arguments].concat();
        let mut process = self.start_in(jobs, &arguments);
        process.says("waiting for partitions");
        process
    }

    /// Runs a command that has to end with this exit code; returns what it prints.
    pub fn run(&self, code: i32, arguments: &[&str]) -> String {
        let mut process = self.start(arguments);
        process.ends(code)
    }

    fn held(&self) -> PathBuf {
        self.path().join("held")
    }

    /// Holds the partitions with the property `holds` when they come to 25.
    pub fn hold(&self) {
        fs::write(self.held(), "").unwrap();
    }

    /// Waits until a partition is held, and returns the id of its process.
    pub fn is_held(&self) -> u32 {
        let reached = self.held().with_extension("reached");
        until("a partition waits", || {
            fs::read_to_string(&reached).ok()?.parse().ok()
        })
    }

    /// Lets held partitions continue.
    pub fn release(&self) {
        fs::remove_file(self.held()).unwrap();
        let _ = fs::remove_file(self.held().with_extension("reached"));
    }

    /// Removes the tickets that no worker has taken, as a broker does that loses its disk. Returns their number.
    pub fn lose_tickets(&self) -> i64 {
        self.queue.lose(self)
    }

    /// Returns the number of tickets that wait for workers; a broker also counts the tickets of partitions that run.
    pub fn waiting(&self) -> i64 {
        self.queue.waiting(self)
    }

    /// Returns once `count` tickets wait for workers, and keeps copies of them.
    pub fn keep_tickets(&self, count: i64) {
        until("the partitions are submitted", || {
            (self.queue.waiting(self) == count).then_some(())
        });
        self.queue.keep(self);
    }

    /// Delivers the kept tickets again, and returns when they are taken.
    pub fn repeat_tickets(&self) {
        self.queue.repeat(self);
        until("the tickets are taken", || {
            (self.queue.waiting(self) == 0).then_some(())
        });
    }

    /// Suspends a process. On SQLite not within a transaction: nothing could end that, and all others would wait.
    pub fn freeze(&self, process: &Process) {
        loop {
            process.signal("STOP");
            let is_free = || self.connect().execute("BEGIN IMMEDIATE; ROLLBACK").is_ok();
            if self.place.database() != Database::Sqlite || is_free() {
                return;
            }
            process.signal("CONT");
        }
    }

    /// Opens a connection beside the processes.
    pub fn connect(&self) -> Outside {
        self.place.connect()
    }

    /// Returns the number of a query.
    pub fn number(&self, query: &str) -> i64 {
        self.connect().number(query)
    }

    /// Returns the statuses of the partitions of the latest execution, in the order of their numbers.
    pub fn statuses(&self) -> Vec<String> {
        let rows = "SELECT STATUS AS text FROM BATCH_STEP_EXECUTION WHERE STEP_NAME LIKE 'load:%' AND JOB_EXECUTION_ID =
            (SELECT MAX(JOB_EXECUTION_ID) FROM BATCH_JOB_EXECUTION) ORDER BY STEP_NAME";
        self.connect().rows(rows)
    }

    /// Checks that `expected` items are processed, each once, and that nothing is left.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, expected: i64) -> Result<(), String> {
        let number = |query: &str| self.number(query);
        let rows = number("SELECT COUNT(*) AS n FROM processed");
        let distinct =
            number("SELECT COUNT(*) AS n FROM (SELECT DISTINCT run, part, item FROM processed) AS d");
        if distinct != expected {
            return Err(format!("{distinct} of {expected} items are processed"));
        }
        if rows != distinct {
            return Err(format!("{} rows are doubled", rows - distinct));
        }
        for (table, what) in [
            ("BATCH_PARTITION_TICKET", "tickets"),
            ("BATCH_PARTITION_REPORT", "reports"),
        ] {
            let left = number(&format!("SELECT COUNT(*) AS n FROM {table}"));
            if left != 0 {
                return Err(format!("{left} {what} are left"));
            }
        }
        let open = "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION WHERE END_TIME IS NULL";
        match number(open) {
            0 => Ok(()),
            open => Err(format!("{open} step executions have not ended")),
        }
    }

    /// Checks as [`check`](Self::check) does.
    #[track_caller]
    pub fn is_exact(&self, expected: i64) {
        if let Err(problem) = self.check(expected) {
            panic!("{problem}\n{}", self.logs());
        }
    }

    /// Returns what all processes have printed.
    pub fn logs(&self) -> String {
        let count = self.processes.load(Ordering::Relaxed);
        let logs = (0..count).map(|number| {
            let log = fs::read_to_string(self.path().join(format!("process-{number}.log")));
            format!("--- process {number}\n{}", log.unwrap_or_default())
        });
        logs.collect()
    }
}

/// A process of the fleet. Dropped, it is killed.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns what it has printed.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it has printed `text`.
    pub fn says(&mut self, text: &str) {
        let begin = Instant::now();
        loop {
            let ended = self.has_ended();
            if self.log().contains(text) {
                return;
            }
            let waits = !ended && begin.elapsed() < PATIENCE;
            assert!(waits, "{text:?} is not printed:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal: `TERM`, `KILL`, `STOP` ...
    pub fn signal(&self, name: &str) {
        process::signal(&self.child, name);
    }

    /// Kills it as `kill -9` does, and waits for its end.
    pub fn kill(&mut self) -> ExitStatus {
        self.child.kill().unwrap();
        self.child.wait().unwrap()
    }

    /// Returns whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub fn end(&mut self) -> &Self {
        let begin = Instant::now();
        while !self.has_ended() {
            assert!(begin.elapsed() < PATIENCE, "it does not end:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
        self
    }

    /// Waits for its end with this exit code; returns what it has printed.
    pub fn ends(&mut self, code: i32) -> String {
        self.end();
        let ended = self.child.wait().unwrap();
        assert_eq!(ended.code(), Some(code), "{}", self.log());
        self.log()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
