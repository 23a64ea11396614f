//! The claim of an instance: its request, its result, and its end.

use std::collections::BTreeMap;

use crate::deadline::Deadline;
use crate::execution::JobExecution;
use crate::ids::{JobExecutionId, JobInstanceId, LaunchId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::{ElementState, JobState, RestartPosition};
use crate::status::BatchStatus;

/// The instance that a new execution belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A new instance, regardless of the parameters.
    // Spec: ID-03
    New,
    /// The instance with this key of identifying parameters, or a new one.
    // Spec: OP-36
    Identified(String),
    /// The instance of this execution.
    // Spec: OP-12
    InstanceOf(JobExecutionId),
}

/// A request to create and run an execution.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRequest<'a> {
    /// The job's id.
    pub(crate) job_name: &'a str,
    /// The instance to run.
    pub(crate) target: Target,
    /// The parameters to record.
    pub(crate) parameters: JobParameters,
    /// Whether an instance that has an execution may get another.
    pub(crate) restartable: bool,
    /// The file that the job was read from.
    pub(crate) location: &'a str,
    /// The most takeovers in a row from a dead owner without a new checkpoint. `None` for a restart by hand, which resets
    /// the count.
    pub(crate) crash_limit: Option<u32>,
    /// The launch that this worker has taken, and that must still be its own.
    pub(crate) launch: Option<LaunchId>,
    /// The trace context of the execution, to be stored in its context.
    pub(crate) traceparent: Option<String>,
    /// The number of executions of the job that may run at the same time.
    pub(crate) concurrency: Concurrency,
    /// When the instance is to be complete.
    pub(crate) deadline: Option<Deadline>,
}

#[cfg(test)]
impl ClaimRequest<'static> {
    /// Returns a request for a new instance of the job `job`, without parameters and limits.
    pub(crate) fn of_new_instance() -> Self {
        Self {
            job_name: "job",
            target: Target::New,
            parameters: JobParameters::new(),
            restartable: true,
            location: "job.xml",
            crash_limit: None,
            launch: None,
            traceparent: None,
            concurrency: Concurrency::Any,
            deadline: None,
        }
    }
}

/// The number of executions of a job, of all its instances, that may run at the same time.
// Spec: TURN-01
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Concurrency {
    /// Any number.
    #[default]
    Any,
    /// One; others are rejected.
    One,
    /// One; others wait for their turn.
    Queue,
}

/// The state that the executions of an instance have left, and the data of the latest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptState {
    /// The latest stored state of each parallel element.
    pub(crate) elements: BTreeMap<String, ElementState>,
    /// The data, in the form of Spring Batch.
    pub(crate) data: BTreeMap<String, String>,
    /// The position that the previous execution stored, if a `stop` element ended it.
    pub(crate) restart: Option<RestartPosition>,
}

impl KeptState {
    /// Adds the state of the next execution of the instance. `is_before` is true if it is older than the one that runs.
    // Spec: RESTART-04
    pub(crate) fn add(&mut self, state: JobState, is_before: bool, is_stopped: bool) {
        self.elements.extend(state.elements);
        self.data = state.other_entries;
        if is_before {
            self.restart = state.restart.filter(|_| is_stopped);
        }
    }
}

/// The outcome of taking the turn of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnOutcome {
    /// The execution that has the turn, or waits longer; `None` if the turn is taken.
    pub(crate) waits_for: Option<JobExecutionId>,
    /// The executions that were closed because their owner is dead.
    pub(crate) closed: Vec<JobExecutionId>,
}

impl TurnOutcome {
    pub(crate) fn waits_for(waits_for: Option<JobExecutionId>) -> Self {
        Self {
            waits_for,
            closed: Vec::new(),
        }
    }
}

/// The right to run an instance. The repository rejects every write under this lease once another runtime has claimed
/// the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The instance.
    pub(crate) instance_id: JobInstanceId,
    /// The execution.
    pub(crate) execution_id: JobExecutionId,
    /// The number of claims of the instance so far.
    pub(crate) fence: i64,
    /// The partition that a worker process holds this lease for; `None` for the runner of the whole execution.
    pub(crate) partition: Option<StepExecutionId>,
}

/// A new execution and the right to run it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The execution, in status STARTING.
    pub(crate) execution: JobExecution,
    /// The right to run it.
    pub(crate) lease: Lease,
    /// The executions of the instance that this claim has closed because their owner is dead.
    pub(crate) taken_over: Vec<JobExecutionId>,
    /// Whether the instance has no earlier execution.
    pub(crate) is_first: bool,
    /// The trace context that the execution before has stored.
    pub(crate) previous_traceparent: Option<String>,
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Batch status.
    pub(crate) status: BatchStatus,
    /// Exit status.
    pub(crate) exit_status: String,
    /// The exit description, truncated to the width of the column when stored.
    pub(crate) message: String,
    /// Where a restart of the job resumes, if a `stop` element ended it.
    pub(crate) restart: Option<RestartPosition>,
}

impl Ending {
    /// Creates an end without a restart position.
    pub(crate) fn new(status: BatchStatus, exit_status: String, message: String) -> Self {
        Self {
            status,
            exit_status,
            message,
            restart: None,
        }
    }

    /// Returns the end with a description, unless it has the message of a failure.
    pub(crate) fn described(mut self, description: String) -> Self {
        if self.message.is_empty() {
            self.message = description;
        }
        self
    }

    /// Creates an end whose exit status is the batch status.
    pub(crate) fn of(status: BatchStatus, message: String) -> Self {
        Self::new(status, status.to_string(), message)
    }
}
