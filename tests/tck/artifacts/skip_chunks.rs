//! Chunks that fail with exceptions to skip or to retry.

use batch_runtime::prelude::*;

use super::exceptions::{MyChildException, MyGrandchildException, MyParentException};
use super::values::Required;

/// Reads the numbers from 0 to the size of the array. At some of them it fails, and passes over them in the next call: at
/// the first with the parent exception, then with the child exception, then again with the parent exception.
#[derive(BatchArtifact)]
struct SkipReader {
    #[batch_property(name = "readrecord.fail")]
    fail: Vec<i64>,
    #[batch_property(name = "app.arraysize")]
    size: Option<i64>,
    next: i64,
    last: i64,
    has_failed: bool,
    child_is_next: bool,
}

#[item_reader("skipReader")]
impl SkipReader {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.next = checkpoint.map_or(0, |last| last + 1);
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        if self.has_failed {
            self.has_failed = false;
            self.next += 1;
            self.child_is_next = true;
        }
        if self.next == self.size.required()? {
            return Ok(None);
        }
        if self.fail.contains(&self.next) {
            self.has_failed = true;
            if !std::mem::take(&mut self.child_is_next) {
                return Err(MyParentException("fails on purpose").into());
            }
            return Err(MyChildException("fails on purpose").into());
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

/// As `SkipReader`, but fails with the parent, the grandchild and then with the child exception.
#[derive(BatchArtifact)]
struct MultipleExceptions {
    #[batch_property(name = "readrecord.fail")]
    fail: Vec<i64>,
    #[batch_property(name = "app.arraysize")]
    size: Option<i64>,
    next: i64,
    last: i64,
    has_failed: bool,
    failures: u32,
}

#[item_reader("skipReaderMultipleExceptions")]
impl MultipleExceptions {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.next = checkpoint.map_or(0, |last| last + 1);
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        if self.has_failed {
            self.has_failed = false;
            self.next += 1;
            self.failures += 1;
        }
        if self.next == self.size.required()? {
            return Ok(None);
        }
        if self.fail.contains(&self.next) {
            self.has_failed = true;
            return Err(match self.failures {
                0 => MyParentException("fails on purpose").into(),
                1 => MyGrandchildException("fails on purpose").into(),
                _ => MyChildException("fails on purpose").into(),
            });
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

/// Fails at some of its calls, counted from 0. The call after a failure counts as one more.
#[derive(BatchArtifact)]
struct SkipProcessor {
    #[batch_property(name = "processrecord.fail")]
    fail: Vec<i64>,
    calls: i64,
    has_failed: bool,
}

#[item_processor("skipProcessor")]
impl SkipProcessor {
    #[process_item]
    fn process(&mut self, _number: &i64) -> Result<Option<i64>, MyParentException> {
        if std::mem::take(&mut self.has_failed) {
            self.calls += 1;
        }
        if self.fail.contains(&self.calls) {
            self.has_failed = true;
            return Err(MyParentException("fails on purpose"));
        }
        self.calls += 1;
        Ok(Some(self.calls + 9))
    }
}

/// Fails in its third, sixth and ninth call if it is to fail at all.
#[derive(BatchArtifact)]
struct SkipWriter {
    #[batch_property(name = "writerecord.fail")]
    fail: Vec<i64>,
    calls: u32,
    position: usize,
}

#[item_writer("skipWriter")]
impl SkipWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) {
        self.position = checkpoint.unwrap_or(0);
    }

    #[write_items]
    fn write(&mut self, numbers: &[i64]) -> Result<(), MyParentException> {
        self.calls += 1;
        if !self.fail.is_empty() && [3, 6, 9].contains(&self.calls) {
            return Err(MyParentException("fails on purpose"));
        }
        self.position += numbers.len();
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.position
    }
}
