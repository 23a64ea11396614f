//! Row groups: each is encoded as a separate Parquet file, and the output takes it from there.

use std::num::NonZeroUsize;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use batch_items::choices;
use batch_runtime::BatchArtifact;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::columns::ColumnList;

/// The compression of the columns: the property `codec`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// `none`
    None,
    /// `snappy`, which every reader knows. The default.
    #[default]
    Snappy,
    /// `gzip`
    Gzip,
    /// `zstd`, which makes smaller files; requires the feature `zstd`.
    Zstd,
}

choices! {
    Codec { "none" => None, "snappy" => Snappy, "gzip" => Gzip, "zstd" => Zstd }
}

/// The properties of a writer.
#[derive(BatchArtifact)]
pub(super) struct GroupFormat {
    /// The compression of the columns: `none`, `snappy`, `gzip`, or `zstd` with the feature `zstd`.
    #[batch_property(name = "codec", value = "snappy")]
    codec: Codec,
    /// The maximum number of rows of a row group, which is encoded in memory.
    #[batch_property(name = "row.group.size", value = "100000")]
    rows: NonZeroUsize,
    /// The columns with their types of Arrow, such as `id Int64, day Date32, price Decimal128(10, 2)`; items may lack the field of `note?
    /// Utf8`. The default is the fields of the type.
    #[batch_property(name = "columns")]
    pub(super) columns: Option<ColumnList>,
}

/// A row group with more encoded bytes than this is complete, however few rows it has.
const MOST_BYTES: usize = 128 << 20;

impl GroupFormat {
    /// Returns an error if the codec is not compiled in.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.codec == Codec::Zstd && !cfg!(feature = "zstd") {
            return Err("the feature `zstd` of batch-columnar is not enabled".to_owned());
        }
        Ok(())
    }

    /// Starts a row group.
    pub(super) fn start(&self, schema: SchemaRef) -> Result<Group, ParquetError> {
        // Without an index of pages, all offsets of a row group are in its metadata.
        let properties = WriterProperties::builder()
            .set_compression(match self.codec {
                Codec::None => Compression::UNCOMPRESSED,
                Codec::Snappy => Compression::SNAPPY,
                Codec::Gzip => Compression::GZIP(GzipLevel::default()),
                Codec::Zstd => Compression::ZSTD(ZstdLevel::default()),
            })
            .set_max_row_group_row_count(None)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by(concat!("batch-columnar version ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        Ok(Group {
            writer: ArrowWriter::try_new_with_options(Vec::new(), schema, options)?,
            rows: 0,
            most_rows: self.rows.get(),
        })
    }
}

/// A row group that is being written, encoded in memory.
pub(super) struct Group {
    writer: ArrowWriter<Vec<u8>>,
    rows: usize,
    most_rows: usize,
}

impl Group {
    /// Adds the rows that fit, and returns the others.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>, ParquetError> {
        let fit = batch.num_rows().min(self.most_rows - self.rows);
        self.writer.write(&batch.slice(0, fit))?;
        self.rows += fit;
        let left = batch.num_rows() - fit;
        Ok((left > 0).then(|| batch.slice(fit, left)))
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= self.most_rows || self.writer.in_progress_size() >= MOST_BYTES
    }

    /// Returns the row group as a Parquet file.
    pub(super) fn finish(self) -> Result<Vec<u8>, ParquetError> {
        self.writer.into_inner()
    }
}
