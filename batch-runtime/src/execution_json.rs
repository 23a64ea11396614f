//! Executions as JSON, for programs: what the command line prints with `--json`, and the API of a console returns.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::execution::{JobExecution, JobInstance, NestedJob, StepCounters, StepExecution, StepTotal};

impl Serialize for JobInstance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("JobInstance", 3)?;
        fields.serialize_field("instance", &self.id.0)?;
        fields.serialize_field("job", &self.job_name)?;
        fields.serialize_field("key", &self.job_key)?;
        fields.end()
    }
}

impl Serialize for JobExecution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("JobExecution", 11)?;
        fields.serialize_field("execution", &self.id.0)?;
        fields.serialize_field("instance", &self.instance_id.0)?;
        fields.serialize_field("job", &self.job_name)?;
        fields.serialize_field("name", &self.name())?;
        fields.serialize_field("status", self.status.as_str())?;
        fields.serialize_field("exitStatus", &self.exit_status)?;
        fields.serialize_field("exitMessage", &self.exit_message)?;
        fields.serialize_field("created", &self.created)?;
        fields.serialize_field("started", &self.started)?;
        fields.serialize_field("ended", &self.ended)?;
        fields.serialize_field("definition", &self.configuration_location)?;
        fields.end()
    }
}

/// With `nestedJob` if the step has run another job.
impl Serialize for StepExecution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nested = self.nested_job();
        let mut fields = serializer.serialize_struct("StepExecution", 15 + usize::from(nested.is_some()))?;
        fields.serialize_field("step", &self.step_name)?;
        fields.serialize_field("stepExecution", &self.id.0)?;
        fields.serialize_field("status", self.status.as_str())?;
        fields.serialize_field("exitStatus", &self.exit_status)?;
        fields.serialize_field("exitMessage", &self.exit_message)?;
        fields.serialize_field("started", &self.started)?;
        fields.serialize_field("ended", &self.ended)?;
        counters(&mut fields, self.counters)?;
        if let Some(NestedJob {
            nested_job,
            execution,
        }) = nested
        {
            let nested = serde_json::json!({ "job": nested_job, "execution": execution.0 });
            fields.serialize_field("nestedJob", &nested)?;
        }
        fields.end()
    }
}

impl Serialize for StepTotal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("StepTotal", 10)?;
        fields.serialize_field("step", &self.step_name)?;
        fields.serialize_field("executions", &self.executions)?;
        counters(&mut fields, self.counters)?;
        fields.end()
    }
}

fn counters<F: SerializeStruct>(fields: &mut F, counters: StepCounters) -> Result<(), F::Error> {
    fields.serialize_field("reads", &counters.reads)?;
    fields.serialize_field("writes", &counters.writes)?;
    fields.serialize_field("filters", &counters.filters)?;
    fields.serialize_field("commits", &counters.commits)?;
    fields.serialize_field("rollbacks", &counters.rollbacks)?;
    fields.serialize_field("readSkips", &counters.read_skips)?;
    fields.serialize_field("processSkips", &counters.process_skips)?;
    fields.serialize_field("writeSkips", &counters.write_skips)
}
