//! Destinations beside the repository: each item once, whatever is lost between the two commits.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use batch_items::compose::WriteItems;
use batch_items::{CompositeItemWriter, LineItemWriter, Record, TableItemWriter};
use batch_runtime::destination::{Advance, AnyDestination, DatabaseDestination, Destination, Marker};
use batch_runtime::operator::Purge;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperator, JobParameters};
#[cfg(feature = "servers")]
use batch_test_servers::{Kind, shared};
use batch_testing::crash_sweep;
use batch_tests::database::{Database, Place};
use batch_tests::faulty::Faulty;
use batch_tests::stage::{said, say};

/// Reads the numbers to `items`, and logs where it begins.
#[derive(BatchArtifact)]
struct MarkedNumbers {
    #[batch_property(value = "7")]
    items: u64,
    /// A number that cannot be read, which may follow the last one.
    #[batch_property]
    unreadable: Option<u64>,
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
    fn read(&mut self) -> Result<Option<u64>, std::io::Error> {
        self.last += 1;
        if self.unreadable == Some(self.last) {
            return Err(std::io::Error::other("it cannot be read"));
        }
        Ok((self.last <= self.items).then_some(self.last))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}

/// The fault and the bad number of a launch.
pub(super) type Plan = (String, u64);

/// The plans of the next launches, by the log of their tests.
fn plans() -> MutexGuard<'static, HashMap<String, Plan>> {
    static PLANS: LazyLock<Mutex<HashMap<String, Plan>>> = LazyLock::new(Mutex::default);
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn plan_of(log: &str) -> Plan {
    plans().get(log).cloned().unwrap_or_default()
}

/// The user data: the number of the numbers, and characters that few encodings have.
type Counted = (u64, String);

const OTHER_CHARACTERS: &str = "€漢😀\u{0}";

/// Inserts numbers into another database. Keeps their number in the user data of the step, and their sum in the data of the job. It cannot
/// write the bad number.
#[derive(BatchArtifact)]
struct Ledger {
    /// A statement after the others, whose error it hides.
    #[batch_property(value = "")]
    then: String,
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
    fn ledger(&self) -> Result<Faulty<DatabaseDestination>, BatchError> {
        let url = match self.url.as_str() {
            "" => self.job.repository_url(),
            url => url.to_owned(),
        };
        faulty(&url, &self.log)
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
        if !self.then.is_empty() {
            let _ = tx.batch_execute(&self.then);
        }
        count(&self.step, &self.job, numbers)
    }
}

/// Returns the destination of a URL with the fault of the plan. Its act is that another owner takes the marker.
pub(super) fn faulty(url: &str, log: &str) -> Result<Faulty<DatabaseDestination>, BatchError> {
    let (destination, url) = (DatabaseDestination::new(url)?, url.to_owned());
    let act = move |_: &mut DatabaseDestination, key: Option<&str>| {
        DatabaseDestination::new(&url)?.claim(key.unwrap_or_default())?;
        Ok(())
    };
    Ok(Faulty::new(destination, &plan_of(log).0, act))
}

/// Adds to the user data of the step and the data of the job.
pub(super) fn count(step: &StepContext, job: &JobContext, numbers: &[u64]) -> Result<(), BatchError> {
    let (count, _) = step.persistent_user_data::<Counted>()?.unwrap_or_default();
    let counted = (count + numbers.len() as u64, OTHER_CHARACTERS.to_owned());
    step.set_persistent_user_data(&counted)?;
    let sum = job.persistent_data::<u64>("sum")?.unwrap_or(0) + numbers.iter().sum::<u64>();
    job.set_persistent_data("sum", &sum)
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
pub(super) struct Scene {
    folder: tempfile::TempDir,
    pub(super) repository: Place,
    runtime: BatchRuntime,
    pub(super) operator: JobOperator,
    destination: Place,
    pub(super) log: String,
}

impl Scene {
    pub(super) fn new(repository: Database, destination: Database, chunk: &str, faults: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("there");
        fs::create_dir(&there).unwrap();
        let destination = Place::new(destination, &there);
        Self::at(folder, repository, destination, chunk, faults)
    }

    fn at(
        folder: tempfile::TempDir,
        repository: Database,
        destination: Place,
        chunk: &str,
        faults: &str,
    ) -> Self {
        let jobs = folder.path().join("jobs");
        fs::create_dir(&jobs).unwrap();
        let job = JOB.replace("CHUNK", chunk).replace("FAULTS", faults);
        fs::write(jobs.join("marked.xml"), job).unwrap();
        let here = Place::new(repository, folder.path());
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

    /// Continues with a backup of the repository, where it is.
    fn with_repository(mut self, backup: &Path) -> Self {
        self.repository = Place::existing(Database::Sqlite, format!("sqlite://{}", backup.display()));
        self.runtime = runtime(&self.repository, self.folder.path());
        self.operator = self.runtime.job_operator();
        self
    }

    /// Changes the text of the job.
    pub(super) fn with_text(mut self, change: impl FnOnce(String) -> String) -> Self {
        let file = self.folder.path().join("jobs/marked.xml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, change(text)).unwrap();
        self.runtime = runtime(&self.repository, self.folder.path());
        self.operator = self.runtime.job_operator();
        self
    }

    /// Launches the job, and returns its end with the message.
    pub(super) fn launch(&self, fault: &str, bad: u64) -> (BatchStatus, String) {
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
    pub(super) fn written(&self) -> (Vec<i64>, i64) {
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
    pub(super) fn counters(&self) -> (i64, i64, i64) {
        let totals = self.operator.step_totals(self.last()).unwrap();
        let all = totals[0].counters;
        (all.reads, all.writes, all.write_skips)
    }

    /// Checks that each number is there once, and the data of step and job belong to them; and returns where readers have started.
    pub(super) fn is_exact(&self, context: &str) -> Vec<String> {
        assert_eq!(self.written(), ((1..=7).collect(), 0), "{context}");
        assert_eq!(self.counters(), (7, 7, 0), "{context}");
        let steps = self.operator.step_executions(self.last()).unwrap();
        let counted = steps[0].persistent_user_data::<Counted>().unwrap();
        assert_eq!(counted, Some((7, OTHER_CHARACTERS.to_owned())), "{context}");
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
            ("act:between", false, vec!["from 0", "from 3"]),
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

pub(super) fn pairs() -> Vec<(Database, Database)> {
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
    // On the database of the repository, by another connection: the sweep sees the events of both, and compares the rows.
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
        let scene = match of_repository {
            true => scene.with_repository(&backup),
            // Nothing has it open after the end of the job.
            false => {
                fs::copy(&backup, &file).unwrap();
                scene
            }
        };
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
    let copy = "CREATE TABLE copy (number INTEGER)";
    here.execute(copy).unwrap();
    scene.destination.connect().execute(copy).unwrap();
    for number in 1..=100 {
        here.execute(&format!("INSERT INTO number VALUES ({number})"))
            .unwrap();
    }
    let jobs = scene.folder.path().join("jobs").display().to_string();
    let builder = BatchRuntime::builder().repository(scene.repository.url());
    let builder = builder.database("there", scene.destination.url());
    scene.runtime = builder.job_path(jobs).build().unwrap();
    scene.operator = scene.runtime.job_operator();
    let execution = match scene.operator.launch("named", ()) {
        Ok(execution) => execution,
        Err(error) => return (scene, error.to_string()),
    };
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

/// A destination without savepoints.
struct Plain(DatabaseDestination);

impl Destination for Plain {
    type Transaction = RepositoryConnection;

    fn claim(&mut self, key: &str) -> Result<Marker, BatchError> {
        self.0.claim(key)
    }
    fn transaction(&mut self) -> Result<&mut RepositoryConnection, BatchError> {
        self.0.transaction()
    }
    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        self.0.commit(advance)
    }
    fn commit_unmarked(&mut self) -> Result<(), BatchError> {
        self.0.commit_unmarked()
    }
    fn roll_back(&mut self) {
        self.0.roll_back();
    }
    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError> {
        self.0.remove(key, fence)
    }
}

/// Inserts numbers into another database, which has no savepoints. It cannot write the bad number.
#[derive(BatchArtifact)]
struct PlainLedger {
    #[batch_property]
    url: String,
    #[batch_property(value = "marked")]
    log: String,
}

#[item_writer("PlainLedger")]
impl PlainLedger {
    #[destination]
    fn ledger(&self) -> Result<Plain, BatchError> {
        Ok(Plain(DatabaseDestination::new(&self.url)?))
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut RepositoryConnection) -> Result<(), BatchError> {
        for number in numbers {
            tx.batch_execute(&format!("INSERT INTO number VALUES ({number})"))?;
            if *number == plan_of(&plain(&self.log)).1 {
                return Err(std::io::Error::other(format!("{number} is bad")).into());
            }
        }
        Ok(())
    }
}

/// Returns the name of the plan of a [`PlainLedger`].
fn plain(log: &str) -> String {
    format!("{log} plain")
}

/// Spec: MARK-09
#[test]
fn without_savepoints_a_bad_item_is_found_one_by_one() {
    let skips =
        r#"<skippable-exception-classes><include class="std::io::Error"/></skippable-exception-classes>"#;
    let scene = Scene::new(Database::Sqlite, Database::Sqlite, r#"skip-limit="1""#, skips);
    let scene = scene.with_text(|job| job.replace("\"Ledger\"", "\"PlainLedger\""));
    plans().insert(plain(&scene.log), (String::new(), 5));
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Completed, "{message}");
    assert_eq!(scene.written(), (vec![1, 2, 3, 4, 6, 7], 0));
    assert_eq!(scene.counters(), (7, 6, 1));
}

/// A step that begins again on purpose begins with its marker, wherever its last execution has ended.
///
/// Spec: MARK-07
#[test]
fn a_step_that_is_repeated_begins_its_marker_again() {
    let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
    // The second step fails, so that the instance can be restarted, and the first one runs again.
    let scene = scene.with_text(|job| {
        let job = job.replace(
            r#"<step id="load">"#,
            r#"<step id="load" next="again" allow-start-if-complete="true">"#,
        );
        let step = job[job.find("<step").unwrap()..job.find("</job>").unwrap()].to_owned();
        let second = step.replace(
            r#"id="load" next="again" allow-start-if-complete="true""#,
            r#"id="again""#,
        );
        job.replace(
            "</job>",
            &format!("{}</job>", second.replace("\"Ledger\"", "\"PlainLedger\"")),
        )
    });
    plans().insert(plain(&scene.log), (String::new(), 4));
    let (status, message) = scene.launch("none", 0);
    assert_eq!(
        (status, message.contains("4 is bad")),
        (BatchStatus::Failed, true),
        "{message}"
    );
    // One interval of the second step, and its marker.
    assert_eq!(scene.written(), (vec![1, 1, 2, 2, 3, 3, 4, 5, 6, 7], 1));
    plans().remove(&plain(&scene.log));
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Completed, "{message}");
    let expected: Vec<i64> = (1..=7).flat_map(|number| [number; 3]).collect();
    assert_eq!(scene.written(), (expected, 0));
}

/// Spec: MARK-10
#[test]
fn a_purge_removes_the_markers_of_its_instances() {
    let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
    let (status, _) = scene.launch("before@2", 0);
    assert_eq!((status, scene.written().1), (BatchStatus::Failed, 1));
    let jobs = scene.folder.path().join("jobs").display().to_string();
    let builder = BatchRuntime::builder()
        .repository(scene.repository.url())
        .job_path(jobs);
    let runtime = builder
        .database("there", scene.destination.url())
        .build()
        .unwrap();
    let all = Purge {
        force: true,
        ..Purge::default()
    };
    assert_eq!(runtime.job_operator().purge(&all, None).unwrap(), 1);
    assert_eq!(scene.written().1, 0);
}

/// If the writer ends the transaction of its destination, or hides an error that ended it, the step fails: its rows would be committed
/// without their marker, or be lost.
///
/// Spec: MARK-04
#[test]
fn a_transaction_of_a_destination_that_ended_before_its_time_fails_the_step() {
    for destination in Database::ALL {
        let ended_by_error = match destination {
            Database::Postgres => "SELECT no_such_column",
            Database::Mariadb => "CREATE TABLE other (n INTEGER)",
            Database::Sqlite => "INSERT OR ROLLBACK INTO number VALUES (1)",
        };
        for statement in [ended_by_error, "COMMIT", "ROLLBACK", "COMMIT; BEGIN"] {
            for in_memory in [false, true] {
                let scene = Scene::new(Database::Sqlite, destination, "", "");
                let unique = "CREATE UNIQUE INDEX one ON number (number)";
                scene.destination.connect().execute(unique).unwrap();
                let then = format!(r#"<property name="then" value="{statement}"/><property name="url""#);
                let mut scene = scene.with_text(|job| job.replace(r#"<property name="url""#, &then));
                if in_memory {
                    let jobs = scene.folder.path().join("jobs").display().to_string();
                    let builder = BatchRuntime::builder().repository("memory:");
                    scene.runtime = builder.job_path(jobs).build().unwrap();
                    scene.operator = scene.runtime.job_operator();
                }
                let (status, message) = scene.launch("none", 0);
                let context = format!("{destination:?}, `{statement}`, in memory: {in_memory}: {message}");
                assert_eq!(status, BatchStatus::Failed, "{context}");
                let advice = "must not commit or roll back the transaction, and has to return the error of a failed statement";
                assert!(message.contains(advice), "{context}");
                let steps = scene.operator.step_executions(scene.last()).unwrap();
                assert_eq!(steps[0].counters.commits, 0, "{context}");
            }
        }
    }
}

/// Spec: MARK-12
#[test]
fn a_repository_in_memory_keeps_no_markers() {
    let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
    let jobs = scene.folder.path().join("jobs").display().to_string();
    let runtime = BatchRuntime::builder()
        .repository("memory:")
        .job_path(jobs)
        .build()
        .unwrap();
    let operator = runtime.job_operator();
    let parameters = JobParameters::new()
        .with("url", scene.destination.url())
        .with_non_identifying("log", &scene.log);
    let launch = |fault: &str| {
        plans().insert(scene.log.clone(), (fault.to_owned(), 0));
        let execution = operator.start("marked", parameters.clone()).unwrap();
        operator.wait(execution).unwrap()
    };
    let ended = launch("none");
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    // Nothing shows whether a lost answer was a commit, so the step must not write its items again.
    let ended = launch("connection@1");
    assert_eq!(ended.status, BatchStatus::Failed, "{}", ended.exit_message);
    let mut there = scene.destination.connect();
    assert_eq!(there.number("SELECT COUNT(*) AS number FROM number"), 10);
    assert_eq!(
        there.number("SELECT COUNT(*) AS number FROM sqlite_master WHERE name = 'BATCH_MARKER'"),
        0
    );
}

#[item_writer("BothTables")]
type BothTables = CompositeItemWriter<Record, TableItemWriter<Record>, TableItemWriter<Record>>;

/// Tables of one other database are one destination; two destinations are none, and one may be beside the transaction of
/// the repository.
///
/// Spec: MARK-12
#[test]
fn a_step_writes_to_one_destination() {
    let both = |first: &str, second: &str| {
        let part = |number: u8, database: &str| {
            let database = match database {
                "" => String::new(),
                name => format!(r#"<property name="{number}.database" value="{name}" target="writer"/>"#),
            };
            format!(r#"<property name="{number}.table" value="copy" target="writer"/>{database}"#)
        };
        format!("{}{}", part(1, first), part(2, second))
    };
    let run = |first: &str, second: &str| {
        let (scene, message) = named(
            Database::Sqlite,
            Database::Sqlite,
            "BothTables",
            &both(first, second),
        );
        let copied = scene
            .destination
            .connect()
            .number("SELECT COUNT(*) AS number FROM copy");
        (message, copied)
    };
    assert_eq!(run("there", "there"), (String::new(), 200));
    let (message, copied) = run("there", "sqlite://elsewhere.db");
    assert!(
        message.contains("the parts of the writer have two destinations"),
        "{message}"
    );
    assert_eq!(copied, 0);
    // In a SQLite file the two transactions exclude each other, so the other one has another file.
    assert_eq!(run("there", ""), (String::new(), 100));
}

/// An owner that is suspended in its transaction holds locks. The next one ends its session, and it commits nothing when it wakes up.
///
/// Spec: MARK-05, MARK-11
#[test]
#[cfg(feature = "servers")]
fn a_new_owner_ends_the_session_of_a_suspended_one() {
    for kind in [Database::Postgres, Database::Mariadb] {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(kind, folder.path());
        place
            .connect()
            .execute("CREATE TABLE number (number INTEGER PRIMARY KEY)")
            .unwrap();
        let insert = |owner: &mut DatabaseDestination| {
            let connection = owner.transaction().unwrap();
            connection.batch_execute("INSERT INTO number VALUES (1)").unwrap();
        };
        let advance = |fence: i64, from: i64| Advance {
            key: "job/key/step",
            fence,
            from,
            to: from + 1,
            state: "{}",
        };
        let mut suspended = DatabaseDestination::new(place.url()).unwrap();
        let first = suspended.claim("job/key/step").unwrap();
        insert(&mut suspended);
        let mut next = DatabaseDestination::new(place.url()).unwrap();
        let second = next.claim("job/key/step").unwrap();
        assert_eq!(second.fence, first.fence + 1, "{kind:?}");
        // Without the end of the first session, the unique key would make it wait.
        insert(&mut next);
        assert!(suspended.commit(&advance(first.fence, 0)).is_err(), "{kind:?}");
        assert!(suspended.is_lost(), "{kind:?}");
        assert!(next.commit(&advance(second.fence, 0)).unwrap(), "{kind:?}");
        // A replaced owner whose session has survived is stopped by the fence.
        let mut stale = DatabaseDestination::new(place.url()).unwrap();
        stale
            .transaction()
            .unwrap()
            .batch_execute("DELETE FROM number")
            .unwrap();
        assert!(!stale.commit(&advance(first.fence, 1)).unwrap(), "{kind:?}");
        assert_eq!(
            place.connect().number("SELECT COUNT(*) AS number FROM number"),
            1,
            "{kind:?}"
        );
    }
}

/// Spec: MARK-02
#[test]
#[cfg(feature = "servers")]
fn several_owners_create_the_table_of_markers_at_once() {
    for kind in [Database::Postgres, Database::Mariadb] {
        for _ in 0..5 {
            let place = Place::new(kind, tempfile::tempdir().unwrap().path());
            let claim = |step: usize| {
                let mut owner = DatabaseDestination::new(place.url()).unwrap();
                owner
                    .claim(&format!("job/key/{step}"))
                    .map(|marker| marker.interval)
            };
            let intervals: Vec<i64> = std::thread::scope(|scope| {
                let owners: Vec<_> = (0..8).map(|step| scope.spawn(move || claim(step))).collect();
                owners
                    .into_iter()
                    .map(|owner| owner.join().unwrap().unwrap())
                    .collect()
            });
            assert_eq!(intervals, [0; 8], "{kind:?}");
        }
    }
}

/// An owner that is suspended while its marker is removed and created again commits nothing when it wakes up.
///
/// Spec: MARK-05
#[test]
fn a_new_marker_has_another_fence() {
    let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
    let owner = || DatabaseDestination::new(scene.destination.url()).unwrap();
    let (mut suspended, mut next) = (owner(), owner());
    let before = suspended.claim("job/key/step").unwrap();
    let removed = next.claim("job/key/step").unwrap();
    next.remove("job/key/step", removed.fence).unwrap();
    next.claim("job/key/step").unwrap();
    let advance = Advance {
        key: "job/key/step",
        fence: before.fence,
        from: 0,
        to: 1,
        state: "{}",
    };
    assert!(!suspended.commit(&advance).unwrap());
}

/// A marker holds what the repository stores, whatever characters the destination has.
///
/// Spec: MARK-06
#[test]
#[cfg(feature = "servers")]
fn a_destination_may_have_another_encoding() {
    let place = Place::existing(Database::Postgres, shared(Kind::Postgres).new_database());
    place
        .connect()
        .execute(
            "CREATE DATABASE marked_latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
        )
        .unwrap();
    let name = place.url().split('?').next().unwrap().rsplit('/').next().unwrap();
    let url = place.url().replacen(&format!("/{name}"), "/marked_latin", 1);
    let latin = Place::existing(Database::Postgres, url);
    let scene = Scene::at(tempfile::tempdir().unwrap(), Database::Sqlite, latin, "", "");
    let (status, message) = scene.launch("after", 0);
    assert!(
        status == BatchStatus::Failed && message.contains("is lost"),
        "{message}"
    );
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Completed, "{message}");
    assert_eq!(scene.is_exact("LATIN1"), ["from 0", "from 6"]);
}

/// One interval is missing in the repository: the marker has it.
///
/// Spec: MARK-06
#[test]
fn a_repository_that_has_lost_one_interval_catches_up() {
    let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
    let backup = scene.folder.path().join("backup.db");
    assert_eq!(scene.launch("before@2", 0).0, BatchStatus::Failed);
    copy_database(&scene.folder.path().join("batch.db"), &backup);
    let (_, message) = scene.launch("none", 7);
    assert!(message.contains("7 is bad"), "{message}");
    let scene = scene.with_repository(&backup);
    let (status, message) = scene.launch("none", 0);
    assert_eq!(status, BatchStatus::Completed, "{message}");
    assert_eq!(scene.is_exact("restored"), ["from 0", "from 3", "from 6"]);
}

/// Spec: MARK-07
#[test]
fn a_marker_that_was_deleted_is_an_error() {
    for (fault, written, statement) in [
        ("before@2", 3, "DELETE FROM BATCH_MARKER"),
        ("before@2", 3, "UPDATE BATCH_MARKER SET STATE = '-'"),
        // The repository has committed nothing, and the destination more than nothing.
        (
            "before@1",
            0,
            "UPDATE BATCH_MARKER SET STATE = '-', INTERVAL_NUMBER = 2",
        ),
    ] {
        let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
        assert_eq!(scene.launch(fault, 0).0, BatchStatus::Failed);
        scene.destination.connect().execute(statement).unwrap();
        // Also at the second attempt, when the first one has created a marker.
        for _ in 0..2 {
            let (status, message) = scene.launch("none", 0);
            assert_eq!(status, BatchStatus::Failed, "{statement}");
            assert!(
                message.contains("has no marker of this step, and the repository is at interval")
                    && message.contains("delete the row `")
                    && message.contains("sqlite://"),
                "{statement}: {message}"
            );
        }
        assert_eq!(
            scene.written().0,
            (1..=written).collect::<Vec<i64>>(),
            "{statement}"
        );
    }
}

/// The limits count what was skipped in an interval that only the destination had committed.
///
/// Spec: MARK-06
#[test]
fn skips_are_counted_when_the_repository_catches_up() {
    let skips =
        r#"<skippable-exception-classes><include class="std::io::Error"/></skippable-exception-classes>"#;
    let by_class = r#"<step id="load"><properties><property name="batch.skip.limits" value="std::io::Error=1"/></properties>"#;
    for (chunk, step) in [(r#"skip-limit="1""#, r#"<step id="load">"#), ("", by_class)] {
        let scene = Scene::new(Database::Sqlite, Database::Sqlite, chunk, skips);
        let scene = scene.with_text(|job| job.replace(r#"<step id="load">"#, step));
        assert_eq!(scene.launch("after", 5).0, BatchStatus::Failed);
        let (status, message) = scene.launch("none", 7);
        assert_eq!(status, BatchStatus::Failed, "{step}");
        assert!(message.contains("7 is bad"), "{step}: {message}");
        assert_eq!(scene.written(), (vec![1, 2, 3, 4, 6], 1), "{step}");
        let (status, message) = scene.launch("none", 0);
        assert_eq!(status, BatchStatus::Completed, "{step}: {message}");
        assert_eq!(scene.counters(), (7, 6, 1), "{step}");
    }
}

impl WriteItems<u64> for Ledger {
    type Position = ();

    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        Ok(Some(self.ledger()?.into()))
    }
    fn open(&mut self, _: Option<()>) -> Result<(), BatchError> {
        Ok(())
    }
    fn write(&mut self, numbers: &[&u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let numbers: Vec<u64> = numbers.iter().map(|number| **number).collect();
        Ledger::write(self, &numbers, tx.destination()?)
    }
    fn position(&mut self) -> Result<(), BatchError> {
        Ok(())
    }
}

#[item_writer("LedgerAndFile")]
type LedgerAndFile = CompositeItemWriter<u64, Ledger, LineItemWriter<u64>>;

/// A file beside the destination has what the destination has, also when only the destination had committed; so does a pipelined step.
///
/// Spec: MARK-03, MARK-06
#[test]
fn a_file_beside_the_destination_has_the_same_items() {
    let pipeline =
        r#"<step id="load"><properties><property name="batch.chunk.pipeline" value="true"/></properties>"#;
    for step in [r#"<step id="load">"#, pipeline] {
        for fault in ["none", "before", "after", "connection", "act:between"] {
            let scene = Scene::new(Database::Sqlite, Database::Sqlite, "", "");
            let file = scene.folder.path().join("numbers.txt");
            let scene = scene.with_text(|job| {
                let output = format!(r#"<property name="2.output" value="{}"/>"#, file.display());
                job.replace(r#"<step id="load">"#, step)
                    .replace("\"Ledger\"", "\"LedgerAndFile\"")
                    .replace(
                        r#"<property name="url""#,
                        &format!(r#"{output}<property name="1.url""#),
                    )
                    .replace(
                        r#"<property name="log" value="${log}"/>"#,
                        r#"<property name="log" value="${log}"/><property name="1.log" value="${log}"/>"#,
                    )
            });
            let (mut status, mut message) = scene.launch(fault, 0);
            if status == BatchStatus::Failed {
                assert!(message.contains("is lost"), "{fault}: {message}");
                (status, message) = scene.launch("none", 0);
            }
            assert_eq!(status, BatchStatus::Completed, "{fault}: {message}");
            scene.is_exact(fault);
            assert_eq!(
                fs::read_to_string(&file).unwrap(),
                "1\n2\n3\n4\n5\n6\n7\n",
                "{fault}"
            );
        }
    }
}
