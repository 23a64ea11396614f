//! Readers and writers of records, under names for Job XML.

use batch_items::Record;
use batch_items::compose::ExpectingItemReader;
use batch_runtime::prelude::*;

/// `parquetRecordReader`: the rows of Parquet files.
#[cfg(feature = "parquet")]
#[item_reader("parquetRecordReader")]
pub type ParquetRecordReader = ExpectingItemReader<crate::ParquetItemReader<Record>>;

/// `arrowRecordReader`: the rows of Arrow IPC files.
#[cfg(feature = "parquet")]
#[item_reader("arrowRecordReader")]
pub type ArrowRecordReader = ExpectingItemReader<crate::ArrowItemReader<Record>>;

/// `recordParquetWriter`: rows of Parquet files, whose columns `columns` names with their types.
#[cfg(feature = "parquet")]
#[item_writer("recordParquetWriter")]
pub type RecordParquetWriter = crate::ParquetItemWriter<Record>;

/// `xlsxRecordReader`: the rows of a sheet of Excel workbooks.
#[cfg(feature = "xlsx")]
#[item_reader("xlsxRecordReader")]
pub type XlsxRecordReader = ExpectingItemReader<crate::XlsxItemReader<Record>>;

/// `recordXlsxWriter`: the rows of a sheet of an Excel workbook.
#[cfg(feature = "xlsx")]
#[item_writer("recordXlsxWriter")]
pub type RecordXlsxWriter = crate::XlsxItemWriter<Record>;
