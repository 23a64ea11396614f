//! Chunks whose reader takes its time.

use std::thread;
use std::time::Duration;

use batch_runtime::prelude::*;

use super::values::{Required, RestartData};

/// Reads the numbers from 0 to the size of the array, each after a pause.
#[derive(BatchArtifact)]
struct SlowReader {
    #[batch_property(name = "readrecord.fail")]
    fail: Option<i64>,
    #[batch_property(name = "app.arraysize")]
    size: Option<i64>,
    #[batch_property(name = "app.sleeptime")]
    milliseconds: Option<u64>,
    #[batch_context]
    step: StepContext,
    next: i64,
    last: i64,
}

#[item_reader("doSomethingSimpleTimeArrayReader")]
impl SlowReader {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.next = checkpoint.map_or(0, |last| last + 1);
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        if self.next == self.size.required()? {
            return Ok(None);
        }
        let execution = RestartData::of(&self.step)?.execution_number;
        if execution != 2 && self.next == self.fail.required()? - 1 {
            return Err(BatchError::msg(format!(
                "fails on purpose at number {}",
                self.next
            )));
        }
        self.last = self.next;
        self.next += 1;
        thread::sleep(Duration::from_millis(self.milliseconds.required()?));
        Ok(Some(self.last))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.last
    }
}

/// Counts the items, and the executions in the persistent user data.
#[derive(BatchArtifact)]
struct CountingWriter {
    #[batch_context]
    step: StepContext,
    position: usize,
}

#[item_writer("doSomethingSimpleTimeArrayWriter")]
impl CountingWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) -> Result<(), BatchError> {
        RestartData::advance(&self.step, &[])?;
        self.position = checkpoint.unwrap_or(0);
        Ok(())
    }

    #[write_items]
    fn write(&mut self, numbers: &[i64]) {
        self.position += numbers.len();
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.position
    }
}
