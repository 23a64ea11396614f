//! Crashes a job at each event of its repository in turn, launches it again, and compares the result with an
//! undisturbed run.

mod child;
mod database_faults;
mod difference;
mod events;
mod server;
mod settings;
mod sweep_run;
mod task;
mod workspace;

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::Mutex;
use std::thread;

use self::settings::{Check, SweepSettings, locked};
use self::sweep_run::SweepRun;
use self::task::{ChildTask, TASK};
use crate::JobTest;
use crate::database::TestDatabase;

/// Crashes a job at each event of its repository in turn. `test` is the file of the job, or a [`JobTest`] with doubles and further
/// settings. See [`CrashSweep`].
pub fn crash_sweep(test: impl Into<JobTest>) -> CrashSweep {
    CrashSweep(SweepSettings {
        test: test.into(),
        repository: None,
        outputs: Vec::new(),
        prepare: None,
        ignored: Vec::new(),
        normalize: None,
        test_name: None,
        sample: None,
    })
}

/// A crash test of a job.
///
/// The sweep runs the job once undisturbed and records the events: each statement of the repository, and the moments before and
/// after each commit. Then it runs the job again for each event, on a new SQLite database and in a new folder. At the event the
/// process dies, or the call of the statement panics; after a commit, that is a lost acknowledgement. The job is launched again, and has to
/// complete with the result of the undisturbed run: the same rows in all tables but the repository's, and the same files in the
/// folder.
///
/// ```no_run
/// # fn main() {}
/// use batch_testing::crash_sweep;
///
/// #[test]
/// fn payments_are_booked_once() {
///     crash_sweep("jobs/payments.xml")
///         .parameter("resource", "data/payments.csv")
///         .parameter("commit.interval", 10)
///         .output("output", "report.csv")
///         .prepare(|database| database.execute("CREATE TABLE booking (number TEXT PRIMARY KEY, cents BIGINT)"))
///         .run();
/// }
/// ```
///
/// Each run is a separate process: the sweep starts the test program again with the name of the test. So the lines of the test
/// before the sweep run in each of these processes, too, and doubles lose what they keep. Parameters and system properties have in all
/// of them the values of the first process. Use few items and small chunks:
/// the time of a sweep grows with the number of commits, as does the number of events; [`sample`](Self::sample) injects some of the
/// faults. A job whose threads or partitions run in another
/// order each time crashes at other moments each time.
pub struct CrashSweep(SweepSettings);

impl CrashSweep {
    /// Adds a job parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.0.test = self.0.test.parameter(name, value);
        self
    }

    /// Adds a job parameter whose value is the path of a file in the folder of each run. All files of the folder are compared.
    #[must_use]
    pub fn output(mut self, name: impl Into<String>, file: impl Into<String>) -> Self {
        self.0.outputs.push((name.into(), file.into()));
        self
    }

    /// Runs the job on a server instead of SQLite. The function returns the URL of a database. On PostgreSQL
    /// each run has its own schema in this database, on MySQL and MariaDB its own database beside it; both are removed after the
    /// run. The user needs the right to create them.
    ///
    /// The function is called once. It may start a server: the processes of the runs do not call it.
    #[must_use]
    pub fn repository(mut self, url: impl FnOnce() -> String + Send + Sync + 'static) -> Self {
        self.0.repository = Some(Box::new(url));
        self
    }

    /// Sets the function that creates the job's tables before each run.
    #[must_use]
    pub fn prepare(mut self, prepare: impl Fn(&mut TestDatabase) + Send + Sync + 'static) -> Self {
        self.0.prepare = Some(Box::new(prepare));
        self
    }

    /// Excludes a table from the comparison, whose rows differ in each run.
    #[must_use]
    pub fn ignore_table(mut self, table: impl Into<String>) -> Self {
        self.0.ignored.push(table.into());
        self
    }

    /// Excludes a column from the comparison, such as `booking.created`, whose values differ in each run.
    #[must_use]
    pub fn ignore_column(mut self, column: impl Into<String>) -> Self {
        self.0.ignored.push(column.into());
        self
    }

    /// Injects only `faults` faults: the run is divided into as many parts, and one fault of each is chosen at random, so each test run
    /// tries others. The environment variable `BATCH_SWEEP=all` injects all, for example in a nightly run.
    ///
    /// # Panics
    /// If `faults` is 0.
    #[must_use]
    #[track_caller]
    pub fn sample(mut self, faults: usize) -> Self {
        assert!(faults > 0, "a sweep without faults proves nothing");
        self.0.sample = Some(faults);
        self
    }

    /// Sets the full name of the test, as the test program lists it. Necessary only if tests run on the main thread.
    #[must_use]
    pub fn test_name(mut self, name: impl Into<String>) -> Self {
        self.0.test_name = Some(name.into());
        self
    }

    /// Sets a function that rewrites each file before the comparison: it gets the name and the text. For values that
    /// differ in each run, such as the id of the instance, which a crash on a server may increase.
    #[must_use]
    pub fn normalize_files(
        mut self,
        normalize: impl Fn(&str, String) -> String + Send + Sync + 'static,
    ) -> Self {
        self.0.normalize = Some(Box::new(normalize));
        self
    }

    /// Runs the sweep, and compares all tables and files.
    ///
    /// # Panics
    /// If the result after a crash differs, with the event, the step and its artifacts, and the rows and lines that are there too often or
    /// missing.
    #[track_caller]
    pub fn run(self) {
        self.sweep(None);
    }

    /// Runs the sweep, and compares only what a function returns, such as a sum or the rows of one table. Nothing is ignored.
    ///
    /// # Panics
    /// If the result after a crash differs.
    #[track_caller]
    pub fn check<T: fmt::Debug>(self, check: impl Fn(&mut TestDatabase) -> T + Sync) {
        let check = |database: &mut TestDatabase| format!("{:#?}", check(database));
        self.sweep(Some(&check));
    }

    #[track_caller]
    fn sweep(self, check: Option<&Check<'_>>) {
        let location = Location::caller().to_string();
        let name = self.0.test_name.clone().unwrap_or_else(test_name);
        let ordinal = ordinal(&name, &location);
        let Ok(task) = std::env::var(TASK) else {
            assert!(
                !self.0.test.has_repository(),
                "the repository of a sweep is set by `CrashSweep::repository`, not by `JobTest::repository`"
            );
            assert!(
                !self.0.test.has_databases(),
                "a sweep cannot reset the databases of `JobTest::database`"
            );
            let swept =
                SweepRun::new(self.0, name, (location, ordinal), check).and_then(|sweeping| sweeping.run());
            match swept {
                Ok((events, faults)) => println!("crash sweep: {faults} faults at {events} events"),
                Err(problem) => panic!("{problem}"),
            }
            return;
        };
        let task: ChildTask =
            serde_json::from_str(&task).unwrap_or_else(|error| panic!("{TASK} is invalid: {error}"));
        // The parent has run the earlier sweeps of this test.
        if (&task.location, task.ordinal) != (&location, ordinal) {
            return;
        }
        child::run(self.0.test, task);
    }
}

/// Returns the number of a sweep among the sweeps of its test at one place in the source.
fn ordinal(test: &str, location: &str) -> u32 {
    static COUNTS: Mutex<Option<HashMap<(String, String), u32>>> = Mutex::new(None);
    let mut counts = locked(&COUNTS);
    let key = (test.to_owned(), location.to_owned());
    let count = counts.get_or_insert_default().entry(key).or_default();
    *count += 1;
    *count
}

/// Returns the name of the running test.
fn test_name() -> String {
    if let Some(name) = thread::current().name().filter(|name| *name != "main") {
        return name.to_owned();
    }
    // Test runners that start a process for each test pass its name, as the sweep itself does.
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    arguments.retain(|argument| !argument.starts_with('-'));
    match arguments.as_slice() {
        [name] if is_exact => name.clone(),
        _ => panic!("the sweep cannot determine the name of its test; set it with `test_name`"),
    }
}
