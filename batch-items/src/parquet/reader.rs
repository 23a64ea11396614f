//! The rows of Parquet files.

use std::fs::File;
use std::marker::PhantomData;
use std::vec;

use arrow_array::RecordBatch;
use batch_runtime::BatchArtifact;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use serde::de::DeserializeOwned;
use serde_arrow::Deserializer;

use super::columns::{cause, cause_in, fields_of};
use super::message;
use crate::added::{added, from_record, from_record_with_path};
use crate::error::{ReadError, RecordError, ResourceError};
use crate::file::{Extra, FileItemReader, Format, Items, OpenFile, Place, Records, Source};
use crate::nearest::did_you_mean;

/// Reads the rows of Parquet files as items of type `T`. Requires the feature `parquet`.
///
/// The properties are those of [`FileInput`](crate::file::FileInput); `encoding`, `skip.lines` and `max.record.length` do not apply,
/// and a file cannot be compressed as a whole. Columns compressed with zstd also require the feature `zstd`.
///
/// A field of `T` gets the column of its name; only these columns are read. Missing columns, and files that are no Parquet files,
/// are a [`ResourceError`]. A value that its field cannot have, such as null or a larger number, is a [`RecordError`], whose line is
/// the number of the row in the file.
///
/// The checkpoint is a number of rows. A restart seeks to the row group of the next row, and skips rows only within it. Rows are
/// decoded in batches of 1024.
///
/// ```
/// use batch_items::ParquetItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Flight {
///     origin: String,
///     delay: Option<i32>,
/// }
///
/// #[item_reader("FlightReader")]
/// type FlightReader = ParquetItemReader<Flight>;
/// ```
///
/// ```xml
/// <chunk reader="FlightReader" processor="Delays" writer="DelayWriter">
///   <properties>
///     <property name="resource" value="in/flights-*.parquet" target="reader"/>
///   </properties>
/// </chunk>
/// ```
pub type ParquetItemReader<T> = FileItemReader<Parquet<T>, T>;

/// The rows that are decoded at once.
const BATCH: usize = 1024;

/// The format of a reader of Parquet files.
#[derive(BatchArtifact)]
pub struct Parquet<T> {
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> Format for Parquet<T> {
    type Records = Rows<T>;

    fn start(&self, file: OpenFile<'_>) -> Result<Rows<T>, ReadError> {
        let source = file.source();
        let extras = file.input.extra_fields();
        if extras.iter().any(|(_, extra)| *extra == Extra::Raw) {
            return Err(source
                .fail("a Parquet file has no text for `raw.field`; remove the property")
                .into());
        }
        let (input, metadata) = open(&source)?;
        let record = file.resume_at.map_or(0, |place| place.record);
        let (row_groups, offset) = after(record, &metadata).map_err(|cause| source.fail(cause))?;
        let columns = metadata.schema().fields().iter();
        let names: Vec<String> = columns.map(|column| column.name().clone()).collect();
        let columns = columns_of::<T>(&metadata, &names).map_err(|cause| source.fail(cause))?;
        let fail = |error| source.fail(message(&error));
        let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata)
            .with_projection(columns)
            .with_row_groups(row_groups)
            .with_offset(offset)
            .with_batch_size(BATCH)
            .build()
            .map_err(fail)?;
        Ok(Rows {
            batches,
            items: Vec::new().into_iter(),
            current: None,
            names,
            extras,
            record,
            source,
        })
    }

    fn other_lines(&self) -> Option<u64> {
        None
    }

    fn count(&self, source: &Source) -> Option<u64> {
        let (_, metadata) = open(source).ok()?;
        u64::try_from(metadata.metadata().file_metadata().num_rows()).ok()
    }
}

fn open(source: &Source) -> Result<(File, ArrowReaderMetadata), ResourceError> {
    let file = source.file()?;
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
    let metadata = metadata.map_err(|error| source.fail(message(&error)))?;
    Ok((file, metadata))
}

/// Returns the row groups from a row on, and the number of rows before it in the first of them.
fn after(record: u64, metadata: &ArrowReaderMetadata) -> Result<(Vec<usize>, usize), String> {
    let row_groups = metadata.metadata().row_groups();
    let (mut first, mut before) = (0, record);
    for row_group in row_groups {
        let rows = u64::try_from(row_group.num_rows()).unwrap_or_default();
        if before < rows {
            break;
        }
        before -= rows;
        first += 1;
    }
    if first == row_groups.len() && before > 0 {
        let rows = record - before;
        return Err(format!(
            "it has {rows} rows, but {record} were read before the checkpoint"
        ));
    }
    let offset = usize::try_from(before).map_err(|error| error.to_string())?;
    Ok(((first..row_groups.len()).collect(), offset))
}

/// Returns the columns that the fields of `T` name, or all columns.
fn columns_of<T: DeserializeOwned>(
    metadata: &ArrowReaderMetadata,
    names: &[String],
) -> Result<ProjectionMask, String> {
    let Some(fields) = fields_of::<T>() else {
        return Ok(ProjectionMask::all());
    };
    let is_named = |index: &usize| fields.contains(&names[*index].as_str());
    let named: Vec<usize> = (0..names.len()).filter(is_named).collect();
    match (&*named, fields.first()) {
        ([], Some(field)) => Err(missing(field, names)),
        _ => Ok(ProjectionMask::roots(metadata.parquet_schema(), named)),
    }
}

fn missing(field: &str, columns: &[String]) -> String {
    let hint = did_you_mean(field, columns.iter().map(String::as_str));
    let columns: Vec<_> = columns.iter().map(|name| format!("`{name}`")).collect();
    format!("it has no column `{field}`, but {}{hint}", columns.join(", "))
}

/// The rows of a file.
pub struct Rows<T> {
    batches: ParquetRecordBatchReader,
    /// The next rows of the batch.
    items: vec::IntoIter<Result<T, ReadError>>,
    current: Option<Result<T, ReadError>>,
    /// The names of all columns.
    names: Vec<String>,
    extras: Vec<(String, Extra)>,
    record: u64,
    source: Source,
}

impl<T: DeserializeOwned> Rows<T> {
    fn items(&self, batch: &RecordBatch) -> Result<Vec<Result<T, ReadError>>, ReadError> {
        let fail = |error: serde_arrow::Error| self.source.fail(cause(&error));
        let rows = Deserializer::from_record_batch(batch).map_err(fail)?;
        let mut items = Vec::with_capacity(rows.len());
        for (number, index) in (self.record + 1..).zip(0..rows.len()) {
            let added = added(&self.extras, self.source.name(), number, number, "");
            let row = || rows.get(index);
            let item = match row().map(|row| from_record(row, &added)) {
                Some(Ok(item)) => Ok(item),
                Some(Err(error)) => match row().map(|row| from_record_with_path(row, &added)) {
                    Some(Err(error)) => {
                        let path = error.path().to_string();
                        Err(self.bad(number, &path, error.inner(), batch))
                    }
                    Some(Ok(item)) => Ok(item),
                    None => Err(fail(error).into()),
                },
                None => break,
            };
            items.push(item);
        }
        Ok(items)
    }

    fn bad(&self, number: u64, path: &str, error: &serde_arrow::Error, batch: &RecordBatch) -> ReadError {
        let message = cause(error);
        let field = message.strip_prefix("missing field `");
        if let (Some(field), ".") = (field.and_then(|rest| rest.strip_suffix('`')), path) {
            return self.source.fail(missing(field, &self.names)).into();
        }
        let cause = match path {
            "." => message,
            path => cause_in(path, batch.schema().fields(), error),
        };
        RecordError::new(self.source.name(), number, cause).into()
    }
}

impl<T: DeserializeOwned + Send> Records for Rows<T> {
    fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            if let Some(item) = self.items.next() {
                self.current = Some(item);
                self.record += 1;
                return Ok(true);
            }
            let Some(batch) = self.batches.next() else {
                return Ok(false);
            };
            let batch = batch.map_err(|error| self.source.fail(error.to_string()))?;
            self.items = self.items(&batch)?.into_iter();
        }
    }

    fn place(&self) -> Place {
        Place {
            line: self.record + 1,
            record: self.record,
            ..Place::default()
        }
    }
}

impl<T: DeserializeOwned + Send> Items<T> for Rows<T> {
    fn item(&mut self) -> Result<T, ReadError> {
        let item = self.current.take();
        item.unwrap_or_else(|| Err(self.source.fail("there is no row").into()))
    }
}
