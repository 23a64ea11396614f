//! The writer of files in any format.

use std::marker::PhantomData;

use batch_runtime::BatchArtifact;
use batch_runtime::prelude::*;

use super::framed::{Encode, FileFrame, Framed, FramedPosition};
use crate::error::ResourceError;

/// Writes items to files in the format `E`, exactly once, with the header and footer `F`.
///
/// Programs name it by the formats: [`DelimitedItemWriter`](crate::DelimitedItemWriter),
/// [`FixedWidthItemWriter`](crate::FixedWidthItemWriter), [`LineItemWriter`](crate::LineItemWriter),
/// [`JsonLinesItemWriter`](crate::JsonLinesItemWriter), [`JsonArrayItemWriter`](crate::JsonArrayItemWriter),
/// [`XmlItemWriter`](crate::XmlItemWriter). It has the properties of [`FileOutput`](super::FileOutput) and of the format.
#[derive(BatchArtifact)]
pub struct FileItemWriter<E, T, F = ()> {
    #[batch_artifact]
    output: Framed<F>,
    #[batch_artifact]
    format: E,
    item: PhantomData<fn(T)>,
}

#[item_writer(rewindable = true)]
impl<E, T, F> FileItemWriter<E, T, F>
where
    E: Encode<T> + BatchArtifact,
    T: Send + 'static,
    F: FileFrame<T>,
{
    /// Opens the file, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<FramedPosition<F>>) -> Result<(), ResourceError> {
        if self.output.appends() && !E::APPENDABLE {
            return Err(self
                .output
                .fail("this format cannot be appended to; set `if.exists` to `overwrite`"));
        }
        if let Some(position) = &checkpoint {
            self.format.resume(position.columns.clone());
        }
        self.output.open(checkpoint, &mut self.format)
    }

    /// Writes items.
    #[write_items]
    pub fn write(&mut self, items: &[T]) -> Result<(), BatchError> {
        self.output.write(items.iter(), &mut self.format)
    }

    pub(crate) fn write_each<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a T> + Clone,
    ) -> Result<(), BatchError> {
        self.output.write(items, &mut self.format)
    }

    pub(crate) fn mark_output(&mut self) {
        self.output.mark();
    }

    pub(crate) fn undo_output(&mut self) -> bool {
        self.output.undo()
    }

    /// Returns the position after the last item.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<FramedPosition<F>, ResourceError> {
        Ok(FramedPosition {
            columns: self.format.columns(),
            ..self.output.checkpoint()?
        })
    }

    /// Writes the footer, and gives the file its final name.
    #[finish]
    pub fn finish(&mut self) -> Result<(), ResourceError> {
        self.output.finish::<T>(&mut self.format)
    }

    /// Closes the file.
    #[close]
    pub fn close(&mut self) {
        self.output.close();
    }
}
