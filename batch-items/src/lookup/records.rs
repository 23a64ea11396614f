//! Look-ups of records.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::str::FromStr;
use std::sync::Arc;

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;

use super::{IfEmpty, KeyColumns, UnknownKey, read_rows};
use crate::choices;
use crate::compose::ReadItems;
use crate::delimited::DelimitedItemReader;
use crate::record::{
    Distinct, Expression, ExtendedNames, Record, RecordProcessor, Renamed, Value, expressions,
};

/// Adds the fields of another file or query to records, by a key; registered as `recordLookupProcessor`, whose rows are in a delimited file, and
/// `recordQueryLookupProcessor`, whose rows a query returns.
///
/// | property | default | |
/// |---|---|---|
/// | `lookup.key` | required | the columns of the key, separated by commas |
/// | `key` | as `lookup.key` | the fields of the record, or expressions, that have the values of the key |
/// | `lookup.fields` | all but the key | the columns that records get, separated by commas; `customer=name` renames `name` |
/// | `if.unknown` | `fail` | a record without a row is an [`UnknownKey`], which a step may skip; `null`: its fields are null |
/// | `lookup.if.empty` | `fail` | `accept`: there may be no rows |
///
/// The reader of the rows has its properties with the prefix `lookup.`, such as `lookup.resource` or `lookup.query`; a query fetches its rows in the order of
/// `lookup.key`. Then the properties of a
/// [`RecordProcessor`] apply to the record with its new fields.
///
/// The rows are read at the first record, and stay in memory for the step. Keys are compared as texts, and a record whose key is null has no
/// row. A row without a key, and two rows with the same key, fail the step, as does a column of the name of a field: rename it by `lookup.fields`.
///
/// ```xml
/// <chunk reader="csvRecordReader" processor="recordLookupProcessor" writer="recordTableWriter">
///   <properties>
///     <property name="lookup.resource" value="accounts.csv"/>
///     <property name="lookup.key" value="number"/>
///     <property name="key" value="account"/>
///     <property name="lookup.fields" value="customer=name, rate"/>
///     <property name="set" value="fee=round(amount * rate, 2)"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct RecordLookupProcessor<R = DelimitedItemReader<Record>> {
    #[batch_property(name = "lookup.key")]
    columns: KeyColumns,
    #[batch_property(name = "key", value = "")]
    key: Key,
    #[batch_property(name = "lookup.fields", value = "")]
    fields: Distinct<Renamed>,
    #[batch_property(name = "if.unknown", value = "fail")]
    if_unknown: IfUnknown,
    #[batch_property(name = "lookup.if.empty", value = "fail")]
    if_empty: IfEmpty,
    #[batch_artifact(prefix = "lookup.")]
    source: R,
    #[batch_artifact]
    each: RecordProcessor,
    rows: Option<Rows>,
    names: ExtendedNames,
}

/// The rows by the texts of their keys.
struct Rows {
    of: String,
    /// The names that records get.
    names: Vec<String>,
    values: HashMap<Vec<String>, Arc<[Value]>>,
}

/// What a record without a row is.
#[derive(Clone, Copy)]
enum IfUnknown {
    Fail,
    Null,
}

choices! {
    IfUnknown { "fail" => Fail, "null" => Null }
}

/// The expressions of a key; none for fields of the names of its columns.
struct Key(Vec<Expression>);

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Ok(Self(Vec::new())),
            text => expressions(text).map(Self),
        }
    }
}

#[item_processor]
impl<R: ReadItems<Item = Record>> RecordLookupProcessor<R> {
    /// Adds the fields of the record's row, and maps the record.
    #[process_item]
    pub fn process(&mut self, mut record: Record) -> Result<Option<Record>, BatchError> {
        let rows = match self.rows.take() {
            Some(rows) => rows,
            None => self.load()?,
        };
        let added = self.add(&rows, &mut record);
        self.rows = Some(rows);
        added?;
        self.each.process(record)
    }

    fn add(&mut self, rows: &Rows, record: &mut Record) -> Result<(), BatchError> {
        let key = self.key.0.iter().map(|part| part.value(record));
        let key: Vec<Value> = key.collect::<Result<_, _>>()?;
        let texts = key.iter().map(|part| (!part.is_null()).then(|| part.to_string()));
        let texts: Option<Vec<String>> = texts.collect();
        let row = texts.and_then(|texts| rows.values.get(&texts));
        let row = row.map(|row| row.iter().cloned());
        let nulls = || rows.names.iter().map(|_| Value::Null);
        let names = self.names.after(record, &rows.names).map_err(|name| {
            ConfigurationError::new(format!(
                "the records have a field `{name}` already, which the look-up would replace; give it another name in `lookup.fields`, as `new=old`"
            ))
        })?;
        match (row, self.if_unknown) {
            (Some(row), _) => record.extend(names, row),
            (None, IfUnknown::Null) => record.extend(names, nulls()),
            (None, IfUnknown::Fail) => {
                return Err(UnknownKey {
                    of: rows.of.clone(),
                    columns: self.columns.to_string(),
                    key: shown(&key),
                }
                .into());
            }
        }
        Ok(())
    }

    fn load(&mut self) -> Result<Rows, BatchError> {
        if self.key.0.is_empty() {
            self.key = Key(self
                .columns
                .0
                .iter()
                .map(|column| Expression::field(column))
                .collect());
        }
        let wrong = |cause: &str| ConfigurationError::new(format!("cannot load a look-up: {cause}"));
        if self.key.0.len() != self.columns.0.len() {
            let (key, columns) = (self.key.0.len(), self.columns.0.len());
            return Err(wrong(&format!("`key` has {key} parts, and `lookup.key` has {columns}")).into());
        }
        let mut names: Vec<String> = self.fields.names().map(str::to_owned).collect();
        let mut values = HashMap::new();
        let of = read_rows(
            &mut self.source,
            self.if_empty,
            "lookup.if.empty",
            |row, number| {
                if number == 1 && self.fields.is_empty() {
                    let columns = row.iter().map(|(name, _)| name.to_owned());
                    names = columns.filter(|name| !self.columns.0.contains(name)).collect();
                }
                let key = key_of(&row, &self.columns.0)?;
                let row: Arc<[Value]> = match self.fields.is_empty() {
                    true => names
                        .iter()
                        .map(|name| row.get(name).cloned().unwrap_or_default())
                        .collect(),
                    false => self.fields.of(&row).map_err(|error| error.to_string())?.into(),
                };
                match values.entry(key) {
                    Entry::Vacant(free) => {
                        free.insert(row);
                        Ok(())
                    }
                    Entry::Occupied(row) => Err(format!(
                        "an earlier row has the key {:?}, too",
                        row.key().join(",")
                    )),
                }
            },
        )?;
        if values.is_empty() && names.is_empty() {
            return Err(wrong("without rows, `lookup.fields` has to name the fields of the records").into());
        }
        Ok(Rows { of, names, values })
    }
}

/// Returns the texts of a key. Fails with the cause.
fn key_of(row: &Record, columns: &[String]) -> Result<Vec<String>, String> {
    let text = |column: &String| match row.get(column) {
        None => Err(format!("there is no column `{column}`, which `lookup.key` names")),
        Some(Value::Null) => Err(format!("the column `{column}` of the key is empty")),
        Some(value) => Ok(value.to_string()),
    };
    columns.iter().map(text).collect()
}

/// Returns a key as messages show it.
fn shown(key: &[Value]) -> String {
    let part = |value: &Value| match value {
        Value::Null => "null".to_owned(),
        value => format!("{:?}", value.to_string()),
    };
    key.iter().map(part).collect::<Vec<_>>().join(",")
}
