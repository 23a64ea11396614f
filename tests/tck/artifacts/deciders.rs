//! Deciders, and the batchlets whose results they read.

use batch_runtime::BatchStatus;
use batch_runtime::execution::StepExecution;
use batch_runtime::prelude::*;

use super::values::Required;

/// The exit status of a step that makes the decider return the step's persistent user data.
const GOOD_STEP: &str = "STEP:ES:Good";

/// Returns the executions of a decision if there are as many as expected, all of them complete.
fn complete(steps: &[StepExecution], expected: usize) -> Result<&[StepExecution], BatchError> {
    if steps.len() != expected {
        return Err(BatchError::msg(format!(
            "the decider got {} step executions, expected {expected}",
            steps.len()
        )));
    }
    match steps.iter().find(|step| step.status != BatchStatus::Completed) {
        Some(step) => Err(BatchError::msg(format!(
            "the step `{}` is {}",
            step.step_name, step.status
        ))),
        None => Ok(steps),
    }
}

/// Counts the steps in the transient user data of the job, and stores its action as the persistent user data.
#[derive(BatchArtifact)]
struct Acting {
    #[batch_property(name = "action", value = "")]
    action: String,
    #[batch_property(name = "actualValue", value = "")]
    value: String,
    #[batch_context]
    step: StepContext,
    #[batch_context]
    job: JobContext,
}

#[batchlet("deciderTestsBatchlet")]
impl Acting {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.step.set_persistent_user_data(&self.action)?;
        let count = self.job.transient_user_data::<u32>()?.map_or(0, |count| *count);
        self.job.set_transient_user_data(count + 1);
        let is_special = self.value == "25";
        Ok(if is_special {
            "SpecialExitStatus"
        } else {
            GOOD_STEP
        }
        .into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Returns the number of steps and the action of the last one, or the special exit status.
#[derive(BatchArtifact)]
struct ByAction {
    #[batch_property(name = "SpecialExitStatus", value = "")]
    special: String,
    #[batch_context]
    job: JobContext,
}

#[decider("deciderTestsDecider")]
impl ByAction {
    #[decide]
    fn decide(&mut self, steps: &[StepExecution]) -> Result<String, BatchError> {
        let count = self.job.transient_user_data::<u32>()?.map_or(0, |count| *count);
        let core = match complete(steps, 1)? {
            [step] if step.exit_status == GOOD_STEP => {
                let action: Option<String> = step.persistent_user_data()?;
                action.ok_or_else(|| BatchError::msg("the step has no persistent user data"))?
            }
            _ => self.special.clone(),
        };
        Ok(format!("{count}:{core}"))
    }
}

/// Checks that two steps ran.
#[derive(BatchArtifact)]
struct TwoSteps {
    #[batch_context]
    job: JobContext,
}

#[job_listener("deciderTestsJobListener")]
impl TwoSteps {
    #[after_job]
    fn after(&mut self) -> Result<(), BatchError> {
        if self.job.transient_user_data::<u32>()?.as_deref() != Some(&2) {
            return Err(BatchError::msg("expected two steps"));
        }
        self.job.set_exit_status(Some("JOB:ES:Good"));
        Ok(())
    }
}

/// Ends with the exit status for its step.
#[derive(BatchArtifact)]
struct MultipleExitStatus {
    #[batch_property(name = "stop.job.after.this.step", value = "")]
    stop_after: String,
    #[batch_property(name = "stop.job.after.this.step2", value = "")]
    stop_after2: String,
    #[batch_property(name = "fail.job.after.this.step", value = "")]
    fail_after: String,
    #[batch_property(name = "step.complete.but.force.job.stopped.status", value = "")]
    stopped: String,
    #[batch_property(name = "step.complete.but.force.job.failed.status", value = "")]
    failed: String,
    #[batch_context]
    step: StepContext,
}

#[batchlet("multipleExitStatusBatchlet")]
impl MultipleExitStatus {
    #[process]
    fn process(&self) -> String {
        let step = self.step.id();
        let is = |name: &str| name.eq_ignore_ascii_case(step);
        let exit_status = if is(&self.stop_after) || is(&self.stop_after2) {
            self.stopped.clone()
        } else if is(&self.fail_after) {
            self.failed.clone()
        } else {
            format!("{step}_CONTINUE")
        };
        self.step.set_exit_status(Some(&exit_status));
        exit_status
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Returns the number of decisions so far, and the greatest exit status of the steps; in a restart the greatest name.
#[derive(BatchArtifact)]
struct Transition {
    #[batch_property(name = "is.restart")]
    is_restart: Option<bool>,
    #[batch_context]
    job: JobContext,
}

#[decider("transitionDecider")]
impl Transition {
    #[decide]
    fn decide(&mut self, steps: &[StepExecution]) -> Result<String, BatchError> {
        let count = 1 + self.job.transient_user_data::<u32>()?.map_or(0, |count| *count);
        self.job.set_transient_user_data(count);
        let greatest = |of: fn(&StepExecution) -> &str| steps.iter().map(of).max().unwrap_or("").to_owned();
        Ok(if self.is_restart.unwrap_or_default() {
            format!("{count}:{}_CONTINUE", greatest(|step| &step.step_name))
        } else {
            format!("{count}:{}", greatest(|step| &step.exit_status))
        })
    }
}

/// Returns the exit status of the one step.
#[derive(BatchArtifact)]
struct AfterFlow;

#[decider("flowTransitionToDecisionTestDecider")]
impl AfterFlow {
    #[decide]
    fn decide(&mut self, steps: &[StepExecution]) -> Result<String, BatchError> {
        let steps = complete(steps, 1)?;
        Ok(format!("DECIDER_EXIT_STATUS*{}", steps[0].exit_status))
    }
}

/// Returns the number of steps, which has to be two.
#[derive(BatchArtifact)]
struct AfterTwoFlows;

#[decider("splitTransitionToDecisionTestDecider")]
impl AfterTwoFlows {
    #[decide]
    fn decide(&mut self, steps: &[StepExecution]) -> Result<String, BatchError> {
        let steps = complete(steps, 2)?;
        Ok(format!("DECIDER_EXIT_STATUS*{}", steps.len()))
    }
}

/// Returns the names and ids of the step executions.
#[derive(BatchArtifact)]
struct NamesExecutions {
    #[batch_property(name = "expected.number.of.step.executions")]
    expected: Option<usize>,
}

#[decider("deciderReceivesCorrectStepExecutionsDecider")]
impl NamesExecutions {
    #[decide]
    fn decide(&mut self, steps: &[StepExecution]) -> Result<String, BatchError> {
        let expected = self.expected.required()?;
        if steps.len() != expected {
            return Err(BatchError::msg(format!(
                "the decider got {} step executions, expected {expected}",
                steps.len()
            )));
        }
        let mut executions: Vec<&StepExecution> = steps.iter().collect();
        executions.sort_by(|one, other| one.step_name.cmp(&other.step_name));
        let named = executions
            .iter()
            .map(|step| format!("{}:{};", step.step_name, step.id));
        Ok(named.collect())
    }
}
