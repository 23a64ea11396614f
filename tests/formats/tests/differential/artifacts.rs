//! The artifacts that give documents to writers, and keep what readers read.

use std::fs;

use batch_columnar::{ArrowItemReader, ParquetItemReader, ParquetItemWriter, XlsxItemReader};
use batch_items::{Record, Value, XmlItemReader, XmlItemWriter};
use batch_runtime::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::pairs::{MARKUP_NAMES, pair};

#[item_reader("elementReader")]
type ElementReader = XmlItemReader<Element>;
#[item_writer("recordXmlWriter")]
type XmlOut = XmlItemWriter<Record>;
#[item_reader("parquetRecordReader")]
type ParquetRecords = ParquetItemReader<Record>;
#[item_writer("recordParquetWriter")]
type ParquetOut = ParquetItemWriter<Record>;
#[item_reader("arrowRecordReader")]
type ArrowRecords = ArrowItemReader<Record>;
#[item_reader("xlsxRecordReader")]
type XlsxRecords = XlsxItemReader<Record>;

/// An element with the names of `pairs::MARKUP_NAMES`.
#[derive(Clone, Deserialize)]
struct Element {
    #[serde(rename = "@id")]
    id: Option<String>,
    #[serde(rename = "@größe")]
    attribute: Option<String>,
    a: Option<String>,
    #[serde(rename = "b-c")]
    dash: Option<String>,
    #[serde(rename = "d.e")]
    dot: Option<String>,
    #[serde(rename = "_f")]
    underline: Option<String>,
    #[serde(rename = "größe")]
    umlaut: Option<String>,
    row: Option<String>,
    x1: Option<String>,
}

#[derive(BatchArtifact)]
struct ElementFields {
    #[batch_property(name = "names")]
    names: Vec<String>,
}

#[item_processor("elementFields")]
impl ElementFields {
    /// Returns the fields that the document has as a record.
    #[process_item]
    fn process(&mut self, element: Element) -> Option<Record> {
        let Element {
            id,
            attribute,
            a,
            dash,
            dot,
            underline,
            umlaut,
            row,
            x1,
        } = element;
        let values = [id, attribute, a, dash, dot, underline, umlaut, row, x1];
        let mut record = Record::new();
        for (name, value) in MARKUP_NAMES.iter().zip(values) {
            if value.is_some() || self.names.iter().any(|wanted| wanted == name) {
                record.set(name, value);
            }
        }
        Some(record)
    }
}

/// Returns the records of the document of a pair and a seed.
#[derive(BatchArtifact)]
struct GivenRecords {
    #[batch_property(name = "pair")]
    pair: String,
    #[batch_property(name = "seed")]
    seed: u64,
    records: Vec<Record>,
    next: usize,
}

#[item_reader("givenRecords")]
impl GivenRecords {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) {
        self.records = pair(&self.pair).document(self.seed).records();
        self.next = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<Record> {
        self.next += 1;
        self.records.get(self.next - 1).cloned()
    }
    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.next
    }
}

/// Writes the names and values of records with their types, a record on each line, for the independent program to compare.
#[derive(BatchArtifact)]
struct FoundRecords {
    #[batch_property(name = "found")]
    found: String,
    lines: String,
}

#[item_writer("foundRecords")]
impl FoundRecords {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, records: &[Record]) {
        for record in records {
            let names: Vec<_> = record.iter().map(|(name, _)| name).collect();
            let values: Vec<_> = record.iter().map(|(_, value)| typed(value)).collect();
            self.lines.push_str(&format!("{}\n", json!([names, values])));
        }
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
    #[finish]
    fn finish(&mut self) -> std::io::Result<()> {
        fs::write(&self.found, &self.lines)
    }
}

fn typed(value: &Value) -> serde_json::Value {
    let kind = match value {
        Value::Null => return serde_json::Value::Null,
        Value::Bool(_) => "Bool",
        Value::Int(_) => "Int",
        Value::Float(_) => "Float",
        Value::Decimal(_) => "Decimal",
        Value::Text(_) => "Text",
        Value::Json(_) => "Json",
        Value::Bytes(_) => "Bytes",
    };
    json!([kind, value.to_string()])
}
