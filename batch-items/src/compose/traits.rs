//! What artifacts must be able to do inside others.

use batch_runtime::BatchArtifact;
use batch_runtime::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::file::{Encode, FileFrame, FileItemWriter, FramedPosition};
use crate::table::TableItemWriter;

/// A writer of items of type `T` inside another artifact. All writers of this crate are.
pub trait WriteItems<T>: BatchArtifact + Send {
    /// The checkpoint.
    type Position: Serialize + DeserializeOwned + Send + 'static;

    /// Whether items are written; only [`NoWriter`] writes none.
    const WRITES: bool = true;

    /// Positions at a checkpoint; at the beginning for `None`.
    ///
    /// # Errors
    /// Those of the writer.
    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError>;

    /// Writes items. A call that fails leaves nothing, except through the transaction.
    ///
    /// # Errors
    /// Those of the writer.
    fn write(&mut self, items: &[&T], tx: &mut ChunkTransaction) -> Result<(), BatchError>;

    /// Notes the current state, to which [`undo`](Self::undo) returns. What is written through the transaction needs neither.
    fn mark(&mut self) {}

    /// Removes what was written since the mark.
    fn undo(&mut self) {}

    /// Returns the position.
    ///
    /// # Errors
    /// Those of the writer.
    fn position(&mut self) -> Result<Self::Position, BatchError>;

    /// Completes the output.
    ///
    /// # Errors
    /// Those of the writer.
    fn finish(&mut self) -> Result<(), BatchError> {
        Ok(())
    }

    /// Releases the resources.
    fn close(&mut self) {}
}

/// A processor inside another artifact.
pub trait ProcessItem: BatchArtifact + Send {
    /// The type of the items.
    type Input: Send + 'static;
    /// The type of the results.
    type Output: Send + 'static;

    /// Transforms an item, or filters it with `None`.
    ///
    /// # Errors
    /// Those of the processor.
    fn process(&mut self, item: &Self::Input) -> Result<Option<Self::Output>, BatchError>;
}

/// An item that has a class: a [`ClassifierItemWriter`](super::ClassifierItemWriter) has a writer for each.
pub trait Classified {
    /// Returns the number of the item's writer, from 1.
    fn class(&self) -> usize;
}

/// A look-up for all items of a list at once, such as one query.
pub trait LookUp<T>: BatchArtifact + Send {
    /// An item with what was found for it.
    type Output: Send + 'static;

    /// Returns a result for each item, in their order.
    ///
    /// # Errors
    /// Those of the look-up.
    fn look_up(&mut self, items: &[&T], tx: &mut ChunkTransaction) -> Result<Vec<Self::Output>, BatchError>;
}

/// No writer, where a composite could have a further one.
#[derive(BatchArtifact)]
pub struct NoWriter;

impl<T> WriteItems<T> for NoWriter {
    type Position = ();
    const WRITES: bool = false;

    fn open(&mut self, _: Option<()>) -> Result<(), BatchError> {
        Ok(())
    }

    fn write(&mut self, _: &[&T], _: &mut ChunkTransaction) -> Result<(), BatchError> {
        Ok(())
    }

    fn position(&mut self) -> Result<(), BatchError> {
        Ok(())
    }
}

impl<E, T, F> WriteItems<T> for FileItemWriter<E, T, F>
where
    E: Encode<T> + BatchArtifact,
    T: Send + 'static,
    F: FileFrame<T>,
{
    type Position = FramedPosition<F>;

    fn open(&mut self, checkpoint: Option<FramedPosition<F>>) -> Result<(), BatchError> {
        Ok(self.open(checkpoint)?)
    }

    fn write(&mut self, items: &[&T], _: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_each(items.iter().copied())
    }

    fn mark(&mut self) {
        self.mark_output();
    }

    fn undo(&mut self) {
        self.undo_output();
    }

    fn position(&mut self) -> Result<FramedPosition<F>, BatchError> {
        Ok(self.checkpoint()?)
    }

    fn finish(&mut self) -> Result<(), BatchError> {
        Ok(self.finish()?)
    }

    fn close(&mut self) {
        self.close();
    }
}

impl<T: Serialize + Send + 'static> WriteItems<T> for TableItemWriter<T> {
    type Position = ();

    fn open(&mut self, checkpoint: Option<()>) -> Result<(), BatchError> {
        self.open(checkpoint);
        Ok(())
    }

    fn write(&mut self, items: &[&T], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_each(items.iter().copied(), tx)
    }

    fn position(&mut self) -> Result<(), BatchError> {
        Ok(())
    }
}
