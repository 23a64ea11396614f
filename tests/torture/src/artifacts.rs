//! The artifacts of the jobs, in the processes that the suite launches.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use batch_runtime::prelude::*;
use batch_tests::database;
use diesel::connection::SimpleConnection;

use crate::plant::Plant;

/// The environment variable with the number of the call that waits for a fault.
pub(crate) const HOLD: &str = "TORTURE_HOLD";
/// The file that exists while the call waits.
pub(crate) const HELD: &str = "held";
/// The file that ends the wait.
pub(crate) const GO: &str = "go";
/// The file with the calls of a process is named by this and its id.
pub(crate) const CALLS: &str = "calls-";
/// The message of every planned failure.
pub(crate) const PLANNED: &str = "planned failure";

/// Counts the calls of all artifacts. The chosen one waits until the fault has happened.
fn call(artifact: u32, what: &str) {
    static CALL: AtomicU32 = AtomicU32::new(0);
    static HOLD_AT: OnceLock<Option<u32>> = OnceLock::new();
    let number = CALL.fetch_add(1, Ordering::Relaxed) + 1;
    let hold_at = *HOLD_AT.get_or_init(|| std::env::var(HOLD).ok()?.parse().ok());
    if Some(number) == hold_at {
        File::create(HELD).unwrap();
        while !Path::new(GO).exists() {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let mut file = File::options()
        .append(true)
        .create(true)
        .open(format!("{CALLS}{}", std::process::id()))
        .unwrap();
    // In one call of the system: several threads write, and the process may die.
    let _ = file.write_all(format!("{artifact} {what}\n").as_bytes());
}

/// Returns a number for an artifact, so that its calls can be told from other artifacts' calls.
fn next_artifact() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns true in the first execution that comes here, also after the death of its process.
fn is_first_time(step: &str, number: u32) -> bool {
    File::create_new(format!("failed-{step}-{number}")).is_ok()
}

fn planned_failure(step: &str, number: u32) -> BatchError {
    let text = match Plant::of_this_process() {
        Some(Plant::OtherCause) => "something else",
        _ => PLANNED,
    };
    BatchError::msg(format!("{text} of {step} at {number}"))
}

/// The error of an item that is skipped.
#[derive(Debug, BatchException)]
#[batch_exception(class = "torture.Bad")]
struct Bad;

/// An error that a retry fixes.
#[derive(Debug, BatchException)]
#[batch_exception(class = "torture.Transient")]
struct Transient;

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a bad item")
    }
}

impl fmt::Display for Transient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a transient error")
    }
}

impl std::error::Error for Bad {}
impl std::error::Error for Transient {}

/// Declares a reader, with `#[close]` or without it. Without it, a partition ends with its last chunk.
macro_rules! numbers {
    ($name:ident, $opened:literal, $($close:tt)*) => {
        /// Reads the numbers after `from`.
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_property(name = "from")]
            from: u32,
            #[batch_property(name = "items")]
            items: u32,
            #[batch_property(name = "bad.reads")]
            bad: Vec<u32>,
            last: u32,
            artifact: u32,
        }

        #[item_reader]
        impl $name {
            #[open]
            fn open(&mut self, checkpoint: Option<u32>) {
                self.artifact = next_artifact();
                call(self.artifact, $opened);
                self.last = checkpoint.unwrap_or(0);
            }
            #[read_item]
            fn read(&mut self) -> Result<Option<u32>, Bad> {
                call(self.artifact, "read");
                if self.last == self.items {
                    return Ok(None);
                }
                self.last += 1;
                match self.bad.contains(&self.last) {
                    true => Err(Bad),
                    false => Ok(Some(self.from + self.last)),
                }
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) -> u32 {
                call(self.artifact, "checkpoint");
                match Plant::of_this_process() {
                    Some(Plant::LateCheckpoint) => self.items.min(self.last + 1),
                    _ => self.last,
                }
            }
            $($close)*
        }
    };
}

numbers! { Numbers, "open reader",
    #[close]
    fn close(&mut self) {
        if Plant::of_this_process() != Some(Plant::NotClosed) {
            call(self.artifact, "close");
        }
    }
}
numbers! { UnclosedNumbers, "begin to read", }

/// Filters, fails and rejects.
#[derive(BatchArtifact)]
struct Results {
    #[batch_property(name = "step")]
    step: String,
    #[batch_property(name = "from")]
    from: u32,
    #[batch_property(name = "filter")]
    filter: u32,
    #[batch_property(name = "bad.results")]
    bad: Vec<u32>,
    #[batch_property(name = "fails.at")]
    fails_at: Option<u32>,
}

#[item_processor]
impl Results {
    #[process_item]
    fn process(&mut self, number: u32) -> Result<Option<u32>, BatchError> {
        call(0, "process");
        let item = number - self.from;
        if self.fails_at == Some(item) && is_first_time(&self.step, number) {
            return Err(planned_failure(&self.step, number));
        }
        if Plant::of_this_process() == Some(Plant::Hang) && item == 3 {
            thread::sleep(Duration::from_secs(3_600));
        }
        match self.bad.contains(&item) {
            true => Err(Bad.into()),
            false => Ok((!item.is_multiple_of(self.filter)).then_some(number)),
        }
    }
}

/// The transient errors that this process has had.
static THROWN: Mutex<BTreeSet<(String, u32)>> = Mutex::new(BTreeSet::new());

/// Declares a writer, like `numbers!`.
macro_rules! rows {
    ($name:ident, $opened:literal, $($close:tt)*) => {
        /// Writes the numbers in the transaction of the checkpoint, with the id of the step execution.
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_context]
            step_context: StepContext,
            #[batch_context]
            job: JobContext,
            #[batch_property(name = "step")]
            step: String,
            #[batch_property(name = "from")]
            from: u32,
            #[batch_property(name = "bad.writes")]
            bad: Vec<u32>,
            #[batch_property(name = "transient")]
            transient: Vec<u32>,
            artifact: u32,
        }

        #[item_writer]
        impl $name {
            #[open]
            fn open(&mut self, _checkpoint: Option<()>) {
                self.artifact = next_artifact();
                call(self.artifact, $opened);
            }
            #[write_items]
            fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
                call(self.artifact, "write");
                let execution = self.step_context.execution_id();
                for number in numbers {
                    let item = number - self.from;
                    if self.bad.contains(&item) {
                        return Err(Bad.into());
                    }
                    if self.transient.contains(&item) && THROWN.lock().unwrap().insert((self.step.clone(), *number)) {
                        return Err(Transient.into());
                    }
                    let insert = format!(
                        "INSERT INTO written (step, n, execution, undone) VALUES ('{}', {number}, {execution}, 0)",
                        self.step
                    );
                    match Plant::of_this_process() {
                        Some(Plant::LostRow) if item == 2 => {}
                        Some(Plant::DoubledRow) if item == 2 => {
                            database::execute(tx, &insert)?;
                            database::execute(tx, &insert)?;
                        }
                        Some(Plant::OutsideOfTransaction) => outside(&self.job, &insert)?,
                        _ => database::execute(tx, &insert)?,
                    }
                }
                Ok(())
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) {
                call(self.artifact, "checkpoint");
            }
            $($close)*
        }
    };
}

rows! { Rows, "open writer",
    #[close]
    fn close(&mut self) {
        call(self.artifact, "close");
    }
}
rows! { UnclosedRows, "begin to write", }

/// Executes a statement on a separate connection.
fn outside(job: &JobContext, statement: &str) -> Result<(), BatchError> {
    let mut connection = job.connect()?;
    if let Ok(connection) = connection.postgres() {
        return Ok(connection.batch_execute(statement)?);
    } else if let Ok(connection) = connection.mysql() {
        return Ok(connection.batch_execute(statement)?);
    }
    Ok(connection.sqlite()?.batch_execute(statement)?)
}

/// Undoes the rows of a step whose partitions have not all completed.
#[derive(BatchArtifact)]
struct Undo {
    #[batch_context]
    job: JobContext,
    #[batch_property(name = "steps")]
    steps: Vec<String>,
}

#[logical_tx("Undo")]
impl Undo {
    #[logical_tx_begin]
    fn begin(&mut self) {
        call(0, "begin");
    }
    #[logical_tx_rollback]
    fn undo(&mut self) -> Result<(), BatchError> {
        call(0, "rollback");
        self.steps.iter().try_for_each(|step| {
            outside(
                &self.job,
                &format!("UPDATE written SET undone = 1 WHERE step = '{step}' AND undone = 0"),
            )
        })
    }
}

/// A batchlet that records its run.
#[derive(BatchArtifact)]
struct Task {
    #[batch_context]
    step_context: StepContext,
    #[batch_context]
    job: JobContext,
    #[batch_property(name = "step")]
    step: String,
    #[batch_property(name = "from")]
    from: u32,
    #[batch_property(name = "fails")]
    fails: bool,
}

#[batchlet("Task")]
impl Task {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        call(0, "task");
        if self.fails && is_first_time(&self.step, self.from) {
            return Err(planned_failure(&self.step, self.from));
        }
        let execution = self.step_context.execution_id();
        let (step, part) = (&self.step, self.from);
        let insert =
            format!("INSERT INTO ran (step, part, execution) VALUES ('{step}', {part}, {execution})");
        outside(&self.job, &insert)?;
        Ok("DONE".to_owned())
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Answers with its property.
#[derive(BatchArtifact)]
struct Answer {
    #[batch_property(name = "answer")]
    answer: String,
}

#[decider("Answer")]
impl Answer {
    #[decide]
    fn decide(&mut self) -> String {
        call(0, "decide");
        self.answer.clone()
    }
}
