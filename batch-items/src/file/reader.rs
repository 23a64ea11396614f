//! The reader of files in any format.

use std::marker::PhantomData;

use batch_runtime::BatchArtifact;
use batch_runtime::prelude::*;

use super::files::Files;
use super::input::{FileInput, FilePosition, Format, Items, ReadPosition};
use crate::error::Origin;

/// Reads the records of files in the format `F` as items of type `T`.
///
/// Programs name it by the formats: [`DelimitedItemReader`](crate::DelimitedItemReader),
/// [`FixedWidthItemReader`](crate::FixedWidthItemReader), [`PatternItemReader`](crate::PatternItemReader),
/// [`LineItemReader`](crate::LineItemReader), [`JsonLinesItemReader`](crate::JsonLinesItemReader),
/// [`JsonArrayItemReader`](crate::JsonArrayItemReader), [`XmlItemReader`](crate::XmlItemReader), and the readers of
/// the crate `batch-columnar`.
/// It has the properties of [`FileInput`] and of the format.
#[derive(BatchArtifact)]
pub struct FileItemReader<F, T>
where
    F: Format,
{
    #[batch_artifact]
    input: FileInput,
    #[batch_artifact]
    format: F,
    files: Files<F::Records>,
    /// The number of items, once counted. A restart does not count them again.
    items: Option<u64>,
    item: PhantomData<fn() -> T>,
}

impl<F, T> FileItemReader<F, T>
where
    F: Format,
{
    /// Closes the files. A step drops the reader instead: a reader with `#[close]` would cost each partition a commit.
    pub fn close(&mut self) {
        self.files.close();
    }
}

#[item_reader(rewindable = true)]
impl<F, T> FileItemReader<F, T>
where
    F: Format + BatchArtifact,
    F::Records: Items<T>,
    T: Send + 'static,
{
    /// Opens the files, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<ReadPosition>) -> Result<(), BatchError> {
        self.items = checkpoint.as_ref().and_then(|position| position.items);
        Ok(self.files.open(&self.input, &self.format, checkpoint)?)
    }

    /// Reads the next record.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<T>, BatchError> {
        match self.files.advance(&self.input, &self.format)? {
            Some(records) => Ok(Some(records.item()?)),
            None => Ok(None),
        }
    }

    /// Returns the position of the next record.
    #[get_checkpoint_info]
    pub fn checkpoint(&self) -> ReadPosition {
        ReadPosition {
            items: self.items,
            ..self.files.position()
        }
    }

    /// Returns the number of records if the format knows it, else the number of lines that may be records, unless the files are large
    /// or compressed.
    #[get_item_count]
    pub fn item_count(&mut self) -> Option<u64> {
        if self.items.is_none() {
            self.items = match self.format.other_lines() {
                Some(other) => self
                    .files
                    .count_lines(&self.input, other.saturating_add(self.input.skip_lines)),
                None => self.files.count_records(&self.input, &self.format),
            };
        }
        self.items
    }

    /// Returns the file and line of the last record, as errors name them.
    #[get_item_origin]
    pub fn item_origin(&self) -> Option<String> {
        self.files.origin().map(|origin| origin.place())
    }

    /// Replaces a position of this reader with the position of the next record. Within a file, that copies no text.
    pub(crate) fn update_checkpoint(&self, position: &mut ReadPosition) {
        if !self.files.update_position(position) {
            *position = self.checkpoint();
        }
    }

    /// Returns the first file without records since the reader was opened.
    pub(crate) fn file_without_records(&self) -> Option<String> {
        self.files.without_records()
    }

    /// Returns the origin of the last record.
    pub(crate) fn origin_of_record(&self) -> Option<Origin<'_>> {
        self.files.origin()
    }

    /// Returns the place of the last record, for messages.
    pub(crate) fn place_of_record(&self) -> Option<String> {
        let FilePosition { resource, record, .. } = self.files.position().file?;
        Some(format!("record {record} of `{resource}`"))
    }
}
