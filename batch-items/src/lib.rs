//! Readers, processors, writers and batchlets for jobs of [`batch_runtime`], generic over the item.
//!
//! A program names its item type and registers the artifact by a type alias; Job XML sets the properties:
//!
//! ```
//! use batch_items::DelimitedItemReader;
//! use batch_runtime::prelude::*;
//!
//! #[derive(serde::Deserialize)]
//! struct Flight {
//!     origin: String,
//!     delay: i32,
//! }
//!
//! #[item_reader("FlightReader")]
//! type FlightReader = DelimitedItemReader<Flight>;
//! ```
//!
//! ```xml
//! <chunk reader="FlightReader" processor="Delays" writer="DelayWriter">
//!   <properties>
//!     <property name="resource" value="data/flights.csv"/>
//!   </properties>
//! </chunk>
//! ```
//!
//! # Records
//!
//! A job of Job XML alone uses [`Record`]s. These artifacts are registered for them. The program names the crate, so that they are
//! linked: `use batch_items as _;`.
//!
//! | | |
//! |---|---|
//! | readers | `csvRecordReader`, `fixedWidthRecordReader`, `patternRecordReader`, `jsonlRecordReader`, `jsonArrayRecordReader`, `xmlRecordReader`, `queryRecordReader` |
//! | totals and trailers | of each reader, see [`ExpectingItemReader`](compose::ExpectingItemReader) |
//! | processors | [`recordProcessor`](record::RecordProcessor), which maps, filters and computes; [`recordLookupProcessor`](registered::RecordLookupProcessor), which adds fields of other rows |
//! | listener | [`recordRejects`](RejectListener), which writes skipped items to a file |
//! | decider | [`expressionDecider`](record::ExpressionDecider) |
//! | partitions | [`filePartitions`](FilePartitions), [`keyRangePartitions`](KeyRangePartitions) |
//! | columnar files and sheets | in the crate `batch-columnar`: `parquetRecordReader`, `arrowRecordReader`, `xlsxRecordReader`, `recordParquetWriter`, `recordXlsxWriter` |
//! | queues | in the crates `batch-kafka` and `batch-nats`: `kafkaRecordReader`, `recordKafkaWriter`, `kafkaPartitions`, `natsRecordReader`, `recordNatsWriter` |
//! | writers | `recordTableWriter`, `recordCsvWriter`, `recordFixedWidthWriter`, `recordJsonlWriter`, `recordJsonArrayWriter`, `recordXmlWriter`; to several destinations, [`recordRoutingWriter`](compose::RecordRoutingWriter) |
//!
//! Others take groups of records, such as an order with its lines, see [`RecordGroups`](compose::RecordGroups):
//!
//! | | |
//! |---|---|
//! | readers | `csvRecordGroupReader`, `fixedWidthRecordGroupReader`, and so on: `Group` in the names above |
//! | processors | [`recordGroupProcessor`](record::RecordGroupProcessor), which also copies fields of the header; [`recordAggregateProcessor`](record::RecordAggregateProcessor), which makes one record of totals |
//! | listeners | [`recordGroupRejects`](RecordGroupRejectListener); with `recordAggregateProcessor`, [`recordAggregateRejects`](registered::RecordAggregateRejectListener) |
//! | writers | `recordGroupTableWriter`, `recordGroupCsvWriter`, `recordGroupJsonlWriter`, which write the records |
//!
//! # Restart
//!
//! The checkpoint of a file reader is a position in bytes, so a restart seeks and reads nothing twice. File writers write
//! exactly once: the checkpoint holds the length of the output, a restart truncates it to that, and the file gets its final
//! name when the step completes.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases, as of `batch-runtime` |
//! | `object-store` | files in S3, Google Cloud Storage and Azure, and input from HTTP, by [`object_store`](https://docs.rs/object_store) |
//! | `zstd` | compression of files by zstd |
//!
//! # Errors
//!
//! A bad record is a [`RecordError`], which names the file, the line and the field; the reader continues after it if the
//! job skips the class `RecordError`. Everything else, such as a missing file, is a [`ResourceError`] and ends the step.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod added;
#[doc(hidden)]
pub mod at_most;
mod bind;
#[doc(hidden)]
pub mod choices;
pub mod compose;
pub mod dataset;
mod delimited;
pub mod duration;
mod error;
pub mod file;
pub mod formats;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod json;
mod lines;
mod lookup;
mod partitions;
pub mod prelude;
pub mod query;
pub mod queue;
pub mod record;
pub mod registered;
mod rejects;
#[doc(hidden)]
pub mod rows;
#[doc(hidden)]
pub mod sql;
mod table;
mod xml;

/// The readers of files and queries; also in the crate root.
pub mod readers {
    pub use crate::delimited::DelimitedItemReader;
    pub use crate::json::{JsonArrayItemReader, JsonLinesItemReader};
    pub use crate::lines::{FixedWidthItemReader, LineItemReader, PatternItemReader};
    pub use crate::query::QueryItemReader;
    pub use crate::xml::XmlItemReader;
}

/// The writers of files and tables, with the types of their properties; also in the crate root.
pub mod writers {
    pub use crate::delimited::{Character, DelimitedFormat, DelimitedItemWriter, QuoteMode};
    pub use crate::json::{JsonArrayItemWriter, JsonLinesItemWriter};
    pub use crate::lines::{FixedWidthItemWriter, LineItemWriter};
    pub use crate::table::{RowsAffected, TableItemWriter, WriteMode};
    pub use crate::xml::XmlItemWriter;
}

/// The errors of readers and writers; also in the crate root.
pub mod errors {
    pub use crate::error::{EncodeError, Field, Origin, ReadError, RecordError, ResourceError};
    pub use crate::table::{ConstraintViolation, TableError};
}

pub use lookup::{KeyLookup, Lookup, UnknownKey};
pub use partitions::{FilePartitions, KeyRangePartitions};
pub use rejects::{
    IfRejectsExist, RecordGroupRejectListener, RecordRejectListener, RejectFormat, RejectListener,
};
#[doc(hidden)]
pub use table::{database, insertable};

// Documented in their modules, so that the first page is short.
#[doc(hidden)]
pub use {
    compose::{
        ClassifierItemWriter, CompositeItemWriter, EnrichingItemWriter, FlatteningItemWriter,
        GroupingItemReader, PeekableItemReader, ProcessorChain, ValidatingProcessor,
    },
    errors::*,
    readers::*,
    record::{Record, Value},
    writers::*,
};
