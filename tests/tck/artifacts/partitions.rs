//! The artifacts around the partitions of a step, which write their calls into its exit status.

use batch_runtime::PartitionPlan;
use batch_runtime::prelude::*;

use super::values::{COMPLETED, GOOD, or_null};

/// Plans the number of partitions in its property; one of them may have to fail.
#[derive(BatchArtifact)]
struct Mapper {
    #[batch_property(name = "numPartitionsProp")]
    partitions: u32,
    #[batch_property(name = "failThisPartition", value = "")]
    failing: String,
    #[batch_property(name = "partitionsOverride")]
    replaces: Option<bool>,
}

#[partition_algorithm("myPartitionMapper")]
impl Mapper {
    #[calculate_partitions]
    fn map(&mut self) -> PartitionPlan {
        let properties = |partition: u32| {
            let fails = partition.to_string() == self.failing;
            [
                ("good.partition.status", format!("MapperProp{partition}")),
                ("fail.this.partition", fails.to_string()),
            ]
        };
        let mut plan = PartitionPlan::with_properties((0..self.partitions).map(properties));
        plan.set_partitions_override(self.replaces.unwrap_or_default());
        plan
    }
}

/// Checks the properties of job and step, and fails if the partition has to.
#[derive(BatchArtifact)]
struct Partition {
    #[batch_property(name = "good.partition.status", value = "")]
    status: String,
    #[batch_property(name = "fail.this.partition", value = "")]
    fails: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet("myPartitionedBatchletImpl")]
impl Partition {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        if self.fails == "true" {
            return Err(BatchError::msg("this partition fails on purpose"));
        }
        let of_job = self.job.properties().get("job.level.prop");
        if of_job.map(String::as_str) != Some("job.prop.value") {
            return Err(BatchError::msg("the property of the job is not set"));
        }
        let of_step = self.step.properties().get("step.level.prop");
        if of_step.map(String::as_str) != Some("step.prop.value") {
            return Err(BatchError::msg("the property of the step is not set"));
        }
        let is_null = self.status.is_empty();
        Ok(if is_null {
            COMPLETED.into()
        } else {
            self.status.clone()
        })
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Sends a `C`.
#[derive(BatchArtifact)]
struct Collector;

#[sub_job_collector("myPartitionCollector")]
impl Collector {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Option<String> {
        Some("C".into())
    }
}

/// Adds an `A` to what it receives. At each exit status there has to be data of as many partitions as have ended.
#[derive(BatchArtifact)]
struct Analyzer {
    #[batch_context]
    step: StepContext,
    data: String,
    ended: usize,
}

#[sub_job_analyzer("myPartitionAnalyzer")]
impl Analyzer {
    #[analyze_collector_data]
    fn analyze(&mut self, data: String) {
        self.data += &data;
        self.data += "A";
    }

    #[analyze_exit_status]
    fn ended(&mut self, _exit_status: &str) -> Result<(), BatchError> {
        self.ended += 1;
        if !self.data.starts_with(&"CA".repeat(self.ended)) {
            return Err(BatchError::msg(format!(
                "{} partitions have ended after the data {}",
                self.ended, self.data
            )));
        }
        self.step.set_exit_status(Some(&self.data));
        Ok(())
    }
}

/// Writes its calls before and after the exit status that the analyzer has set.
#[derive(BatchArtifact)]
struct Reducer {
    #[batch_context]
    step: StepContext,
    #[batch_context]
    job: JobContext,
    history: String,
}

impl Reducer {
    fn end(&mut self, call: &str) {
        let analyzed = or_null(self.step.exit_status());
        let exit_status = format!("{}{analyzed}{call}", self.history);
        self.step.set_exit_status(Some(&exit_status));
    }
}

#[logical_tx("myPartitionReducer")]
impl Reducer {
    #[logical_tx_begin]
    fn begin(&mut self) {
        self.history = or_null(self.step.exit_status()) + "Begin";
    }

    #[logical_tx_before_completion]
    fn before(&mut self) {
        self.end("Before");
    }

    #[logical_tx_rollback]
    fn rollback(&mut self) {
        self.end("Rollback");
    }

    #[logical_tx_after_completion]
    fn after(&mut self, _status: &str) {
        let exit_status = or_null(self.step.exit_status()) + "After";
        self.step.set_exit_status(Some(&exit_status));
        self.job.set_exit_status(Some(&exit_status));
    }
}

/// Counts the exit statuses of the partitions in the exit statuses of step and job.
#[derive(BatchArtifact)]
struct CountsExitStatuses {
    #[batch_context]
    step: StepContext,
    #[batch_context]
    job: JobContext,
    count: u32,
}

#[sub_job_analyzer("parsingPartitionAnalyzer")]
impl CountsExitStatuses {
    #[analyze_exit_status]
    fn ended(&mut self, exit_status: &str) -> Result<(), BatchError> {
        self.count += 1;
        if !exit_status.starts_with(GOOD) {
            return Err(BatchError::msg(format!("the exit status is `{exit_status}`")));
        }
        let job = format!("JOB EXIT STATUS: {}", self.count);
        self.job.set_exit_status(Some(&job));
        let step = format!("STEP EXIT STATUS: {}", self.count);
        self.step.set_exit_status(Some(&step));
        Ok(())
    }
}
