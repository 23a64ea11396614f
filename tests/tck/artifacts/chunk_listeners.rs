//! Listeners of chunks.

use std::time::Instant;

use batch_runtime::prelude::*;

use super::exceptions::{MyParentException, is_parent};

/// Is called, and does nothing.
#[derive(BatchArtifact)]
struct Silent;

#[chunk_listener("myCustomCheckpointListener")]
impl Silent {
    #[before_chunk]
    fn before(&mut self) {}

    #[after_chunk]
    fn after(&mut self) {}

    #[on_chunk_error]
    fn on_error(&mut self, _ex: &BatchError) {}
}

/// Notes an error in the exit status of the job.
#[derive(BatchArtifact)]
struct NotesError {
    #[batch_context]
    job: JobContext,
}

#[chunk_listener("chunkOnErrorCheckpointListener")]
impl NotesError {
    #[on_chunk_error]
    fn on_error(&mut self, _ex: &BatchError) {
        self.job.set_exit_status(Some("Chunk onError invoked"));
    }
}

/// Fails before the first chunk if it is to, and after the step reports the exception that its context has.
#[derive(BatchArtifact)]
struct ReportsException {
    #[batch_property(name = "fail.immediate")]
    fail: Option<bool>,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
}

#[chunk_listener("myChunkListener")]
impl ReportsException {
    #[before_chunk]
    fn before(&mut self) -> Result<(), MyParentException> {
        if self.fail.unwrap_or_default() {
            return Err(MyParentException("fails on purpose"));
        }
        Ok(())
    }
}

#[step_listener("myChunkListener")]
impl ReportsException {
    #[after_step]
    fn after(&mut self) {
        let report = match self.step.exception() {
            Some(ex) if is_parent(&ex) => "found instanceof MyParentException",
            Some(_) => "found another exception",
            None => "found no exception",
        };
        let exit_status = format!("MyChunkListener: {report}");
        self.job.set_exit_status(Some(&exit_status));
    }
}

/// Compares the seconds of the chunk before with its property, with one second of tolerance.
#[derive(BatchArtifact)]
struct MeasuresChunks {
    #[batch_property(name = "timeinterval")]
    expected: u64,
    #[batch_context]
    job: JobContext,
    begin: Option<Instant>,
    end: Option<Instant>,
}

#[chunk_listener("myTimeCheckpointListener")]
impl MeasuresChunks {
    #[before_chunk]
    fn before(&mut self) {
        let chunk = self.begin.zip(self.end);
        let seconds = chunk.map_or(0, |(begin, end)| end.duration_since(begin).as_secs());
        let is_expected = seconds.abs_diff(self.expected) <= 1;
        let verdict = if is_expected { "TRUE" } else { "FALSE" };
        let exit_status = format!("{verdict}: {seconds}");
        self.job.set_exit_status(Some(&exit_status));
        self.begin = Some(Instant::now());
    }

    #[after_chunk]
    fn after(&mut self) {
        self.end = Some(Instant::now());
    }
}
