//! The child process of a sweep: it runs the job once, and dies or fails at an event of the repository.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use batch_runtime::{BatchStatus, JobParameters};
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

use super::order::{Crash, EVENTS, Fault, NOT_COMPLETED, Order};
use crate::JobTest;

/// What this process has to do at an event.
struct Striker {
    crash: Option<Crash>,
    events: Mutex<File>,
    count: AtomicUsize,
}

static STRIKER: OnceLock<Striker> = OnceLock::new();

/// Runs the job, and ends the process.
pub(super) fn run(test: JobTest, order: Order) -> ! {
    let events = File::options()
        .append(true)
        .create(true)
        .open(Path::new(&order.folder).join(EVENTS));
    let striker = Striker {
        crash: order.crash,
        events: Mutex::new(events.unwrap_or_else(|error| panic!("cannot write the events: {error}"))),
        count: AtomicUsize::new(0),
    };
    let mut parameters = JobParameters::new();
    for (name, value, identifying) in order.parameters {
        parameters = parameters.with_parameter(name, value, identifying);
    }
    let test = test.repository(order.repository).parameters(parameters);
    // The runtime is built before the events are counted, as a long-running process would do.
    let _ = test.operator();
    let _ = STRIKER.set(striker);
    let Some(run) = test.resume() else {
        std::process::exit(0)
    };
    eprintln!("{run}");
    let completed = run.execution().status == BatchStatus::Completed;
    std::process::exit(if completed { 0 } else { NOT_COMPLETED })
}

/// Observes every connection that is opened from now on. Must be called before the first one.
pub(super) fn observe() {
    // Fails only after a panic of another call.
    let _ = set_default_instrumentation(|| Some(Box::new(Observer)));
}

struct Observer;

impl Instrumentation for Observer {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        let Some(striker) = STRIKER.get() else { return };
        match event {
            InstrumentationEvent::StartQuery { query, .. } => {
                let text = query.to_string();
                if is_event(&text) {
                    striker.strike("before", &text);
                } else {
                    striker.note(&text);
                }
            }
            // The state changes at a commit, and its acknowledgement may be lost.
            InstrumentationEvent::FinishQuery {
                query, error: None, ..
            } if query.to_string() == "COMMIT" => {
                striker.strike("after", "COMMIT");
            }
            _ => {}
        }
    }
}

/// Returns whether a statement is the repository's, or begins or ends a transaction.
fn is_event(text: &str) -> bool {
    ["BATCH_", "batch_", "BEGIN", "COMMIT"]
        .iter()
        .any(|word| text.contains(word))
}

impl Striker {
    fn strike(&self, when: &str, statement: &str) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.write(&format!("{number} {when} {}\n", shortened(statement)));
        let Some(crash) = self.crash.filter(|crash| crash.event == number) else {
            return;
        };
        match crash.fault {
            Fault::Death => std::process::abort(),
            Fault::Error => panic!("simulated by the crash sweep {when} `{}`", shortened(statement)),
        }
    }

    /// Records a statement that is no event.
    fn note(&self, statement: &str) {
        self.write(&format!("- {}\n", shortened(statement)));
    }

    fn write(&self, line: &str) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = events.write_all(line.as_bytes());
    }
}

/// Returns the beginning of a statement: the values are not needed.
fn shortened(statement: &str) -> String {
    let line: String = statement
        .chars()
        .map(|c| if c == '\n' { ' ' } else { c })
        .take(120)
        .collect();
    match line.find(" -- binds") {
        Some(end) => line[..end].to_owned(),
        None => line,
    }
}
