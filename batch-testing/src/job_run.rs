//! The end of an execution, and assertions about it.

use std::fmt::Write;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use batch_runtime::execution::{JobExecution, StepCounters, StepExecution};
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator};
use tempfile::TempDir;

use crate::TestDatabase;

/// An execution that has ended.
///
/// The assertions return the run, so that they can be chained. One that fails prints the execution.
pub struct JobRun {
    operator: JobOperator,
    execution: JobExecution,
    steps: Vec<StepExecution>,
    /// The database is in it.
    _folder: Arc<TempDir>,
}

/// Waits for the end of an execution.
#[track_caller]
pub(crate) fn wait(
    operator: &JobOperator,
    folder: &Arc<TempDir>,
    id: JobExecutionId,
    limit: Duration,
) -> JobRun {
    let of = |execution| JobRun::new(operator, folder, execution);
    let (ended, end) = mpsc::channel();
    let waiting = operator.clone();
    thread::spawn(move || {
        // The receiver is gone after the limit.
        let _ = ended.send(waiting.wait(id));
    });
    match end.recv_timeout(limit) {
        Ok(Ok(execution)) => of(execution),
        Ok(Err(error)) => panic!("cannot wait for execution {id}: {error}"),
        Err(_) => {
            let tree = operator.job_execution(id).ok().flatten();
            let tree = tree.map_or_else(String::new, |execution| of(execution).to_string());
            // It waits for the end of the execution, which may never come.
            let operator = operator.clone();
            thread::spawn(move || operator.stop(id));
            panic!("execution {id} has not ended after {limit:?}; its stop was requested\n{tree}")
        }
    }
}

impl JobRun {
    #[track_caller]
    fn new(operator: &JobOperator, folder: &Arc<TempDir>, execution: JobExecution) -> Self {
        let steps = operator.step_executions(execution.id);
        Self {
            operator: operator.clone(),
            steps: steps.unwrap_or_else(|error| panic!("cannot read the steps: {error}")),
            execution,
            _folder: Arc::clone(folder),
        }
    }

    /// Returns the job execution.
    pub fn execution(&self) -> &JobExecution {
        &self.execution
    }

    /// Returns all step executions, including partitions, in the order of their start.
    pub fn steps(&self) -> &[StepExecution] {
        &self.steps
    }

    /// Returns the operator of the runtime that ran the job.
    pub fn operator(&self) -> &JobOperator {
        &self.operator
    }

    /// Opens a connection to the database of the repository.
    #[track_caller]
    pub fn database(&self) -> TestDatabase {
        TestDatabase::of(&self.operator)
    }

    /// Returns the execution of a step, or of one of its partitions.
    ///
    /// # Panics
    /// If this run has not executed the step.
    #[track_caller]
    pub fn step(&self, name: &str) -> StepRun<'_> {
        let found = self.steps.iter().rfind(|step| step.step_name == name);
        let Some(step) = found else {
            panic!("the step `{name}` was not executed\n{self}")
        };
        StepRun { run: self, step }
    }

    /// Asserts that steps were executed in this order, and no others. Partitions do not count.
    #[track_caller]
    pub fn assert_steps(&self, names: &[&str]) -> &Self {
        let is_partition = |name: &&str| name.contains(':');
        let executed = self.steps.iter().map(|step| step.step_name.as_str());
        let executed: Vec<&str> = executed.filter(|name| !is_partition(name)).collect();
        assert!(
            executed == names,
            "the executed steps are {executed:?}, not {names:?}\n{self}"
        );
        self
    }

    /// Asserts that the job is COMPLETED.
    #[track_caller]
    pub fn assert_completed(&self) -> &Self {
        self.assert_status(BatchStatus::Completed)
    }

    /// Asserts that the job is FAILED, with this text in its message or a step's message.
    #[track_caller]
    pub fn assert_failed(&self, message: &str) -> &Self {
        self.assert_status(BatchStatus::Failed);
        let of_steps = self.steps.iter().map(|step| step.exit_message.as_str());
        let mut messages = of_steps.chain([self.execution.exit_message.as_str()]);
        assert!(
            messages.any(|found| found.contains(message)),
            "no message contains {message:?}\n{self}"
        );
        self
    }

    /// Asserts the batch status of the job.
    #[track_caller]
    pub fn assert_status(&self, expected: BatchStatus) -> &Self {
        let found = self.execution.status;
        assert!(found == expected, "the job is {found}, not {expected}\n{self}");
        self
    }

    /// Asserts the exit status of the job.
    #[track_caller]
    pub fn assert_exit_status(&self, expected: &str) -> &Self {
        let found = &self.execution.exit_status;
        assert!(
            found == expected,
            "the exit status of the job is `{found}`, not `{expected}`\n{self}"
        );
        self
    }
}

/// A step execution of a [`JobRun`].
///
/// The assertions return the step, so that they can be chained. One that fails prints the execution.
#[derive(Clone, Copy)]
pub struct StepRun<'r> {
    run: &'r JobRun,
    step: &'r StepExecution,
}

macro_rules! counters {
    ($($method:ident $text:literal $read:expr;)*) => {
        impl StepRun<'_> {
            $(
                #[doc = concat!("Asserts the number of ", $text, ".")]
                #[track_caller]
                pub fn $method(self, expected: i64) -> Self {
                    let read: fn(StepCounters) -> i64 = $read;
                    self.assert_count($text, read(self.step.counters), expected)
                }
            )*
        }
    };
}

counters! {
    assert_reads "items read" |counters| counters.reads;
    assert_writes "items written" |counters| counters.writes;
    assert_filters "items filtered" |counters| counters.filters;
    assert_commits "commits" |counters| counters.commits;
    assert_rollbacks "rollbacks" |counters| counters.rollbacks;
    assert_skips "items skipped" |counters| counters.skips();
    assert_read_skips "items skipped while reading" |counters| counters.read_skips;
    assert_process_skips "items skipped while processing" |counters| counters.process_skips;
    assert_write_skips "items skipped while writing" |counters| counters.write_skips;
}

impl<'r> StepRun<'r> {
    /// Returns the step execution.
    pub fn execution(self) -> &'r StepExecution {
        self.step
    }

    /// Returns the counters of this execution, without earlier executions of the instance.
    pub fn counters(self) -> StepCounters {
        self.step.counters
    }

    /// Asserts the batch status of the step.
    #[track_caller]
    pub fn assert_status(self, expected: BatchStatus) -> Self {
        let (name, found) = (&self.step.step_name, self.step.status);
        assert!(
            found == expected,
            "the step `{name}` is {found}, not {expected}\n{}",
            self.run
        );
        self
    }

    /// Asserts the exit status of the step.
    #[track_caller]
    pub fn assert_exit_status(self, expected: &str) -> Self {
        let (name, found) = (&self.step.step_name, &self.step.exit_status);
        assert!(
            found == expected,
            "the exit status of step `{name}` is `{found}`, not `{expected}`\n{}",
            self.run
        );
        self
    }

    #[track_caller]
    fn assert_count(self, what: &str, found: i64, expected: i64) -> Self {
        let name = &self.step.step_name;
        assert!(
            found == expected,
            "step `{name}`: the number of {what} is {found}, not {expected}\n{}",
            self.run
        );
        self
    }
}

/// Writes the execution and its steps as a tree, with statuses, counters and messages.
impl std::fmt::Display for JobRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let job = &self.execution;
        writeln!(
            f,
            "{} {}{}",
            job.name(),
            job.status,
            exit_status(job.status, &job.exit_status)
        )?;
        write_message(f, "  ", &job.exit_message)?;
        for step in &self.steps {
            let counters = step.counters;
            write!(f, "  {} {}", step.step_name, step.status)?;
            f.write_str(&exit_status(step.status, &step.exit_status))?;
            let counts = [
                ("read", counters.reads),
                ("filtered", counters.filters),
                ("written", counters.writes),
                ("read skips", counters.read_skips),
                ("process skips", counters.process_skips),
                ("write skips", counters.write_skips),
                ("commits", counters.commits),
                ("rollbacks", counters.rollbacks),
            ];
            let mut separator = ": ";
            for (what, count) in counts.into_iter().filter(|(_, count)| *count != 0) {
                write!(f, "{separator}{what} {count}")?;
                separator = ", ";
            }
            f.write_char('\n')?;
            write_message(f, "    ", &step.exit_message)?;
        }
        Ok(())
    }
}

/// Returns the exit status where it differs from the batch status.
fn exit_status(status: BatchStatus, exit_status: &str) -> String {
    if exit_status == status.to_string() {
        String::new()
    } else {
        format!(" `{exit_status}`")
    }
}

fn write_message(f: &mut std::fmt::Formatter<'_>, indent: &str, message: &str) -> std::fmt::Result {
    message
        .lines()
        .try_for_each(|line| writeln!(f, "{indent}| {line}"))
}

impl std::fmt::Debug for JobRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}
