//! Readers and writers of records, under names for Job XML.

use batch_runtime::prelude::*;

use crate::record::Record;
use crate::{
    DelimitedItemReader, DelimitedItemWriter, FixedWidthItemReader, FixedWidthItemWriter,
    JsonArrayItemReader, JsonArrayItemWriter, JsonLinesItemReader, JsonLinesItemWriter, PatternItemReader,
    QueryItemReader, TableItemWriter,
};

/// `csvRecordReader`: the rows of delimited files.
#[item_reader("csvRecordReader")]
pub type CsvRecordReader = DelimitedItemReader<Record>;

/// `fixedWidthRecordReader`: lines whose fields have fixed widths.
#[item_reader("fixedWidthRecordReader")]
pub type FixedWidthRecordReader = FixedWidthItemReader<Record>;

/// `patternRecordReader`: lines whose fields a regular expression finds.
#[item_reader("patternRecordReader")]
pub type PatternRecordReader = PatternItemReader<Record>;

/// `jsonlRecordReader`: JSON objects, one on each line.
#[item_reader("jsonlRecordReader")]
pub type JsonlRecordReader = JsonLinesItemReader<Record>;

/// `jsonArrayRecordReader`: the objects of a JSON array.
#[item_reader("jsonArrayRecordReader")]
pub type JsonArrayRecordReader = JsonArrayItemReader<Record>;

/// `queryRecordReader`: the rows of a query.
#[item_reader("queryRecordReader")]
pub type QueryRecordReader = QueryItemReader<Record>;

/// `recordCsvWriter`: rows of delimited files.
#[item_writer("recordCsvWriter")]
pub type RecordCsvWriter = DelimitedItemWriter<Record>;

/// `recordFixedWidthWriter`: lines whose fields have fixed widths.
#[item_writer("recordFixedWidthWriter")]
pub type RecordFixedWidthWriter = FixedWidthItemWriter<Record>;

/// `recordJsonlWriter`: JSON objects, one on each line.
#[item_writer("recordJsonlWriter")]
pub type RecordJsonlWriter = JsonLinesItemWriter<Record>;

/// `recordJsonArrayWriter`: the objects of a JSON array.
#[item_writer("recordJsonArrayWriter")]
pub type RecordJsonArrayWriter = JsonArrayItemWriter<Record>;

/// `recordTableWriter`: rows of a table.
#[item_writer("recordTableWriter")]
pub type RecordTableWriter = TableItemWriter<Record>;
