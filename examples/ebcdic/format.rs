//! The format: the three traits of a file format of your own.

use std::ops::Range;

use batch_items::file::{Bytes, FileItemReader, Format, Items, OpenFile, Place, Records, Source};
use batch_items::{Field, Origin, ReadError, Record};
use batch_runtime::prelude::*;

use super::layout::Layout;

/// Reads records of the mainframe. Compression, patterns, object stores, restarts and `file.field` work as in every file reader.
#[item_reader("ebcdicRecordReader")]
pub(crate) type EbcdicRecordReader = FileItemReader<Ebcdic, Record>;

/// Records of a fixed length, without line ends, in EBCDIC.
#[derive(BatchArtifact)]
pub(crate) struct Ebcdic {
    #[batch_property(name = "layout")]
    layout: Layout,
}

impl Format for Ebcdic {
    type Records = EbcdicRecords;

    fn start(&self, file: OpenFile<'_>) -> Result<EbcdicRecords, ReadError> {
        let source = file.binary_source()?;
        let (bytes, record) = file.bytes(&source)?;
        Ok(EbcdicRecords {
            layout: self.layout.clone(),
            bytes,
            current: 0..0,
            record,
            source,
        })
    }
}

/// The records of a file.
pub(crate) struct EbcdicRecords {
    layout: Layout,
    bytes: Bytes,
    /// The current record: its place in the buffer, and its number.
    current: Range<usize>,
    record: u64,
    source: Source,
}

impl Records for EbcdicRecords {
    fn advance(&mut self) -> Result<bool, ReadError> {
        let length = self.layout.length();
        self.current = self.bytes.take(length).map_err(|error| self.source.fail(error))?;
        match self.current.len() {
            0 => Ok(false),
            found if found < length => {
                let number = self.record + 1;
                let cause = format!("record {number} has {found} bytes, but the layout has {length}");
                Err(self.source.fail(cause).into())
            }
            _ => {
                self.record += 1;
                Ok(true)
            }
        }
    }

    fn place(&self) -> Place {
        self.bytes.place(self.record)
    }

    fn origin(&self) -> Origin<'_> {
        self.source.origin(self.record, self.bytes.slice(&self.current))
    }
}

impl Items<Record> for EbcdicRecords {
    fn item(&mut self) -> Result<Record, ReadError> {
        let bytes = self.bytes.slice(&self.current);
        let mut record = Record::new();
        for (index, field) in self.layout.0.iter().enumerate() {
            let found = &bytes[field.bytes.clone()];
            let value = field.value(found).map_err(|cause| {
                let bad = Field {
                    number: index + 1,
                    name: Some(field.name.clone()),
                    value: hexadecimal(found),
                };
                self.source
                    .bad_record(self.record, bytes, cause)
                    .with_field(Some(bad))
            })?;
            record.set(&field.name, value);
        }
        self.source
            .add_fields(&mut record, self.record, self.record, bytes)?;
        Ok(record)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
