//! Readers and writers of records, under names for Job XML.

use batch_runtime::prelude::*;

use crate::compose::{ExpectingItemReader, RecordGroups};
pub use crate::lookup::RecordLookupProcessor;
use crate::record::Record;
pub use crate::rejects::RecordAggregateRejectListener;
use crate::{
    DelimitedItemReader, DelimitedItemWriter, FixedWidthItemReader, FixedWidthItemWriter,
    FlatteningItemWriter, GroupingItemReader, JsonArrayItemReader, JsonArrayItemWriter, JsonLinesItemReader,
    JsonLinesItemWriter, PatternItemReader, QueryItemReader, TableItemWriter, XmlItemReader, XmlItemWriter,
};

/// `csvRecordReader`: the rows of delimited files.
#[item_reader("csvRecordReader")]
pub type CsvRecordReader = ExpectingItemReader<DelimitedItemReader<Record>>;

/// `fixedWidthRecordReader`: lines whose fields have fixed widths.
#[item_reader("fixedWidthRecordReader")]
pub type FixedWidthRecordReader = ExpectingItemReader<FixedWidthItemReader<Record>>;

/// `patternRecordReader`: lines whose fields a regular expression finds.
#[item_reader("patternRecordReader")]
pub type PatternRecordReader = ExpectingItemReader<PatternItemReader<Record>>;

/// `jsonlRecordReader`: JSON objects, one on each line.
#[item_reader("jsonlRecordReader")]
pub type JsonlRecordReader = ExpectingItemReader<JsonLinesItemReader<Record>>;

/// `jsonArrayRecordReader`: the objects of a JSON array.
#[item_reader("jsonArrayRecordReader")]
pub type JsonArrayRecordReader = ExpectingItemReader<JsonArrayItemReader<Record>>;

/// `queryRecordReader`: the rows of a query.
#[item_reader("queryRecordReader")]
pub type QueryRecordReader = ExpectingItemReader<QueryItemReader<Record>>;

/// `csvRecordGroupReader`: the rows of delimited files, in groups.
#[item_reader("csvRecordGroupReader")]
pub type CsvRecordGroupReader = GroupingItemReader<CsvRecordReader, RecordGroups>;

/// `fixedWidthRecordGroupReader`: lines whose fields have fixed widths, in groups.
#[item_reader("fixedWidthRecordGroupReader")]
pub type FixedWidthRecordGroupReader = GroupingItemReader<FixedWidthRecordReader, RecordGroups>;

/// `patternRecordGroupReader`: lines whose fields a regular expression finds, in groups.
#[item_reader("patternRecordGroupReader")]
pub type PatternRecordGroupReader = GroupingItemReader<PatternRecordReader, RecordGroups>;

/// `jsonlRecordGroupReader`: JSON objects, one on each line, in groups.
#[item_reader("jsonlRecordGroupReader")]
pub type JsonlRecordGroupReader = GroupingItemReader<JsonlRecordReader, RecordGroups>;

/// `jsonArrayRecordGroupReader`: the objects of a JSON array, in groups.
#[item_reader("jsonArrayRecordGroupReader")]
pub type JsonArrayRecordGroupReader = GroupingItemReader<JsonArrayRecordReader, RecordGroups>;

/// `queryRecordGroupReader`: the rows of a query, in groups.
#[item_reader("queryRecordGroupReader")]
pub type QueryRecordGroupReader = GroupingItemReader<QueryRecordReader, RecordGroups>;

/// `xmlRecordReader`: the elements of XML files.
#[item_reader("xmlRecordReader")]
pub type XmlRecordReader = ExpectingItemReader<XmlItemReader<Record>>;

/// `recordLookupProcessor`: adds the fields of a row in a delimited file.
#[item_processor("recordLookupProcessor")]
pub type FileLookupProcessor = RecordLookupProcessor;

/// `recordQueryLookupProcessor`: adds the fields of a row of a query.
#[item_processor("recordQueryLookupProcessor")]
pub type QueryLookupProcessor = RecordLookupProcessor<QueryRecordReader>;

/// `recordXmlWriter`: elements of an XML file.
#[item_writer("recordXmlWriter")]
pub type RecordXmlWriter = XmlItemWriter<Record>;

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

/// `recordGroupTableWriter`: rows of a table, a group as a whole.
#[item_writer("recordGroupTableWriter")]
pub type RecordGroupTableWriter = FlatteningItemWriter<Record, RecordTableWriter>;

/// `recordGroupCsvWriter`: rows of delimited files, a group as a whole.
#[item_writer("recordGroupCsvWriter")]
pub type RecordGroupCsvWriter = FlatteningItemWriter<Record, RecordCsvWriter>;

/// `recordGroupJsonlWriter`: JSON objects, one on each line, a group as a whole.
#[item_writer("recordGroupJsonlWriter")]
pub type RecordGroupJsonlWriter = FlatteningItemWriter<Record, RecordJsonlWriter>;
