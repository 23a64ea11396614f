//! Listeners that check that each reference to an artifact has its own instance.

use batch_runtime::prelude::*;

use super::values::{Notes, or_null};

/// The calls of one instance.
#[derive(Default)]
struct Instance {
    first: u32,
    second: u32,
}

impl Instance {
    /// Counts a call of the instance whose property ends with this letter.
    fn count(&mut self, property: &str) {
        self.first += u32::from(property.ends_with('A'));
        self.second += u32::from(property.ends_with('B'));
    }

    /// Appends the name of the listener to the exit status of the job if this instance was called once, and the other one
    /// was called too.
    fn report(&self, job: &JobContext, both_were_called: bool, listener: &str) {
        let is_unique = (self.first == 1) != (self.second == 1);
        let exit_status = if is_unique && both_were_called {
            or_null(job.exit_status()) + listener
        } else {
            format!("{listener}: BAD")
        };
        job.set_exit_status(Some(&exit_status));
    }
}

/// Notes the calls in the transient user data of the job.
#[derive(BatchArtifact)]
struct InstanceOfJob {
    #[batch_property(name = "job.property")]
    property: String,
    #[batch_context]
    job: JobContext,
    calls: Instance,
}

#[job_listener("artifactInstanceTestJobListener")]
impl InstanceOfJob {
    #[before_job]
    fn before(&mut self) -> Result<(), BatchError> {
        if self.job.transient_user_data::<Notes>()?.is_none() {
            self.job.set_transient_user_data(Notes::default());
        }
        self.calls.count(&self.property);
        let notes = self.job.transient_user_data::<Notes>()?;
        notes
            .into_iter()
            .for_each(|notes| notes.set(&self.property, true));
        Ok(())
    }

    #[after_job]
    fn after(&mut self) -> Result<(), BatchError> {
        let notes = self.job.transient_user_data::<Notes>()?;
        let both =
            notes.is_some_and(|notes| notes.is("jobListenerA", "true") && notes.is("jobListenerB", "true"));
        self.calls.report(&self.job, both, "JobListener");
        Ok(())
    }
}

/// Notes the calls in the transient user data of the step.
#[derive(BatchArtifact)]
struct InstanceOfStep {
    #[batch_property(name = "step.property")]
    property: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    calls: Instance,
}

#[step_listener("artifactInstanceTestStepListener")]
impl InstanceOfStep {
    #[before_step]
    fn before(&mut self) -> Result<(), BatchError> {
        if self.step.transient_user_data::<Notes>()?.is_none() {
            self.step.set_transient_user_data(Notes::default());
        }
        self.calls.count(&self.property);
        let notes = self.step.transient_user_data::<Notes>()?;
        notes
            .into_iter()
            .for_each(|notes| notes.set(&self.property, true));
        Ok(())
    }

    #[after_step]
    fn after(&mut self) -> Result<(), BatchError> {
        let notes = self.step.transient_user_data::<Notes>()?;
        let both =
            notes.is_some_and(|notes| notes.is("stepListenerA", "true") && notes.is("stepListenerB", "true"));
        self.calls.report(&self.job, both, "StepListener");
        Ok(())
    }
}

/// Notes the calls in the transient user data of the step, after the calls of the step listeners.
#[derive(BatchArtifact)]
struct InstanceOfChunk {
    #[batch_property(name = "chunk.property")]
    property: String,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    calls: Instance,
}

#[chunk_listener("artifactInstanceTestChunkListener")]
impl InstanceOfChunk {
    #[before_chunk]
    fn before(&mut self) -> Result<(), BatchError> {
        self.calls.count(&self.property);
        let notes = self.step.transient_user_data::<Notes>()?;
        let notes = notes.ok_or_else(|| BatchError::msg("no step listener was called before the chunk"))?;
        notes.set(&self.property, true);
        Ok(())
    }

    #[after_chunk]
    fn after(&mut self) -> Result<(), BatchError> {
        let notes = self.step.transient_user_data::<Notes>()?;
        let both = notes
            .is_some_and(|notes| notes.is("chunkListenerA", "true") && notes.is("chunkListenerB", "true"));
        self.calls.report(&self.job, both, "ChunkListener");
        Ok(())
    }
}
