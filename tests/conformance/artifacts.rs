//! Artifacts that record every call. The job parameter `fail` (or `panic`) names the calls, as the log shows them,
//! that return an error (or panic); several are separated by `;`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use batch_runtime::execution::{JobExecution, StepExecution};
use batch_runtime::parameters::SecretReference;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperatorError, JobParameters};
use batch_tests::stage::{Stage, say};
use diesel::RunQueryDsl;
use diesel::connection::SimpleConnection;
use diesel::sql_types::Text;

/// Returns the Job XML of a job `job` with these elements.
pub(crate) fn job(elements: &str) -> String {
    format!("<job id=\"job\">\n{elements}\n</job>")
}

/// Returns a job `job` with one step of `Numbers`, `Labels` and `Lines`; `attributes` are further attributes of the
/// chunk.
pub(crate) fn chunk_job(attributes: &str) -> String {
    job(&format!(
        "<step id=\"copy\"><chunk reader=\"Numbers\" processor=\"Labels\" writer=\"Lines\" {attributes}/></step>"
    ))
}

/// Returns the tree of an execution in short form: without counters that are 0, an exit status that equals the batch
/// status, and messages of steps that equal the job's message.
pub(crate) fn tree(stage: &Stage, execution: JobExecutionId) -> String {
    let long = stage.tree(execution);
    let mut entries: Vec<Vec<String>> = Vec::new();
    for line in long.lines() {
        match (line.trim_start().strip_prefix("| "), entries.last_mut()) {
            (Some(message), Some(entry)) => entry.push(message.to_owned()),
            _ => entries.push(vec![short(line)]),
        }
    }
    let of_job = entries[0][1..].to_vec();
    let mut text = String::new();
    for (index, mut entry) in entries.into_iter().enumerate() {
        if index > 0 && entry.len() > 1 && entry[1..] == of_job {
            entry.truncate(1);
            entry.push("the job's message".to_owned());
        }
        let shows_source = entry.iter().any(|line| line.contains(" --> "));
        let separator = if shows_source { "\n    | " } else { " | " };
        text += &folded(&entry, separator, "\n    | ");
        text.push('\n');
    }
    text
}

/// Returns a line of the tree without what repeats or is 0.
fn short(header: &str) -> String {
    let mut text = format!("{header} ");
    for status in ["COMPLETED", "FAILED", "STOPPED", "ABANDONED"] {
        text = text.replace(&format!(" {status} {status} "), &format!(" {status} "));
    }
    for counter in ["read", "filter", "write", "commit", "rollback"] {
        text = text.replace(&format!(" {counter} 0 "), " ");
    }
    text.trim_end().to_owned()
}

/// Returns calls in lines of at most 100 columns, separated by ` · `.
pub(crate) fn wrapped(calls: &[impl AsRef<str>]) -> String {
    folded(calls, " · ", "\n")
}

/// Joins the parts by the separator, or by `fold` where the line would be longer than 100 columns.
fn folded(parts: &[impl AsRef<str>], separator: &str, fold: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for part in parts.iter().map(AsRef::as_ref) {
        let length = part.chars().count();
        if width > 0 {
            let fits = width + 3 + length <= 100;
            text += if fits { separator } else { fold };
            width = if fits { width + 3 } else { fold.len() - 1 };
        }
        text += part;
        width += length;
    }
    text
}

/// Returns the tree of an execution, and the calls that artifacts logged since the last look.
pub(crate) fn story(stage: &Stage, execution: JobExecutionId) -> String {
    tree(stage, execution) + &wrapped(&stage.log())
}

/// Returns the calls in the log that begin with one of these words.
pub(crate) fn calls(stage: &Stage, words: &[&str]) -> String {
    wrapped(&chosen(stage, words))
}

/// Returns the list of these calls.
pub(crate) fn chosen(stage: &Stage, words: &[&str]) -> Vec<String> {
    let mut log = stage.log();
    log.retain(|call| words.iter().any(|word| call.starts_with(word)));
    log
}

/// Runs a job of these elements.
pub(crate) fn started(elements: &str, parameters: impl Into<JobParameters>) -> (Stage, JobExecutionId) {
    let stage = Stage::new(&job(elements));
    let execution = stage.start("job", parameters);
    (stage, execution)
}

/// Returns a stage whose operator does not wait for the end of a job that it stops.
pub(crate) fn impatient(xml: &str) -> Stage {
    Stage::configured(xml, |builder| builder.stop_timeout(Duration::ZERO))
}

/// Starts the job, and waits until an artifact is held.
pub(crate) fn held(stage: &Stage, parameters: impl Into<JobParameters>) -> JobExecutionId {
    let execution = stage.operator().start("job", parameters).unwrap();
    Gate::at(stage).pass("held");
    execution
}

/// Starts the job, stops it while an artifact is held, and waits for its end.
pub(crate) fn stopped(stage: &Stage, parameters: impl Into<JobParameters>) -> JobExecutionId {
    let execution = held(stage, parameters);
    assert!(!stage.operator().stop(execution).unwrap());
    Gate::at(stage).open("go");
    stage.operator().wait(execution).unwrap();
    execution
}

/// Returns the record of an execution.
pub(crate) fn job_execution(stage: &Stage, execution: JobExecutionId) -> JobExecution {
    stage.operator().job_execution(execution).unwrap().unwrap()
}

/// Returns the first step execution of a job execution.
pub(crate) fn first_step_execution(stage: &Stage, execution: JobExecutionId) -> StepExecution {
    stage.operator().step_executions(execution).unwrap().remove(0)
}

/// Returns the step executions of a job execution, which are COMPLETED.
#[track_caller]
pub(crate) fn completed_steps(stage: &Stage, execution: JobExecutionId) -> Vec<StepExecution> {
    let steps = stage.operator().step_executions(execution).unwrap();
    let is_completed = |step: &StepExecution| step.status == BatchStatus::Completed;
    assert!(steps.iter().all(is_completed), "{}", tree(stage, execution));
    steps
}

/// Executes statements in the stage's database.
pub(crate) fn execute(stage: &Stage, statements: &str) {
    stage.connection().batch_execute(statements).unwrap();
}

/// Returns a reference to a secret with this value, which is in a file of the stage.
pub(crate) fn secret(stage: &Stage, value: &str) -> SecretReference {
    let file = stage.path().join("secret");
    std::fs::write(&file, value).unwrap();
    SecretReference::File(file.display().to_string())
}

/// Restarts with replacement parameters and waits for the end.
pub(crate) fn restart_with(
    stage: &Stage,
    execution: JobExecutionId,
    parameters: impl Into<JobParameters>,
) -> JobExecutionId {
    let again = stage.operator().restart(execution, parameters).unwrap();
    stage.operator().wait(again).unwrap();
    again
}

/// Returns the error of `start`, without the path of the stage.
pub(crate) fn refused(stage: &Stage, job: &str, parameters: impl Into<JobParameters>) -> String {
    let error = stage.operator().start(job, parameters).unwrap_err();
    plain(stage, &error)
}

/// Returns an error as text, without the path of the stage and the line numbers of these files.
pub(crate) fn plain(stage: &Stage, error: &JobOperatorError) -> String {
    let text = error
        .to_string()
        .replace(&format!("{}/", stage.path().display()), "");
    without_lines(&text)
}

/// Returns the text without the line numbers of Rust files.
pub(crate) fn without_lines(text: &str) -> String {
    let mut places = text.split(".rs:");
    let first = places.next().unwrap_or_default().to_owned();
    places.fold(first, |text, rest| {
        text + ".rs" + rest.trim_start_matches(|digit: char| digit.is_ascii_digit())
    })
}

/// Asserts that an execution is COMPLETED.
#[track_caller]
pub(crate) fn assert_completed(stage: &Stage, execution: JobExecutionId) {
    let status = job_execution(stage, execution).status;
    assert_eq!(status, BatchStatus::Completed, "{}", tree(stage, execution));
}

/// Asserts that an execution is FAILED, with this text in its message.
#[track_caller]
pub(crate) fn assert_failed(stage: &Stage, execution: JobExecutionId, message: &str) {
    let ended = job_execution(stage, execution);
    assert_eq!(ended.status, BatchStatus::Failed, "{}", tree(stage, execution));
    assert_contains(&ended.exit_message, message);
}

/// Asserts that a text contains this part.
#[track_caller]
pub(crate) fn assert_contains(text: &(impl ToString + ?Sized), part: &str) {
    let text = text.to_string();
    assert!(text.contains(part), "{part:?} is missing in {text}");
}

/// Asserts that a text contains all of these parts.
#[track_caller]
pub(crate) fn assert_contains_all(text: &(impl ToString + ?Sized), parts: &[&str]) {
    parts.iter().for_each(|part| assert_contains(text, part));
}

/// Asserts that a text starts with this part.
#[track_caller]
pub(crate) fn assert_starts(text: &(impl ToString + ?Sized), part: &str) {
    let text = text.to_string();
    assert!(text.starts_with(part), "{part:?} is not the start of {text}");
}

/// Asserts that a value, of an error for example, matches a pattern.
macro_rules! assert_matches {
    ($value:expr, $($pattern:tt)+) => {
        match $value {
            $($pattern)+ => {}
            ref other => panic!("{other:?} is not {}", stringify!($($pattern)+)),
        }
    };
}

pub(crate) use assert_matches;

/// Declares error types with their messages.
macro_rules! error_types {
    ($($(#[$attribute:meta])* $name:ident => $message:expr;)*) => {$(
        #[derive(Debug, BatchException)]
        $(#[$attribute])*
        struct $name;

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($message)
            }
        }

        impl std::error::Error for $name {}
    )*};
}

pub(crate) use error_types;

/// Implements a listener, each of whose methods without parameters passes a word to a method of the type.
macro_rules! listens {
    ($role:ident $listener:ident.$record:ident: $($method:ident $word:literal),+) => {
        #[$role]
        impl $listener {
            $(
                #[$method]
                fn $method(&mut self) -> Result<(), BatchError> {
                    self.$record($word)
                }
            )+
        }
    };
}

pub(crate) use listens;

/// A place where artifacts and tests wait for each other; one for each stage.
#[derive(Default)]
pub(crate) struct Gate {
    opened: Mutex<HashSet<String>>,
    /// The number of artifacts inside, and the maximum so far.
    crowd: Mutex<(i32, i32)>,
    changed: Condvar,
}

impl Gate {
    /// Returns the gate of the stage with this folder, which artifacts get as the system property `folder`.
    pub(crate) fn of(folder: &str) -> Arc<Self> {
        static GATES: Mutex<Option<HashMap<String, Arc<Gate>>>> = Mutex::new(None);
        let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            gates
                .get_or_insert_default()
                .entry(folder.to_owned())
                .or_default(),
        )
    }

    /// The gate of a stage.
    pub(crate) fn at(stage: &Stage) -> Arc<Self> {
        Self::of(&stage.path().display().to_string())
    }

    /// Opens `what` for everyone who waits for it, now and later.
    pub(crate) fn open(&self, what: &str) {
        self.opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(what.to_owned());
        self.changed.notify_all();
    }

    /// Waits until `what` is open. The limit only ends a test that would never end.
    pub(crate) fn pass(&self, what: &str) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = Duration::from_secs(120);
        let (opened, _) = self
            .changed
            .wait_timeout_while(opened, limit, |opened| !opened.contains(what))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(opened.contains(what), "nobody opened {what:?}");
    }

    /// Adds to the number inside. Returns it, and whether it is a new maximum.
    pub(crate) fn crowd(&self, more: i32) -> (i32, bool) {
        let mut crowd = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        crowd.0 += more;
        let most = crowd.0 > crowd.1;
        crowd.1 = crowd.1.max(crowd.0);
        (crowd.0, most)
    }

    /// Reports that an artifact has arrived, and waits until the test opens `go`.
    pub(crate) fn hold(&self) {
        self.open("held");
        self.pass("go");
    }
}

/// Releases the held artifact when it is dropped.
struct Opens(Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open("go");
    }
}

/// The log of a stage, and the calls that fail.
#[derive(BatchArtifact)]
pub(crate) struct CallLog {
    #[batch_property]
    log: String,
    #[batch_property]
    fail: String,
    #[batch_property]
    panic: String,
}

impl CallLog {
    /// Records a call, then returns the error or panics if the parameters `fail` and `panic` name it.
    pub(crate) fn record(&self, call: impl AsRef<str>) -> Result<(), BatchError> {
        let call = call.as_ref();
        self.say(call);
        let named = |calls: &str| calls.split(';').any(|named| named == call);
        assert!(!named(&self.panic), "no way to {call}");
        if named(&self.fail) {
            return Err(BatchError::msg(format!("cannot {call}")));
        }
        Ok(())
    }

    /// Records a line.
    pub(crate) fn say(&self, line: impl Into<String>) {
        say(&self.log, line);
    }
}

fn shown<T: ToString>(checkpoint: Option<T>) -> String {
    checkpoint.map_or_else(
        || "at the beginning".into(),
        |checkpoint| format!("at {}", checkpoint.to_string()),
    )
}

/// Reads 1 to `items`.
#[derive(BatchArtifact)]
struct Numbers {
    #[batch_artifact]
    log: CallLog,
    #[batch_property(name = "folder")]
    folder: String,
    #[batch_property(name = "items", value = "5")]
    items: u64,
    #[batch_property(name = "hold.at", value = "0")]
    hold_at: u64,
    last: u64,
}

#[item_reader]
impl Numbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
        self.last = checkpoint.unwrap_or(0);
        self.log.record(format!("open reader {}", shown(checkpoint)))
    }
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, BatchError> {
        if self.last >= self.items {
            self.log.record("read the end")?;
            if self.last + 1 == self.hold_at {
                Gate::of(&self.folder).hold();
            }
            return Ok(None);
        }
        self.last += 1;
        self.log.record(format!("read {}", self.last))?;
        if self.last == self.hold_at {
            Gate::of(&self.folder).hold();
        }
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
#[item_processor("Labels")]
fn labels(
    item: &u64,
    #[batch_artifact] log: &CallLog,
    #[batch_property(name = "filter.every")] filter_every: Option<u64>,
) -> Result<Option<String>, BatchError> {
    log.record(format!("process {item}"))?;
    let filtered = filter_every.is_some_and(|every| item.is_multiple_of(every));
    Ok((!filtered).then(|| format!("n{item}")))
}

macro_rules! writers {
    ($($(#[$doc:meta])* $name:ident($($argument:tt)*) $(, $tx:ident: $chunk:ty)? => $write:expr;)*) => {$(
        $(#[$doc])*
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_artifact]
            log: CallLog,
            written: u64,
        }

        #[item_writer($($argument)*)]
        impl $name {
            #[open]
            fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
                self.written = checkpoint.unwrap_or(0);
                self.log.record(format!("open writer {}", shown(checkpoint)))
            }
            #[write_items]
            fn write(&mut self, items: &[String] $(, $tx: &mut $chunk)?) -> Result<(), BatchError> {
                let write: fn(&[String] $(, &mut $chunk)?) -> Result<(), BatchError> = $write;
                write(items $(, $tx)?)?;
                self.log.record(format!("write {}", items.join(" ")))?;
                self.written += items.len() as u64;
                Ok(())
            }
            #[get_checkpoint_info]
            fn checkpoint(&mut self) -> Result<u64, BatchError> {
                self.log.record(format!("checkpoint writer at {}", self.written))?;
                Ok(self.written)
            }
            #[close]
            fn close(&mut self) -> Result<(), BatchError> {
                self.log.record("close writer")
            }
        }
    )*};
}

writers! {
    /// Writes to the log only.
    Lines("Lines") => |_| Ok(());
    /// Writes to the log only, one item at a time.
    SingleLines("SingleLines", buffered = false) => |_| Ok(());
    /// Writes to the table `line`, in the chunk's transaction.
    TableLines("TableLines"), tx: ChunkTransaction => |items, tx| {
        for item in items {
            diesel::sql_query("INSERT INTO line (text) VALUES (?)")
                .bind::<Text, _>(item)
                .execute(tx.sqlite()?)?;
        }
        Ok(())
    };
}

/// Behaves according to its properties.
#[derive(BatchArtifact)]
struct Task {
    #[batch_artifact]
    log: CallLog,
    #[batch_property(name = "folder")]
    folder: String,
    #[batch_property(name = "result", value = "DONE")]
    result: String,
    #[batch_property(name = "step.exit")]
    step_exit: Option<String>,
    #[batch_property(name = "job.exit")]
    job_exit: Option<String>,
    /// `until cancelled` or `until opened`.
    #[batch_property(name = "hold")]
    hold: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

impl Task {
    fn record(&self, call: &str) -> Result<(), BatchError> {
        self.log.record(format!("{call} {}", self.step.id()))
    }
}

#[batchlet]
impl Task {
    #[begin_step]
    fn begin(&self) -> Result<(), BatchError> {
        self.record("begin")
    }
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        if let Some(status) = &self.job_exit {
            self.job.set_exit_status(Some(status));
        }
        if let Some(status) = &self.step_exit {
            self.step.set_exit_status(Some(status));
        }
        if !self.hold.is_empty() {
            self.log.say(format!("hold {}", self.step.id()));
            Gate::of(&self.folder).hold();
        }
        self.record("process")?;
        Ok(self.result.clone())
    }
    #[cancel]
    fn cancel(&self) -> Result<(), BatchError> {
        let _opens = (self.hold == "until cancelled").then(|| Opens(Gate::of(&self.folder)));
        let (job, step) = (self.job.batch_status(), self.step.batch_status());
        self.record(&format!("cancel ({job}, {step})"))
    }
    #[end_step]
    fn end(&self) -> Result<(), BatchError> {
        self.record("end")
    }
}

/// A step listener.
#[derive(BatchArtifact)]
struct StepWatch {
    #[batch_artifact]
    log: CallLog,
    #[batch_property(name = "name", value = "StepWatch")]
    name: String,
    #[batch_property(name = "after.exit")]
    after_exit: Option<String>,
    #[batch_context]
    step: StepContext,
}

impl StepWatch {
    fn record(&self, call: &str) -> Result<(), BatchError> {
        if let Some(status) = self.after_exit.as_ref().filter(|_| call == "after") {
            self.step.set_exit_status(Some(status));
        }
        let (name, step, status) = (&self.name, self.step.id(), self.step.batch_status());
        self.log.record(format!("{name} {call} {step} {status}"))
    }
}

listens!(step_listener StepWatch.record: before_step "before", after_step "after");

/// A job listener.
#[derive(BatchArtifact)]
struct JobWatch {
    #[batch_artifact]
    log: CallLog,
    #[batch_property(name = "name", value = "JobWatch")]
    name: String,
    #[batch_property(name = "after.job.exit")]
    after_job_exit: Option<String>,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: Option<StepContext>,
}

impl JobWatch {
    fn record(&self, call: &str) -> Result<(), BatchError> {
        if let Some(status) = self.after_job_exit.as_ref().filter(|_| call == "after job") {
            self.job.set_exit_status(Some(status));
        }
        let of_step = |step: &StepContext| format!("{} {}", step.id(), step.batch_status());
        let of_job = || format!("{} {}", self.job.id(), self.job.batch_status());
        let context = self.step.as_ref().map_or_else(of_job, of_step);
        self.log.record(format!("{} {call} {context}", self.name))
    }
}

listens!(job_listener JobWatch.record:
    before_job "before job", before_step "before step", after_step "after step", after_job "after job");
