//! Batchlets whose exit status depends on the step and on the number of the execution. A step that must not run has the
//! exit status `ILLEGAL.STATE`.

use batch_runtime::prelude::*;

use super::values::{COMPLETED, Required};

/// The exit statuses of each step, with the executions that end with them.
type Table = &'static [(&'static str, &'static [u32], &'static str)];

/// Returns the exit status of a step in an execution.
fn status(table: Table, step: &StepContext, execution: u32) -> &'static str {
    let found = table
        .iter()
        .find(|(name, executions, _)| *name == step.id() && executions.contains(&execution));
    found.map_or("ILLEGAL.STATE", |(_, _, status)| status)
}

macro_rules! machine {
    ($type:ident, $name:literal, $table:expr) => {
        /// Returns the exit status of the table.
        #[derive(BatchArtifact)]
        struct $type {
            #[batch_property(name = "execution.number")]
            execution: Option<u32>,
            #[batch_context]
            step: StepContext,
        }

        #[batchlet($name)]
        impl $type {
            #[process]
            fn process(&self) -> Result<String, BatchError> {
                Ok(status($table, &self.step, self.execution.required()?).into())
            }

            #[cancel]
            fn cancel(&self) {}
        }
    };
}

machine!(
    RestartMachine,
    "batchletRestartStateMachineImpl",
    &[
        ("step1", &[1], "STOP.1"),
        ("step1", &[2], "STOP.2"),
        ("step1", &[4], "GO"),
        ("step1", &[5], "STOP.5"),
        ("step2", &[3], "GO"),
        ("step3", &[3], "STOP.3"),
        ("step3", &[4], "STOP.4"),
        ("step3", &[6], "GO"),
        ("step4", &[6], "GO"),
    ]
);
machine!(
    OverriddenOn,
    "overrideOnAttributeValuesUponRestartBatchlet",
    &[
        ("step1", &[1], "ES.STEP1"),
        ("step2", &[2], "ES.STEP2"),
        ("step3", &[3], "ES.STEP3"),
    ]
);

/// The number of an execution, written `runNumber.3`.
#[derive(Clone, Copy)]
struct RunNumber(u32);

impl std::str::FromStr for RunNumber {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.trim_start_matches("runNumber.").parse().map(Self)
    }
}

/// Appends the status of the table to the exit status of the job, separated by a comma. `x` fails after it has appended
/// what the job listener has set; `s` and `f` are statuses that stop and fail the job.
fn contribute(job: &JobContext, status: &str) -> Result<String, BatchError> {
    let data = job.transient_user_data::<String>()?;
    let fails = status == "x";
    let appended = match (&data, fails) {
        (Some(data), true) => data.as_str(),
        _ => status,
    };
    let exit_status = match job.exit_status() {
        Some(before) => format!("{before},{appended}"),
        None => appended.to_owned(),
    };
    job.set_exit_status(Some(&exit_status));
    match status.as_bytes().first() {
        _ if fails => Err(BatchError::msg("fails on purpose")),
        Some(b's') => Ok("JSL.STOP".into()),
        Some(b'f') => Ok("JSL.FAIL".into()),
        _ => Ok(COMPLETED.into()),
    }
}

macro_rules! start_limit {
    ($type:ident, $name:literal, $table:expr) => {
        /// Appends the status of the table to the exit status of the job.
        #[derive(BatchArtifact)]
        struct $type {
            #[batch_property(name = "runNumber")]
            execution: RunNumber,
            #[batch_context]
            job: JobContext,
            #[batch_context]
            step: StepContext,
        }

        #[batchlet($name)]
        impl $type {
            #[process]
            fn process(&self) -> Result<String, BatchError> {
                contribute(&self.job, status($table, &self.step, self.execution.0))
            }

            #[cancel]
            fn cancel(&self) {}
        }
    };
}

start_limit!(
    Variation1,
    "startLimitStateMachineVariation1Batchlet",
    &[
        ("step1", &[1, 2, 3, 4], "c1"),
        ("step2", &[1, 2, 3, 4], "c2"),
        ("step3", &[1, 2, 3], "x"),
    ]
);
start_limit!(
    Variation2,
    "startLimitStateMachineVariation2Batchlet",
    &[
        ("step1", &[1, 2, 3, 4, 6, 7], "c1"),
        ("step2", &[1, 2, 3, 4, 6, 7], "c2"),
        ("step3", &[1, 2], "x"),
        ("step3", &[3], "s3"),
        ("step4", &[4], "s4"),
        ("step4", &[5], "f4"),
        ("step4", &[6], "c4"),
        ("step5", &[6], "f5"),
    ]
);
start_limit!(
    Variation3,
    "startLimitStateMachineVariation3Batchlet",
    &[
        ("step1", &[1, 3], "c1"),
        ("step2", &[1, 3], "c2"),
        ("step3", &[1], "c3"),
        ("step4", &[1, 3], "c4"),
        ("step5", &[1], "s5"),
        ("step5", &[2], "f5"),
        ("step5", &[3], "c5"),
    ]
);

/// Sets what a failing step appends.
#[derive(BatchArtifact)]
struct SetsAppended {
    #[batch_property(name = "ExitCodeAppend")]
    appended: String,
    #[batch_context]
    job: JobContext,
}

#[job_listener("startLimitJobListener")]
impl SetsAppended {
    #[before_job]
    fn before(&mut self) {
        self.job.set_transient_user_data(self.appended.clone());
    }
}
