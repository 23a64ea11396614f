//! A failed item, as a skip policy sees it.

use std::any::Any;

use crate::error::BatchError;
use crate::observer::ItemPhase;

/// An item that the reader, the processor or the writer has failed at.
#[derive(Clone, Copy)]
pub struct FailedItem<'a> {
    phase: ItemPhase,
    error: &'a BatchError,
    item: Option<&'a dyn Any>,
    skips: u64,
}

impl<'a> FailedItem<'a> {
    pub(crate) fn new(
        phase: ItemPhase,
        error: &'a BatchError,
        item: Option<&'a dyn Any>,
        skips: u64,
    ) -> Self {
        Self {
            phase,
            error,
            item,
            skips,
        }
    }

    /// Returns the part of the chunk that has failed.
    pub fn phase(&self) -> ItemPhase {
        self.phase
    }

    /// Returns the error.
    pub fn error(&self) -> &'a BatchError {
        self.error
    }

    /// Returns the item: for the processor the reader's item, for the writer a result of the processor. `None` if it is of another type,
    /// for the reader, and if the failed item of a list is not known.
    pub fn item<T: 'static>(&self) -> Option<&'a T> {
        self.item?.downcast_ref()
    }

    /// Returns the number of skips of the step in its instance so far.
    pub fn skips(&self) -> u64 {
        self.skips
    }
}
