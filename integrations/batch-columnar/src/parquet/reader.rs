//! The rows of Parquet files.

use std::fs::File;
use std::marker::PhantomData;

use batch_items::file::{FileItemReader, Format, OpenFile, Source};
use batch_items::{ReadError, ResourceError};
use batch_runtime::BatchArtifact;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use serde::de::DeserializeOwned;

use super::error::message;
use super::int96::{exact, units};
use super::rows::{Batches, Rows, named_columns};
use crate::guard::guard;

/// Reads the rows of Parquet files as items of type `T`.
///
/// It has the properties of [`FileInput`](batch_items::file::FileInput) without `encoding` and `skip.lines`; `max.record.length` does not
/// apply, and a file cannot be compressed as a whole. Columns compressed with zstd also require the feature `zstd`.
///
/// A field of `T` gets the column of its name; only these columns are read. Missing columns, and files that are no Parquet files,
/// are a [`ResourceError`]. A value that its field cannot have, such as null or a larger number, is a [`RecordError`](batch_items::RecordError), whose line is
/// the number of the row in the file.
///
/// A timestamp with a time zone is an instant, whatever the zone or offset: as text it is in UTC, such as `2024-02-29T11:30:00Z`. In a
/// [`Record`](batch_items::Record), dates, times, timestamps, durations and decimals are texts, also in lists and structs; a duration is one
/// of ISO 8601 in seconds, such as `PT5400.5S`. A timestamp of 96 bits, as Spark, Hive and Impala write it, is an exact text in any item.
/// A `date64` with a time is a [`RecordError`](batch_items::RecordError).
///
/// A column with a type that has no values in serde fails the step, unless `T` has no field for it: `Decimal256`, intervals, unions, list
/// views and run-end encoding. So does a column that is compressed by lz4 or brotli.
///
/// The checkpoint is a number of rows. A restart seeks to the row group of the next row, and skips rows only within it. Rows are
/// decoded in batches of 1024.
///
/// ```
/// use batch_columnar::ParquetItemReader;
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
        let source = file.binary_source()?;
        if source.adds_raw() {
            return Err(source
                .fail("a Parquet file has no text for `raw.field`; remove the property")
                .into());
        }
        let (input, metadata) = open(&source)?;
        let record = file.resume_at().map_or(0, |place| place.record);
        let (names, batches) = read::<T>(&input, metadata, record).map_err(|cause| source.fail(cause))?;
        Ok(Rows::new(batches, names, record, source))
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

/// Returns the names of all columns, and the rows from `record` on with the columns that `T` takes.
fn read<T: DeserializeOwned>(
    file: &File,
    metadata: ArrowReaderMetadata,
    record: u64,
) -> Result<(Vec<String>, Batches), String> {
    let (row_groups, offset) = after(record, &metadata)?;
    let (names, named) = named_columns::<T>(metadata.schema().fields())?;
    let roots = named.unwrap_or_else(|| (0..names.len()).collect());
    check_compression(&metadata, &roots)?;
    let read = |metadata: ArrowReaderMetadata, roots: Vec<usize>| {
        guard(|| {
            let columns = ProjectionMask::roots(metadata.parquet_schema(), roots);
            let file = file.try_clone().map_err(|error| error.to_string())?;
            let batches = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_projection(columns)
                .with_row_groups(row_groups.clone())
                .with_offset(offset)
                .with_batch_size(BATCH)
                .build()
                .map_err(|error| message(&error))?;
            Ok(batches.map(|batch| batch.map_err(|error| error.to_string())))
        })
    };
    let units = units(&metadata).map_err(|error| message(&error))?;
    let Some([nanos, seconds]) = units else {
        return Ok((names, Box::new(read(metadata, roots)?)));
    };
    let differs = |root: &usize| nanos.schema().field(*root) != seconds.schema().field(*root);
    let differing = roots.iter().copied().filter(differs).collect();
    let batches = read(nanos.clone(), roots)?.zip(read(seconds.clone(), differing)?);
    let batches = batches.map(|(nanos, seconds)| exact(&nanos?, &seconds?).map_err(|error| message(&error)));
    Ok((names, Box::new(batches)))
}

/// Checks that this crate decompresses the columns.
fn check_compression(metadata: &ArrowReaderMetadata, roots: &[usize]) -> Result<(), String> {
    let root_of = |leaf| metadata.parquet_schema().get_column_root_idx(leaf);
    for row_group in metadata.metadata().row_groups() {
        for (leaf, column) in row_group.columns().iter().enumerate() {
            let codec = match column.compression() {
                Compression::LZ4 | Compression::LZ4_RAW => "lz4",
                Compression::BROTLI(_) => "brotli",
                Compression::LZO => "lzo",
                _ => continue,
            };
            if roots.contains(&root_of(leaf)) {
                let name = column.column_path().string();
                return Err(format!(
                    "column `{name}` is compressed by {codec}, which cannot be read; write the file with zstd or snappy"
                ));
            }
        }
    }
    Ok(())
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
