//! Executions that a test invents, for programs that read or change the repository.

use batch_runtime::execution::StepCounters;
use batch_runtime::{
    BatchStatus, JobExecutionId, JobInstanceId, JobOperator, JobOperatorError, JobParameters, Timestamp,
};
use serde_json::{Value, json};

use crate::TestDatabase;

/// A job instance with executions that never ran.
///
/// ```
/// use batch_runtime::execution::StepCounters;
/// use batch_runtime::{BatchRuntime, BatchStatus};
/// use batch_testing::{ExecutionFixture, InstanceFixture};
///
/// let operator = BatchRuntime::builder().repository("sqlite://:memory:").build()?.job_operator();
/// let began = "2026-11-23T22:00".parse()?;
/// let ids = InstanceFixture::new("payroll")
///     .parameters([("month", "2026-11")])
///     .execution(
///         ExecutionFixture::new(BatchStatus::Failed, began)
///             .message("the disk is full")
///             .step("load", BatchStatus::Failed, StepCounters { reads: 100, ..StepCounters::default() }),
///     )
///     .execution(ExecutionFixture::new(BatchStatus::Started, began))
///     .insert(&operator)?;
/// let executions = operator.job_executions(operator.job_execution(ids[0])?.unwrap().instance_id)?;
/// assert_eq!(executions[0].status, BatchStatus::Started);   // the newest
/// assert_eq!(executions[1].exit_message, "the disk is full");
/// assert_eq!(operator.step_executions(ids[0])?[0].counters.reads, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct InstanceFixture {
    job: String,
    parameters: JobParameters,
    executions: Vec<ExecutionFixture>,
}

/// An execution of an [`InstanceFixture`]. It ends a minute after its start, unless its status is a running one.
#[derive(Clone, Debug)]
pub struct ExecutionFixture {
    status: BatchStatus,
    exit_status: String,
    message: String,
    started: Timestamp,
    ended: Timestamp,
    steps: Vec<(String, BatchStatus, StepCounters)>,
}

impl InstanceFixture {
    /// Creates an instance of a job without executions.
    pub fn new(job: impl Into<String>) -> Self {
        Self {
            job: job.into(),
            parameters: JobParameters::new(),
            executions: Vec::new(),
        }
    }

    /// Sets the parameters of all executions, which identify the instance.
    #[must_use]
    pub fn parameters(mut self, parameters: impl Into<JobParameters>) -> Self {
        self.parameters = parameters.into();
        self
    }

    /// Adds an execution after the others.
    #[must_use]
    pub fn execution(mut self, execution: ExecutionFixture) -> Self {
        self.executions.push(execution);
        self
    }

    /// Inserts the instance, and returns the ids of its executions, the first one first. An execution that has not ended has no
    /// lease, like one of Spring Batch.
    ///
    /// # Errors
    /// As [`JobOperator::import`], such as for an instance that the repository has already.
    ///
    /// # Panics
    /// If the rows of executions that have not ended cannot be changed.
    pub fn insert(&self, operator: &JobOperator) -> Result<Vec<JobExecutionId>, JobOperatorError> {
        let instance: JobInstanceId = operator.import(&self.archived().to_string())?.id();
        let mut ids: Vec<_> = operator
            .job_executions(instance)?
            .iter()
            .map(|one| one.id)
            .collect();
        ids.reverse();
        for (id, execution) in ids.iter().zip(&self.executions) {
            execution.reopen(*id, operator);
        }
        Ok(ids)
    }

    /// Returns the instance in the format of an export, with all executions ended.
    fn archived(&self) -> Value {
        let parameters: Vec<Value> = self
            .parameters
            .iter()
            .map(|(name, one)| json!({"name": name, "value": one.value, "identifying": one.identifying}))
            .collect();
        let executions = (1_i64..).zip(&self.executions);
        let executions: Vec<Value> = executions
            .map(|(number, execution)| execution.archived(number, &parameters))
            .collect();
        json!({
            "format": "batch-instance/1",
            "instance": 1,
            "job": self.job,
            "jobKey": self.parameters.job_key(),
            "executions": executions,
        })
    }
}

impl ExecutionFixture {
    /// Creates an execution with a status.
    pub fn new(status: BatchStatus, started: Timestamp) -> Self {
        Self {
            status,
            exit_status: status.to_string(),
            message: String::new(),
            started,
            ended: Timestamp(started.0.saturating_add(60_000)),
            steps: Vec::new(),
        }
    }

    /// Sets the exit status. Default: the batch status.
    #[must_use]
    pub fn exit_status(mut self, exit_status: impl Into<String>) -> Self {
        self.exit_status = exit_status.into();
        self
    }

    /// Sets the exit message. Default: empty.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the end. Default: a minute after the start.
    #[must_use]
    pub fn ended(mut self, ended: Timestamp) -> Self {
        self.ended = ended;
        self
    }

    /// Adds a step execution.
    #[must_use]
    pub fn step(mut self, name: impl Into<String>, status: BatchStatus, counters: StepCounters) -> Self {
        self.steps.push((name.into(), status, counters));
        self
    }

    fn archived(&self, number: i64, parameters: &[Value]) -> Value {
        let steps = (1_i64..)
            .zip(&self.steps)
            .map(|(step_number, (name, status, counters))| {
                json!({
                    "stepExecution": number * 1_000 + step_number,
                    "step": name,
                    "version": 2,
                    "status": ended(*status),
                    "exitStatus": status.to_string(),
                    "exitMessage": "",
                    "started": self.started,
                    "ended": self.ended,
                    "lastUpdated": self.ended,
                    "counters": counters,
                    "context": null,
                })
            });
        json!({
            "execution": number,
            "version": 2,
            "status": ended(self.status),
            "exitStatus": self.exit_status,
            "exitMessage": self.message,
            "created": self.started,
            "started": self.started,
            "ended": self.ended,
            "lastUpdated": self.ended,
            "definition": null,
            "parameters": parameters,
            "context": null,
            "steps": steps.collect::<Vec<_>>(),
        })
    }

    /// Gives an execution and its steps the statuses of executions that have not ended.
    fn reopen(&self, id: JobExecutionId, operator: &JobOperator) {
        let set =
            |status: BatchStatus| format!("SET STATUS = '{status}', EXIT_CODE = 'UNKNOWN', END_TIME = NULL");
        let mut statements = Vec::new();
        if !self.status.is_final() {
            let set = set(self.status);
            statements.push(format!(
                "UPDATE BATCH_JOB_EXECUTION {set} WHERE JOB_EXECUTION_ID = {id}"
            ));
        }
        for (name, status, _) in self.steps.iter().filter(|(_, status, _)| !status.is_final()) {
            let set = set(*status).replace("UNKNOWN", "EXECUTING");
            let name = name.replace('\'', "''");
            statements.push(format!(
                "UPDATE BATCH_STEP_EXECUTION {set} WHERE JOB_EXECUTION_ID = {id} AND STEP_NAME = '{name}'"
            ));
        }
        if !statements.is_empty() {
            let mut database = TestDatabase::of(operator);
            statements
                .iter()
                .for_each(|statement| database.execute(statement));
        }
    }
}

/// Returns the status for the import of an execution.
fn ended(status: BatchStatus) -> BatchStatus {
    if status.is_final() {
        status
    } else {
        BatchStatus::Failed
    }
}
