//! The rows of Arrow IPC files.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::marker::PhantomData;

use arrow_ipc::reader::{FileReader, read_footer_length};
use arrow_ipc::{Block, root_as_footer, root_as_message};
use batch_items::file::{FileItemReader, Format, OpenFile, Source};
use batch_items::{ReadError, ResourceError};
use batch_runtime::BatchArtifact;
use serde::de::DeserializeOwned;

use super::error::message;
use super::rows::{Rows, named_columns};
use crate::guard::guard;

/// Reads the rows of Arrow IPC files, also called Feather, as items of type `T`.
///
/// Properties, columns and errors are the same as in [`ParquetItemReader`](crate::ParquetItemReader). Batches may be compressed by
/// LZ4, and by zstd with the feature `zstd`. The streaming format, which has no footer, cannot be read.
///
/// The checkpoint is a batch and a row in it: a restart seeks to the batch. A batch is decoded as a whole.
///
/// ```
/// use batch_columnar::ArrowItemReader;
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
        let source = file.binary_source()?;
        if source.adds_raw() {
            let cause = "an Arrow file has no text for `raw.field`; remove the property";
            return Err(source.fail(cause).into());
        }
        let place = file.resume_at().unwrap_or_default();
        let schema = open(&source, None)?.schema();
        let (names, columns) = named_columns::<T>(schema.fields()).map_err(|cause| source.fail(cause))?;
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
        let rows = Rows::new(Box::new(batches), names, place.record, source);
        Ok(rows.at_batch(place.byte, place.depth))
    }

    fn other_lines(&self) -> Option<u64> {
        None
    }
}

fn open(source: &Source, columns: Option<Vec<usize>>) -> Result<FileReader<BufReader<File>>, ResourceError> {
    let mut file = BufReader::new(source.file()?);
    check_sizes(&mut file).map_err(|cause| source.fail(format!("it is damaged, or too large: {cause}")))?;
    let reader = guard(|| FileReader::try_new(file, columns).map_err(|error| message(&error)));
    reader.map_err(|cause| source.fail(cause))
}

/// Checks that there is memory for each buffer of a file. The decoder allocates the size that a compressed one declares before it
/// decompresses it: more than there is would end the process. What is wrong with the footer, the decoder reports.
fn check_sizes(file: &mut BufReader<File>) -> Result<(), String> {
    let Some((end, length)) = footer_length(file) else {
        return Ok(());
    };
    let start = end.checked_sub(length as u64);
    let start = start.ok_or_else(|| format!("its footer has {length} bytes"))?;
    let footer = read(file, start, length);
    let Some(footer) = footer.as_deref().and_then(|footer| root_as_footer(footer).ok()) else {
        return Ok(());
    };
    let blocks = [footer.dictionaries(), footer.recordBatches()];
    for block in blocks.iter().flatten().flatten() {
        let size = largest_buffer(file, block);
        let size = size.ok_or_else(|| format!("the batch at byte {} cannot be read", block.offset()))?;
        if Vec::<u8>::new().try_reserve_exact(size).is_err() {
            return Err(format!("a buffer has {size} bytes, for which there is no memory"));
        }
    }
    Ok(())
}

/// Returns where the footer of a file ends, and its length.
fn footer_length(file: &mut BufReader<File>) -> Option<(u64, usize)> {
    let end = file.seek(SeekFrom::End(-10)).ok()?;
    let tail = read(file, end, 10)?.try_into().ok()?;
    Some((end, read_footer_length(tail).ok()?))
}

/// Returns the size of the largest compressed buffer of a batch, as declared; `None` if the batch is damaged.
fn largest_buffer(file: &mut BufReader<File>, block: &Block) -> Option<usize> {
    let start = u64::try_from(block.offset()).ok()?;
    let length = u32::try_from(block.metaDataLength()).ok()?;
    let message = read(file, start, length as usize)?;
    // The message follows its length, which may follow a marker.
    let prefix = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = root_as_message(message.get(prefix..)?).ok()?;
    let of_dictionary = message.header_as_dictionary_batch();
    let batch = of_dictionary
        .and_then(|dictionary| dictionary.data())
        .or(message.header_as_record_batch())?;
    if batch.compression().is_none() {
        return Some(0);
    }
    let body = start.checked_add(length.into())?;
    let mut largest = 0;
    // An empty buffer has no size.
    let buffers = batch.buffers().into_iter().flatten();
    for buffer in buffers.filter(|buffer| buffer.length() > 0) {
        let offset = u64::try_from(buffer.offset()).ok()?;
        let size = read(file, body.checked_add(offset)?, 8)?.try_into().ok()?;
        // -1 is a buffer that is not compressed.
        largest = largest.max(usize::try_from(i64::from_le_bytes(size)).unwrap_or_default());
    }
    Some(largest)
}

fn read(file: &mut BufReader<File>, start: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(length as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
