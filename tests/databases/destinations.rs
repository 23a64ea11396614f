//! Destinations beside the repository: each item once, whatever is lost between the two commits.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use batch_runtime::destination::{Advance, DatabaseDestination, Destination, Marker};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator, JobParameters};
use batch_testing::crash_sweep;
use batch_tests::database::{Database, Place};
use batch_tests::stage::{said, say};

/// Reads the numbers to `items`, and logs where it begins.
#[derive(BatchArtifact)]
struct MarkedNumbers {
    #[batch_property(value = "7")]
    items: u64,
    #[batch_property(value = "marked")]
    log: String,
    last: u64,
}

#[item_reader("MarkedNumbers")]
impl MarkedNumbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
        say(&self.log, format!("from {}", self.last));
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.last += 1;
        (self.last <= self.items).then_some(self.last)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

/// A destination with a fault at the commit of an interval.
struct Faulty {
    inner: DatabaseDestination,
    fault: String,
    interval: i64,
    url: String,
    lost: bool,
}

impl Faulty {
    /// Returns whether the fault is this one, at this interval. It happens once.
    fn strikes(&mut self, fault: &str, interval: i64) -> bool {
        let strikes = self.fault == fault && self.interval == interval;
        if strikes {
            self.fault.clear();
        }
        strikes
    }
}

impl Destination for Faulty {
    type Transaction = RepositoryConnection;
    const HAS_SAVEPOINTS: bool = true;

    fn claim(&mut self, key: &str) -> Result<Marker, BatchError> {
        self.lost = false;
        self.inner.claim(key)
    }
    fn transaction(&mut self) -> Result<&mut RepositoryConnection, BatchError> {
        self.inner.transaction()
    }
    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        if self.strikes("before", advance.to) {
            self.inner.roll_back();
            return Err(BatchError::msg("the commit is lost"));
        }
        let committed = self.inner.commit(advance)?;
        // Between two intervals.
        if self.strikes("taken", advance.to + 1) {
            DatabaseDestination::new(&self.url)?.claim(advance.key)?;
        }
        if self.strikes("after", advance.to) {
            return Err(BatchError::msg("the answer is lost"));
        }
        if self.strikes("connection", advance.to) {
            self.lost = true;
            return Err(BatchError::msg("the connection is lost"));
        }
        Ok(committed)
    }
    fn commit_unmarked(&mut self) -> Result<(), BatchError> {
        self.inner.commit_unmarked()
    }
    fn roll_back(&mut self) {
        self.inner.roll_back();
    }
    fn set_savepoint(&mut self) -> Result<(), BatchError> {
        self.inner.set_savepoint()
    }
    fn release_savepoint(&mut self) -> Result<(), BatchError> {
        self.inner.release_savepoint()
    }
    fn undo_to_savepoint(&mut self) -> Result<(), BatchError> {
        self.inner.undo_to_savepoint()
    }
    fn is_lost(&mut self) -> bool {
        self.lost || self.inner.is_lost()
    }
    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError> {
        self.inner.remove(key, fence)
    }
}

/// The fault and the bad number of a launch.
type Plan = (String, u64);

/// The plans of the next launches, by the log of their tests.
fn plans() -> MutexGuard<'static, HashMap<String, Plan>> {
    static PLANS: LazyLock<Mutex<HashMap<String, Plan>>> = LazyLock::new(Mutex::default);
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn plan_of(log: &str) -> Plan {
    plans().get(log).cloned().unwrap_or_default()
}

/// Inserts numbers into another database. Keeps their number in the user data of the step, and their sum in the data of the job. It cannot
/// write the bad number.
#[derive(BatchArtifact)]
struct Ledger {
    /// The repository's, if it is empty.
    #[batch_property(value = "")]
    url: String,
    #[batch_property(value = "marked")]
    log: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[item_writer("Ledger")]
impl Ledger {
    #[destination]
    fn ledger(&self) -> Result<Faulty, BatchError> {
        let url = match self.url.as_str() {
            "" => self.job.repository_url(),
            url => url.to_owned(),
        };
        let plan = plan_of(&self.log).0;
        let (fault, interval) = plan.split_once('@').unwrap_or((&plan, "2"));
        Ok(Faulty {
            inner: DatabaseDestination::new(&url)?,
            fault: fault.to_owned(),
            interval: interval.parse()?,
            url,
            lost: false,
        })
    }

    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut RepositoryConnection) -> Result<(), BatchError> {
        let bad = plan_of(&self.log).1;
        for number in numbers {
            tx.batch_execute(&format!("INSERT INTO number VALUES ({number})"))?;
            if *number == bad {
                return Err(std::io::Error::other(format!("{number} is bad")).into());
            }
        }
        let count = self.step.persistent_user_data::<u64>()?.unwrap_or(0) + numbers.len() as u64;
        self.step.set_persistent_user_data(&count)?;
        let sum = self.job.persistent_data::<u64>("sum")?.unwrap_or(0) + numbers.iter().sum::<u64>();
        Ok(self.job.set_persistent_data("sum", &sum)?)
    }
}

const JOB: &str = r#"<job id="marked"><step id="load">
  <chunk reader="MarkedNumbers" writer="Ledger" commit-interval="3" CHUNK>
    <properties>
      <property name="url" value="${url}"/><property name="log" value="${log}"/>
    </properties>
    FAULTS
  </chunk>
</step></job>"#;

/// A repository, and a destination of another kind or place.
struct Scene {
    folder: tempfile::TempDir,
    repository: Place,
    runtime: BatchRuntime,
    operator: JobOperator,
    destination: Place,
    log: String,
}

impl Scene {
    fn new(repository: Database, destination: Database, chunk: &str, faults: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let jobs = folder.path().join("jobs");
        fs::create_dir(&jobs).unwrap();
        let job = JOB.replace("CHUNK", chunk).replace("FAULTS", faults);
        fs::write(jobs.join("marked.xml"), job).unwrap();
        let there = folder.path().join("there");
        fs::create_dir(&there).unwrap();
        let here = Place::new(repository, folder.path());
        let destination = Place::new(destination, &there);
        destination
            .connect()
            .execute("CREATE TABLE number (number INTEGER)")
            .unwrap();
        let runtime = runtime(&here, folder.path());
        Self {
            log: folder.path().display().to_string(),
            operator: runtime.job_operator(),
            runtime,
            folder,
            repository: here,
            destination,
        }
    }

    /// Replaces a database file by another one.
    fn with_database(self, from: &Path, to: &Path) -> Self {
        let Self {
            folder,
            repository,
            runtime: before,
            operator,
            destination,
            log,
        } = self;
        assert_eq!(before.shutdown(Duration::from_secs(60)), []);
        drop((before, operator));
        for rest in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{rest}", to.display()));
        }
        fs::copy(from, to).unwrap();
        let runtime = runtime(&repository, folder.path());
        Self {
            operator: runtime.job_operator(),
            runtime,
            folder,
            repository,
            destination,
            log,
        }
    }

    /// Launches the job, and returns its end with the message.
    fn launch(&self, fault: &str, bad: u64) -> (BatchStatus, String) {
        let parameters = JobParameters::new()
            .with("url", self.destination.url())
            .with_non_identifying("log", &self.log);
        plans().insert(self.log.clone(), (fault.to_owned(), bad));
        let execution = self.operator.launch("marked", parameters).unwrap();
        let ended = self.operator.wait(execution).unwrap();
        (ended.status, ended.exit_message)
    }

    /// Returns the latest execution.
    fn last(&self) -> JobExecutionId {
        let instances = self.operator.job_instances("marked", 0, 1).unwrap();
        let executions = self.operator.job_executions(instances[0].id).unwrap();
        executions.iter().map(|execution| execution.id).max().unwrap()
    }

    /// Returns the numbers in the destination, and the number of markers.
    fn written(&self) -> (Vec<i64>, i64) {
        let mut there = self.destination.connect();
        let numbers = there.rows("SELECT CAST(number AS CHAR(9)) AS text FROM number ORDER BY number");
        let numbers = numbers.iter().map(|number| number.trim().parse().unwrap());
        let numbers = numbers.collect();
        (
            numbers,
            there.number("SELECT COUNT(*) AS number FROM BATCH_MARKER"),
        )
    }

    /// Returns the counters of the step in its instance: read, written, skipped.
    fn counters(&self) -> (i64, i64, i64) {
        let totals = self.operator.step_totals(self.last()).unwrap();
        let all = totals[0].counters;
        (all.reads, all.writes, all.write_skips)
    }

    /// Checks that each number is there once, and the data of step and job belong to them; and returns where readers have begun.
    fn is_exact(&self, context: &str) -> Vec<String> {
        assert_eq!(self.written(), ((1..=7).collect(), 0), "{context}");
        assert_eq!(self.counters(), (7, 7, 0), "{context}");
        let data = self.operator.persistent_data(self.last()).unwrap();
        assert_eq!(data.get::<u64>("sum").unwrap(), Some(28), "{context}");
        said(&self.log)
    }
}

fn runtime(repository: &Place, folder: &Path) -> BatchRuntime {
    let jobs = folder.join("jobs").display().to_string();
    let builder = BatchRuntime::builder().repository(repository.url());
    builder.job_path(jobs).build().unwrap()
}

/// Copies a database of SQLite with all that is committed.
fn copy_database(from: &Path, to: &Path) {
    let place = Place::existing(Database::Sqlite, format!("sqlite://{}", from.display()));
    place
        .connect()
        .execute(&format!("VACUUM INTO '{}'", to.display()))
        .unwrap();
}

/// Spec: MARK-04, MARK-06, MARK-08
#[test]
fn an_interval_is_committed_once_whatever_is_lost_between_the_commits() {
    for (repository, destination) in pairs() {
        for (fault, fails, begins) in [
            ("none", false, vec!["from 0"]),
            // The items of the second interval are read again.
            ("before", true, vec!["from 0", "from 3"]),
            // They are not, because the destination has them.
            ("after", true, vec!["from 0", "from 6"]),
            ("connection", false, vec!["from 0", "from 6"]),
            ("taken", false, vec!["from 0", "from 3"]),
        ] {
            let context = format!("{fault}, {repository:?} to {destination:?}");
            let scene = Scene::new(repository, destination, "", "");
            let (status, message) = scene.launch(fault, 0);
            if fails {
                assert_eq!(status, BatchStatus::Failed, "{context}");
                assert!(message.contains("is lost"), "{context}: {message}");
                let (status, message) = scene.launch("none", 0);
                assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
            } else {
                assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
            }
            assert_eq!(scene.is_exact(&context), begins, "{context}");
        }
    }
}

fn pairs() -> Vec<(Database, Database)> {
    let to = |to| Database::ALL.map(|from| (from, to));
    Database::ALL.into_iter().flat_map(to).collect()
}

/// Death, panics and errors at each statement of both databases, and between their commits.
///
/// Spec: MARK-04, MARK-06, MARK-10
#[test]
fn a_crash_at_each_event_of_both_databases_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let job = JOB.replace("CHUNK", "").replace("FAULTS", "");
    let file = folder.path().join("marked.xml");
    // On the database of the repository, by a connection of its own: the sweep sees the events of both, and compares the rows.
    fs::write(&file, job.replace("${url}", "")).unwrap();
    crash_sweep(file)
        .sample(8)
        .parameter("log", "sweep")
        .prepare(|database| database.execute("CREATE TABLE number (number INTEGER)"))
        .run();
}

/// Spec: MARK-09
#[test]
fn a_bad_item_is_skipped_or_retried_in_the_destination() {
    let skips =
        r#"<skippable-exception-classes><include class="std::io::Error"/></skippable-exception-classes>"#;
    for (repository, destination) in pairs() {
        let scene = Scene::new(repository, destination, r#"skip-limit="1""#, skips);
        let (status, message) = scene.launch("none", 5);
        assert_eq!(
            status,
            BatchStatus::Completed,
            "{repository:?} to {destination:?}: {message}"
        );
        assert_eq!(
            scene.written(),
            (vec![1, 2, 3, 4, 6, 7], 0),
            "{repository:?} to {destination:?}"
        );
        assert_eq!(scene.counters(), (7, 6, 1), "{repository:?} to {destination:?}");
    }
}

/// The marker of a step that has failed stays, and an instance that another backup of either side does not know is an error.
///
/// Spec: MARK-07
#[test]
fn a_restored_database_is_an_error_that_names_both_sides() {
    let restored = |of_repository: bool| {
        let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
        let file = match of_repository {
            true => scene.folder.path().join("batch.db"),
            false => scene.folder.path().join("there/batch.db"),
        };
        let backup = scene.folder.path().join("backup.db");
        let (status, _) = scene.launch("before@1", 0);
        assert_eq!(status, BatchStatus::Failed);
        copy_database(&file, &backup);
        // Two intervals more.
        let (status, message) = scene.launch("none", 7);
        assert_eq!(status, BatchStatus::Failed);
        assert!(message.contains("7 is bad"), "{message}");
        (scene, file, backup)
    };
    for of_repository in [true, false] {
        let (scene, file, backup) = restored(of_repository);
        let scene = scene.with_database(&backup, &file);
        let (status, message) = scene.launch("none", 0);
        assert_eq!(status, BatchStatus::Failed);
        let (destination, repository) = match of_repository {
            true => (2, 0),
            false => (0, 2),
        };
        for part in [
            format!("the marker of interval {destination}"),
            format!("the repository is at interval {repository}"),
            "restored from a backup".to_owned(),
            "/load`".to_owned(),
        ] {
            assert!(message.contains(&part), "{part}: {message}");
        }
    }
}

/// Spec: MARK-04 to MARK-06
#[test]
#[cfg(debug_assertions)]
fn the_tests_find_planted_faults() {
    let name = "destinations::an_interval_is_committed_once_whatever_is_lost_between_the_commits";
    for fault in [
        "repository-first",
        "no-counters",
        "split-marker",
        "no-marker-fence",
    ] {
        let mut test = Command::new(std::env::current_exe().unwrap());
        let test = test.args(["--exact", name]).env("BATCH_FAILPOINTS", fault);
        let output = test.output().unwrap();
        let found = String::from_utf8_lossy(&output.stdout);
        assert!(
            !output.status.success() && found.contains("1 failed"),
            "{fault}: {found}"
        );
    }
}

/// A runtime that knows the database `there`, with the table `number` in both databases, and a job of records.
fn named(repository: Database, destination: Database, writer: &str, properties: &str) -> (Scene, String) {
    let mut scene = Scene::new(repository, destination, "", "");
    let job = format!(
        r#"<job id="named"><step id="copy">
          <chunk reader="queryRecordReader" writer="{writer}" commit-interval="40">
            <properties>
              <property name="query" value="SELECT number FROM number WHERE number > 0" target="reader"/>
              <property name="key" value="number" target="reader"/>{properties}
            </properties>
          </chunk>
        </step></job>"#
    );
    fs::write(scene.folder.path().join("jobs/named.xml"), job).unwrap();
    let mut here = scene.repository.connect();
    here.execute("CREATE TABLE number (number INTEGER PRIMARY KEY)")
        .unwrap();
    for number in 1..=100 {
        here.execute(&format!("INSERT INTO number VALUES ({number})"))
            .unwrap();
    }
    let jobs = scene.folder.path().join("jobs").display().to_string();
    let builder = BatchRuntime::builder().repository(scene.repository.url());
    let builder = builder.database("there", scene.destination.url());
    scene.runtime = builder.job_path(jobs).build().unwrap();
    scene.operator = scene.runtime.job_operator();
    let execution = scene.operator.launch("named", ()).unwrap();
    let ended = scene.operator.wait(execution).unwrap();
    let message = match ended.status {
        BatchStatus::Completed => String::new(),
        _ => ended.exit_message,
    };
    (scene, message)
}

/// Records alone move rows between databases, exactly once.
///
/// Spec: MARK-12, MARK-13
#[test]
fn a_named_database_is_one_that_artifacts_read_and_write() {
    let there = r#"<property name="table" value="number" target="writer"/><property name="database" value="there" target="writer"/>"#;
    for (repository, destination) in pairs() {
        let (scene, message) = named(repository, destination, "recordTableWriter", there);
        assert_eq!(message, "", "{repository:?} to {destination:?}");
        assert_eq!(
            scene.written(),
            ((1..=100).collect(), 0),
            "{repository:?} to {destination:?}"
        );
    }
    let misspelt = there.replace(r#""there""#, r#""thare""#);
    let (_, message) = named(Database::Sqlite, Database::Sqlite, "recordTableWriter", &misspelt);
    assert!(
        message.contains("unknown database `thare`; did you mean `there`?"),
        "{message}"
    );
}
