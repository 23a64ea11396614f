//! The results of a processor, of any type.

use std::any::Any;
use std::ops::Range;

use crate::error::BatchError;

/// A `Vec` of results, whose type only processor and writer know.
pub(super) trait Results: Send {
    fn len(&self) -> usize;
    fn clear(&mut self);
    fn remove(&mut self, index: usize);
    fn item(&self, index: usize) -> Option<&dyn Any>;
    fn buffer(&self) -> &(dyn Any + Send);
    fn buffer_mut(&mut self) -> &mut (dyn Any + Send);
    /// Exchanges the results with another buffer of the same type.
    fn swap(&mut self, other: &mut dyn Results);
    /// Returns an empty buffer of the same type.
    fn new_empty(&self) -> Box<dyn Results>;
}

impl<O: Send + 'static> Results for Vec<O> {
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn clear(&mut self) {
        Vec::clear(self);
    }
    fn remove(&mut self, index: usize) {
        if index < Vec::len(self) {
            drop(Vec::remove(self, index));
        }
    }
    fn item(&self, index: usize) -> Option<&dyn Any> {
        self.get(index).map(|item| item as &dyn Any)
    }
    fn buffer(&self) -> &(dyn Any + Send) {
        self
    }
    fn buffer_mut(&mut self) -> &mut (dyn Any + Send) {
        self
    }
    fn swap(&mut self, other: &mut dyn Results) {
        if let Some(other) = other.buffer_mut().downcast_mut::<Self>() {
            std::mem::swap(self, other);
        }
    }
    fn new_empty(&self) -> Box<dyn Results> {
        Box::new(Self::new())
    }
}

/// A slice of a chunk's items, whose type only reader, processor and writer know.
#[derive(Clone)]
pub struct ChunkItems<'a> {
    pub(super) results: &'a dyn Results,
    pub(super) range: Range<usize>,
}

impl<'a> ChunkItems<'a> {
    /// Returns the items as a slice of `T`.
    ///
    /// # Errors
    /// If they have another type, which the loader rules out before a job starts.
    // Spec: CHUNK-LOOP-17
    pub fn typed<T: Send + 'static>(&self) -> Result<&'a [T], BatchError> {
        let items = self
            .results
            .buffer()
            .downcast_ref::<Vec<T>>()
            .and_then(|items| items.get(self.range.clone()));
        items.ok_or_else(|| {
            BatchError::msg(format!(
                "the items of this chunk are not of type `{}`",
                std::any::type_name::<T>()
            ))
        })
    }

    /// Returns the items one by one, without their type.
    pub fn iter(&self) -> impl Iterator<Item = &'a dyn Any> + use<'a> {
        let results = self.results;
        self.range.clone().filter_map(|index| results.item(index))
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns whether there are no items. A writer is never called without items.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

/// The results of a checkpoint interval, which the writer receives.
pub(crate) struct ResultBuffer(pub(super) Box<dyn Results>);

impl ResultBuffer {
    /// Returns the number of results.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes all results, and keeps the memory for the next ones.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes a result that the writer skips.
    pub(crate) fn remove(&mut self, index: usize) {
        self.0.remove(index);
    }

    /// Returns one result.
    pub(crate) fn item(&self, index: usize) -> Option<&dyn Any> {
        self.0.item(index)
    }

    /// Returns the results of `range`. Reading a range outside the buffer fails.
    pub(crate) fn items(&self, range: Range<usize>) -> ChunkItems<'_> {
        ChunkItems {
            results: &*self.0,
            range,
        }
    }
}
