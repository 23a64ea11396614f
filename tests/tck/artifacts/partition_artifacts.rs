//! Partitions that report their contexts, that run again, and that keep their own user data.

use batch_runtime::prelude::*;

use super::values::{GOOD, or_null};

/// Fails with a message unless the values are equal.
fn expect(what: &str, found: Option<&str>, expected: &str) -> Result<(), BatchError> {
    if found == Some(expected) {
        return Ok(());
    }
    Err(BatchError::msg(format!(
        "{what} is {found:?}, expected `{expected}`"
    )))
}

/// Returns the ids in the contexts.
fn ids(job: &JobContext, step: &StepContext) -> String {
    format!(
        ":J{}I{}S{}",
        job.execution_id(),
        job.instance_id(),
        step.execution_id()
    )
}

/// Returns a property of the job.
fn top_level(job: &JobContext) -> Option<&str> {
    job.properties().get("topLevelJobProperty").map(String::as_str)
}

/// Returns the ids of a flow of a split.
#[derive(BatchArtifact)]
struct InFlow {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet("PCPSplitFlowBatchlet")]
impl InFlow {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        expect("the property", top_level(&self.job), "topLevelJobProperty.value")?;
        expect("the job", Some(self.job.id()), "splitFlowCtxPropagation")?;
        Ok(or_null(self.step.exit_status()) + &ids(&self.job, &self.step))
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Checks the contexts of a partition.
#[derive(BatchArtifact)]
struct InPartition {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[batchlet("PCPPartitionBatchlet")]
impl InPartition {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        expect("the property", top_level(&self.job), "topLevelJobProperty.value")?;
        let of_step = self.step.properties().get("topLevelStepProperty");
        expect(
            "the property of the step",
            of_step.map(String::as_str),
            "topLevelStepProperty.value",
        )?;
        expect("the job", Some(self.job.id()), "partitionCtxPropagation")?;
        expect("the step", Some(self.step.id()), "step1")?;
        Ok(GOOD.into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Sends the ids in the contexts of a partition.
#[derive(BatchArtifact)]
struct SendsIds {
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: Option<StepContext>,
}

#[sub_job_collector("PCPCollector")]
impl SendsIds {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Result<Option<String>, BatchError> {
        let step = self.step.as_ref();
        expect("the step", step.map(StepContext::id), "step1")?;
        Ok(step.map(|step| ids(&self.job, step)))
    }
}

/// Appends what it receives to the exit status of the job.
#[derive(BatchArtifact)]
struct AppendsIds {
    #[batch_context]
    job: JobContext,
}

#[sub_job_analyzer("PCPAnalyzer")]
impl AppendsIds {
    #[analyze_collector_data]
    fn analyze(&mut self, data: String) {
        let exit_status = or_null(self.job.exit_status()) + &data;
        self.job.set_exit_status(Some(&exit_status));
    }
}

/// Reads nothing, or fails in the second partition.
#[derive(BatchArtifact)]
struct RerunReader {
    #[batch_property(name = "force.failure")]
    fail: Option<bool>,
    #[batch_property(name = "partition.num", value = "")]
    partition: String,
}

#[item_reader("PartitionRerunArtifacts.R")]
impl RerunReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        if self.fail.unwrap_or_default() && self.partition == "1" {
            return Err(BatchError::msg("this partition fails on purpose"));
        }
        Ok(None)
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Writes nowhere.
#[derive(BatchArtifact)]
struct RerunWriter;

#[item_writer("PartitionRerunArtifacts.W")]
impl RerunWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, _items: &[i64]) {}

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Sends the id of the step execution.
#[derive(BatchArtifact)]
struct SendsStepId {
    #[batch_context]
    step: Option<StepContext>,
}

#[sub_job_collector("PartitionRerunArtifacts.C")]
impl SendsStepId {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Option<String> {
        self.step.as_ref().map(|step| step.execution_id().to_string())
    }
}

/// Appends the ids to the exit status of the job.
#[derive(BatchArtifact)]
struct ListsStepIds {
    #[batch_context]
    job: JobContext,
}

#[sub_job_analyzer("PartitionRerunArtifacts.A")]
impl ListsStepIds {
    #[analyze_collector_data]
    fn analyze(&mut self, data: String) {
        let before = self.job.exit_status().unwrap_or_default();
        self.job.set_exit_status(Some(&format!("{before}{data},")));
    }
}

/// Fails if it is to.
#[derive(BatchArtifact)]
struct RerunBatchlet {
    #[batch_property(name = "force.failure2")]
    fail: Option<bool>,
}

#[batchlet("PartitionRerunArtifacts.B")]
impl RerunBatchlet {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        if self.fail.unwrap_or_default() {
            return Err(BatchError::msg("fails on purpose"));
        }
        Ok("true".into())
    }

    #[cancel]
    fn cancel(&self) {}
}

/// Sets user data of its partition in the first execution, and finds it in the second.
#[derive(BatchArtifact)]
struct UserDataReader {
    #[batch_property(name = "partition.number", value = "")]
    partition: String,
    #[batch_property(name = "execution.number")]
    execution: Option<u32>,
    #[batch_property(name = "number.of.items.to.be.read")]
    items: Option<i64>,
    #[batch_property(name = "throw.reader.exception.for.these.items")]
    fail: Vec<i64>,
    #[batch_context]
    step: StepContext,
    next: i64,
}

#[item_reader("PUDPartitionReader")]
impl UserDataReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) -> Result<(), BatchError> {
        if self.execution == Some(1) {
            return self.step.set_persistent_user_data(&self.user_data());
        }
        Ok(())
    }

    fn user_data(&self) -> String {
        format!("PUD for Partition: {}", self.partition)
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        if self.execution == Some(2) {
            let found: Option<String> = self.step.persistent_user_data()?;
            expect("the user data", found.as_deref(), &self.user_data())?;
        }
        let item = self.next;
        self.next += 1;
        if item >= self.items.unwrap_or(10) {
            return Ok(None);
        }
        if self.fail.contains(&item) {
            return Err(BatchError::msg(format!("fails on purpose at item {item}")));
        }
        Ok(Some(item))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// The user data of the partitioned step itself.
const TOP_LEVEL: &str = "the user data of the partitioned step";

/// Checks that the user data of the step does not come from a partition.
#[derive(BatchArtifact)]
struct UserDataReducer {
    #[batch_context]
    step: StepContext,
}

#[logical_tx("PUDPartitionReducer")]
impl UserDataReducer {
    #[logical_tx_begin]
    fn begin(&mut self) -> Result<(), BatchError> {
        self.step.set_persistent_user_data(&TOP_LEVEL.to_owned())
    }

    #[logical_tx_after_completion]
    fn after(&mut self, _status: &str) -> Result<(), BatchError> {
        let found: Option<String> = self.step.persistent_user_data()?;
        expect("the user data", found.as_deref(), TOP_LEVEL)
    }
}
