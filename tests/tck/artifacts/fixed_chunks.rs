//! Small chunks with a fixed number of items.

use batch_runtime::prelude::*;

use super::exceptions::MyParentException;

/// Reads the numbers from 1 to 9, or fails at once.
#[derive(BatchArtifact)]
struct NineReader {
    #[batch_property(name = "fail.immediate")]
    fail: Option<bool>,
    count: i64,
}

#[item_reader("doSomethingItemReaderImpl")]
impl NineReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, MyParentException> {
        if self.fail.unwrap_or_default() {
            return Err(MyParentException("fails on purpose"));
        }
        self.count += 1;
        Ok((self.count != 10).then_some(self.count))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Numbers the items from 10.
#[derive(BatchArtifact)]
struct FromTen {
    count: i64,
}

#[item_processor("doSomethingItemProcessorImpl")]
impl FromTen {
    #[process_item]
    fn process(&mut self, _number: &i64) -> Option<i64> {
        self.count += 1;
        Some(self.count + 9)
    }
}

/// Writes nowhere.
#[derive(BatchArtifact)]
struct NoWriter;

#[item_writer("doSomethingItemWriterImpl")]
impl NoWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, _numbers: &[i64]) {}

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Reads the numbers from 1 to the size of the array, without that one.
#[derive(BatchArtifact)]
struct SimpleReader {
    #[batch_property(name = "app.arraysize")]
    size: Option<i64>,
    count: i64,
}

#[item_reader("simpleCustomItemReader")]
impl SimpleReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&mut self) -> Option<i64> {
        self.count += 1;
        (self.count < self.size.unwrap_or(0)).then_some(self.count)
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Reads without end, or fails at once.
#[derive(BatchArtifact)]
struct EndlessReader {
    #[batch_property(name = "read.fail.immediate")]
    fail: Option<bool>,
}

#[item_reader("listenerOnErrorReader")]
impl EndlessReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        if self.fail.unwrap_or_default() {
            return Err(BatchError::msg("the reader fails on purpose"));
        }
        Ok(Some(0))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Passes the items on, or fails at once.
#[derive(BatchArtifact)]
struct FailingProcessor {
    #[batch_property(name = "process.fail.immediate")]
    fail: Option<bool>,
}

#[item_processor("listenerOnErrorProcessor")]
impl FailingProcessor {
    #[process_item]
    fn process(&mut self, number: &i64) -> Result<Option<i64>, BatchError> {
        if self.fail.unwrap_or_default() {
            return Err(BatchError::msg("the processor fails on purpose"));
        }
        Ok(Some(*number))
    }
}

/// Writes nowhere, or fails at once.
#[derive(BatchArtifact)]
struct FailingWriter {
    #[batch_property(name = "write.fail.immediate")]
    fail: Option<bool>,
}

#[item_writer("listenerOnErrorWriter")]
impl FailingWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, _numbers: &[i64]) -> Result<(), BatchError> {
        if self.fail.unwrap_or_default() {
            return Err(BatchError::msg("the writer fails on purpose"));
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// The number that makes the artifacts of `listenerOnError` fail.
const FAILING_NUMBER: i64 = 8;

/// Reads the numbers from 0 to 9.
#[derive(BatchArtifact)]
struct TenReader {
    next: i64,
}

#[item_reader("ListenerOnErrorArtifacts.R")]
impl TenReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[read_item]
    fn read(&mut self) -> Option<i64> {
        self.next += 1;
        (self.next <= 10).then_some(self.next - 1)
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Doubles the numbers.
#[derive(BatchArtifact)]
struct Doubles {
    #[batch_property(name = "process.fail")]
    fail: Option<bool>,
}

#[item_processor("ListenerOnErrorArtifacts.P")]
impl Doubles {
    #[process_item]
    fn process(&mut self, number: &i64) -> Result<Option<i64>, BatchError> {
        if self.fail.unwrap_or_default() && *number == FAILING_NUMBER {
            return Err(BatchError::msg("the processor fails on purpose"));
        }
        Ok(Some(number * 2))
    }
}

/// Fails with the list that has the eighth item.
#[derive(BatchArtifact)]
struct FailsAtTheEighth {
    written: i64,
}

#[item_writer("ListenerOnErrorArtifacts.W")]
impl FailsAtTheEighth {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, numbers: &[i64]) -> Result<(), BatchError> {
        self.written += i64::try_from(numbers.len())?;
        if self.written >= FAILING_NUMBER {
            return Err(BatchError::msg("the writer fails on purpose"));
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}
