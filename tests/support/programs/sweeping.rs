//! A program that is struck by a fault at a chosen event of its repository; see `batch_tests::sweep`, which runs it.
#![allow(missing_docs, reason = "a program for tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a program for tests")]

use std::cell::Cell;
use std::env;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

// Links the batchlets that the jobs name.
use batch_batchlets as _;
use batch_items::file::{FileFrame, FramedPosition};
use batch_items::{JsonArrayItemWriter, LineItemWriter, RejectListener, ResourceError};
use batch_runtime::prelude::*;
use batch_tests::sqlite;
use batch_tests::sweep::{CALLS, Fault, Order, REARM_FOR_EVER, REARM_NEVER, STRUCK, WAITS_AT};
use diesel::connection::{
    Instrumentation, InstrumentationEvent, SimpleConnection, set_default_instrumentation,
};
use serde::{Deserialize, Serialize};

/// Writes a call of an artifact to the sweep's file when the call ends, however it does.
struct Call {
    line: String,
    end: &'static str,
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut file = File::options().append(true).create(true).open(CALLS).unwrap();
        // In one call of the system: several threads may write, and the process may die.
        let line = format!("{}{}\n", self.line, self.end);
        file.write_all(line.as_bytes()).unwrap();
    }
}

fn record(line: impl Into<String>) {
    drop(Call {
        line: line.into(),
        end: "",
    });
}

fn recorded<T, E>(line: String, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let mut recorded = Call { line, end: " !Panic" };
    let result = call();
    recorded.end = if result.is_ok() { "" } else { " !Error" };
    result
}

/// Reads the numbers after `from` up to `to`. At the number in the environment variable it waits for a file `go`.
#[derive(BatchArtifact)]
struct Numbers {
    #[batch_property(name = "from", value = "0")]
    from: u64,
    #[batch_property(name = "to")]
    to: u64,
    last: u64,
}

#[item_reader]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(self.from);
        record(format!("open reader at {}", self.last));
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        if env::var(WAITS_AT).is_ok_and(|number| number == (self.last + 1).to_string())
            && !Path::new("go").exists()
        {
            eprintln!("waiting");
            while !Path::new("go").exists() {
                thread::yield_now();
            }
            eprintln!("going on");
        }
        if self.last == self.to {
            record("read the end");
            return None;
        }
        self.last += 1;
        record(format!("read {}", self.last));
        Some(self.last)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        record(format!("checkpoint reader at {}", self.last));
        self.last
    }
    #[close]
    fn close(&mut self) {
        record("close reader");
    }
}

#[derive(Debug, BatchException)]
#[batch_exception(class = "test.Unwanted")]
struct Unwanted;

impl fmt::Display for Unwanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an unwanted number")
    }
}

impl std::error::Error for Unwanted {}

/// Filters 5, and throws at 7; both again in the second dozen.
#[derive(BatchArtifact)]
struct Wanted;

#[item_processor]
impl Wanted {
    #[process_item]
    fn process(&mut self, number: u64) -> Result<Option<u64>, Unwanted> {
        recorded(format!("process {number}"), || match number % 12 {
            5 => Ok(None),
            7 => Err(Unwanted),
            _ => Ok(Some(number)),
        })
    }
}

/// Writes the numbers in the transaction of the checkpoint, with the id of the step execution.
#[derive(BatchArtifact)]
struct Rows {
    #[batch_context]
    step: StepContext,
}

#[item_writer]
impl Rows {
    #[open]
    fn open(&mut self, _: Option<()>) {
        record("open writer");
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let items: String = numbers.iter().map(|number| format!(" n{number}")).collect();
        recorded(format!("write{items}"), || {
            let execution = self.step.execution_id();
            for number in numbers {
                tx.sqlite()?
                    .batch_execute(&format!("INSERT INTO written VALUES ({number}, {execution})"))?;
            }
            Ok(())
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {
        record("checkpoint writer");
    }
    #[close]
    fn close(&mut self) {
        record("close writer");
    }
}

/// The same, and keeps the number of rows as data of the job.
#[derive(BatchArtifact)]
struct RowsAndData {
    #[batch_artifact]
    rows: Rows,
    #[batch_context]
    job: JobContext,
}

#[item_writer]
impl RowsAndData {
    #[open]
    fn open(&mut self, _: Option<()>) {
        self.rows.open(None);
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let before: Option<u64> = self.job.persistent_data("rows")?;
        let rows = before.unwrap_or(0) + numbers.len() as u64;
        self.job.set_persistent_data("rows", &rows)?;
        self.rows.write(numbers, tx)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {
        self.rows.checkpoint();
    }
    #[close]
    fn close(&mut self) {
        self.rows.close();
    }
}

/// The number and the sum of the numbers in a file, its footer.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Totals {
    count: u64,
    sum: u64,
}

impl FileFrame<u64> for Totals {
    fn add(&mut self, number: &u64) {
        self.count += 1;
        self.sum += number;
    }
    fn footer(&self) -> Option<String> {
        Some(format!("{} numbers, sum {}\n", self.count, self.sum))
    }
}

/// Writes the numbers to the table, to a file with a footer, and to several files of a compressed format.
#[derive(BatchArtifact)]
struct RowsAndFiles {
    #[batch_artifact]
    rows: Rows,
    #[batch_artifact(prefix = "lines.")]
    lines: LineItemWriter<u64, Totals>,
    #[batch_artifact(prefix = "arrays.")]
    arrays: JsonArrayItemWriter<u64>,
}

#[item_writer]
impl RowsAndFiles {
    #[open]
    fn open(
        &mut self,
        checkpoint: Option<(FramedPosition<Totals>, FramedPosition<()>)>,
    ) -> Result<(), ResourceError> {
        let (lines, arrays) = checkpoint.unzip();
        self.rows.open(None);
        self.lines.open(lines)?;
        self.arrays.open(arrays)
    }
    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.rows.write(numbers, tx)?;
        self.lines.write(numbers)?;
        self.arrays.write(numbers)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<(FramedPosition<Totals>, FramedPosition<()>), ResourceError> {
        self.rows.checkpoint();
        Ok((self.lines.checkpoint()?, self.arrays.checkpoint()?))
    }
    #[finish]
    fn finish(&mut self) -> Result<(), ResourceError> {
        record("finish");
        self.lines.finish()?;
        self.arrays.finish()
    }
    #[close]
    fn close(&mut self) {
        self.lines.close();
        self.arrays.close();
        self.rows.close();
    }
}

#[skip_listener("Rejects")]
#[checkpoint_listener("Rejects")]
type Rejects = RejectListener<u64>;

#[derive(BatchArtifact)]
struct Done;

#[batchlet]
impl Done {
    #[process]
    fn process(&self) -> String {
        String::from("DONE")
    }
    #[cancel]
    fn cancel(&self) {}
}

/// The order given to this process.
static ORDER: OnceLock<Order> = OnceLock::new();
/// The statements, connections and ended commits so far.
static EVENTS: AtomicU64 = AtomicU64::new(0);
/// True after a rollback, until the next transaction starts.
static FAILED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// True while this thread uses a connection of the test itself.
    static ASIDE: Cell<bool> = const { Cell::new(false) };
}

/// Observes the statements of one connection.
#[derive(Default)]
struct Striker {
    in_transaction: bool,
}

impl Instrumentation for Striker {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if ASIDE.get() {
            return;
        }
        // The committed state does not change between the end of a statement and the start of the next. The moment
        // after a commit, before its result is known, is still an event.
        let (what, ended) = match event {
            InstrumentationEvent::StartEstablishConnection { .. } => ("a connection".to_owned(), None),
            InstrumentationEvent::StartQuery { query, .. } => (query.to_string(), None),
            InstrumentationEvent::FinishQuery { query, error, .. } => {
                (query.to_string(), Some(error.is_none()))
            }
            _ => return,
        };
        let is_commit = what == "COMMIT";
        if ended.is_some() && !is_commit {
            return;
        }
        strike(&what);
        if ended == Some(true) {
            self.in_transaction = false;
        } else if what.contains("BEGIN") {
            if FAILED.swap(false, Ordering::Relaxed) {
                tell_the_triggers();
            }
            self.in_transaction = true;
        }
    }
}

/// The runtime closes a connection whose transaction fails to end.
impl Drop for Striker {
    fn drop(&mut self) {
        if self.in_transaction {
            FAILED.store(true, Ordering::Relaxed);
            let order = ORDER.get().expect("set before the first connection");
            if matches!(order.fault, Fault::Once | Fault::ForEver) {
                eprintln!("{STRUCK}: a transaction is rolled back");
            }
        }
    }
}

/// Counts an event, and ends the process or panics at the ordered one.
fn strike(what: &str) {
    let order = ORDER.get().expect("set before the first connection");
    if !matches!(order.fault, Fault::Kill | Fault::Panic)
        || EVENTS.fetch_add(1, Ordering::Relaxed) + 1 != order.at
    {
        return;
    }
    eprintln!("{STRUCK} at {what}");
    if order.fault == Fault::Panic {
        panic!("{STRUCK}");
    }
    std::process::abort();
}

/// The counter of a trigger is rolled back with its transaction, so the process decides what follows.
fn tell_the_triggers() {
    let statement = match ORDER.get().map(|order| order.fault) {
        Some(Fault::Once) => REARM_NEVER,
        Some(Fault::ForEver) => REARM_FOR_EVER,
        _ => return,
    };
    ASIDE.set(true);
    let mut connection = sqlite::open(Path::new("batch.db"));
    connection
        .batch_execute(statement)
        .expect("the triggers read the tables");
    drop(connection);
    ASIDE.set(false);
}

fn striker() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(Striker::default()))
}

fn main() -> ExitCode {
    ORDER.set(Order::of_this_process()).expect("it is set once");
    set_default_instrumentation(striker).expect("nobody panics in it");
    batch_cli::main()
}
