//! `runJob`: runs another job.

mod ancestors;
mod parameters;

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use batch_runtime::execution::JobExecution;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError, JobParameters};

use serde::{Deserialize, Serialize};

use super::cancel::{Cancel, STOPPED};
use parameters::Parameters;

/// The interval at which an execution in another process is looked for, and of heartbeats.
const LOOK: Duration = Duration::from_millis(500);

/// Runs another job, and ends as it does. In Job XML: `runJob`.
///
/// ```xml
/// <!-- Parameters: day=2026-11-20 -->
/// <job id="nightly">
///   <step id="bookings" next="statements">
///     <batchlet ref="runJob">
///       <properties>
///         <property name="job" value="bookings"/>
///         <property name="parameters" value="day=${day} limit(long)=500"/>
///       </properties>
///     </batchlet>
///   </step>
///   <step id="statements"><batchlet ref="Statements"/></step>
/// </job>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `job` | required | the id of the job |
/// | `parameters` | none | its parameters, each `NAME=VALUE`, or with a type `NAME(long)=`, `NAME(double)=`, `NAME(date)=`; separated by blanks, and `'..'` and `".."` group several words |
///
/// The instance of the job belongs to the instance of this one and to the step: these are its identifying parameters `parent.instance` and
/// `parent.step`. So a restart of this job resumes the same instance from its last checkpoint, also after the process was killed; one that has
/// completed does not run again. The parameters of the property do not identify it, and a restart may change them.
///
/// The exit status of the step is that of the job. If the job fails, so does the step. A stop of this job stops the other one, and if that is
/// stopped, this one is stopped, too. If it already runs in another process, the step waits for its end.
///
/// The other execution is named in the persistent user data of the step, and printed by `show` and reports.
///
/// A job that would run itself, directly or through others, is an error before it starts.
#[derive(BatchArtifact)]
pub struct RunJob {
    #[batch_property(name = "job")]
    job_id: String,
    #[batch_property(name = "parameters", value = "")]
    parameters: Parameters,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    cancel: Cancel,
}

#[batchlet("runJob")]
impl RunJob {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let operator = self.job.job_operator();
        let operator =
            operator.ok_or_else(|| BatchError::msg("`runJob` needs a runtime that runs its job"))?;
        if let Some(cycle) = ancestors::cycle(&operator, &self.job, &self.job_id)? {
            return Err(BatchError::msg(format!(
                "job `{}` would run itself: {cycle}",
                self.job_id
            )));
        }
        let parameters = JobParameters::new()
            .with_parameter(
                ancestors::INSTANCE,
                batch_runtime::ParameterValue::Long(self.job.instance_id().0),
                true,
            )
            .with(ancestors::STEP, self.step.execution_name());
        let parameters = self.parameters.added_to(parameters);
        loop {
            self.step.heartbeat();
            match operator.launch(&self.job_id, parameters.clone()) {
                Ok(execution) => return self.follow(&operator, execution),
                Err(JobOperatorError::JobInstanceAlreadyComplete { execution, .. }) => {
                    self.name_nested(execution)?;
                    let complete = operator.job_execution(execution)?;
                    return Ok(
                        complete.map_or_else(|| "COMPLETED".to_owned(), |complete| complete.exit_status)
                    );
                }
                // Of a process that died together with the one before this, or of `recover`.
                Err(JobOperatorError::JobExecutionAlreadyRunning { .. }) => {
                    if self.cancel.pause(LOOK) {
                        return Ok(STOPPED.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[cancel]
    fn cancel(&self) {
        self.cancel.request();
    }
}

/// The job that a step has run.
#[derive(Serialize, Deserialize)]
struct Nested {
    job: String,
    execution: i64,
}

impl RunJob {
    /// Waits for the end of the job, and ends as it does.
    fn follow(&self, operator: &JobOperator, execution: JobExecutionId) -> Result<String, BatchError> {
        tracing::info!(target: "batch.job", job = self.job_id, %execution, "runs another job");
        self.name_nested(execution)?;
        let stopping = operator.clone();
        let stop = move || match stopping.stop(execution) {
            // It may have ended meanwhile.
            Ok(_) | Err(JobOperatorError::JobExecutionNotRunning(_)) => {}
            Err(error) => tracing::warn!(%execution, %error, "cannot stop the other job"),
        };
        let ended = self
            .cancel
            .interruptible(stop, || self.ended(operator, execution))?;
        match ended.status {
            BatchStatus::Completed => Ok(ended.exit_status),
            BatchStatus::Stopped => {
                self.stop_this(operator);
                Ok(STOPPED.into())
            }
            _ => Err(BatchError::msg(format!(
                "job `{}` failed (execution {execution}): {}; a restart of this job resumes it",
                self.job_id, ended.exit_message
            ))),
        }
    }

    /// Names the execution in the persistent user data of the step, which `show` and reports print.
    fn name_nested(&self, execution: JobExecutionId) -> Result<(), BatchError> {
        let nested = Nested {
            job: self.job_id.clone(),
            execution: execution.0,
        };
        self.step
            .set_persistent_user_data(&BTreeMap::from([("nestedJob".to_owned(), nested)]))
    }

    /// Waits for the end of an execution, with signs of life.
    fn ended(&self, operator: &JobOperator, execution: JobExecutionId) -> Result<JobExecution, BatchError> {
        let (send, receive) = channel();
        let waiting = operator.clone();
        thread::spawn(move || drop(send.send(waiting.wait(execution))));
        loop {
            match receive.recv_timeout(LOOK) {
                Ok(ended) => return Ok(ended?),
                Err(RecvTimeoutError::Timeout) => self.step.heartbeat(),
                Err(RecvTimeoutError::Disconnected) => return Ok(operator.wait(execution)?),
            }
        }
    }

    /// Stops this job, because the other one was stopped.
    fn stop_this(&self, operator: &JobOperator) {
        let (operator, execution) = (operator.clone(), self.job.execution_id());
        if !self.cancel.is_requested() {
            // `stop` waits for this step.
            thread::spawn(move || operator.stop(execution));
            self.cancel.pause(Duration::MAX);
        }
    }
}
