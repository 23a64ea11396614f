//! What artifacts must be able to do inside others.

use batch_runtime::BatchArtifact;
use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Origin;
use crate::file::{
    Encode, FileFrame, FileItemReader, FileItemWriter, Format, FramedPosition, Items, ReadPosition,
};
use crate::query::{FromRow, QueryItemReader, QueryPosition};
use crate::table::{TableDatabase, TableItemWriter, TablePosition};

/// A reader inside another artifact. All readers of this crate are, and the readers of [`iterator_reader!`](crate::iterator_reader).
///
/// A reader of a program implements it beside its role: the methods that the runtime calls are the same.
pub trait ReadItems: BatchArtifact + Send {
    /// The type of the items.
    type Item: Send + 'static;
    /// The checkpoint.
    type Position: Clone + Serialize + DeserializeOwned + Send + 'static;

    /// Positions at a checkpoint; at the beginning for `None`.
    ///
    /// # Errors
    /// The errors of the reader.
    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError>;

    /// Reads the next item; `None` at the end. After an error, the next call continues behind the item that cannot be read.
    ///
    /// # Errors
    /// The errors of the reader.
    fn read(&mut self) -> Result<Option<Self::Item>, BatchError>;

    /// Returns the position of the next item. The reader can be opened at any of its positions, not only at the last one.
    ///
    /// # Errors
    /// The errors of the reader.
    fn position(&mut self) -> Result<Self::Position, BatchError>;

    /// Replaces a position, which was returned since the reader was opened, with the position of the next item. It is called before each item, so
    /// a reader whose positions have texts overrides it.
    ///
    /// # Errors
    /// The errors of the reader.
    fn update_position(&mut self, position: &mut Self::Position) -> Result<(), BatchError> {
        *position = self.position()?;
        Ok(())
    }

    /// Returns the number of items, if the reader knows it.
    fn item_count(&mut self) -> Option<u64> {
        None
    }

    /// Returns the place of the last item for messages, such as ``record 7 of `orders.csv` ``, if the reader knows it.
    fn place(&self) -> Option<String> {
        None
    }

    /// Returns where the last item comes from, with its text, for the rejects of a group that is dropped.
    fn origin(&self) -> Option<Origin<'_>> {
        None
    }

    /// Returns the first file without records that was read since the reader was opened. Default: `None`.
    fn file_without_records(&self) -> Option<String> {
        None
    }

    /// Releases the resources.
    fn close(&mut self) {}
}

/// A writer of items of type `T` inside another artifact. The writers of files, tables and queues of this crate are, and not those that
/// are made of others.
pub trait WriteItems<T>: BatchArtifact + Send {
    /// The checkpoint.
    type Position: Serialize + DeserializeOwned + Send + 'static;

    /// Whether items are written; only [`NoWriter`] writes none.
    const WRITES: bool = true;

    /// Returns the destination whose transaction `write` takes from the chunk transaction, if it has one.
    ///
    /// # Errors
    /// The errors of the writer.
    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        Ok(None)
    }

    /// Positions at a checkpoint; at the beginning for `None`.
    ///
    /// # Errors
    /// The errors of the writer.
    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError>;

    /// Writes items. A call that fails leaves nothing, except through the transaction; a writer of a queue leaves the messages that the
    /// broker has stored.
    ///
    /// # Errors
    /// The errors of the writer.
    fn write(&mut self, items: &[&T], tx: &mut ChunkTransaction) -> Result<(), BatchError>;

    /// Notes the current state for [`undo`](Self::undo). What is written through the transaction needs neither.
    fn mark(&mut self) {}

    /// Removes what was written since the mark. Returns `false` if that is not possible, such as in a file that is complete: the runtime
    /// rolls the interval back, and opens the writers at their checkpoints.
    fn undo(&mut self) -> bool {
        true
    }

    /// Returns the position.
    ///
    /// # Errors
    /// The errors of the writer.
    fn position(&mut self) -> Result<Self::Position, BatchError>;

    /// Completes the output.
    ///
    /// # Errors
    /// The errors of the writer.
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
    /// The errors of the processor.
    fn process(&mut self, item: &Self::Input) -> Result<Option<Self::Output>, BatchError>;
}

/// An item that has a class: a [`ClassifierItemWriter`](super::ClassifierItemWriter) has a writer for each.
pub trait Classified {
    /// Returns the number of the item's writer, from 1.
    fn class(&self) -> usize;
}

/// A look-up for all items of a list at once, such as one query.
pub trait BulkLookup<T>: BatchArtifact + Send {
    /// An item with what was found for it.
    type Output: Send + 'static;

    /// Returns a result for each item, in their order.
    ///
    /// # Errors
    /// The errors of the look-up.
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

    fn undo(&mut self) -> bool {
        self.undo_output()
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

impl<T: Serialize + Send + 'static, D: TableDatabase> WriteItems<T> for TableItemWriter<T, D> {
    type Position = TablePosition;

    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        self.destination()
    }

    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError> {
        self.open(checkpoint)
    }

    fn write(&mut self, items: &[&T], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_each(items.iter().copied(), tx)
    }

    fn position(&mut self) -> Result<Self::Position, BatchError> {
        Ok(self.checkpoint())
    }
}

impl<F, T> ReadItems for FileItemReader<F, T>
where
    F: Format + BatchArtifact,
    F::Records: Items<T>,
    T: Send + 'static,
{
    type Item = T;
    type Position = ReadPosition;

    fn open(&mut self, checkpoint: Option<ReadPosition>) -> Result<(), BatchError> {
        self.open(checkpoint)
    }

    fn read(&mut self) -> Result<Option<T>, BatchError> {
        self.read()
    }

    fn position(&mut self) -> Result<ReadPosition, BatchError> {
        Ok(self.checkpoint())
    }

    fn update_position(&mut self, position: &mut ReadPosition) -> Result<(), BatchError> {
        self.update_checkpoint(position);
        Ok(())
    }

    fn item_count(&mut self) -> Option<u64> {
        self.item_count()
    }

    fn place(&self) -> Option<String> {
        self.place_of_record()
    }

    fn origin(&self) -> Option<Origin<'_>> {
        self.origin_of_record()
    }

    fn file_without_records(&self) -> Option<String> {
        FileItemReader::file_without_records(self)
    }

    fn close(&mut self) {
        self.close();
    }
}

impl<T: FromRow> ReadItems for QueryItemReader<T> {
    type Item = T;
    type Position = QueryPosition;

    fn open(&mut self, checkpoint: Option<QueryPosition>) -> Result<(), BatchError> {
        Ok(self.open(checkpoint)?)
    }

    fn read(&mut self) -> Result<Option<T>, BatchError> {
        Ok(self.read()?)
    }

    fn position(&mut self) -> Result<QueryPosition, BatchError> {
        Ok(self.checkpoint())
    }

    fn place(&self) -> Option<String> {
        Some(format!("row {} of the query", self.checkpoint().rows))
    }

    fn close(&mut self) {
        self.close();
    }
}
