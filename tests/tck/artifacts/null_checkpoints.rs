//! Chunks without items, whose readers and writers have no checkpoint.

use batch_runtime::prelude::*;

use super::values::or_null;

/// Notes in the exit status of the job that it has no checkpoint.
#[derive(BatchArtifact)]
struct NullReader {
    #[batch_context]
    job: JobContext,
}

#[item_reader("nullChkPtInfoReader")]
impl NullReader {
    #[open]
    fn open(&mut self, checkpoint: Option<()>) {
        if checkpoint.is_none() {
            let text = "checkpointInfo is null in reader.open";
            self.job.set_exit_status(Some(text));
        }
    }

    #[read_item]
    fn read(&mut self) -> Option<i64> {
        None
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Adds to the exit status of the job that it has no checkpoint.
#[derive(BatchArtifact)]
struct NullWriter {
    #[batch_context]
    job: JobContext,
}

#[item_writer("nullChkPtInfoWriter")]
impl NullWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<()>) {
        if checkpoint.is_none() {
            let text = "...checkpointInfo is null in writer.open";
            let before = or_null(self.job.exit_status());
            self.job.set_exit_status(Some(&(before + text)));
        }
    }

    #[write_items]
    fn write(&mut self, _numbers: &[i64]) {}

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Reads nothing.
#[derive(BatchArtifact)]
struct EmptyReader;

#[item_reader("artifactInstanceTestReader")]
impl EmptyReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&mut self) -> Option<i64> {
        None
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Writes nowhere.
#[derive(BatchArtifact)]
struct EmptyWriter;

#[item_writer("artifactInstanceTestWriter")]
impl EmptyWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, _numbers: &[i64]) {}

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}
