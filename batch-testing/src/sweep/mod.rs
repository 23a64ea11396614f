//! Crashes a job at every event of its repository, one after the other, and compares what it leaves after a second launch with
//! what an undisturbed run leaves.

mod child;
mod difference;
mod order;
mod place;

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use batch_runtime::JobParameters;
use batch_runtime::parameters::ParameterValue;
use batch_runtime::prelude::*;

use self::difference::{Difference, Part, Snapshot};
use self::order::{Crash, EVENTS, Fault, ORDER, Order};
use self::place::{Place, Run};
use crate::JobTest;
use crate::database::{Prepare, TestDatabase};

/// Crashes a job at every event of its repository, one after the other. See [`CrashSweep`].
pub fn crash_sweep(file: impl Into<PathBuf>) -> CrashSweep {
    CrashSweep {
        test: JobTest::new(file),
        outputs: Vec::new(),
        prepare: None,
        url: None,
        ignored: Vec::new(),
        test_name: None,
    }
}

/// A proof that a job survives crashes.
///
/// The sweep runs the job once undisturbed and notes the events: each statement of the repository, and the moments before and after
/// each commit. Then it runs the job again for each event, on a new database and in a new folder. At the event the process
/// dies, or the statement fails; after a commit, that is a lost acknowledgement. The job is launched again, and has to complete with the result of
/// the undisturbed run: the same rows in all tables beside the repository's, and the same files in the folder.
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
/// Each run is a process of its own: the sweep starts the test program again with the name of the test. So the lines of the test
/// before the sweep run in each of these processes, too, and should only compute parameters. Use few items and small chunks:
/// the time of a sweep grows with the number of commits.
pub struct CrashSweep {
    test: JobTest,
    /// Parameters whose values are files in the folder of the run.
    outputs: Vec<(String, String)>,
    prepare: Option<Box<Prepare>>,
    url: Option<String>,
    ignored: Vec<String>,
    test_name: Option<String>,
}

/// The results of a sweep that found no difference.
#[derive(Debug)]
pub struct SweepReport {
    /// The number of events at which the job crashed.
    pub events: usize,
    /// The number of crashes: the process died at each event, and each event failed.
    pub crashes: usize,
}

impl CrashSweep {
    /// Adds a job parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.test = self.test.parameter(name, value);
        self
    }

    /// Adds job parameters of any type.
    #[must_use]
    pub fn parameters(mut self, parameters: impl Into<JobParameters>) -> Self {
        self.test = self.test.parameters(parameters);
        self
    }

    /// Adds a job parameter whose value is the path of a file in the folder of each run. All files of the folder are compared.
    #[must_use]
    pub fn output(mut self, name: impl Into<String>, file: impl Into<String>) -> Self {
        self.outputs.push((name.into(), file.into()));
        self
    }

    /// Sets a system property of the runtime.
    #[must_use]
    pub fn system_property(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.test = self.test.system_property(name, value);
        self
    }

    /// Replaces an artifact, see [`JobTest::artifact`].
    #[must_use]
    pub fn artifact(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> LoadedArtifact + Send + Sync + 'static,
    ) -> Self {
        self.test = self.test.artifact(name, make);
        self
    }

    /// Sets what creates the tables of the job, before each run.
    #[must_use]
    pub fn prepare(mut self, prepare: impl Fn(&mut TestDatabase) + Send + Sync + 'static) -> Self {
        self.prepare = Some(Box::new(prepare));
        self
    }

    /// Sets the URL of a server, on which each run has a schema (PostgreSQL) or a database (MySQL) of its own, which is dropped
    /// afterwards. Default: SQLite.
    #[must_use]
    pub fn repository(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Excludes a column from the comparison, such as `booking.created`, whose values differ in each run.
    #[must_use]
    pub fn ignore_column(mut self, column: impl Into<String>) -> Self {
        self.ignored.push(column.into());
        self
    }

    /// Sets the time after which a run fails. Default: 60 seconds.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.test = self.test.time_limit(limit);
        self
    }

    /// Sets the name of the test, as the test program lists it. Only necessary if tests run on the main thread.
    #[must_use]
    pub fn test_name(mut self, name: impl Into<String>) -> Self {
        self.test_name = Some(name.into());
        self
    }

    /// Runs the sweep, and compares all tables and files.
    ///
    /// # Panics
    /// If the result after a crash differs, with the event, and the rows and lines that are doubled or missing.
    #[track_caller]
    pub fn run(self) -> SweepReport {
        let place = Location::caller().to_string();
        self.sweep(place, None)
    }

    /// Runs the sweep, and compares only what a function returns, such as a sum of the database.
    ///
    /// # Panics
    /// If the result after a crash differs.
    #[track_caller]
    pub fn check<T: fmt::Debug>(self, check: impl Fn(&mut TestDatabase) -> T + Sync) -> SweepReport {
        let place = Location::caller().to_string();
        let check = |database: &mut TestDatabase| format!("{:#?}", check(database));
        self.sweep(place, Some(&check))
    }

    #[track_caller]
    fn sweep(self, place: String, check: Option<&Check<'_>>) -> SweepReport {
        if let Ok(order) = std::env::var(ORDER) {
            let order: Order = match serde_json::from_str(&order) {
                Ok(order) => order,
                Err(error) => panic!("{ORDER} is invalid: {error}"),
            };
            // Another sweep of the same test has been swept before.
            if order.place != place {
                return SweepReport {
                    events: 0,
                    crashes: 0,
                };
            }
            child::observe();
            child::run(self.test, order);
        }
        let sweeping = Sweeping {
            name: self.test_name.clone().unwrap_or_else(test_name),
            place,
            check,
            sweep: self,
        };
        sweeping.run().unwrap_or_else(|problem| panic!("{problem}"))
    }
}

type Check<'c> = dyn Fn(&mut TestDatabase) -> String + Sync + 'c;

/// A sweep under way.
struct Sweeping<'c> {
    sweep: CrashSweep,
    name: String,
    place: String,
    check: Option<&'c Check<'c>>,
}

impl Sweeping<'_> {
    fn run(&self) -> Result<SweepReport, String> {
        let places = Place::new(self.sweep.url.as_deref())?;
        let undisturbed = places.run()?;
        self.prepare(&undisturbed);
        let output = self.launch(&undisturbed, None)?;
        if !output.status.success() {
            return Err(format!(
                "the undisturbed run did not complete\n{}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        let events = events(undisturbed.folder())?;
        let expected = self.snapshot(&undisturbed);
        let crashes = Fault::ALL.into_iter().flat_map(|fault| {
            let numbered = 1..=events.len();
            numbered.map(move |event| Crash { fault, event })
        });
        let mut crashes: Vec<Crash> = crashes.collect();
        crashes.sort_by_key(|crash| crash.event);
        let count = crashes.len();
        let crashes = Mutex::new(VecDeque::from(crashes));
        let problems = Mutex::new(Vec::new());
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    // The lock must not be held during the crash.
                    let next = || locked(&crashes).pop_front();
                    while let Some(crash) = next() {
                        if let Err(problem) = self.crash(&places, crash, &events, &expected) {
                            locked(&problems).push((crash.event, problem));
                            // The first event is reported: later ones need not be tried.
                            locked(&crashes).clear();
                        }
                    }
                });
            }
        });
        let mut problems = problems.into_inner().unwrap_or_else(PoisonError::into_inner);
        problems.sort_by_key(|(event, _)| *event);
        match problems.into_iter().next() {
            Some((_, problem)) => Err(problem),
            None => Ok(SweepReport {
                events: events.len(),
                crashes: count,
            }),
        }
    }

    /// Crashes at one event, launches again, and compares.
    fn crash(
        &self,
        places: &Place,
        crash: Crash,
        events: &[Event],
        expected: &Snapshot,
    ) -> Result<(), String> {
        let run = places.run()?;
        self.prepare(&run);
        let crashed = self.launch(&run, Some(crash))?;
        let again = self.launch(&run, None)?;
        let about = || {
            let event = &events[crash.event - 1];
            let what = match crash.fault {
                Fault::Death => "the process died",
                Fault::Error if event.text.starts_with("after") => "the acknowledgement was lost",
                Fault::Error => "the statement failed",
            };
            format!(
                "event {} of {}: {what} {}, {} commits after the start\n",
                crash.event,
                events.len(),
                event.text,
                event.commits
            )
        };
        let died = String::from_utf8_lossy(&crashed.stderr);
        let ended = String::from_utf8_lossy(&again.stderr);
        // A job that retries may complete in spite of the fault.
        let is_complete =
            again.status.success() || (crashed.status.success() && ended.contains("is complete"));
        if !is_complete {
            return Err(format!(
                "{}the second launch did not complete the job\n{ended}\nthe first launch:\n{died}",
                about()
            ));
        }
        let found = self.snapshot(&run);
        match Difference::between(expected, &found) {
            None => Ok(()),
            Some(difference) => Err(format!(
                "{}{}after a second launch the result differs from that of an undisturbed run:\n{difference}{}the second \
                 launch:\n{ended}",
                about(),
                self.interrupted(&run),
                Self::advice(&difference, events)
            )),
        }
    }

    fn prepare(&self, run: &Run) {
        let mut database = run.database();
        if let Some(prepare) = &self.sweep.prepare {
            prepare(&mut database);
        }
    }

    fn snapshot(&self, run: &Run) -> Snapshot {
        let mut database = run.database();
        match self.check {
            Some(check) => Snapshot::of_check(check(&mut database)),
            None => Snapshot::of(database.tables(&self.sweep.ignored), run.folder()),
        }
    }

    /// Runs the job in a process of its own.
    fn launch(&self, run: &Run, crash: Option<Crash>) -> Result<Output, String> {
        let mut parameters: Vec<(String, ParameterValue, bool)> = self.sweep.test.given_parameters();
        for (name, file) in &self.sweep.outputs {
            let path = run.folder().join(file).display().to_string();
            parameters.push((name.clone(), ParameterValue::String(path), true));
        }
        let order = Order {
            place: self.place.clone(),
            repository: run.url().to_owned(),
            folder: run.folder().display().to_string(),
            parameters,
            crash,
        };
        let order = serde_json::to_string(&order).map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        Command::new(program)
            .args([
                self.name.as_str(),
                "--exact",
                "--nocapture",
                "--include-ignored",
                "--test-threads=1",
            ])
            .env(ORDER, order)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| format!("cannot start the test program again: {error}"))
    }

    /// Returns the step that the crash interrupted, with its artifacts.
    fn interrupted(&self, run: &Run) -> String {
        let Some(step) = run.database().last_step_of_first_execution() else {
            return "before the first step\n".to_owned();
        };
        let artifacts = self.sweep.test.artifacts_of(&step).unwrap_or_default();
        format!("in step `{step}`: {artifacts}\n")
    }

    /// Says which rule the job probably breaks.
    fn advice(difference: &Difference, events: &[Event]) -> String {
        match difference.first() {
            Some(Part::Table(name)) if is_written_outside(name, events) => format!(
                "`{name}` is written outside of the transaction that commits the checkpoint; a writer with `tx: &mut \
                 ChunkTransaction` writes inside of it\n"
            ),
            Some(Part::Table(name)) => format!(
                "`{name}` is written in the transaction that commits the checkpoint, so a checkpoint does not fit the items: \
                 `open` of the reader has to continue after the last item before `get_checkpoint_info`, and a writer must not keep \
                 items over a commit\n"
            ),
            Some(Part::File(name)) => format!(
                "`{name}` is no part of the transaction: a writer truncates its file to the length in the checkpoint when it is \
                 opened, and a listener has no checkpoint\n"
            ),
            _ => String::new(),
        }
    }
}

/// Returns whether a table is written by a statement that is in no transaction with the repository.
fn is_written_outside(table: &str, events: &[Event]) -> bool {
    let writes = |statement: &String| {
        let statement = statement.replace(['"', '`', '(', ')'], " ");
        let mut words = statement.split_whitespace();
        words.any(|word| word.eq_ignore_ascii_case(table))
    };
    let outside = events.iter().filter(|event| !event.in_transaction);
    outside.flat_map(|event| &event.between).any(writes)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event of the undisturbed run.
struct Event {
    /// `before` or `after`, and the statement.
    text: String,
    /// The number of commits before it.
    commits: usize,
    /// The other statements before it, since the last event.
    between: Vec<String>,
    /// Whether those are in a transaction with statements of the repository.
    in_transaction: bool,
}

/// Reads the events that a child has written.
fn events(folder: &Path) -> Result<Vec<Event>, String> {
    let text = fs::read_to_string(folder.join(EVENTS)).map_err(|error| error.to_string())?;
    let (mut events, mut between, mut commits, mut is_open) = (Vec::new(), Vec::new(), 0, false);
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("-", statement)) => between.push(statement.to_owned()),
            Some((_, text)) => {
                events.push(Event {
                    text: text.to_owned(),
                    commits,
                    between: std::mem::take(&mut between),
                    in_transaction: is_open,
                });
                if text.contains("BEGIN") {
                    is_open = true;
                } else if text == "after COMMIT" {
                    (is_open, commits) = (false, commits + 1);
                }
            }
            None => {}
        }
    }
    Ok(events)
}

/// Returns the name of the running test.
fn test_name() -> String {
    if let Some(name) = thread::current().name().filter(|name| *name != "main") {
        return name.to_owned();
    }
    // A program that runs one test is often told its name.
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    arguments.retain(|argument| !argument.starts_with('-'));
    match arguments.as_slice() {
        [name] if is_exact => name.clone(),
        _ => panic!("the sweep does not know the name of its test; set it with `test_name`"),
    }
}
