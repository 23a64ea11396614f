//! The job repository: what is known of job instances and their executions, and who runs them.
//!
//! The trait says what a crash before and after each call means. The implementation lives in `diesel/`, the only
//! directory that names diesel.
//!
//! Spec: REPO-03, DOM-31

mod archive;
mod context_json;
mod diesel;
mod error;
mod owner;
mod url;
mod zoned;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) use archive::{
    ArchivedContext, ArchivedExecution, ArchivedInstance, ArchivedParameter, ArchivedStep, FORMAT,
    InstanceState,
};
pub(crate) use context_json::{
    ElementBefore, ElementKind, ElementState, Foreign, JobState, RestartPosition, StepState, StoredContext,
    TxState,
};
pub use diesel::{ChunkTransaction, RepositoryConnection};
pub(crate) use diesel::{Connector, open};
pub(crate) use error::ClaimError;
pub use error::RepositoryError;
pub use url::{DatabaseKind, MigrationStatus, RepositoryUrl};

use crate::clock::Timestamp;
use crate::execution::{JobExecution, JobInstance, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::status::BatchStatus;

/// Which instance an execution is to belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A new one, whatever the parameters. Spec: ID-03
    New,
    /// The one of the job and the key of its identifying parameters; a new one if there is none. Spec: OP-36
    Identified(String),
    /// The one of this execution. Spec: OP-12
    InstanceOf(JobExecutionId),
}

/// A request to begin an execution.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRequest<'a> {
    /// The job's id.
    pub(crate) job_name: &'a str,
    /// Which instance.
    pub(crate) target: Target,
    /// The parameters to record.
    pub(crate) parameters: JobParameters,
    /// Whether an instance that has an execution may have another.
    pub(crate) restartable: bool,
    /// The file that the job was read from.
    pub(crate) location: &'a str,
    /// How often in a row the instance may be taken over from a dead owner without a new checkpoint; `None` when somebody
    /// starts it by hand, which begins to count anew.
    pub(crate) crash_limit: Option<u32>,
}

/// What became of a request to abandon an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AbandonOutcome {
    /// Its instance is not continued any more.
    Abandoned,
    /// It runs.
    Running {
        /// Who runs it.
        owner: String,
    },
    /// It ended COMPLETED.
    Complete,
}

/// What became of somebody's word that a process is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeathOutcome {
    /// The execution is closed, and its instance can go on.
    Closed,
    /// It runs: somebody holds its lease.
    Running {
        /// Who.
        owner: String,
    },
    /// It had ended.
    Ended,
}

/// Which executions are looked for; what is not said does not matter.
#[derive(Clone, Debug, Default)]
pub struct ExecutionFilter {
    /// Those of this job.
    pub job: Option<String>,
    /// Those in one of these statuses; none: in any.
    pub statuses: Vec<BatchStatus>,
    /// Those that were created then or later.
    pub since: Option<Timestamp>,
    /// Those that were created before.
    pub until: Option<Timestamp>,
    /// At most so many, the newest; `None`: all.
    pub limit: Option<u32>,
}

/// The right to run an instance. Everything that the runner writes is refused once another runtime has claimed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The instance.
    pub(crate) instance_id: JobInstanceId,
    /// The execution.
    pub(crate) execution_id: JobExecutionId,
    /// Grows with every claim of the instance.
    pub(crate) fence: i64,
}

/// An execution that the repository has let begin.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The execution, STARTING.
    pub(crate) execution: JobExecution,
    /// The right to run it.
    pub(crate) lease: Lease,
    /// Executions of the same instance whose owner was found dead, closed by this claim.
    pub(crate) taken_over: Vec<JobExecutionId>,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Batch status.
    pub(crate) status: BatchStatus,
    /// Exit status.
    pub(crate) exit_status: String,
    /// Description, cut to the column's width when stored.
    pub(crate) message: String,
    /// Where a restart of the job begins, if a `stop` element ended it.
    pub(crate) restart: Option<RestartPosition>,
}

/// What the earlier executions of an instance left of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepHistory {
    /// The latest execution of the step.
    pub(crate) last: Option<StepExecution>,
    /// What that execution kept.
    pub(crate) state: StepState,
    /// Whether the latest executions were another program's, such as Spring Batch's, and one of them has committed something.
    pub(crate) committed_elsewhere: bool,
    /// How often the step was started.
    pub(crate) starts: u32,
    /// How many items were read up to the checkpoint in `state`, in all executions since the step was last complete.
    pub(crate) items: u64,
}

/// What became of a request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopOutcome {
    /// The runner will see the request.
    Requested,
    /// The runner was dead; the execution is closed as STOPPED.
    Closed,
    /// The execution has ended.
    NotRunning,
}

/// What the runner of a job execution learns from its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub(crate) execution_id: JobExecutionId,
    pub(crate) stop_requested: bool,
}

/// The job repository. Each call is one transaction; a crash in the middle of one leaves the state before it.
pub(crate) trait JobRepository: Send + Sync {
    /// Begins an execution: instance (if new), execution, parameters, job context and lease, together. Executions of
    /// the instance whose owner is dead are closed first. A crash afterwards leaves an execution STARTING whose owner
    /// is dead: the next claim takes it over.
    ///
    /// Spec: REPO-86, OP-34, OP-35
    fn claim(&self, request: &ClaimRequest<'_>) -> Result<Claim, ClaimError>;

    /// STARTING to STARTED. `false` when a stop was requested first; `execution` then shows STOPPING.
    fn begin_job(&self, lease: &Lease, execution: &mut JobExecution) -> Result<bool, RepositoryError>;

    /// Writes the end of a job execution and releases the lease. `false` when a stop was requested and not yet known
    /// to the runner; `execution` then shows STOPPING and nothing is written. A crash before it leaves an execution
    /// that the next claim closes; its steps keep what they have recorded.
    fn end_job(
        &self,
        lease: &Lease,
        execution: &mut JobExecution,
        ending: &Ending,
    ) -> Result<bool, RepositoryError>;

    /// Where the execution begins: the position that the execution before it left, if a `stop` element ended that.
    ///
    /// Spec: RESTART-04
    fn restart_position(&self, execution: &JobExecution) -> Result<Option<RestartPosition>, RepositoryError>;

    /// What the executions of the instance have kept of parallel elements; of each the latest.
    fn element_states(
        &self,
        instance: JobInstanceId,
    ) -> Result<BTreeMap<String, ElementState>, RepositoryError>;

    /// Keeps it, with this execution. A crash before it leaves what was kept before.
    fn keep_element_states(
        &self,
        lease: &Lease,
        states: &BTreeMap<String, ElementState>,
    ) -> Result<(), RepositoryError>;

    /// What earlier executions of the instance left of a step. `since`: only this job execution and later ones count, but
    /// for the number of starts.
    fn step_history(
        &self,
        instance: JobInstanceId,
        step_name: &str,
        since: Option<i64>,
    ) -> Result<StepHistory, RepositoryError>;

    /// Inserts a step execution, STARTING, with its context. A crash of the process afterwards counts as a start of the
    /// step; after a loss of power it may not be there.
    fn create_step(
        &self,
        lease: &Lease,
        name: &str,
        state: &StepState,
    ) -> Result<StepExecution, RepositoryError>;

    /// STARTING to STARTED.
    fn begin_step(&self, step: &mut StepExecution) -> Result<(), RepositoryError>;

    /// STARTING to STARTED, for whoever comes first: `None` when another has come before. So a partition that was handed
    /// out twice runs once.
    fn claim_step(&self, id: StepExecutionId) -> Result<Option<(StepExecution, StepState)>, RepositoryError>;

    /// A step execution, and what it has kept.
    fn step(&self, id: StepExecutionId) -> Result<Option<(StepExecution, StepState)>, RepositoryError>;

    /// A transaction for a checkpoint interval. Nothing is written yet.
    fn begin_chunk(&self) -> ChunkTransaction;

    /// Commits an interval: what the writer wrote through `tx`, `state`, `counters` and VERSION together. With
    /// `renew`, the lease too. On any error everything is rolled back.
    ///
    /// Spec: CHUNK-LOOP-12, REPO-62
    fn commit_chunk(
        &self,
        tx: &mut ChunkTransaction,
        step: &mut StepExecution,
        counters: StepCounters,
        state: &StepState,
        renew: Option<&Lease>,
    ) -> Result<(), RepositoryError>;

    /// Writes the end of a step execution, and its state when that is given.
    fn end_step(
        &self,
        step: &mut StepExecution,
        ending: &Ending,
        counters: StepCounters,
        state: Option<&StepState>,
    ) -> Result<(), RepositoryError>;

    /// Extends a lease. `false` when it is lost.
    fn renew(&self, lease: &Lease) -> Result<bool, RepositoryError>;

    /// Gives a lease back without an end of the execution: the next claim closes the execution at once.
    fn give_up(&self, lease: &Lease) -> Result<(), RepositoryError>;

    /// Whether an execution has not ended and its owner lives.
    fn is_running(&self, execution: JobExecutionId) -> Result<bool, RepositoryError>;

    /// How long a lease lasts.
    fn lease_time(&self) -> Duration;

    /// The state of the job rows of running executions.
    fn signals(&self, executions: &[JobExecutionId]) -> Result<Vec<Signal>, RepositoryError>;

    /// Asks an execution to stop; closes it when its owner is dead. `None` when there is no such execution.
    fn request_stop(&self, execution: JobExecutionId) -> Result<Option<StopOutcome>, RepositoryError>;

    /// Gives an execution up, which has not ended COMPLETED and does not run: nothing continues its instance any more. `None`
    /// when there is no such execution.
    fn abandon(&self, execution: JobExecutionId) -> Result<Option<AbandonOutcome>, RepositoryError>;

    /// Closes an execution that nobody holds, because its process is said to be dead: of one that keeps no lease nobody can see it.
    /// `None` when there is no such execution.
    fn declare_dead(&self, execution: JobExecutionId) -> Result<Option<DeathOutcome>, RepositoryError>;

    /// The executions that are looked for, newest first.
    fn find_executions(&self, filter: &ExecutionFilter) -> Result<Vec<JobExecution>, RepositoryError>;

    /// How the instances stand that come after one, in the order of their ids: at most `count`.
    fn instance_states(
        &self,
        job: Option<&str>,
        after: JobInstanceId,
        count: u32,
    ) -> Result<Vec<InstanceState>, RepositoryError>;

    /// Deletes instances with all that belongs to them: those that are as they were seen, with the same last execution, ended
    /// and not held. Together or, after a crash, not at all. Returns how many.
    fn delete_instances(&self, seen: &[InstanceState]) -> Result<u64, RepositoryError>;

    /// An instance with all that belongs to it.
    fn archived(&self, instance: JobInstanceId) -> Result<Option<ArchivedInstance>, RepositoryError>;

    /// Puts an instance in, with ids of this repository. `None` when its job has one with the same key.
    fn restore(&self, archived: &ArchivedInstance) -> Result<Option<JobInstanceId>, RepositoryError>;

    /// Connections for artifacts.
    fn connector(&self) -> Connector;

    /// The instance of a job with this key.
    fn find_instance(&self, job_name: &str, job_key: &str) -> Result<Option<JobInstance>, RepositoryError>;
    /// An instance.
    fn instance(&self, id: JobInstanceId) -> Result<Option<JobInstance>, RepositoryError>;
    /// Instances of a job, newest first.
    fn instances(&self, job_name: &str, start: i64, count: i64) -> Result<Vec<JobInstance>, RepositoryError>;
    /// Number of instances of a job.
    fn instance_count(&self, job_name: &str) -> Result<i64, RepositoryError>;
    /// The names of all jobs that have an instance.
    fn job_names(&self) -> Result<BTreeSet<String>, RepositoryError>;
    /// An execution.
    fn execution(&self, id: JobExecutionId) -> Result<Option<JobExecution>, RepositoryError>;
    /// Executions of an instance, newest first.
    fn executions(&self, instance: JobInstanceId) -> Result<Vec<JobExecution>, RepositoryError>;
    /// Executions of a job that have not ended, newest first.
    fn running(&self, job_name: &str) -> Result<Vec<JobExecution>, RepositoryError>;
    /// The parameters of an execution.
    fn parameters(&self, id: JobExecutionId) -> Result<JobParameters, RepositoryError>;
    /// The parameters that the first execution of an instance had.
    fn original_parameters(&self, instance: JobInstanceId) -> Result<JobParameters, RepositoryError>;
    /// Step executions of a job execution, in the order of their start.
    fn steps(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>, RepositoryError>;
}
