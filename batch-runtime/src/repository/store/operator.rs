//! The operations of the operator.

use std::collections::{BTreeMap, BTreeSet};

use crate::execution::{JobExecution, JobInstance, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::{
    AbandonOutcome, AcceptOutcome, DeathOutcome, ExecutionFilter, HolderState, JobState, Result, StopOutcome,
    rules,
};

/// The operations of the operator: requests to running executions, and queries.
pub(crate) trait OperatorStore: Send + Sync {
    /// Returns the state of the lease holder of an execution; `None` if the execution has ended or does not exist. An execution
    /// of another program, which holds no lease, is alive.
    fn holder_state(&self, execution: JobExecutionId) -> Result<Option<HolderState>>;

    /// Returns the execution that has the turn of the job, if this one waits for it, else one that waits longer.
    fn waits_for(&self, execution: JobExecutionId) -> Result<Option<JobExecutionId>>;

    /// Returns the stored state of a job execution, with its data; `None` if there is none.
    // Spec: DATA-02
    fn job_state(&self, id: JobExecutionId) -> Result<Option<JobState>>;

    /// Returns the trace context that an execution has stored.
    fn traceparent(&self, id: JobExecutionId) -> Result<Option<String>> {
        let state = self.job_state(id)?.ok_or_else(|| rules::no_context(id))?;
        Ok(state.traceparent)
    }

    /// Requests an execution to stop; closes it if its owner is dead. Returns `None` if there is no such execution.
    fn request_stop(&self, execution: JobExecutionId) -> Result<Option<StopOutcome>>;

    /// Abandons an execution whose instance is not running and not complete, so that the instance cannot be restarted.
    /// Returns `None` if there is no such execution.
    fn abandon(&self, execution: JobExecutionId) -> Result<Option<AbandonOutcome>>;

    /// Closes an execution without a lease, whose process the caller knows to be dead: without a lease, liveness cannot be
    /// checked. Returns `None` if there is no such execution.
    fn declare_dead(&self, execution: JobExecutionId) -> Result<Option<DeathOutcome>>;

    /// Makes an execution whose status is UNKNOWN FAILED, and its step executions, with the reason in their messages. Returns `None` if there
    /// is no such execution.
    // Spec: REPO-92
    fn accept_unknown(&self, execution: JobExecutionId, reason: &str) -> Result<Option<AcceptOutcome>>;

    /// Returns whether one of the latest job executions has a context that Java has serialized.
    fn has_java_contexts(&self) -> Result<bool> {
        Ok(false)
    }

    /// Returns the executions that match a filter, newest first.
    fn find_executions(&self, filter: &ExecutionFilter) -> Result<Vec<JobExecution>>;
    /// Returns the instance of a job with this key.
    fn find_instance(&self, job_name: &str, job_key: &str) -> Result<Option<JobInstance>>;
    /// Returns an instance.
    fn instance(&self, id: JobInstanceId) -> Result<Option<JobInstance>>;
    /// Returns instances of a job, newest first.
    fn instances(&self, job_name: &str, start: i64, count: i64) -> Result<Vec<JobInstance>>;
    /// Returns the number of instances of a job.
    fn instance_count(&self, job_name: &str) -> Result<i64>;
    /// Returns the names of all jobs that have an instance.
    fn job_names(&self) -> Result<BTreeSet<String>>;
    /// Returns an execution.
    fn job_execution(&self, id: JobExecutionId) -> Result<Option<JobExecution>>;
    /// Returns the executions of an instance, newest first.
    fn job_executions(&self, instance: JobInstanceId) -> Result<Vec<JobExecution>>;
    /// Returns the parameters of an execution.
    fn parameters(&self, id: JobExecutionId) -> Result<JobParameters>;
    /// Returns the parameters of the first execution of an instance.
    fn original_parameters(&self, instance: JobInstanceId) -> Result<JobParameters>;
    /// Returns the step executions of a job execution, in the order of their start, without their user data.
    fn step_executions(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>>;
    /// Returns the persistent user data of the step executions of a job execution, as JSON.
    fn user_data(&self, execution: JobExecutionId) -> Result<BTreeMap<StepExecutionId, String>>;
}
