//! The child process of a sweep: it runs the job once, and dies or panics at an event of the repository.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use batch_runtime::{BatchStatus, JobParameters};
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

use super::errors::Errors;
use super::events::begins;
use super::task::{ChildTask, Crash, Fault, NOT_COMPLETED};
use crate::JobTest;

/// Writes the events, and crashes at one of them.
struct FaultInjector {
    crash: Option<Crash>,
    /// The names of the repository's tables, in lower case.
    tables: Vec<String>,
    events: Mutex<File>,
    count: AtomicUsize,
    errors: Errors,
    /// Whether the next transaction is refused.
    refuses: AtomicBool,
}

thread_local! {
    /// Whether this thread executes statements of the kit itself, which are not observed.
    static INJECTS: Cell<bool> = const { Cell::new(false) };
}

/// The time after which the second launch takes over from a dead process on a server.
const LEASE_TIME: Duration = Duration::from_secs(2);

static INJECTOR: OnceLock<FaultInjector> = OnceLock::new();

/// Runs the job, and ends the process.
pub(super) fn run(test: JobTest, task: ChildTask) -> ! {
    // Must be called before the first connection. Fails only after a panic of another call.
    let _ = set_default_instrumentation(|| Some(Box::new(Observer::new())));
    let events = File::options().append(true).create(true).open(&task.events);
    let injector = FaultInjector {
        crash: task.crash,
        tables: task.tables.iter().map(|table| table.to_lowercase()).collect(),
        errors: Errors::new(&task.repository, task.tables),
        refuses: AtomicBool::new(false),
        events: Mutex::new(events.unwrap_or_else(|error| panic!("cannot write the events: {error}"))),
        count: AtomicUsize::new(0),
    };
    let mut parameters = JobParameters::new();
    for (name, value, identifying) in task.parameters {
        parameters = parameters.with_parameter(name, value, identifying);
    }
    // A process that died may have left its errors.
    injector.errors.end();
    let test = test.repository(task.repository).parameters(parameters);
    let test = test.lease_time(LEASE_TIME);
    // The runtime is built before events are counted: a launch is what crashes.
    let _ = test.operator();
    let _ = INJECTOR.set(injector);
    let Some(run) = test.resume() else {
        std::process::exit(0)
    };
    eprintln!("{run}");
    let completed = run.execution().status == BatchStatus::Completed;
    std::process::exit(if completed { 0 } else { NOT_COMPLETED })
}

/// Observes one connection.
struct Observer {
    connection: usize,
}

impl Observer {
    fn new() -> Self {
        static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
        Self {
            connection: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Instrumentation for Observer {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        let Some(injector) = INJECTOR.get().filter(|_| !INJECTS.get()) else {
            return;
        };
        match event {
            InstrumentationEvent::StartQuery { query, .. } => {
                injector.statement(self.connection, &statement(&query.to_string()));
            }
            // The state changes at a commit, and its acknowledgement may be lost.
            InstrumentationEvent::FinishQuery {
                query, error: None, ..
            } if query.to_string() == "COMMIT" => {
                injector.on_event(self.connection, "after", "COMMIT");
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
        if begins(statement) && self.refuses.swap(false, Ordering::Relaxed) {
            unobserved(|| self.errors.end());
        }
        if begins(statement) || statement == "COMMIT" || self.is_of_repository(statement) {
            self.on_event(connection, "before", statement);
        } else {
            self.write(&format!("- {connection} {statement}\n"));
        }
    }

    fn is_of_repository(&self, statement: &str) -> bool {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let lower = statement.to_lowercase();
        let mut words = lower.split(|c| !is_name(c));
        words.any(|word| self.tables.iter().any(|table| table == word))
    }

    fn on_event(&self, connection: usize, when: &str, statement: &str) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.write(&format!("{number} {connection} {when} {statement}\n"));
        let Some(crash) = self.crash.filter(|crash| crash.event == number) else {
            return;
        };
        match crash.fault {
            Fault::Death => std::process::abort(),
            Fault::Panic => panic!("simulated by the crash sweep {when} `{statement}`"),
            Fault::Error => {
                unobserved(|| self.errors.cause());
                self.refuses.store(true, Ordering::Relaxed);
            }
        }
    }

    fn write(&self, line: &str) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = events.write_all(line.as_bytes());
    }
}

/// Calls a function that executes statements of the kit itself.
fn unobserved(execute: impl FnOnce()) {
    INJECTS.set(true);
    execute();
    INJECTS.set(false);
}
