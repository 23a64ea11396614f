//! A rejected item, and its line in the report.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use batch_runtime::{BatchArtifact, BatchError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::choices;
use crate::error::{DroppedRecord, DroppedRecords, RecordError, in_utf8};
use crate::json::json_to_show;

/// The format of the report: the property `rejects.format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectFormat {
    /// `jsonl`: a JSON object on each line.
    JsonLines,
    /// `csv`: a row for each reject, under a header.
    Csv,
}

choices! {
    RejectFormat { "jsonl" => JsonLines, "csv" => Csv }
}

impl RejectFormat {
    /// Returns the format of a file by its extension, by default JSON Lines.
    pub(super) fn of(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("csv") => Self::Csv,
            _ => Self::JsonLines,
        }
    }

    pub(super) fn header(self) -> &'static str {
        match self {
            Self::JsonLines => "",
            Self::Csv => "skip,instance,step,phase,error,resource,line,field,value,raw,raw_end,item\n",
        }
    }

    /// Appends the line of a reject.
    pub(super) fn encode(self, line: &Line<'_>, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::JsonLines => {
                serde_json::to_writer(&mut *text, line)?;
                text.push(b'\n');
            }
            Self::Csv => {
                let Line {
                    skip,
                    owner,
                    reject,
                    raw_end,
                } = line;
                let number =
                    |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
                let text_of = |text: &Option<String>| text.clone().unwrap_or_default();
                let row = [
                    skip.to_string(),
                    owner.instance.to_string(),
                    owner.step.clone(),
                    reject.phase.to_owned(),
                    reject.error.clone(),
                    text_of(&reject.resource),
                    number(reject.line),
                    text_of(&reject.field),
                    text_of(&reject.value),
                    text_of(&reject.raw),
                    number(*raw_end),
                    reject.item.as_ref().map(ToString::to_string).unwrap_or_default(),
                ];
                csv::Writer::from_writer(text).write_record(&row)?;
            }
        }
        Ok(())
    }

    /// Returns whether a file without a complete reject is empty, or the beginning of a report that a crash has left.
    pub(super) fn is_begun(self, content: &[u8]) -> bool {
        let header = self.header().as_bytes();
        match content.strip_prefix(header) {
            None => header.starts_with(content),
            Some(line) => !line.contains(&b'\n') && self.begins_reject(line),
        }
    }

    /// Returns whether a line that is not complete may be that of a reject.
    fn begins_reject(self, line: &[u8]) -> bool {
        /// How each line begins.
        const JSON: &[u8] = b"{\"skip\":";
        match self {
            Self::JsonLines => JSON.starts_with(line) || line.starts_with(JSON),
            Self::Csv => line
                .iter()
                .take_while(|byte| **byte != b',')
                .all(u8::is_ascii_digit),
        }
    }

    /// Returns the numbers of the rejects in a report, up to the first line that is not complete.
    pub(super) fn numbers(self, report: &[u8]) -> Vec<Number> {
        match self {
            Self::JsonLines => json_numbers(report),
            Self::Csv => csv_numbers(report),
        }
    }
}

/// A rejected item.
#[derive(Debug, Default, Serialize)]
pub(super) struct Reject {
    phase: &'static str,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<Box<RawValue>>,
    /// The record as it is in the file.
    #[serde(skip)]
    pub(super) bytes: Vec<u8>,
    /// The records that are dropped with this one: those before it, and those after it.
    #[serde(skip)]
    dropped: [Vec<Reject>; 2],
}

impl Reject {
    /// Returns whether the text of a record is not known.
    pub(super) fn lacks_text(&self) -> bool {
        self.raw.is_none() || self.dropped.iter().flatten().any(Self::lacks_text)
    }
}

/// Returns the rejects with the numbers of their skips, which records that are dropped together share.
pub(super) fn numbered(rejects: &[Reject], first: u64) -> impl Iterator<Item = (u64, &Reject)> {
    (first..).zip(rejects).flat_map(|(skip, reject)| {
        let [before, after] = &reject.dropped;
        let all = before.iter().chain(std::iter::once(reject)).chain(after);
        all.map(move |reject| (skip, reject))
    })
}

impl Reject {
    /// Creates the reject of a record that cannot be read, and of those that are dropped with it.
    pub(super) fn read(error: &BatchError) -> Self {
        let dropped = match error.details::<DroppedRecords>() {
            Some(DroppedRecords { before, after }) => [before, after].map(|records| {
                let rejects = records.iter().map(|record| Self::dropped(error, record));
                rejects.collect()
            }),
            None => Default::default(),
        };
        Self {
            dropped,
            ..Self::bad(error)
        }
    }

    /// Creates the reject of a record that is dropped because of an error.
    fn dropped(error: &BatchError, record: &DroppedRecord) -> Self {
        let text = || {
            record
                .encoding
                .decode_without_bom_handling(&record.raw)
                .0
                .into_owned()
        };
        Self {
            phase: "read",
            error: format!("dropped with its group: {}", error.chain()),
            resource: (!record.resource.is_empty()).then(|| record.resource.clone()),
            line: record.line,
            raw: (!record.raw.is_empty()).then(text),
            bytes: in_utf8(&record.raw, record.encoding),
            ..Self::default()
        }
    }

    fn bad(error: &BatchError) -> Self {
        let reject = Self {
            phase: "read",
            error: error.chain(),
            ..Self::default()
        };
        let Some(record) = error.downcast_ref::<RecordError>() else {
            return reject;
        };
        let (field, raw) = (record.field(), record.raw());
        Self {
            resource: Some(record.resource().to_owned()),
            line: Some(record.line()),
            field: field.map(|field| field.name.clone().unwrap_or_else(|| field.number.to_string())),
            value: field.map(|field| field.value.clone()),
            raw: (!raw.is_empty()).then(|| record.text().into_owned()),
            bytes: in_utf8(record.raw(), record.encoding()),
            ..reject
        }
    }
}

/// Returns the rejects without repetitions. Those that are equal in all fields count as one: a chunk that is read again reports its rejects again,
/// and nothing else distinguishes them.
pub(super) fn without_repetitions(mut rejects: Vec<Reject>) -> Vec<Reject> {
    let mut seen = HashSet::new();
    rejects.retain(|reject| serde_json::to_string(reject).map_or(true, |text| seen.insert(text)));
    rejects
}

/// The names of the fields that a reader adds to items.
#[derive(BatchArtifact)]
pub(super) struct PlaceFields {
    /// The field of the items that has the file of the record.
    #[batch_property(name = "file.field")]
    file: String,
    /// The field of the items that has the line of the record.
    #[batch_property(name = "line.field")]
    line: String,
    /// The field of the items that has the text of the record.
    #[batch_property(name = "raw.field")]
    raw: String,
}

impl PlaceFields {
    /// Creates the reject of the items that a skip drops.
    pub(super) fn reject(&self, phase: &'static str, error: &BatchError, items: &[impl Serialize]) -> Reject {
        let mut rejects = items.iter().map(|item| self.reject_of(phase, error, item));
        let first = rejects.next().unwrap_or_default();
        Reject {
            dropped: [Vec::new(), rejects.collect()],
            ..first
        }
    }

    fn reject_of(&self, phase: &'static str, error: &BatchError, item: &impl Serialize) -> Reject {
        let fields = serde_json::to_value(item).unwrap_or_default();
        let records = records_of(&fields);
        let first = |name: &String| records.first()?.get(name);
        // Without the text of one record, the texts of a group are not known.
        let texts: Option<Vec<&str>> = records
            .iter()
            .map(|record| record.get(&self.raw)?.as_str())
            .collect();
        let raw = texts
            .filter(|texts| !texts.is_empty())
            .map(|texts| texts.join("\n"));
        let shown = json_to_show(item);
        let error = match &shown {
            Ok(_) => error.chain(),
            Err(cause) => format!("{} (the item cannot be shown as JSON: {cause})", error.chain()),
        };
        Reject {
            phase,
            error,
            resource: first(&self.file).and_then(|file| Some(file.as_str()?.to_owned())),
            line: first(&self.line).and_then(|line| line.as_u64().or_else(|| line.as_str()?.parse().ok())),
            bytes: raw.clone().unwrap_or_default().into_bytes(),
            raw,
            item: shown.ok(),
            ..Reject::default()
        }
    }

    /// Fails if a record of an item has no field of one of the names.
    pub(super) fn check(&self, item: &impl Serialize) -> Result<(), String> {
        let fields = serde_json::to_value(item).unwrap_or_default();
        let records = records_of(&fields);
        let named = [
            ("file.field", &self.file),
            ("line.field", &self.line),
            ("raw.field", &self.raw),
        ];
        let objects = || records.iter().filter_map(serde_json::Value::as_object);
        let lacks = |name: &str| !name.is_empty() && objects().any(|record| !record.contains_key(name));
        match named.into_iter().find(|(_, name)| lacks(name)) {
            None => Ok(()),
            Some((property, name)) => Err(format!(
                "the items have no field `{name}`, which the property `{property}` of the listener names; set it to the same \
                 field as `{property}` of the reader and keep the field, or remove it"
            )),
        }
    }
}

/// Returns the records of a group, or an item that is one record.
fn records_of(item: &serde_json::Value) -> &[serde_json::Value] {
    item.as_array().map_or(std::slice::from_ref(item), Vec::as_slice)
}

/// The step of a report.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(super) struct Owner {
    /// The id of the job instance.
    pub(super) instance: i64,
    /// The name of the step execution, which has the number of a partition.
    pub(super) step: String,
}

/// A line of the report.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    /// The number of the skip in the step of the job instance, from 1.
    pub(super) skip: u64,
    #[serde(flatten)]
    pub(super) owner: &'a Owner,
    #[serde(flatten)]
    pub(super) reject: &'a Reject,
    /// The length of the file of raw records with this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_end: Option<u64>,
}

/// The numbers in a line of the report. A restart finds its place by them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Number {
    pub(super) skip: u64,
    instance: i64,
    step: String,
    #[serde(default)]
    pub(super) raw_end: Option<u64>,
    /// The length of the report with this line.
    #[serde(skip)]
    pub(super) end: u64,
}

impl Number {
    pub(super) fn is_of(&self, owner: &Owner) -> bool {
        self.instance == owner.instance && self.step == owner.step
    }
}

fn json_numbers(report: &[u8]) -> Vec<Number> {
    let mut end = 0;
    let complete = report.split_inclusive(|byte| *byte == b'\n').map_while(|line| {
        end += line.len() as u64;
        let line = line.strip_suffix(b"\n")?;
        let number: Number = serde_json::from_slice(line).ok()?;
        Some(Number { end, ..number })
    });
    complete.collect()
}

fn csv_numbers(report: &[u8]) -> Vec<Number> {
    let mut rows = csv::Reader::from_reader(report);
    let mut row = csv::ByteRecord::new();
    let mut numbers = Vec::new();
    // A row of another width, as at a torn end, is an error.
    while rows.read_byte_record(&mut row).unwrap_or(false) {
        let end = rows.position().byte();
        let text = |field: usize| std::str::from_utf8(row.get(field)?).ok();
        let parse = |field: usize| text(field)?.parse().ok();
        let ends = usize::try_from(end).is_ok_and(|end| report[..end].ends_with(b"\n"));
        let (Some(skip), true) = (parse(0), ends) else {
            break;
        };
        numbers.push(Number {
            skip,
            instance: text(1).and_then(|text| text.parse().ok()).unwrap_or_default(),
            step: text(2).unwrap_or_default().to_owned(),
            raw_end: parse(10),
            end,
        });
    }
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    // Spec: LOSS-07
    #[test]
    fn the_text_of_a_group_is_that_of_all_its_records() {
        let fields = PlaceFields {
            file: String::new(),
            line: String::new(),
            raw: "raw".to_owned(),
        };
        let error = BatchError::msg("bad");
        let reject = |group: serde_json::Value| fields.reject("process", &error, &[group]);
        let whole = reject(serde_json::json!([{"raw": "a"}, {"raw": ""}]));
        assert_eq!((whole.raw.as_deref(), whole.lacks_text()), (Some("a\n"), false));
        assert!(reject(serde_json::json!([{"raw": "a"}, {"raw": null}])).lacks_text());
        // An empty line is a text.
        assert!(!reject(serde_json::json!({"raw": ""})).lacks_text());
        assert!(reject(serde_json::json!({"other": 1})).lacks_text());
    }
    use proptest::prelude::*;
    use serde_json::value::to_raw_value;

    // Spec: INPUT-04
    #[test]
    fn an_item_is_shown_or_the_reject_says_why_not() {
        let none = String::new;
        let names = PlaceFields {
            file: none(),
            line: none(),
            raw: none(),
        };
        let error = BatchError::from(std::io::Error::other("no"));
        let shown = names.reject("write", &error, &[f64::INFINITY]);
        assert_eq!(shown.item.unwrap().get(), "\"inf\"");
        let hidden = names.reject("write", &error, &[BTreeMap::from([((1, 2), 3)])]);
        assert_eq!(
            (hidden.item.is_none(), hidden.error.as_str()),
            (
                true,
                "no (the item cannot be shown as JSON: key must be a string)"
            )
        );
    }

    fn reject(error: String, raw: String, item: Option<String>) -> Reject {
        Reject {
            phase: "read",
            error,
            resource: None,
            line: Some(3),
            field: None,
            value: None,
            raw: Some(raw),
            item: item.map(|item| to_raw_value(&item).unwrap()),
            ..Reject::default()
        }
    }

    proptest! {
        /// Wherever a crash cuts a report, the complete lines are recognised, and no others.
        #[test]
        fn a_torn_report_has_its_complete_lines(
            texts in prop::collection::vec(("[a1\",\n\r\\\\é]{0,6}", "[a1\",\n\r]{0,6}", prop::option::of("[a\"\n,]{0,4}")), 0..5),
            is_csv: bool,
            raw_end: Option<u64>,
        ) {
            let format = if is_csv { RejectFormat::Csv } else { RejectFormat::JsonLines };
            let mut report = format.header().as_bytes().to_vec();
            let mut expected = Vec::new();
            for (skip, (error, raw, item)) in (1..).zip(texts) {
                let reject = reject(error, raw, item);
                format.encode(&Line { skip, owner: &Owner { instance: 7, step: "load".to_owned() },
                    reject: &reject, raw_end }, &mut report).unwrap();
                expected.push(Number { skip, instance: 7, step: "load".to_owned(), raw_end, end: report.len() as u64 });
            }
            for length in 0..=report.len() {
                let complete: Vec<_> = expected.iter().filter(|number| number.end <= length as u64).cloned().collect();
                prop_assert_eq!(format.numbers(&report[..length]), complete);
            }
        }
    }
}
