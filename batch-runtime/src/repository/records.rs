//! The parameters and results of the stores, except the executions: requests, claims, leases, endings, outcomes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::deadline::Deadline;
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, LaunchId, StepExecutionId};
use crate::notify::{self, NotificationDetail, NotificationEvent};
use crate::parameters::JobParameters;
use crate::repository::{DataChanges, ElementState, JobState, RestartPosition, StepState};
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

/// The outcome of a request to abandon an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AbandonOutcome {
    /// The execution is ABANDONED; its instance cannot be restarted.
    Abandoned,
    /// The execution is running.
    Running {
        /// The lease holder.
        owner: String,
    },
    /// An execution of the instance ended COMPLETED.
    Complete,
}

/// The outcome of an operator declaring a process dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeathOutcome {
    /// The execution is closed; its instance can be restarted.
    Closed,
    /// The execution is running: its lease is held.
    Running {
        /// The lease holder.
        owner: String,
    },
    /// The execution had ended before.
    Ended,
}

/// A filter for job executions. A field that is `None` or empty matches all.
#[derive(Clone, Debug, Default)]
pub struct ExecutionFilter {
    /// The job.
    pub job: Option<String>,
    /// The batch statuses.
    pub statuses: Vec<BatchStatus>,
    /// The earliest creation time, inclusive.
    pub since: Option<Timestamp>,
    /// The latest creation time, exclusive.
    pub until: Option<Timestamp>,
    /// The earliest time of the end, inclusive; executions that have not ended do not match.
    pub ended_since: Option<Timestamp>,
    /// Only executions older than this one, exclusive: in a paged list, the next page.
    pub before: Option<JobExecutionId>,
    /// Only executions newer than this one, exclusive. The limit then selects the nearest ones: in a paged list, the previous page.
    // Spec: CON-01
    pub after: Option<JobExecutionId>,
    /// The most executions to return, newest first.
    pub limit: Option<u32>,
}

/// The numbers of rows of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositorySize {
    /// Job instances.
    pub job_instances: u64,
    /// Job executions.
    pub job_executions: u64,
    /// Step executions, including partitions.
    pub step_executions: u64,
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

/// A partition that a worker process has claimed.
#[derive(Clone, Debug)]
pub(crate) struct ClaimedPartition {
    /// The step execution, in status STARTED.
    pub(crate) row: StepExecution,
    /// Its stored state.
    pub(crate) state: StepState,
    /// The right to run it.
    pub(crate) lease: Lease,
}

/// What becomes of the open steps within a partition whose worker is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InnerSteps {
    /// There are none: it is a partition of a step.
    None,
    /// They are reopened with the partition, and its next worker resumes them.
    Reopen,
    /// They end with the partition. A logical transaction within it has to be rolled back first, which only another job execution does.
    Close,
}

/// The state of a partition whose worker may be dead.
#[derive(Clone, Debug)]
pub(crate) enum PartitionState {
    /// The partition has ended, or never was claimed by a worker process.
    Settled,
    /// Its lease is held.
    Held,
    /// Its worker was dead; the step execution is STARTING again, for another worker.
    Reopened {
        /// The number of claims so far.
        claims: i64,
        /// The worker that died, and the number of chunks that it and those before it have committed; `None` if no worker has claimed the
        /// partition.
        died: Option<(String, i64)>,
    },
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

/// The end of a step execution, as it is recorded.
#[derive(Debug)]
pub(crate) struct EndOfStep<'a> {
    /// The status, the exit status and the message.
    pub(crate) ending: &'a Ending,
    /// The partition that starts in the same transaction.
    // Spec: D-105
    pub(crate) next: Option<&'a mut StepExecution>,
}

/// The repository's part of the commit of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkCommit<'a> {
    /// The counters of the step execution, including the chunk.
    pub(crate) counters: StepCounters,
    /// The checkpoints and the user data.
    pub(crate) state: &'a StepState,
    /// The changed data of the job.
    pub(crate) data: &'a DataChanges,
    /// The lease to extend.
    pub(crate) renew: Option<&'a Lease>,
    /// The end of the step execution, if nothing is left to do after this chunk.
    // Spec: D-107
    pub(crate) end: Option<EndOfStep<'a>>,
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

/// The earlier executions of a step within its instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepHistory {
    /// The latest execution of the step.
    pub(crate) last: Option<StepExecution>,
    /// The state that this execution has stored.
    pub(crate) state: StepState,
    /// Whether the latest executions ran in another program, such as Spring Batch, and one of them has commits.
    pub(crate) committed_by_other_program: bool,
    /// The number of chunks committed since the step last completed.
    pub(crate) commits: i64,
    /// How often the step was started.
    pub(crate) starts: u32,
    /// The counters of the executions before the latest one, since the step last completed before it. Zero if the reader has no
    /// position: its input was read again.
    pub(crate) before: StepCounters,
}

impl StepHistory {
    /// Returns the counters that the next execution continues: of all executions since the step last completed before the latest
    /// one, or zero if the reader has no position and reads its input again.
    pub(crate) fn counters(&self) -> StepCounters {
        let last = self.last.as_ref().filter(|_| self.state.has_position());
        let last = last.map_or(StepCounters::default(), |last| last.counters);
        self.before.plus(last)
    }

    /// Returns the problem if chunks were committed, but the checkpoint that they left is lost: to start without it would
    /// process their items again. Another program may keep no checkpoint.
    // Spec: RESTART-17
    pub(crate) fn lost_checkpoint(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        if self.commits == 0 || self.state.of_other_program {
            return None;
        }
        // Each chunk commits both.
        let (lost, consequence) = match (&self.state.reader, &self.state.writer) {
            (None, _) => ("reader", "would be processed again"),
            (_, None) => ("writer", "would be missing in its output"),
            _ => return None,
        };
        Some(format!(
            "step `{}` has committed {} chunks, but the context of its step execution {} has no {lost} checkpoint, so their \
             items {consequence}; restore the row of BATCH_STEP_EXECUTION_CONTEXT from a backup, or abandon the \
             job execution and start a new instance for the rest",
            last.step_name, self.commits, last.id
        ))
    }
}

/// A step execution to insert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewStepExecution<'a> {
    /// The step's name in the repository.
    pub(crate) name: &'a str,
    /// STARTED, or STARTING for a partition until a thread or worker begins it.
    pub(crate) status: BatchStatus,
    /// Earlier job executions do not count, except in the number of starts.
    pub(crate) since: Option<i64>,
    /// Whether nothing of the instance has run before, so that there is no history to read.
    pub(crate) is_first: bool,
}

/// The history of a step before it was inserted, and its execution with its state if it was.
pub(crate) type Inserted = (StepHistory, Option<(StepExecution, StepState)>);

/// The outcome of a stop request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopOutcome {
    /// The request is recorded; the runner will see it.
    Requested,
    /// The runner is dead; the execution is closed as STOPPED.
    Closed,
    /// The execution had ended before.
    NotRunning,
}

/// The job executions and partitions that are requested to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    pub(crate) executions: Vec<JobExecutionId>,
    pub(crate) partitions: Vec<StepExecutionId>,
}

/// A partition in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedPartition {
    pub(crate) step_execution: StepExecutionId,
    pub(crate) job_execution: JobExecutionId,
    pub(crate) attempt: u32,
    pub(crate) fingerprint: String,
}

/// A report of a worker on a partition, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionReport {
    pub(crate) step_execution: StepExecutionId,
    pub(crate) job_execution: JobExecutionId,
    /// The claim of a payload; 0 for other reports.
    pub(crate) claim: i64,
    /// Counts the payloads of a claim from 1.
    pub(crate) number: u64,
    pub(crate) report: String,
}

impl PartitionReport {
    /// The number of the report that a partition has ended, which follows all others.
    pub(crate) const END: u64 = i64::MAX as u64;
    /// The number of the report that a worker cannot run the partition. Payloads are numbered from 1.
    pub(crate) const DECLINED: u64 = 0;
}

/// A submitted partition that no living worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionFinding {
    /// No worker has claimed it.
    Unclaimed(StepExecutionId),
    /// The lease of its worker has expired, or the worker is dead.
    LeaseLost(StepExecutionId),
    /// Its end is recorded.
    Ended(StepExecutionId),
}

/// A worker process, as registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerRow {
    /// The owner of its leases.
    pub(crate) name: String,
    pub(crate) queue: String,
    pub(crate) slots: u32,
    pub(crate) version: String,
    pub(crate) is_draining: bool,
    /// When it was started, and when the registration expires, by the clock of the database in milliseconds.
    pub(crate) started: i64,
    pub(crate) expires: i64,
    /// True if the registration has not expired, and its process has not ended as far as this host sees.
    pub(crate) is_alive: bool,
    /// The partitions that it runs.
    pub(crate) partitions: Vec<(JobExecutionId, StepExecutionId)>,
}

/// The state of a launch, as far as its row shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchPhase {
    /// It waits for a worker.
    Queued,
    /// A worker has taken it.
    Taken,
    /// Its job execution has ended.
    Ended,
    /// No worker can run it.
    Rejected,
    /// An operator has withdrawn it.
    Withdrawn,
}

impl LaunchPhase {
    const ALL: [(Self, &str); 5] = [
        (Self::Queued, "QUEUED"),
        (Self::Taken, "TAKEN"),
        (Self::Ended, "ENDED"),
        (Self::Rejected, "REJECTED"),
        (Self::Withdrawn, "WITHDRAWN"),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(phase, _)| *phase == self);
        found.map_or("", |(_, text)| text)
    }

    pub(crate) fn from_repository(text: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, of)| *of == text);
        found.map(|(phase, _)| *phase)
    }
}

/// A launch that this worker has taken.
#[derive(Clone, Debug)]
pub(crate) struct TakenLaunch {
    pub(crate) id: LaunchId,
    pub(crate) job: String,
    /// The parameters; the problem, if they cannot be read.
    pub(crate) parameters: Result<JobParameters, String>,
    pub(crate) fingerprint: String,
}

/// A launch.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRow {
    pub(crate) id: LaunchId,
    pub(crate) job: String,
    pub(crate) queue: String,
    pub(crate) phase: LaunchPhase,
    pub(crate) worker: Option<String>,
    /// False if the registration of the worker has expired.
    pub(crate) is_worker_alive: bool,
    /// The latest job execution, with its status.
    pub(crate) execution: Option<(JobExecutionId, BatchStatus)>,
    pub(crate) message: String,
    /// When it was submitted, by the clock of the database in milliseconds.
    pub(crate) submitted: i64,
}

/// The outcome of withdrawing a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithdrawOutcome {
    Unknown,
    Withdrawn,
    /// It runs as this job execution.
    Runs(JobExecutionId),
    /// It had ended before.
    NotRunning,
}

/// A notification to be queued for one target.
#[derive(Clone, Debug)]
pub(crate) struct NewNotification {
    pub(crate) id: String,
    pub(crate) target: String,
    pub(crate) event: NotificationEvent,
    pub(crate) job: String,
    pub(crate) instance: JobInstanceId,
    pub(crate) execution: JobExecutionId,
    /// It is due at the deadline in it; without one it is due at once.
    pub(crate) detail: NotificationDetail,
}

impl NewNotification {
    pub(crate) fn now(
        target: &str,
        event: NotificationEvent,
        job: &str,
        instance: JobInstanceId,
        execution: JobExecutionId,
        detail: &NotificationDetail,
    ) -> Self {
        Self {
            id: notify::new_id(),
            target: target.to_owned(),
            event,
            job: job.to_owned(),
            instance,
            execution,
            detail: detail.clone(),
        }
    }
}

/// A notification that waits for its delivery.
#[derive(Clone, Debug)]
pub(crate) struct QueuedNotification {
    pub(crate) id: String,
    pub(crate) target: String,
    pub(crate) event: NotificationEvent,
    pub(crate) job: String,
    pub(crate) instance: JobInstanceId,
    pub(crate) execution: JobExecutionId,
    pub(crate) detail: NotificationDetail,
    pub(crate) created: Timestamp,
    pub(crate) due: Timestamp,
    /// The number of attempts before.
    pub(crate) attempts: u32,
    pub(crate) last_error: Option<String>,
}

/// The next notification of a target.
#[derive(Clone, Debug)]
pub(crate) enum NextNotification {
    /// Taken.
    Due(Box<QueuedNotification>),
    /// Due after this time.
    In(Duration),
    None,
}
