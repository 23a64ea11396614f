//! How a request to read and process items ends, and who observes it.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::BatchError;

/// Observes each item of a [`Fill`](super::Fill) while it is read and processed. Each method returns an error to end the fill.
pub trait ItemObserver {
    /// Runs before the reader is called.
    fn before_read(&mut self) -> Result<(), Halt> {
        Ok(())
    }
    /// Runs after the reader has returned an item.
    fn after_read(&mut self, _item: &dyn Any) -> Result<(), Halt> {
        Ok(())
    }
    /// Runs before the processor is called.
    fn before_process(&mut self, _item: &dyn Any) -> Result<(), Halt> {
        Ok(())
    }
    /// Runs after the processor has returned a result, or filtered the item.
    fn after_process(&mut self, _item: &dyn Any, _result: Option<&dyn Any>) -> Result<(), Halt> {
        Ok(())
    }
    /// Runs after the processor has failed. Returns the item to process it again, or `None` to skip it. `behind` is the number of items
    /// that were read after it.
    fn process_failed(
        &mut self,
        error: BatchError,
        item: Box<dyn Any + Send>,
        behind: usize,
    ) -> Result<Option<Box<dyn Any + Send>>, Halt>;
}

/// Returns the item that an observer wants to have processed again.
pub(super) fn again<I: 'static>(item: Option<Box<dyn Any + Send>>) -> Option<I> {
    // The observer returns the type that it got.
    item.and_then(|item| item.downcast().ok()).map(|item| *item)
}

/// The fill has to end, for a reason that the observer knows.
#[derive(Debug)]
pub struct Halt;

/// The flags that end a fill before its next item.
#[derive(Clone, Copy)]
pub(super) struct StopFlags<'a>(pub(super) &'a AtomicBool, pub(super) Option<&'a AtomicBool>);

/// What ends a fill before the end of the input.
#[derive(Clone, Copy)]
pub(super) struct FillLimits<'a> {
    pub(super) stop: StopFlags<'a>,
    /// The most items that are read.
    pub(super) max_reads: usize,
    /// The number of results at which the buffer is full.
    pub(super) full_at: usize,
}

impl StopFlags<'_> {
    #[inline]
    pub(super) fn is_any_set(self) -> bool {
        self.0.load(Ordering::Relaxed) || self.1.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// The reason why a [`Fill`](super::Fill) ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillEnd {
    /// The requested number of items was read.
    Limit,
    /// The buffer holds as many results as the writer wants in one call.
    Full,
    /// The reader has no more items.
    EndOfInput,
    /// A stop was requested; the current item was finished.
    Stop,
}

/// The artifact that failed.
#[derive(Debug)]
pub enum FillError {
    /// The reader.
    Read(BatchError),
    /// The processor.
    Process(BatchError),
    /// Neither: their item types differ, or the threads of the processors have ended.
    Mismatch(BatchError),
    /// The observer, which knows the reason.
    Halted,
}

impl From<Halt> for FillError {
    fn from(_: Halt) -> Self {
        Self::Halted
    }
}
