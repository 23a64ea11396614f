//! The artifacts that give documents to writers, and keep what readers read.

use std::fs;

use batch_columnar as _;
use batch_items::{Record, Value};
use batch_runtime::prelude::*;
use serde_json::json;

use super::pairs::{MARKUP_NAMES, pair};

#[derive(BatchArtifact)]
struct ElementFields {
    #[batch_property(name = "names")]
    names: Vec<String>,
}

#[item_processor("elementFields")]
impl ElementFields {
    /// Returns the fields that the document has, in its order.
    #[process_item]
    fn process(&mut self, element: Record) -> Option<Record> {
        let mut record = Record::new();
        for name in MARKUP_NAMES {
            let value = element.get(name).cloned();
            if value.is_some() || self.names.iter().any(|wanted| wanted == name) {
                record.set(name, value.unwrap_or_default());
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
        if self.pair == "xlsx" {
            // A row without values is rejected.
            let has_value = |value: &Value| !matches!(value, Value::Null) && value.to_string() != "";
            self.records
                .retain(|record| record.iter().any(|(_, value)| has_value(value)));
        }
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
