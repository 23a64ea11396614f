//! The writer of Parquet files.

use std::marker::PhantomData;

use arrow_array::RecordBatch;
use batch_items::compose::WriteItems;
use batch_items::file::{FileOutput, OutputPosition};
use batch_items::{EncodeError, ResourceError};
use batch_runtime::prelude::*;
use batch_runtime::{BatchArtifact, ConfigurationError};
use parquet::errors::ParquetError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::columns::Columns;
use super::error::message;
use super::footer::{MAGIC, append_segment, check_columns, footer};
use super::group::{Group, GroupFormat};

/// Writes items as the rows of Parquet files, exactly once.
///
/// It has the properties of [`FileOutput`], but `if.exists` = `append` and `compression` are not possible, and:
///
/// | property | default | |
/// |---|---|---|
/// | `codec` | `snappy` | the compression of the columns: `none`, `snappy`, `gzip`, or `zstd` with the feature `zstd` |
/// | `row.group.size` | `100000` | the maximum number of rows of a row group, which is encoded in memory |
/// | `columns` | the fields of `T` | the columns with their types of Arrow, such as `id Int64, day Date32, price Decimal128(10, 2)`; items may lack the field of `note? Utf8` |
///
/// **Each checkpoint ends a row group**, so `commit-interval` should be as large as the row groups are to be: 10000 and more.
/// `chunk-size` keeps the chunks in memory small.
///
/// By default, the columns are the fields of `T`, which `Deserialize` shows: numbers, texts, `Option`, lists, structs, and enums without
/// data, which become texts. A map, whose fields depend on the value, and dates and decimals, which are texts in serde, need the
/// property `columns`.
///
/// A column of `columns` holds the value of an item exactly, or the item is an [`EncodeError`]: an integer that a float would round, a
/// number that is out of range, digits of a second beyond the unit, and a boolean other than 0 and 1 are rejected. Only a number
/// with a fraction is rounded, in `Float16` and `Float32`. Dates and times are texts of ISO 8601; a number has no unit for them. A
/// timestamp has a time zone, `2024-02-29T12:30:00+01:00`, if its column has one. Lists and structs are checked value by value; they
/// are converted by JSON, so NaN in them is rejected.
///
/// Parquet has no types for `Date64`, durations and times in seconds: use `Date32`, `Utf8`, `Timestamp(ms)` and `Time32(ms)`.
///
/// # Exactly once
///
/// A Parquet file can be read only with its footer, which lists the row groups. Until the step completes, the file has complete row
/// groups, each with its footer. A checkpoint ends a row group and holds the length of the file; a restart truncates the file
/// to it. At the end, the footers are read from the file, and the footer of the whole file is made of them. So it lists exactly the
/// committed row groups. The checkpoint has a constant size; in memory are one row group and, at the end, the footers.
///
/// ```
/// use batch_columnar::ParquetItemWriter;
/// use batch_runtime::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Flight {
///     origin: String,
///     delay: Option<i32>,
/// }
///
/// #[item_writer("FlightWriter")]
/// type FlightWriter = ParquetItemWriter<Flight>;
/// ```
///
/// ```xml
/// <chunk reader="FlightReader" processor="Flights" writer="FlightWriter" commit-interval="100000" chunk-size="1000">
///   <properties>
///     <property name="output" value="out/flights.parquet" target="writer"/>
///     <property name="codec" value="zstd" target="writer"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct ParquetItemWriter<T> {
    #[batch_artifact]
    output: FileOutput,
    #[batch_artifact]
    format: GroupFormat,
    columns: Option<Columns>,
    group: Option<Group>,
    /// True if items were written since the mark, as a part of a composite writer.
    has_unmarked: bool,
    item: PhantomData<fn(T)>,
}

#[item_writer(rewindable = true)]
impl<T: Serialize + DeserializeOwned + Send + 'static> ParquetItemWriter<T> {
    /// Opens the file, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<OutputPosition>) -> Result<(), ResourceError> {
        (self.columns, self.group) = (None, None);
        if self.output.appends() {
            return Err(self.fail("this format cannot be appended to; set `if.exists` to `overwrite`"));
        }
        if self.output.is_compressed() {
            return Err(self.fail(
                "a Parquet file cannot be compressed as a whole; set `codec`, and `compression` to `none`",
            ));
        }
        self.format.check().map_err(|cause| self.fail(cause))?;
        let columns = Columns::of::<T>(self.format.columns.as_ref());
        self.columns = Some(columns.map_err(|cause| self.fail(cause))?);
        self.output.open(checkpoint)?;
        let (file, length) = self.output.written_file()?;
        let checked = check_columns(&file, length, &self.empty()?);
        checked.map_err(|error| self.parquet_error(&error))
    }

    /// Writes items.
    #[write_items]
    pub fn write(&mut self, items: &[T]) -> Result<(), BatchError> {
        self.write_all(items)
    }

    /// Returns the position after the last item.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<OutputPosition, ResourceError> {
        self.end_group()?;
        self.output.checkpoint()
    }

    /// Writes the footer, and gives the file its final name.
    #[finish]
    pub fn finish(&mut self) -> Result<(), ResourceError> {
        self.end_file()?;
        self.output.finish()
    }

    /// Closes the file.
    #[close]
    pub fn close(&mut self) {
        self.output.close();
    }
}

impl<T: Serialize> ParquetItemWriter<T> {
    fn write_all(&mut self, items: &[impl Serialize]) -> Result<(), BatchError> {
        let (mut rest, mut rolled) = (items, false);
        while !rest.is_empty() {
            match self.write_run(rest, &mut rolled) {
                Ok(left) => rest = left,
                // What precedes the item is in files that are complete.
                Err(error) if rolled => return Err(self.output.broken_by(error)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as many of the items as fit in the current file, and returns the others. Sets `rolled` if it has started a new file.
    fn write_run<'i, I: Serialize>(
        &mut self,
        items: &'i [I],
        rolled: &mut bool,
    ) -> Result<&'i [I], BatchError> {
        if self.output.room() == 0 {
            *rolled = true;
            self.end_file()?;
            self.output.roll()?;
        }
        let room = usize::try_from(self.output.room()).unwrap_or(usize::MAX);
        let (run, rest) = items.split_at(items.len().min(room));
        if let (Some(columns), Some(first)) = (&mut self.columns, run.first()) {
            let prepared = columns.prepare(first);
            prepared.map_err(|cause| ConfigurationError::new(self.fail(cause)))?;
        }
        let Some(columns) = &mut self.columns else {
            return Err(self.fail("it is not open").into());
        };
        let batch = columns.batch(run).map_err(|(index, cause)| {
            let number = self.output.items() + index as u64 + 1;
            EncodeError::of_file(self.output.describe(), number, cause)
        })?;
        self.has_unmarked = true;
        // An error from here on leaves rows behind.
        if let Err(error) = self.add(batch) {
            return Err(self.output.broken_by(error));
        }
        self.output.write(&[], run.len())?;
        Ok(rest)
    }

    /// Adds rows to the row group; starts a new one when it is full.
    fn add(&mut self, batch: RecordBatch) -> Result<(), ResourceError> {
        let mut left = Some(batch);
        while let Some(batch) = left {
            let mut group = match self.group.take() {
                Some(group) => group,
                None => self.start_group()?,
            };
            left = group.add(&batch).map_err(|error| self.parquet_error(&error))?;
            let is_full = group.is_full();
            self.group = Some(group);
            if is_full {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn start_group(&self) -> Result<Group, ResourceError> {
        let group = self.format.start(self.columns()?.schema());
        group.map_err(|error| self.parquet_error(&error))
    }

    fn end_group(&mut self) -> Result<(), ResourceError> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        let segment = group.finish().map_err(|error| {
            self.output.mark_broken();
            self.parquet_error(&error)
        })?;
        let mut bytes = Vec::with_capacity(segment.len() + 12);
        if self.output.is_empty() {
            bytes.extend_from_slice(MAGIC);
        }
        append_segment(&segment, &mut bytes);
        let written = self.output.write(&bytes, 0);
        written.inspect_err(|_| self.output.mark_broken())
    }

    /// Completes the current file.
    fn end_file(&mut self) -> Result<(), ResourceError> {
        self.end_group()?;
        if self.output.is_empty() {
            self.output.write(MAGIC, 0)?;
        }
        let (file, length) = self.output.written_file()?;
        let footer = footer(&file, length, &self.empty()?);
        let footer = footer.map_err(|error| self.parquet_error(&error))?;
        if footer.row_groups >= 10 && footer.rows / (footer.row_groups as i64) < 1000 {
            let (file, rows, row_groups) = (self.output.describe(), footer.rows, footer.row_groups);
            tracing::warn!(
                file,
                rows,
                row_groups,
                "the row groups are small; a larger `commit-interval` makes the file smaller and faster to read"
            );
        }
        self.output.write(&footer.bytes, 0)
    }

    /// Returns a Parquet file with the columns and without rows.
    fn empty(&self) -> Result<Vec<u8>, ResourceError> {
        let empty = self.start_group()?.finish();
        empty.map_err(|error| self.parquet_error(&error))
    }

    fn columns(&self) -> Result<&Columns, ResourceError> {
        self.columns.as_ref().ok_or_else(|| self.fail("it is not open"))
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> WriteItems<T> for ParquetItemWriter<T> {
    type Position = OutputPosition;

    fn open(&mut self, checkpoint: Option<OutputPosition>) -> Result<(), BatchError> {
        Ok(self.open(checkpoint)?)
    }

    fn write(&mut self, items: &[&T], _: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_all(items)
    }

    fn mark(&mut self) {
        self.has_unmarked = false;
    }

    /// Rows cannot be removed from a row group.
    fn undo(&mut self) -> bool {
        !self.has_unmarked
    }

    fn position(&mut self) -> Result<OutputPosition, BatchError> {
        Ok(self.checkpoint()?)
    }

    fn finish(&mut self) -> Result<(), BatchError> {
        Ok(self.finish()?)
    }

    fn close(&mut self) {
        self.close();
    }
}

impl<T> ParquetItemWriter<T> {
    fn fail(&self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ResourceError {
        ResourceError::new(format!("write `{}`", self.output.describe()), cause)
    }

    fn parquet_error(&self, error: &ParquetError) -> ResourceError {
        self.fail(message(error))
    }
}
