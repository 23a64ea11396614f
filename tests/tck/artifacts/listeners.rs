//! Listeners of jobs and steps.

use std::thread;
use std::time::Duration;

use batch_runtime::execution::MetricName;
use batch_runtime::prelude::*;

use super::values::{Required, or_null};

/// Appends each of its calls to the exit status of the job. As a listener of a step it waits after the step.
#[derive(BatchArtifact)]
struct Universal {
    #[batch_property(name = "app.timeinterval")]
    milliseconds: Option<u64>,
    #[batch_context]
    job: JobContext,
}

impl Universal {
    fn append(&self, call: &str) {
        let exit_status = or_null(self.job.exit_status()) + call;
        self.job.set_exit_status(Some(&exit_status));
    }
}

#[job_listener("myUniversalListener")]
impl Universal {
    #[before_job]
    fn before_job(&mut self) {
        let exit_status = self.job.exit_status().unwrap_or_default() + "BeforeJob";
        self.job.set_exit_status(Some(&exit_status));
    }

    #[after_job]
    fn after_job(&mut self) {
        self.append("AfterJob");
    }
}

#[step_listener("myUniversalListener")]
impl Universal {
    #[before_step]
    fn before_step(&mut self) {
        self.append("BeforeStep");
    }

    #[after_step]
    fn after_step(&mut self) -> Result<(), BatchError> {
        thread::sleep(Duration::from_millis(self.milliseconds.required()?));
        self.append("AfterStep");
        Ok(())
    }
}

/// Checks one of the metrics of the step.
#[derive(BatchArtifact)]
struct ChecksMetrics {
    #[batch_property(name = "numberOfSkips")]
    skips: Option<i64>,
    #[batch_property(name = "ReadProcessWrite", value = "")]
    metric: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[step_listener("metricsStepListener")]
impl ChecksMetrics {
    #[after_step]
    fn after_step(&mut self) -> Result<(), BatchError> {
        let skips = self.skips.required()?;
        let (name, expected, good) = match self.metric.as_str() {
            "READ" => (MetricName::ReadCount, 30, "GOOD READ METRICS RESULT"),
            "READ_SKIP" => (MetricName::ReadSkipCount, skips, "GOOD READ METRICS RESULT"),
            "PROCESS" => (MetricName::ProcessSkipCount, skips, "GOOD PROCESS METRICS RESULT"),
            "WRITE" => (MetricName::WriteCount, 30 - skips, "GOOD METRICS RESULT"),
            "WRITE_SKIP" => (MetricName::WriteSkipCount, skips, "GOOD METRICS RESULT"),
            other => return Err(BatchError::msg(format!("unknown metric `{other}`"))),
        };
        let metrics = self.step.metrics();
        let is_good = metrics
            .iter()
            .any(|metric| metric.name == name && metric.value == expected);
        let exit_status = if is_good { good } else { "BAD RESULT" };
        self.job.set_exit_status(Some(exit_status));
        Ok(())
    }
}
