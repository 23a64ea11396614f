//! Files of items between a header and a footer.

use std::error::Error;

use batch_runtime::{BatchArtifact, BatchError, ConfigurationError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::output::{Existing, FileOutput};
use super::output_position::OutputPosition;
use crate::error::{EncodeError, ResourceError};

/// The header and footer of a file, with totals that survive a restart: its value is part of the checkpoint.
///
/// File writers take it as their second type parameter. Each file begins with a new value.
///
/// ```
/// use batch_items::DelimitedItemWriter;
/// use batch_items::file::FileFrame;
/// use batch_runtime::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize)]
/// struct Payment {
///     account: String,
///     cents: i64,
/// }
///
/// /// Ends the file with the number of payments and their sum.
/// #[derive(Clone, Default, Serialize, Deserialize)]
/// struct Trailer {
///     payments: usize,
///     cents: i64,
/// }
///
/// impl FileFrame<Payment> for Trailer {
///     fn add(&mut self, payment: &Payment) {
///         self.payments += 1;
///         self.cents += payment.cents;
///     }
///
///     fn footer(&self) -> Option<String> {
///         Some(format!("{},{}\n", self.payments, self.cents))
///     }
/// }
///
/// #[item_writer("PaymentWriter")]
/// type PaymentWriter = DelimitedItemWriter<Payment, Trailer>;
/// ```
pub trait FileFrame<T>: Clone + Default + Serialize + DeserializeOwned + Send + 'static {
    /// Returns the text at the beginning of the file.
    fn header(&self) -> Option<String> {
        None
    }

    /// Adds an item that is written.
    fn add(&mut self, _item: &T) {}

    /// Returns the text at the end of the file.
    fn footer(&self) -> Option<String> {
        None
    }
}

/// No header and no footer.
impl<T> FileFrame<T> for () {}

/// The checkpoint of a writer whose files have a header and a footer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramedPosition<F> {
    /// The end of the last committed item.
    pub output: OutputPosition,
    /// The header and footer of the current file.
    pub frame: F,
    /// The columns of the file, if only the first item has shown them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The CRC-32 of the settings that give the file its form: a restart with others would continue it in another one.
    #[serde(default)]
    pub form: u32,
}

/// Converts items to bytes.
pub trait Encode<T>: Send {
    /// Whether items may follow the items of an existing file.
    const APPENDABLE: bool = true;

    /// Appends what precedes the first item; `header` comes from the frame.
    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String>;

    /// Compares the settings with the first items of a call: an error is one of the settings, which no item could be written with.
    fn prepare(&mut self, _first: &T) -> Result<(), String> {
        Ok(())
    }

    /// Returns the settings that the bytes of an item depend on, as text.
    fn form(&self) -> String {
        String::new()
    }

    /// Returns the columns that the first record has shown, which a restart has to know. Other items have none.
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes the columns of the checkpoint.
    fn resume(&mut self, _columns: Vec<String>) {}

    /// Prepares for items that follow the items of an existing file: appends the end of its last line, if that is missing.
    fn follow(&mut self, existing: Existing, out: &mut Vec<u8>) {
        if !existing.is_ended {
            out.push(b'\n');
        }
    }

    /// Appends items; `first` if they are the first ones of the file. Fails with the index of the bad item.
    fn items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a T>,
        first: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), (usize, String)>
    where
        T: 'a;

    /// Appends what follows the last item; `footer` comes from the frame.
    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String>;
}

/// An output with a frame.
#[derive(BatchArtifact)]
pub struct Framed<F> {
    #[batch_artifact]
    output: FileOutput,
    frame: F,
    /// The frame at the mark.
    marked: F,
    /// The checksum of the settings of the format.
    form: u32,
}

impl<F> Framed<F> {
    /// Returns whether the output continues an existing file.
    pub(crate) fn appends(&self) -> bool {
        self.output.appends()
    }

    pub(crate) fn fail(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> ResourceError {
        ResourceError::new(format!("write `{}`", self.output.describe()), cause)
    }

    pub(crate) fn open<T>(
        &mut self,
        checkpoint: Option<FramedPosition<F>>,
        encode: &mut impl Encode<T>,
    ) -> Result<(), ResourceError>
    where
        F: FileFrame<T>,
    {
        let is_new = checkpoint.is_none();
        let settings = format!("{:?} {}", self.output.compression(), encode.form());
        self.form = crc32fast::hash(settings.as_bytes());
        if let Some(position) = &checkpoint
            && position.form != self.form
            && (position.output.length > 0 || position.output.file > 1)
        {
            return Err(self.fail(
                "the properties of the format, such as columns, encoding or compression, differ from those with which the file was begun; \
                 restart with the earlier ones, or run `abandon` for this execution and `start` the job again",
            ));
        }
        let (output, frame) = match checkpoint {
            Some(position) => (Some(position.output), position.frame),
            None => (None, F::default()),
        };
        self.frame = frame;
        self.output.open(output)?;
        // After a restart too, because the chunks before it may have had no items.
        if self.output.appends()
            && let Some(mut existing) = self.output.existing()?
        {
            // A file with another header has none of columns.
            if self.frame.header().is_some() {
                existing.beginning = None;
            }
            existing.is_ended |= !is_new;
            encode.follow(existing, self.output.buffer()?);
        }
        Ok(())
    }

    /// Writes items. If one of them cannot be encoded, none is written.
    pub(crate) fn write<'a, T: 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a T> + Clone,
        encode: &mut impl Encode<T>,
    ) -> Result<(), BatchError>
    where
        F: FileFrame<T>,
    {
        let (count, mut written, mut rolled) = (items.len(), 0, false);
        while written < count {
            match self.write_run(items.clone().skip(written), encode, &mut rolled) {
                Ok(more) => written += more,
                // What precedes the item is in files that are complete.
                Err(error) if rolled => return Err(self.output.broken_by(error)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as many of the items as fit in the current file, and returns their number. Sets `rolled` if it has started a new file.
    fn write_run<'a, T: 'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a T> + Clone,
        encode: &mut impl Encode<T>,
        rolled: &mut bool,
    ) -> Result<usize, BatchError>
    where
        F: FileFrame<T>,
    {
        if self.output.room() == 0 {
            *rolled = true;
            self.end(encode)?;
            self.output.roll()?;
            self.frame = F::default();
        }
        let room = usize::try_from(self.output.room()).unwrap_or(usize::MAX);
        let run = items.take(room);
        let count = run.len();
        let before = self.output.buffer()?.len();
        if let Err(error) = self.encode(run.clone(), encode) {
            self.output.buffer()?.truncate(before);
            return Err(error);
        }
        self.output.written(before, count)?;
        run.for_each(|item| self.frame.add(item));
        Ok(count)
    }

    fn encode<'a, T: 'a>(
        &mut self,
        items: impl Iterator<Item = &'a T>,
        encode: &mut impl Encode<T>,
    ) -> Result<(), BatchError>
    where
        F: FileFrame<T>,
    {
        let (first, mut items) = (self.output.is_empty(), items.peekable());
        if let Some(item) = items.peek() {
            let prepared = encode.prepare(item);
            prepared.map_err(|cause| ConfigurationError::new(self.fail(cause)))?;
        }
        self.begin(encode)?;
        let encoded = encode.items(items, first, self.output.buffer()?);
        encoded.map_err(|(index, cause)| {
            let number = self.output.items() + index as u64 + 1;
            EncodeError::of_file(self.output.describe(), number, cause).into()
        })
    }

    /// Writes the header of a file that has no content yet.
    fn begin<T>(&mut self, encode: &mut impl Encode<T>) -> Result<(), ResourceError>
    where
        F: FileFrame<T>,
    {
        if !self.output.is_empty() {
            return Ok(());
        }
        let written = encode.begin(self.frame.header(), self.output.buffer()?);
        written.map_err(|cause| self.fail(cause))
    }

    fn end<T>(&mut self, encode: &mut impl Encode<T>) -> Result<(), ResourceError>
    where
        F: FileFrame<T>,
    {
        self.begin(encode)?;
        let ended = encode.end(self.frame.footer(), self.output.buffer()?);
        ended.map_err(|cause| self.fail(cause))
    }

    pub(crate) fn checkpoint(&mut self) -> Result<FramedPosition<F>, ResourceError>
    where
        F: Clone,
    {
        Ok(FramedPosition {
            output: self.output.checkpoint()?,
            frame: self.frame.clone(),
            columns: Vec::new(),
            form: self.form,
        })
    }

    pub(crate) fn finish<T>(&mut self, encode: &mut impl Encode<T>) -> Result<(), ResourceError>
    where
        F: FileFrame<T>,
    {
        self.end(encode)?;
        self.output.finish()
    }

    /// Notes the state for `undo`.
    pub(crate) fn mark(&mut self)
    where
        F: Clone,
    {
        self.marked = self.frame.clone();
        self.output.mark();
    }

    /// Removes what was written since the mark. Returns `false` where that is not possible.
    pub(crate) fn undo(&mut self) -> bool
    where
        F: Clone,
    {
        self.frame = self.marked.clone();
        self.output.undo()
    }

    pub(crate) fn close(&mut self) {
        self.output.close();
    }
}
