//! The child process of a sweep: it runs the job once, and dies or panics at an event of the repository.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use batch_runtime::{BatchStatus, JobParameters};
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

use super::database_faults::{DatabaseFaults, MESSAGE};
use super::events::{STRUCK, begins, names_one_of};
use super::task::{COMPLETED, ChildTask, Fault, Injection, NOT_COMPLETED, PANICKED};
use crate::JobTest;

/// Writes the events, and injects a fault at one of them.
struct FaultInjector {
    injection: Option<Injection>,
    /// The names of the repository's tables, in lower case.
    tables: Vec<String>,
    events: Mutex<File>,
    count: AtomicUsize,
    database: DatabaseFaults,
    /// Whether an error has been caused.
    has_erred: AtomicBool,
}

thread_local! {
    /// Whether this thread executes statements of the kit itself, which are not observed.
    static KIT_STATEMENT: Cell<bool> = const { Cell::new(false) };
}

/// The time until the second launch takes over from a dead process on a server.
pub(super) const LEASE_TIME: Duration = Duration::from_secs(2);

static INJECTOR: OnceLock<FaultInjector> = OnceLock::new();

/// Runs the job, and ends the process.
pub(super) fn run(test: JobTest, task: ChildTask) -> ! {
    // The test may catch panics, and the process would then end like one that has completed the job.
    let code = catch_unwind(AssertUnwindSafe(|| launch(test, task))).unwrap_or(PANICKED);
    std::process::exit(code)
}

/// Returns the exit code of the process.
fn launch(test: JobTest, task: ChildTask) -> i32 {
    // Must be called before the first connection. Fails only after a panic of another call.
    let _ = set_default_instrumentation(|| Some(Box::new(Observer::new())));
    let url = task.repository.parse();
    let url = url.unwrap_or_else(|error| panic!("invalid repository: {error}"));
    let events = File::options().append(true).create(true).open(&task.events);
    let injector = FaultInjector {
        injection: task.injection,
        tables: task.tables.iter().map(|table| table.to_lowercase()).collect(),
        database: DatabaseFaults::new(url, task.tables),
        events: Mutex::new(events.unwrap_or_else(|error| panic!("cannot write the events: {error}"))),
        count: AtomicUsize::new(0),
        has_erred: AtomicBool::new(false),
    };
    let cleared = injector.database.clear();
    cleared.unwrap_or_else(|error| panic!("cannot end the fault of the first launch: {error}"));
    let mut parameters = JobParameters::new();
    for (name, value, identifying) in task.parameters {
        parameters = parameters.with_parameter(name, value, identifying);
    }
    let test = test.repository(task.repository).parameters(parameters);
    let test = task
        .system
        .into_iter()
        .fold(test, |test, (name, value)| test.system_property(name, value));
    let test = test.lease_time(LEASE_TIME);
    // The runtime is built before events are counted: a launch is what crashes.
    let _ = test.operator();
    let _ = INJECTOR.set(injector);
    let Some(run) = test.resume() else {
        return COMPLETED;
    };
    eprintln!("{run}");
    match run.execution().status {
        BatchStatus::Completed => COMPLETED,
        _ => NOT_COMPLETED,
    }
}

/// Observes one connection.
struct Observer {
    /// Its number, from 1.
    connection: usize,
}

impl Observer {
    fn new() -> Self {
        static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
        Self {
            connection: CONNECTIONS.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}

impl Instrumentation for Observer {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        let Some(injector) = INJECTOR.get().filter(|_| !KIT_STATEMENT.get()) else {
            return;
        };
        match event {
            InstrumentationEvent::StartQuery { query, .. } => {
                injector.statement(self.connection, &statement(&query.to_string()));
            }
            InstrumentationEvent::FinishQuery { query, error, .. } => {
                injector.finished(self.connection, &query.to_string(), error);
            }
            _ => {}
        }
    }
}

/// Returns a statement in one line, without its values.
fn statement(text: &str) -> String {
    let text = text.split(" -- binds").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl FaultInjector {
    fn statement(&self, connection: usize, statement: &str) {
        if begins(statement) || statement == "COMMIT" || names_one_of(statement, &self.tables) {
            self.on_event(connection, "before", statement);
        } else {
            self.write(&format!("- {connection} {statement}\n"));
        }
    }

    fn finished(&self, connection: usize, statement: &str, error: Option<&diesel::result::Error>) {
        if error.is_some_and(|error| error.to_string().contains(MESSAGE)) {
            self.write(STRUCK);
        }
        let has_ended = statement == "COMMIT" || statement == "ROLLBACK";
        if has_ended {
            self.report(unobserved(|| self.database.transaction_ended(connection)));
        }
        // The state changes at a commit, and its acknowledgement may be lost.
        if statement == "COMMIT" && error.is_none() {
            self.on_event(connection, "after", "COMMIT");
        }
    }

    fn report(&self, done: Result<(), String>) {
        if let Err(error) = done {
            eprintln!("the crash sweep could not inject its fault: {error}");
        }
    }

    fn on_event(&self, connection: usize, when: &str, statement: &str) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let text = format!("{when} {statement}");
        self.write(&format!("{number} {connection} {text}\n"));
        let Some(injection) = self
            .injection
            .filter(|injection| self.strikes(*injection, number, &text))
        else {
            return;
        };
        match injection.fault {
            Fault::Death => {
                self.write(STRUCK);
                die()
            }
            Fault::Panic => {
                self.write(STRUCK);
                panic!("{MESSAGE} {when} `{statement}`")
            }
            Fault::Error => {
                let caused = unobserved(|| self.database.cause(connection));
                if caused == Ok(true) {
                    self.write(STRUCK);
                }
                self.report(caused.map(|_| ()));
            }
        }
    }

    /// Returns whether the fault happens at an event. Threads may reach the events in another order than in the undisturbed run. An error
    /// happens at the injection's event, or at the first possible event after it: within a transaction of SQLite, the kit would wait for
    /// its end.
    fn strikes(&self, injection: Injection, number: usize, text: &str) -> bool {
        if injection.fault != Fault::Error {
            return number == injection.event;
        }
        let is_possible = || Fault::at(text, self.database.has_server()).contains(&Fault::Error);
        number >= injection.event && is_possible() && !self.has_erred.swap(true, Ordering::Relaxed)
    }

    fn write(&self, line: &str) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = events.write_all(line.as_bytes());
    }
}

/// Calls a function that executes statements of the kit itself.
fn unobserved<T>(execute: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            KIT_STATEMENT.set(false);
        }
    }
    KIT_STATEMENT.set(true);
    let _reset = Reset;
    execute()
}

/// Ends the process at once, as `kill -9` does.
fn die() -> ! {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        // `abort` would leave a core file for each event of a sweep.
        let _ = kill_process(getpid(), Signal::KILL);
    }
    std::process::exit(PANICKED)
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use batch_runtime::BatchRuntime;

    use super::*;
    use crate::database::TestDatabase;

    /// Threads may reach another event under the number of an error's event.
    #[test]
    fn an_error_happens_where_a_transaction_begins() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("batch.db").display());
        BatchRuntime::builder().repository(&url).build().unwrap();
        let events = folder.path().join("events");
        let table = "BATCH_STEP_EXECUTION";
        let injector = FaultInjector {
            injection: Some(Injection {
                fault: Fault::Error,
                event: 2,
            }),
            tables: vec![table.to_lowercase()],
            events: Mutex::new(File::create(&events).unwrap()),
            count: AtomicUsize::new(0),
            database: DatabaseFaults::new(url.parse().unwrap(), vec![table.to_owned()]),
            has_erred: AtomicBool::new(false),
        };
        let triggers = || {
            let mut database = TestDatabase::open(&url.parse().unwrap()).unwrap();
            let sql = "SELECT name AS text FROM sqlite_master WHERE type = 'trigger'";
            database.try_select(sql).unwrap().len()
        };
        for (statement, expected) in [
            ("BEGIN IMMEDIATE", 0),
            ("UPDATE BATCH_STEP_EXECUTION SET VERSION = 2", 0),
            ("COMMIT", 0),
            ("BEGIN", 0),
            ("BEGIN IMMEDIATE", 3),
        ] {
            injector.statement(1, statement);
            assert_eq!(triggers(), expected, "{statement}");
        }
        injector.finished(1, "ROLLBACK", None);
        injector.statement(1, "BEGIN IMMEDIATE");
        assert_eq!(triggers(), 0, "it happens once");
    }
}
