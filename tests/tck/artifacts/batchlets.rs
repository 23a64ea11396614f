//! Batchlets that end at once.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::values::{COMPLETED, GOOD, Required, or_null};

/// Appends to the exit status of the job, which a job must not take over from a partition.
#[derive(BatchArtifact)]
struct MyBatchlet {
    #[batch_context]
    job: JobContext,
}

#[batchlet("myBatchletImpl")]
impl MyBatchlet {
    #[process]
    fn process(&self) -> String {
        let before = or_null(self.job.exit_status());
        let exit_status = before + "UnusedExitStatusForPartitions";
        self.job.set_exit_status(Some(&exit_status));
        GOOD.into()
    }

    #[cancel]
    fn cancel(&self) {}
}

/// The same batchlet by the name of its Java class.
#[derive(BatchArtifact)]
struct ByClassName;

#[batchlet("com.ibm.jbatch.tck.artifacts.reusable.MyBatchletImpl")]
impl ByClassName {
    #[process]
    fn process(&self) -> String {
        GOOD.into()
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Does nothing.
#[derive(BatchArtifact)]
struct DoNothing;

#[batchlet("doNothingBatchlet")]
impl DoNothing {
    #[process]
    fn process(&self) -> String {
        "The DoNothingBatchlet COMPLETED Without Incident".into()
    }

    #[cancel]
    fn cancel(&self) {}
}

/// The steps of a job so far.
struct Steps(Mutex<Vec<String>>);

/// Collects the names of the steps in the transient user data of the job, and sets them as its exit status.
fn track(job: &JobContext, step: &StepContext) -> Result<String, BatchError> {
    let steps = match job.transient_user_data::<Steps>()? {
        Some(steps) => steps,
        None => {
            job.set_transient_user_data(Steps(Mutex::default()));
            job.transient_user_data()?
                .ok_or_else(|| BatchError::msg("the transient user data is lost"))?
        }
    };
    let mut steps = steps
        .0
        .lock()
        .map_err(|_| BatchError::msg("another step has panicked"))?;
    steps.push(step.id().to_owned());
    job.set_exit_status(Some(&steps.join(", ")));
    Ok(GOOD.into())
}

macro_rules! tracker {
    ($type:ident, $name:literal) => {
        /// Collects the names of the steps.
        #[derive(BatchArtifact)]
        struct $type {
            #[batch_context]
            job: JobContext,
            #[batch_context]
            step: StepContext,
        }

        #[batchlet($name)]
        impl $type {
            #[process]
            fn process(&self) -> Result<String, BatchError> {
                track(&self.job, &self.step)
            }

            #[cancel]
            fn cancel(&self) {}
        }
    };
}

tracker!(TransitionTracker, "transitionTrackerBatchlet");
tracker!(WithinFlow, "flowTransitionWithinFlowTestBatchlet");
tracker!(AfterSplit, "splitTransitionToStepTestBatchlet");

macro_rules! good {
    ($type:ident, $name:literal) => {
        /// Ends with the usual exit status.
        #[derive(BatchArtifact)]
        struct $type;

        #[batchlet($name)]
        impl $type {
            #[process]
            fn process(&self) -> String {
                GOOD.into()
            }

            #[cancel]
            fn cancel(&self) {}
        }
    };
}

good!(BeforeDecision, "flowTransitionToDecisionTestBatchlet");
good!(BeforeSplitDecision, "splitTransitionToDecisionTestBatchlet");
good!(ExitStatusOfSubJobs, "myParallelSubJobsExitStatusBatchlet");

/// Fails in a step that the job does not have.
#[derive(BatchArtifact)]
struct SplitFlowSplit {
    #[batch_context]
    step: StepContext,
}

#[batchlet("splitFlowTransitionLoopTestBatchlet")]
impl SplitFlowSplit {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let steps = [
            "split1FlowStep1",
            "split1FlowStep2",
            "split1FlowSplitFlow1Step",
            "split1FlowSplitFlow2Step",
            "flow2step1",
            "flow2step2",
        ];
        if steps.contains(&self.step.id()) {
            return Ok(GOOD.into());
        }
        Err(BatchError::msg(format!("unknown step `{}`", self.step.id())))
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Fails in the first execution, and waits in the second.
#[derive(BatchArtifact)]
struct FailRestart {
    #[batch_property(name = "execution.number")]
    execution: Option<u32>,
    #[batch_property(name = "sleep.time")]
    milliseconds: Option<u64>,
}

#[batchlet("failRestartBatchlet")]
impl FailRestart {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        match self.execution {
            Some(1) => return Err(BatchError::msg("fails on purpose in execution 1")),
            Some(2) => thread::sleep(Duration::from_millis(self.milliseconds.required()?)),
            _ => {}
        }
        Ok("FailRestartBatchlet Done".into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Fails in the first execution.
#[derive(BatchArtifact)]
struct JobAttributes {
    #[batch_property(name = "execution.number")]
    execution: Option<u32>,
}

#[batchlet("jobAttributesTestBatchlet")]
impl JobAttributes {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        match self.execution.required()? {
            1 => Err(BatchError::msg("fails on purpose in execution 1")),
            2 => Ok(GOOD.into()),
            _ => Ok("VERY BAD INVOCATION".into()),
        }
    }

    #[cancel]
    fn cancel(&self) {}
}

/// The persistent user data of `batchletUsingStepContextImpl`.
#[derive(Serialize, Deserialize)]
struct UserData {
    data: i64,
    fail: bool,
}

/// Uses everything that a step context has. If it is to fail, the second execution counts up what the first has stored.
#[derive(BatchArtifact)]
struct UsesStepContext {
    #[batch_property(name = "force.failure")]
    fail: Option<bool>,
    #[batch_context]
    step: StepContext,
    #[batch_context]
    job: JobContext,
}

#[batchlet("batchletUsingStepContextImpl")]
impl UsesStepContext {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.check(
            self.step.exit_status().is_none(),
            "there is no exit status before",
        )?;
        self.step.set_exit_status(Some("MadeItToBegin"));
        let mut fail = self.fail.unwrap_or_default();
        if fail {
            let earlier: Option<UserData> = self.step.persistent_user_data()?;
            fail = earlier.is_none();
            let data = earlier.map_or(4, |earlier| earlier.data + 1);
            self.step.set_persistent_user_data(&UserData { data, fail })?;
        }
        self.step.set_transient_user_data(3_i64);
        self.step.set_exit_status(Some("Processed"));
        let transient = self.step.transient_user_data::<i64>()?;
        self.check(
            transient.as_deref() == Some(&3),
            "the transient user data is kept",
        )?;
        let exit_status = self.step.exit_status();
        self.check(
            exit_status.as_deref() == Some("Processed"),
            "the exit status is kept",
        )?;
        self.step.set_exit_status(Some(GOOD));
        self.job.set_exit_status(Some(&format!("JOB: {GOOD}")));
        if fail {
            return Err(BatchError::msg("fails on purpose"));
        }
        Ok(COMPLETED.into())
    }

    fn check(&self, holds: bool, rule: &str) -> Result<(), BatchError> {
        if holds {
            return Ok(());
        }
        Err(BatchError::msg(format!("it does not hold that {rule}")))
    }

    #[cancel]
    fn cancel(&self) {
        self.step.set_exit_status(Some("Cancelled"));
    }
}
