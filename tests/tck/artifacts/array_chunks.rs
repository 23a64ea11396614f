//! Chunks over an array of numbers whose boundaries the writer checks, also after a restart.

use batch_runtime::prelude::*;

use super::values::{Required, RestartData};

/// Reads the numbers from 0 to the size of the array, and fails at one of them in the first execution.
#[derive(BatchArtifact)]
struct ArrayReader {
    #[batch_property(name = "readrecord.fail")]
    fail: Option<i64>,
    #[batch_property(name = "app.arraysize")]
    size: Option<i64>,
    #[batch_property(name = "app.checkpoint.position")]
    expected: Option<i64>,
    #[batch_context]
    step: StepContext,
    /// The next number.
    next: i64,
    /// The last number that was read.
    last: i64,
}

#[item_reader("doSomethingArrayItemReaderImpl")]
impl ArrayReader {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) -> Result<(), BatchError> {
        self.fail.required()?;
        self.size.required()?;
        self.next = checkpoint.map_or(0, |last| last + 1);
        match self.expected {
            Some(expected) if expected != self.next => Err(BatchError::msg(format!(
                "the reader is at {}, expected {expected}",
                self.next
            ))),
            _ => Ok(()),
        }
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        let execution = RestartData::of(&self.step)?.execution_number;
        if self.next == self.size.required()? {
            return Ok(None);
        }
        if execution != 2 && self.next == self.fail.required()? - 1 {
            return Err(BatchError::msg(format!(
                "fails on purpose at number {}",
                self.next
            )));
        }
        self.last = self.next;
        self.next += 1;
        Ok(Some(self.last))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.last
    }
}

/// Adds 100, and filters the item with one number, counted from 1.
#[derive(BatchArtifact)]
struct ArrayProcessor {
    #[batch_property(name = "app.processFilterItem")]
    filtered: Option<i64>,
    count: i64,
}

#[item_processor("doSomethingArrayItemProcessorImpl")]
impl ArrayProcessor {
    #[process_item]
    fn process(&mut self, number: &i64) -> Option<i64> {
        self.count += 1;
        (self.filtered != Some(self.count)).then_some(number + 100)
    }
}

/// Fails if a chunk does not begin at the next of its write points.
#[derive(BatchArtifact)]
struct ArrayWriter {
    #[batch_property(name = "app.arraysize")]
    size: Option<i64>,
    #[batch_property(name = "app.writepoints")]
    write_points: Vec<usize>,
    #[batch_property(name = "app.next.writepoints")]
    next_write_points: Vec<usize>,
    #[batch_property(name = "app.checkpoint.position")]
    expected: Option<usize>,
    #[batch_context]
    step: StepContext,
    /// The number of items written.
    position: usize,
    /// The number of chunks of this execution.
    chunks: usize,
}

#[item_writer("doSomethingSimpleArrayWriter")]
impl ArrayWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) -> Result<(), BatchError> {
        self.size.required()?;
        if RestartData::advance(&self.step, &self.next_write_points)? > 1 {
            self.write_points.clone_from(&self.next_write_points);
        }
        self.position = checkpoint.unwrap_or(0);
        match (checkpoint, self.expected) {
            (Some(found), Some(expected)) if found != expected => Err(BatchError::msg(format!(
                "the writer is at {found}, expected {expected}"
            ))),
            _ => Ok(()),
        }
    }

    #[write_items]
    fn write(&mut self, numbers: &[i64]) -> Result<(), BatchError> {
        let expected = self.write_points.get(self.chunks).copied().unwrap_or(0);
        if self.position != expected {
            return Err(BatchError::msg(format!(
                "a chunk begins at {}, expected {expected}",
                self.position
            )));
        }
        self.chunks += 1;
        self.position += numbers.len();
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.position
    }
}

/// Sets the exit status of the job to the size of the last chunk.
#[derive(BatchArtifact)]
struct ChunkSizeWriter {
    #[batch_context]
    step: StepContext,
    #[batch_context]
    job: JobContext,
    position: usize,
}

#[item_writer("defaultValueArrayWriter")]
impl ChunkSizeWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) -> Result<(), BatchError> {
        RestartData::advance(&self.step, &[])?;
        self.position = checkpoint.unwrap_or(0);
        Ok(())
    }

    #[write_items]
    fn write(&mut self, numbers: &[i64]) {
        self.position += numbers.len();
        let size = format!("buffer size = {}", numbers.len());
        self.job.set_exit_status(Some(&size));
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.position
    }
}

/// Ends a chunk at each of its points. The first one is where the execution begins.
#[derive(BatchArtifact)]
struct AtPoints {
    #[batch_property(name = "writepoints")]
    points: Vec<usize>,
    #[batch_property(name = "next.writepoints")]
    next_points: Vec<usize>,
    #[batch_context]
    step: StepContext,
    /// The number of items up to here; `None` before the first.
    position: Option<usize>,
    chunks: usize,
}

#[checkpoint_algorithm("myCustomCheckpointAlgorithm")]
impl AtPoints {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> Result<bool, BatchError> {
        if self.position.is_none() && RestartData::of(&self.step)?.execution_number == 2 {
            self.points.clone_from(&self.next_points);
        }
        let begin = self.points.first().copied().unwrap_or(0);
        let position = self.position.unwrap_or(begin) + 1;
        self.position = Some(position);
        let is_ready = position >= self.points.get(self.chunks + 1).copied().unwrap_or(0);
        self.chunks += usize::from(is_ready);
        Ok(is_ready)
    }
}

/// Ends no chunk before the end of the items.
#[derive(BatchArtifact)]
struct NeverReady;

#[checkpoint_algorithm("mySimpleCustomCheckpointAlgorithm")]
impl NeverReady {
    #[is_ready_to_checkpoint]
    fn is_ready(&mut self) -> bool {
        false
    }
}
