//! Artifacts that throw the errors in the job's property `faults`, and record every call and its error.
//!
//! `faults` holds entries separated by `;`: a call as in the log, `: `, a class of [`Oops`], and a number of times, as
//! in `read 2: Skip; write n1 n2: Retry x1`. A call `has n2` is any call of the writer whose list contains `n2`; with
//! `@` before the class the writer names the item, with `@@` an item that its list does not contain. Without a number
//! the error is thrown every time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use batch_runtime::prelude::*;
use batch_runtime::{ConfigurationError, JobExecutionId};
use batch_tests::order::Order;
use batch_tests::stage::{Stage, say};
use diesel::RunQueryDsl;
use diesel::connection::SimpleConnection;
use diesel::sql_types::Text;

use super::artifacts::{Gate, execute, job, tree, wrapped};

/// The errors; the Job XML configures which classes are skipped and retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BatchException)]
pub(crate) enum Oops {
    Skip,
    #[batch_exception(extends = "test.Trouble")]
    Retry,
    /// Skippable and retryable.
    #[batch_exception(extends = "test.Trouble")]
    Both,
    /// Retryable with no rollback.
    Soft,
    /// Retryable with no rollback, and skippable.
    SoftSkip,
    /// In the no-rollback list only.
    NoRollback,
    Fatal,
    /// Caused by a [`ConfigurationError`].
    Misfit,
    Panic,
}

impl fmt::Display for Oops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Oops {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        static CAUSE: LazyLock<ConfigurationError> =
            LazyLock::new(|| ConfigurationError::new("no such table"));
        matches!(self, Self::Misfit).then_some(&*CAUSE)
    }
}

impl Oops {
    fn named(name: &str) -> Self {
        use Oops::{Both, Fatal, Misfit, NoRollback, Panic, Retry, Skip, Soft, SoftSkip};
        let all = [
            Skip, Retry, Both, Soft, SoftSkip, NoRollback, Fatal, Misfit, Panic,
        ];
        let found = all.into_iter().find(|oops| oops.to_string() == name);
        found.unwrap_or_else(|| panic!("there is no class {name:?}"))
    }
}

/// Returns the children of a chunk that configure the classes of [`Oops`] according to their names.
pub(crate) const RULES: &str = r#"<skippable-exception-classes>
  <include class="Skip"/><include class="Both"/><include class="SoftSkip"/>
</skippable-exception-classes>
<retryable-exception-classes>
  <include class="Retry"/><include class="Both"/><include class="Soft"/><include class="SoftSkip"/>
</retryable-exception-classes>
<no-rollback-exception-classes>
  <include class="Soft"/><include class="SoftSkip"/><include class="NoRollback"/>
</no-rollback-exception-classes>"#;

/// Returns a job `job` with one step `copy` from `Source` to `writer`, with these listeners and further attributes and
/// children of its chunk.
pub(crate) fn faulty_job(listeners: &str, writer: &str, attributes: &str, children: &str) -> String {
    let listeners = match listeners {
        "" => String::new(),
        some => format!("<listeners>{some}</listeners>"),
    };
    job(&format!(
        r#"<step id="copy">{listeners}<chunk reader="Source" processor="Shape" writer="{writer}" {attributes}>{children}</chunk></step>"#
    ))
}

/// Adds listeners to the job.
pub(crate) fn with_job_listeners(xml: &str, listeners: &str) -> String {
    let job = "<job id=\"job\">";
    xml.replace(job, &format!("{job}<listeners>{listeners}</listeners>"))
}

/// Returns a listener element that records these methods only, or all of them if none is named.
pub(crate) fn listener(name: &str, calls: &str) -> String {
    format!(
        r#"<listener ref="CallListener"><properties><property name="name" value="{name}"/><property name="calls" value="{calls}"/></properties></listener>"#
    )
}

/// The calls of listeners to record retries and skips.
pub(crate) const RETRIES: &str = "on retry,on skip";

/// Returns the story of a job with these faults, for each writer.
pub(crate) fn stories(writers: &[&str], attributes: &str, faults: &str, items: &str) -> String {
    let mut text = String::new();
    for writer in writers {
        let stage = faulty(&listener("", RETRIES), writer, attributes, RULES);
        let words = ["process", "write", "L", "checkpoint reader"];
        text += &format!("== {writer}: {faults}\n{}\n", run(&stage, faults, items, &words));
        if writer.contains("Table") {
            text += &format!("table: {}\n", lines(&stage));
        }
    }
    text
}

/// Returns a stage with the job of [`faulty_job`], and with the table.
pub(crate) fn faulty(listeners: &str, writer: &str, attributes: &str, children: &str) -> Stage {
    faulty_stage(&faulty_job(listeners, writer, attributes, children))
}

/// Returns a stage with the table of the writers through the chunk transaction.
pub(crate) fn faulty_stage(xml: &str) -> Stage {
    let stage = Stage::new(xml);
    make_table(&stage);
    stage
}

/// Creates the table.
pub(crate) fn make_table(stage: &Stage) {
    execute(stage, "CREATE TABLE line (text TEXT NOT NULL)");
}

/// Returns the rows of the table, in the order of writing.
pub(crate) fn lines(stage: &Stage) -> String {
    stage
        .outside()
        .rows("SELECT text FROM line ORDER BY rowid")
        .join(" ")
}

/// Starts the job with these faults; returns the tree, and the calls that begin with one of these words (all for none).
/// Checks the order of the calls.
pub(crate) fn run(stage: &Stage, faults: &str, items: &str, words: &[&str]) -> String {
    let execution = stage.start("job", [("faults", faults), ("items", items)]);
    tree_and_calls(stage, execution, words)
}

/// Returns the tree of an execution, and these calls of its log. Checks the order of all calls.
pub(crate) fn tree_and_calls(stage: &Stage, execution: JobExecutionId, words: &[&str]) -> String {
    let mut log = stage.log();
    if let Err(problem) = Order::default().check(&log) {
        panic!("{problem}\n{}\n{}", log.join("\n"), tree(stage, execution));
    }
    log.retain(|call| words.is_empty() || words.iter().any(|word| call.starts_with(word)));
    tree(stage, execution) + &wrapped(&log)
}

pub(crate) fn class(error: &BatchError) -> String {
    if error.is_panic() {
        "Panic".to_owned()
    } else {
        error.to_string()
    }
}

/// Returns the call of a listener with this error.
pub(crate) fn thrown(call: &str, error: &BatchError, items: impl fmt::Display) -> String {
    format!("{call} {} {items}", class(error))
}

/// The number of times each fault of each log was thrown.
static THROWN: Mutex<Option<HashMap<(String, String), u32>>> = Mutex::new(None);

/// The log of a stage, and the errors to throw.
#[derive(BatchArtifact)]
pub(crate) struct FaultLog {
    #[batch_property]
    log: String,
    #[batch_property]
    faults: String,
}

impl FaultLog {
    /// Records a call, and throws its error.
    pub(crate) fn record(&self, call: impl AsRef<str>) -> Result<(), BatchError> {
        self.record_items(call.as_ref(), &[])
    }

    /// Records a writer's call with these items, and throws its error.
    pub(crate) fn record_items(&self, call: &str, items: &[String]) -> Result<(), BatchError> {
        let entries = self.faults.split(';').map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let (place, fault) = entry.rsplit_once(": ").expect("`call: Class`");
            let (fault, times) = match fault.split_once(" x") {
                Some((fault, times)) => (fault, times.parse().expect("a number")),
                None => (fault, u32::MAX),
            };
            let at = match place.strip_prefix("has ") {
                Some(item) => items.iter().position(|other| other == item),
                None => (place == call).then_some(0),
            };
            let Some(index) = at else { continue };
            if self.count_throw(entry, times) {
                continue;
            }
            let (named, nowhere) = (fault.starts_with('@'), fault.starts_with("@@"));
            let (named, index) = (named && !nowhere, if nowhere { items.len() } else { index });
            let oops = Oops::named(fault.trim_start_matches('@'));
            self.say(format!("{call} !{}{oops}", if named { "@" } else { "" }));
            return match oops {
                Oops::Panic => panic!("no way to {call}"),
                _ if named || nowhere => Err(BatchError::at_item(index, oops)),
                _ => Err(oops.into()),
            };
        }
        self.say(call);
        Ok(())
    }

    /// Counts a throw of this entry. Returns true if it was thrown `times` times before.
    fn count_throw(&self, entry: &str, times: u32) -> bool {
        let mut thrown = THROWN.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = (self.log.clone(), entry.to_owned());
        let thrown = thrown.get_or_insert_default().entry(entry).or_default();
        let is_enough = *thrown >= times;
        *thrown += u32::from(!is_enough);
        is_enough
    }

    /// Records a line.
    pub(crate) fn say(&self, line: impl Into<String>) {
        say(&self.log, line);
    }
}

/// Reads 1 to `items`; moves on after an item that it fails at.
#[derive(BatchArtifact)]
struct Source {
    #[batch_artifact]
    log: FaultLog,
    #[batch_property(name = "folder")]
    folder: String,
    #[batch_property(name = "items", value = "4")]
    items: u64,
    #[batch_property(name = "hold.at", value = "0")]
    hold_at: u64,
    last: u64,
}

#[item_reader]
impl Source {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
        self.last = checkpoint.unwrap_or(0);
        self.log.record(format!("open reader at {}", self.last))
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        if self.last >= self.items {
            self.log.record("read the end")?;
            return Ok(None);
        }
        self.last += 1;
        if self.last == self.hold_at {
            Gate::of(&self.folder).hold();
        }
        self.log.record(format!("read {}", self.last))?;
        Ok(Some(self.last))
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<u64, BatchError> {
        self.log.record(format!("checkpoint reader at {}", self.last))?;
        Ok(self.last)
    }
    #[close]
    fn close(&mut self) -> Result<(), BatchError> {
        self.log.record("close reader")
    }
}

/// Returns `n7` for 7, and filters every number divisible by `filter.every`.
#[item_processor("Shape")]
fn shape(
    item: &u64,
    #[batch_artifact] log: &FaultLog,
    #[batch_property(name = "filter.every")] filter_every: Option<u64>,
) -> Result<Option<String>, BatchError> {
    log.record(format!("process {item}"))?;
    let filtered = filter_every.is_some_and(|every| item.is_multiple_of(every));
    Ok((!filtered).then(|| format!("n{item}")))
}

macro_rules! writers {
    ($($(#[$doc:meta])* $name:ident($($argument:tt)*) $(, $tx:ident: $chunk:ty)? => $insert:expr;)*) => {$(
        $(#[$doc])*
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_artifact]
            log: FaultLog,
            written: u64,
        }

        #[item_writer($($argument)*)]
        impl $name {
            #[open]
            fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
                self.written = checkpoint.unwrap_or(0);
                self.log.record(format!("open writer at {}", self.written))
            }
            #[write_items]
            fn write(&mut self, items: &[String] $(, $tx: &mut $chunk)?) -> Result<(), BatchError> {
                let insert: fn(&str $(, &mut $chunk)?) -> Result<(), BatchError> = $insert;
                // Items before the failing one are written, as by a careless writer.
                let call = self.log.record_items(&format!("write {}", items.join(" ")), items);
                let failed = call.as_ref().err().and_then(BatchError::item_index).unwrap_or(items.len());
                for item in &items[..failed] {
                    insert(item $(, $tx)?)?;
                }
                self.written += items.len() as u64;
                call
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) -> Result<u64, BatchError> {
                self.log.record("checkpoint writer")?;
                Ok(self.written)
            }
            #[close]
            fn close(&mut self) -> Result<(), BatchError> {
                self.log.record("close writer")
            }
        }
    )*};
}

fn insert(item: &str, tx: &mut ChunkTransaction) -> Result<(), BatchError> {
    diesel::sql_query("INSERT INTO line (text) VALUES (?)")
        .bind::<Text, _>(item)
        .execute(tx.sqlite()?)?;
    Ok(())
}

writers! {
    /// Writes to the log only.
    Out("Out") => |_| Ok(());
    /// Writes to the log only, one item at a time.
    SingleOut("SingleOut", buffered = false) => |_| Ok(());
    /// Writes to the table `line`, in the chunk's transaction. A failing call has written all items, or those before
    /// the item that it names.
    TableOut("TableOut"), tx: ChunkTransaction => insert;
    /// The same, one item at a time.
    SingleTableOut("SingleTableOut", buffered = false), tx: ChunkTransaction => insert;
    /// Ends the transaction itself when it fails at `n1`.
    Spoils("Spoils"), tx: ChunkTransaction => |item, tx| {
        insert(item, tx)?;
        if item == "n1" {
            tx.sqlite()?.batch_execute("ROLLBACK")?;
        }
        Ok(())
    };
}

/// Checkpoints after `every` calls of the processor.
#[derive(BatchArtifact)]
struct Every {
    #[batch_artifact]
    log: FaultLog,
    #[batch_property(name = "every", value = "2")]
    every: u32,
    items: u32,
}

#[checkpoint_algorithm]
impl Every {
    #[get_checkpoint_timeout]
    fn timeout(&mut self, timeout: i32) -> Result<i32, BatchError> {
        self.log.record("get timeout")?;
        Ok(timeout)
    }
    #[begin_checkpoint]
    fn begin(&mut self) -> Result<(), BatchError> {
        self.items = 0;
        self.log.record("begin checkpoint")
    }
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> Result<bool, BatchError> {
        self.items += 1;
        let is_ready = self.items >= self.every;
        self.log.record(format!("ready? {is_ready}"))?;
        Ok(is_ready)
    }
    #[end_checkpoint]
    fn end(&mut self) -> Result<(), BatchError> {
        self.log.record("end checkpoint")
    }
}

/// Records the calls of all item listeners.
#[derive(BatchArtifact)]
struct CallListener {
    #[batch_artifact]
    log: FaultLog,
    #[batch_property(name = "name")]
    name: String,
    /// The methods to record; all if it is empty.
    #[batch_property(name = "calls")]
    calls: String,
}

impl CallListener {
    fn record(&self, call: &str) -> Result<(), BatchError> {
        let mut wanted = self.calls.split(',');
        if !self.calls.is_empty() && !wanted.any(|word| call.starts_with(word)) {
            return Ok(());
        }
        let name = if self.name.is_empty() { "L" } else { &self.name };
        self.log.record(format!("{name} {call}"))
    }
}

/// The listeners that a pipelined step may have, for a type with a method `record`.
macro_rules! pipeline_listeners {
    ($name:ident) => {
        #[checkpoint_listener]
        impl $name {
            #[before_checkpoint]
            fn before_checkpoint(&mut self) -> Result<(), BatchError> {
                self.record("before checkpoint")
            }
            #[after_checkpoint]
            fn after_checkpoint(&mut self) -> Result<(), BatchError> {
                self.record("after checkpoint")
            }
        }

        #[item_write_listener]
        impl $name {
            #[before_write]
            fn before_write(&mut self, items: &[String]) -> Result<(), BatchError> {
                self.record(&format!("before write {}", items.join(" ")))
            }
            #[after_write]
            fn after_write(&mut self, items: &[String]) -> Result<(), BatchError> {
                self.record(&format!("after write {}", items.join(" ")))
            }
            #[on_write_error]
            fn on_write_error(&mut self, error: &BatchError, items: &[String]) -> Result<(), BatchError> {
                self.record(&$crate::faults::thrown(
                    "on write error",
                    error,
                    items.join(" "),
                ))
            }
        }

        #[skip_listener]
        impl $name {
            #[on_skip_in_read]
            fn on_skip_in_read(&mut self, error: &BatchError) -> Result<(), BatchError> {
                self.record(&format!("on skip in read {}", $crate::faults::class(error)))
            }
            #[on_skip_in_process]
            fn on_skip_in_process(&mut self, error: &BatchError, item: &u64) -> Result<(), BatchError> {
                self.record(&$crate::faults::thrown("on skip in process", error, item))
            }
            #[on_skip_in_write]
            fn on_skip_in_write(&mut self, error: &BatchError, item: &String) -> Result<(), BatchError> {
                self.record(&$crate::faults::thrown("on skip in write", error, item))
            }
        }

        #[retry_listener]
        impl $name {
            #[on_retry_exception]
            fn on_retry_exception(&mut self, error: &BatchError, item: &String) -> Result<(), BatchError> {
                self.record(&$crate::faults::thrown("on retry exception", error, item))
            }
            #[on_retry_item]
            fn on_retry_item(&mut self, error: &BatchError, item: &String) -> Result<(), BatchError> {
                self.record(&$crate::faults::thrown("on retry item", error, item))
            }
        }
    };
}

pub(crate) use pipeline_listeners;

/// The listeners of reading and processing, for a type with a method `record`.
macro_rules! input_listeners {
    ($name:ident) => {
        #[item_read_listener]
        impl $name {
            #[before_read]
            fn before_read(&mut self) -> Result<(), BatchError> {
                self.record("before read")
            }
            #[after_read]
            fn after_read(&mut self, item: &u64) -> Result<(), BatchError> {
                self.record(&format!("after read {item}"))
            }
            #[on_read_error]
            fn on_read_error(&mut self, error: &BatchError) -> Result<(), BatchError> {
                self.record(&format!("on read error {}", $crate::faults::class(error)))
            }
        }

        #[item_process_listener]
        impl $name {
            #[before_process]
            fn before_process(&mut self, item: &u64) -> Result<(), BatchError> {
                self.record(&format!("before process {item}"))
            }
            #[after_process]
            fn after_process(&mut self, item: &u64, result: Option<&String>) -> Result<(), BatchError> {
                self.record(&format!("after process {item} {result:?}"))
            }
            #[on_process_error]
            fn on_process_error(&mut self, error: &BatchError, item: &u64) -> Result<(), BatchError> {
                self.record(&format!(
                    "on process error {} {item}",
                    $crate::faults::class(error)
                ))
            }
        }
    };
}

pub(crate) use input_listeners;

pipeline_listeners!(CallListener);
input_listeners!(CallListener);
