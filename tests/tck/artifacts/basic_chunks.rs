//! The chunks of the older tests, whose artifacts fail at listed items and record it in the exit status of the job.

use batch_runtime::prelude::*;

use super::exceptions::BasicChunkStepException;

/// Fails if the item is listed.
fn fail_at(
    job: &JobContext,
    listed: &[i64],
    artifact: &str,
    item: i64,
) -> Result<(), BasicChunkStepException> {
    if !listed.contains(&item) {
        return Ok(());
    }
    let exit_status = format!("Basic{artifact}Exception:Item#{item}");
    job.set_exit_status(Some(&exit_status));
    Err(BasicChunkStepException("fails on purpose"))
}

/// Reads items from 0.
#[derive(BatchArtifact)]
struct BasicReader {
    #[batch_property(name = "number.of.items.to.be.read")]
    items: Option<i64>,
    #[batch_property(name = "throw.reader.exception.for.these.items")]
    fail: Vec<i64>,
    #[batch_context]
    job: JobContext,
    next: i64,
}

#[item_reader("basicReader")]
impl BasicReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BasicChunkStepException> {
        let item = self.next;
        self.next += 1;
        if item >= self.items.unwrap_or(10) {
            return Ok(None);
        }
        fail_at(&self.job, &self.fail, "Reader", item)?;
        Ok(Some(item))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Passes the items on.
#[derive(BatchArtifact)]
struct BasicProcessor {
    #[batch_property(name = "throw.processor.exception.for.these.items")]
    fail: Vec<i64>,
    #[batch_context]
    job: JobContext,
}

#[item_processor("basicProcessor")]
impl BasicProcessor {
    #[process_item]
    fn process(&mut self, item: &i64) -> Result<Option<i64>, BasicChunkStepException> {
        fail_at(&self.job, &self.fail, "Processor", *item)?;
        Ok(Some(*item))
    }
}

/// Writes nowhere.
#[derive(BatchArtifact)]
struct BasicWriter {
    #[batch_property(name = "throw.writer.exception.for.these.items")]
    fail: Vec<i64>,
    #[batch_context]
    job: JobContext,
}

#[item_writer("basicWriter")]
impl BasicWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, items: &[i64]) -> Result<(), BasicChunkStepException> {
        items
            .iter()
            .try_for_each(|item| fail_at(&self.job, &self.fail, "Writer", *item))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}
