//! Batchlets that report the content of their contexts.

use std::collections::BTreeMap;

use batch_runtime::prelude::*;

use super::values::GOOD;

/// Declares a batchlet that sets the exit status of the job from its contexts.
macro_rules! reports {
    ($type:ident, $name:literal, |$job:ident, $step:ident| $exit_status:expr) => {
        /// Sets the exit status of the job from its contexts.
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
            fn process(&self) -> String {
                let report = |$job: &JobContext, $step: &StepContext| -> Option<String> { $exit_status };
                let exit_status = report(&self.job, &self.step);
                self.job.set_exit_status(exit_status.as_deref());
                GOOD.into()
            }

            #[cancel]
            fn cancel(&self) {}
        }
    };
}

reports!(JobContextReport, "jobContextTestBatchlet", |job, _step| Some(
    format!(
        "JobName={};JobInstanceId={};JobExecutionId={}",
        job.id(),
        job.instance_id(),
        job.execution_id()
    )
));
reports!(StepContextReport, "stepContextTestBatchlet", |_job, step| Some(
    format!("StepName={};StepExecutionId={}", step.id(), step.execution_id())
));
reports!(JobId, "contextsGetIdJobContextTestBatchlet", |job, _step| Some(
    job.id().to_owned()
));
reports!(StepId, "contextsGetIdStepContextTestBatchlet", |_job, step| Some(
    step.id().to_owned()
));
reports!(
    JobProperty,
    "jobLevelPropertiesPropertyValueBatchlet",
    |job, _step| job.properties().get("foo").cloned()
);
reports!(
    StepProperty,
    "stepLevelPropertiesPropertyValueBatchlet",
    |_job, step| step.properties().get("foo").cloned()
);
reports!(
    JobPropertyInStep,
    "jobLevelPropertiesShouldNotBeAvailableThroughStepContextBatchlet",
    |_job, step| step.properties().get("foo").cloned()
);
reports!(
    StepPropertyInJob,
    "stepLevelPropertiesShouldNotBeAvailableThroughJobContextBatchlet",
    |job, _step| job.properties().get("frozz").cloned()
);
reports!(JobProperties, "jobLevelPropertiesCountBatchlet", |job, _step| {
    Some(examine(job.properties(), "JobLevelPropertiesTests"))
});
reports!(
    StepProperties,
    "stepLevelPropertiesCountBatchlet",
    |_job, step| Some(examine(step.properties(), "StepLevelPropertiesTests"))
);

/// Reports a property that is missing, or that belongs elsewhere.
fn examine(properties: &BTreeMap<String, String>, test: &str) -> String {
    let expected = [("foo", "bar"), ("super", "hero"), ("me", "too")];
    let is_missing = |(name, value): &(&str, &str)| properties.get(*name).map(String::as_str) != Some(value);
    if let Some((name, _)) = expected.iter().find(|property| is_missing(property)) {
        return format!("`{name}` is {:?}", properties.get(*name));
    }
    let foreign = format!("com.ibm.jbatch.tck.tests.jslxml.{test}");
    match properties.keys().find(|name| name.starts_with(&foreign)) {
        Some(name) => format!("there is `{name}`"),
        None => GOOD.into(),
    }
}
