//! The form of the output, and the footer that makes it a Parquet file.
//!
//! ```text
//! PAR1  segment length  segment length ..  footer
//! ```
//!
//! A segment is a Parquet file with one row group, followed by its length in 8 bytes. So the output can be truncated to any segment,
//! and read backwards from there: what the footer of the whole file needs is in the file, not in memory and not in the checkpoint.
//! Readers find row groups by the offsets in the footer, which are the offsets of a segment, moved by its position; what is between the
//! row groups, they do not read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};

/// The first and the last bytes of a Parquet file.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";

/// The bytes that follow a segment, and those that end a Parquet file: the length of its footer, and the magic bytes.
const TRAILER: u64 = 8;

/// Appends a segment.
pub(super) fn append_segment(segment: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(segment);
    out.extend_from_slice(&(segment.len() as u64).to_le_bytes());
}

/// The footer of a file, and what is in the file.
pub(super) struct Footer {
    pub(super) bytes: Vec<u8>,
    pub(super) row_groups: usize,
    pub(super) rows: i64,
}

/// Returns the footer of the segments in the first `end` bytes of a file. `empty` is a Parquet file with the same columns and
/// without rows.
pub(super) fn footer(file: &File, end: u64, empty: &[u8]) -> Result<Footer, ParquetError> {
    let schema = metadata_at_end(empty)?;
    let schema = schema.file_metadata();
    let mut row_groups = Vec::new();
    let mut segments = Segments { file, end };
    while let Some((start, segment)) = segments.last()? {
        if segment.file_metadata().schema() != schema.schema() {
            return Err(other_columns());
        }
        // They are read from the last one to the first.
        for row_group in segment.row_groups().iter().rev() {
            row_groups.push(moved(row_group, start)?);
        }
    }
    row_groups.reverse();
    for (ordinal, row_group) in (0..).zip(&mut row_groups) {
        *row_group = row_group.clone().into_builder().set_ordinal(ordinal).build()?;
    }
    let rows = row_groups.iter().map(RowGroupMetaData::num_rows).sum();
    let all = FileMetaData::new(
        schema.version(),
        rows,
        schema.created_by().map(str::to_owned),
        schema.key_value_metadata().cloned(),
        schema.schema_descr_ptr(),
        schema.column_orders().cloned(),
    );
    let (mut bytes, count) = (Vec::new(), row_groups.len());
    ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(all, row_groups)).finish()?;
    Ok(Footer {
        bytes,
        row_groups: count,
        rows,
    })
}

/// Checks that the last segment in the first `end` bytes of a file has the columns of `empty`.
pub(super) fn check_columns(file: &File, end: u64, empty: &[u8]) -> Result<(), ParquetError> {
    let schema = metadata_at_end(empty)?;
    match (Segments { file, end }).last()? {
        Some((_, segment)) if segment.file_metadata().schema() != schema.file_metadata().schema() => {
            Err(other_columns())
        }
        _ => Ok(()),
    }
}

fn other_columns() -> ParquetError {
    ParquetError::General(
        "the columns of the items are not those that were written before the restart; launch the job with other \
         parameters"
            .to_owned(),
    )
}

/// The segments of a file, from the last one to the first.
struct Segments<'f> {
    file: &'f File,
    /// The end of the segments that are left.
    end: u64,
}

impl Segments<'_> {
    /// Returns the position of the last segment that is left, and its metadata.
    fn last(&mut self) -> Result<Option<(u64, ParquetMetaData)>, ParquetError> {
        let first = MAGIC.len() as u64;
        if self.end <= first {
            return Ok(None);
        }
        let end = self.end.checked_sub(TRAILER).ok_or_else(broken)?;
        let length = u64::from_le_bytes(self.bytes(end)?);
        let start = end.checked_sub(length).filter(|start| *start >= first);
        let start = start.ok_or_else(broken)?;
        let footer_end = end.checked_sub(TRAILER).ok_or_else(broken)?;
        let [a, b, c, d, magic @ ..]: [u8; 8] = self.bytes(footer_end)?;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        let footer_start = footer_end
            .checked_sub(length)
            .filter(|at| *at >= start && magic == *MAGIC);
        let mut footer = vec![0; usize::try_from(length)?];
        self.read(footer_start.ok_or_else(broken)?, &mut footer)?;
        self.end = start;
        Ok(Some((start, ParquetMetaDataReader::decode_metadata(&footer)?)))
    }

    fn bytes<const N: usize>(&self, at: u64) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(at, &mut bytes)?;
        Ok(bytes)
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self.file;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(bytes)
    }
}

fn broken() -> ParquetError {
    ParquetError::General("its content differs from the content at the last checkpoint".to_owned())
}

/// Returns the metadata of a Parquet file in memory.
fn metadata_at_end(file: &[u8]) -> Result<ParquetMetaData, ParquetError> {
    let footer = file.split_last_chunk::<8>().and_then(|(rest, [a, b, c, d, ..])| {
        let length = u32::from_le_bytes([*a, *b, *c, *d]);
        rest.get(rest.len().checked_sub(usize::try_from(length).ok()?)?..)
    });
    ParquetMetaDataReader::decode_metadata(footer.ok_or_else(broken)?)
}

/// Returns the metadata of a row group whose file is at `start` of another.
fn moved(row_group: &RowGroupMetaData, start: u64) -> Result<RowGroupMetaData, ParquetError> {
    let start = i64::try_from(start)?;
    let columns = row_group.columns().iter().map(|column| {
        column
            .clone()
            .into_builder()
            .set_data_page_offset(column.data_page_offset() + start)
            .set_dictionary_page_offset(column.dictionary_page_offset().map(|at| at + start))
            .set_index_page_offset(column.index_page_offset().map(|at| at + start))
            .build()
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let builder = row_group.clone().into_builder().set_column_metadata(columns);
    match row_group.file_offset() {
        Some(at) => builder.set_file_offset(at + start).build(),
        None => builder.build(),
    }
}
