//! `runJob`: runs another job.

mod ancestors;
mod parameters;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use batch_runtime::execution::{JobExecution, NestedJob, OuterStep};
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId, JobName, JobOperator, JobOperatorError};

use super::cancel::Cancel;
use super::exit::{COMPLETED, STOPPED};
use parameters::Parameters;

/// The interval of heartbeats, and of attempts to launch an instance that runs in another process.
const LOOK: Duration = Duration::from_millis(500);

/// Runs another job, the nested one, and ends as it does. In Job XML: `runJob`.
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
///   <step id="statements">
///     <batchlet ref="runJob"><properties><property name="job" value="statements"/></properties></batchlet>
///   </step>
/// </job>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `job` | required | the id of the job |
/// | `parameters` | none | its parameters, each `NAME=VALUE`, or with a type `NAME(long)=`, `NAME(double)=`, `NAME(date)=`; separated by blanks, and `'..'` and `".."` group several words |
///
/// The instance of the nested job is identified by the instance of the outer job and the step, as its parameters `parent.instance` and
/// `parent.step`. A restart of the outer job therefore resumes the same instance from its last checkpoint, also after a crash; a complete
/// instance does not run again. The parameters of the property do not identify the instance, so a restart may change them.
///
/// The step has the exit status of the nested job. If the nested job fails, the step fails. A stop of the outer job stops the nested
/// one, and a stop of the nested job stops the outer one. If the instance already runs in another process, the step waits for its end.
///
/// The persistent user data of the step is a [`NestedJob`], which `show` and reports print.
///
/// An unknown job, and one that would run itself through nested jobs, are reported by `check`, and when the outer job is started. A name
/// that depends on a parameter of a nested job is known only at run time: the step fails before the other job starts.
// Spec: NEST-01 to NEST-05
#[derive(BatchArtifact)]
pub struct RunJob {
    #[batch_property(name = "job")]
    job_id: JobName,
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
        let outer = OuterStep {
            instance: self.job.instance_id(),
            step: self.step.execution_name().to_owned(),
        };
        let parameters = self.parameters.added_to(outer.to_parameters());
        loop {
            self.step.heartbeat();
            match operator.launch(&self.job_id, parameters.clone()) {
                Ok(execution) => return self.follow(&operator, execution),
                Err(JobOperatorError::JobInstanceAlreadyComplete { execution, .. }) => {
                    self.name_nested(execution)?;
                    let complete = operator.job_execution(execution)?;
                    return Ok(complete.map_or_else(|| COMPLETED.to_owned(), |complete| complete.exit_status));
                }
                // The process of the outer job ran it, too, and is not certainly dead yet; or `recover` resumes it.
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

impl RunJob {
    /// Waits for the end of the nested job, and ends as it does.
    fn follow(&self, operator: &JobOperator, execution: JobExecutionId) -> Result<String, BatchError> {
        tracing::info!(target: "batch.job", job = %self.job_id, %execution, "runs a nested job");
        self.name_nested(execution)?;
        let stopping = operator.clone();
        let stop = move || match stopping.stop(execution) {
            // It may have ended meanwhile.
            Ok(_) | Err(JobOperatorError::JobExecutionNotRunning(_)) => {}
            Err(error) => tracing::warn!(%execution, %error, "cannot stop the nested job"),
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
        let nested_job = self.job_id.to_string();
        self.step.set_persistent_user_data(&NestedJob {
            nested_job,
            execution,
        })
    }

    /// Waits for the end of an execution, with heartbeats.
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

    /// Stops the outer job, because the nested one was stopped.
    fn stop_this(&self, operator: &JobOperator) {
        let (operator, execution) = (operator.clone(), self.job.execution_id());
        if !self.cancel.is_requested() {
            // `stop` waits for this step.
            thread::spawn(move || operator.stop(execution));
            self.cancel.pause(Duration::MAX);
        }
    }
}
