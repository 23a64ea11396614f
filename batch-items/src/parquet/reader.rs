//! The rows of Parquet files.

use std::fs::File;
use std::marker::PhantomData;

use batch_runtime::BatchArtifact;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use serde::de::DeserializeOwned;

use super::message;
use super::rows::{Rows, named_columns};
use crate::error::{ReadError, ResourceError};
use crate::file::{Extra, FileItemReader, Format, OpenFile, Source, guard};

/// Reads the rows of Parquet files as items of type `T`. Requires the feature `parquet`.
///
/// The properties are those of [`FileInput`](crate::file::FileInput); `encoding`, `skip.lines` and `max.record.length` do not apply,
/// and a file cannot be compressed as a whole. Columns compressed with zstd also require the feature `zstd`.
///
/// A field of `T` gets the column of its name; only these columns are read. Missing columns, and files that are no Parquet files,
/// are a [`ResourceError`]. A value that its field cannot have, such as null or a larger number, is a [`RecordError`], whose line is
/// the number of the row in the file.
///
/// A timestamp with a time zone is an instant, whatever the zone or offset: as text it is in UTC, such as `2024-02-29T11:30:00Z`. In a
/// [`Record`](crate::Record), dates, times, timestamps, durations and decimals are texts, also in lists and structs; a duration is one
/// of ISO 8601 in seconds, such as `PT5400.5S`.
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
        let columns = match named_columns::<T>(&names).map_err(|cause| source.fail(cause))? {
            Some(named) => ProjectionMask::roots(metadata.parquet_schema(), named),
            None => ProjectionMask::all(),
        };
        let batches = guard(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata)
                .with_projection(columns)
                .with_row_groups(row_groups)
                .with_offset(offset)
                .with_batch_size(BATCH)
                .build()
                .map_err(|error| message(&error))
        });
        let batches = batches.map_err(|cause| source.fail(cause))?;
        let batches = batches.map(|batch| batch.map_err(|error| error.to_string()));
        Ok(Rows::new(Box::new(batches), names, extras, record, source))
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
    let metadata = guard(|| {
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
        metadata.map_err(|error| message(&error))
    });
    let metadata = metadata.map_err(|cause| source.fail(cause))?;
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
