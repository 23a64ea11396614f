//! Readers and writers of records, under names for Job XML.

use batch_items::Record;
use batch_runtime::prelude::*;

use crate::reader::OdbcItemReader;
use crate::tables::OdbcTableWriter;

/// `odbcRecordReader`: the rows of a query.
#[item_reader("odbcRecordReader")]
pub type OdbcRecordReader = OdbcItemReader<Record>;

/// `recordOdbcTableWriter`: rows of a table.
#[item_writer("recordOdbcTableWriter")]
pub type RecordOdbcTableWriter = OdbcTableWriter<Record>;
