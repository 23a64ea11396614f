//! The rows of Arrow IPC files.

use std::fs::File;
use std::io::BufReader;
use std::marker::PhantomData;

use arrow_ipc::reader::FileReader;
use arrow_schema::ArrowError;
use batch_runtime::BatchArtifact;
use serde::de::DeserializeOwned;

use super::rows::{Rows, named_columns};
use crate::error::{ReadError, ResourceError};
use crate::file::{Extra, FileItemReader, Format, OpenFile, Source, guard};

/// Reads the rows of Arrow IPC files, also called Feather, as items of type `T`. Requires the feature `parquet`.
///
/// The properties, the columns and the errors are those of [`ParquetItemReader`](crate::ParquetItemReader). Batches may be compressed by
/// LZ4, and by zstd with the feature `zstd`. The streaming format, which has no footer, cannot be read.
///
/// The checkpoint is a batch and a row in it: a restart seeks to the batch. A batch is decoded as a whole.
///
/// ```
/// use batch_items::ArrowItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Flight {
///     origin: String,
///     delay: Option<i32>,
/// }
///
/// #[item_reader("FlightReader")]
/// type FlightReader = ArrowItemReader<Flight>;
/// ```
pub type ArrowItemReader<T> = FileItemReader<Arrow<T>, T>;

/// The format of a reader of Arrow IPC files.
#[derive(BatchArtifact)]
pub struct Arrow<T> {
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> Format for Arrow<T> {
    type Records = Rows<T>;

    fn start(&self, file: OpenFile<'_>) -> Result<Rows<T>, ReadError> {
        let source = file.source();
        let extras = file.input.extra_fields();
        if extras.iter().any(|(_, extra)| *extra == Extra::Raw) {
            let cause = "an Arrow file has no text for `raw.field`; remove the property";
            return Err(source.fail(cause).into());
        }
        let place = file.resume_at.unwrap_or_default();
        let schema = open(&source, None)?.schema();
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let columns = named_columns::<T>(&names).map_err(|cause| source.fail(cause))?;
        let mut batches = open(&source, columns)?;
        let batch = usize::try_from(place.byte).unwrap_or(usize::MAX);
        if batch < batches.num_batches() {
            guard(|| batches.set_index(batch).map_err(|error| message(&error)))
                .map_err(|cause| source.fail(cause))?;
        } else if batch > 0 {
            let cause = format!(
                "it has {} batches, but {batch} were read before the checkpoint",
                batches.num_batches()
            );
            return Err(source.fail(cause).into());
        }
        let batches = batches.map(|batch| batch.map_err(|error| message(&error)));
        let rows = Rows::new(Box::new(batches), names, extras, place.record, source);
        Ok(rows.at_batch(place.byte, place.depth))
    }

    fn other_lines(&self) -> Option<u64> {
        None
    }
}

fn open(source: &Source, columns: Option<Vec<usize>>) -> Result<FileReader<BufReader<File>>, ResourceError> {
    let file = BufReader::new(source.file()?);
    let reader = guard(|| FileReader::try_new(file, columns).map_err(|error| message(&error)));
    reader.map_err(|cause| source.fail(cause))
}

/// Returns the message without the prefix that names the kind of the error.
fn message(error: &ArrowError) -> String {
    let text = error.to_string();
    text.split_once(": ")
        .map_or_else(|| text.clone(), |(_, message)| message.to_owned())
}
