//! The columns of items: their names and types, as items are written and as they are read.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use batch_items::rows::{Names, fields_of};
use batch_runtime::xml::suggest::did_you_mean;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_arrow::schema::{SchemaLike, TracingOptions};
use serde_arrow::{ArrayBuilder, ErrorKind};

use super::fit::Row;

/// Columns with types, such as `id Int64, price Decimal128(10, 2)`: the property `columns`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ColumnList {
    fields: Vec<FieldRef>,
    /// The names with a `?` where items may lack the field.
    names: Vec<String>,
}

impl FromStr for ColumnList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut columns, mut names) = (Vec::<FieldRef>::new(), Vec::new());
        for part in split(text) {
            let part = part.trim();
            let (name, kind) = part.split_once(char::is_whitespace).ok_or_else(|| {
                format!("expected a name and a type of Arrow, such as `day Date32`, found `{part}`")
            })?;
            let kind = DataType::from_str(kind.trim()).map_err(|_| {
                let kind = kind.trim();
                format!(
                    "column `{name}`: `{kind}` is not a type of Arrow, such as `Int64`, `Utf8` or `Date32`"
                )
            })?;
            names.push(name.to_owned());
            let name = name.strip_suffix('?').unwrap_or(name);
            if columns.iter().any(|column| column.name() == name) {
                return Err(format!("there are two columns `{name}`"));
            }
            columns.push(Arc::new(Field::new(name, kind, true)));
        }
        Ok(Self {
            fields: columns,
            names,
        })
    }
}

/// Splits at the commas that are not in brackets.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// Converts items to batches of columns.
pub(super) struct Columns {
    fields: Vec<FieldRef>,
    /// The fields of items for the columns that the property gives. Other columns have the types of the items.
    names: Option<Names>,
}

impl Columns {
    /// Returns the given columns, or those that the type of the items has.
    pub(super) fn of<T: DeserializeOwned>(given: Option<&ColumnList>) -> Result<Self, String> {
        if let Some(ColumnList {
            fields,
            names: selected,
        }) = given
        {
            let known = fields_of::<T>();
            let names = known.unwrap_or_default();
            let unknown = |field: &&FieldRef| !names.is_empty() && !names.contains(&field.name().as_str());
            if let Some(field) = fields.iter().find(unknown) {
                let hint = did_you_mean(field.name(), names.iter().copied());
                return Err(format!(
                    "the items have no field for the column `{}`{hint}",
                    field.name()
                ));
            }
            let mut names = Names::default();
            names.select(selected.iter().map(String::as_str));
            // A type that a file cannot have is not an error of an item.
            for field in fields {
                if let Some((kind, remedy)) = unwritable(field.data_type()) {
                    let name = field.name();
                    return Err(format!(
                        "column `{name}`: a file cannot have the type `{kind}`; {remedy}"
                    ));
                }
                if ArrayBuilder::from_arrow(std::slice::from_ref(field)).is_err() {
                    let (name, kind) = (field.name(), field.data_type());
                    return Err(format!("column `{name}`: a file cannot have the type `{kind}`"));
                }
            }
            return Ok(Self {
                fields: fields.clone(),
                names: Some(names),
            });
        }
        let options = TracingOptions::default()
            .map_as_struct(false)
            .sequence_as_large_list(false)
            .strings_as_large_utf8(false)
            .bytes_as_large_binary(false)
            .enums_without_data_as_strings(true);
        let fields = Vec::<FieldRef>::from_type::<T>(options).map_err(|error| {
            let cause = error.message().trim_end().trim_end_matches('.');
            format!("the type of the items does not show its columns ({cause}); set the property `columns`")
        })?;
        Ok(Self { fields, names: None })
    }

    /// Compares the columns with the first item.
    ///
    /// # Errors
    /// If the items have no field for a column.
    pub(super) fn prepare<T: Serialize>(&mut self, first: &T) -> Result<(), String> {
        self.names.as_mut().map_or(Ok(()), |names| names.learn(first))
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.fields.clone()))
    }

    /// Returns the items as columns. Fails with the index of the bad item.
    pub(super) fn batch<T: Serialize>(&mut self, items: &[T]) -> Result<RecordBatch, (usize, String)> {
        let fields = &self.fields;
        let fail = |index: usize| move |error: serde_arrow::Error| (index, cause_of(fields, &error));
        let mut builder = ArrayBuilder::from_arrow(fields).map_err(fail(0))?;
        builder.reserve(items.len());
        for (index, item) in items.iter().enumerate() {
            let Some(names) = &mut self.names else {
                builder.push(item).map_err(fail(index))?;
                continue;
            };
            let mut row = Row::new(fields);
            let passed = names.fields_of(item, &mut row);
            let row = passed
                .and_then(|_| row.values())
                .map_err(|cause| (index, cause))?;
            builder.push(row).map_err(fail(index))?;
        }
        let arrays = builder.into_arrow().map_err(fail(0))?;
        RecordBatch::try_new(self.schema(), arrays).map_err(|error| (0, error.to_string()))
    }
}

/// Returns the type of a column, or a type in it, that Parquet stores as bare numbers or that no item fits, and what to do.
fn unwritable(kind: &DataType) -> Option<(&DataType, &'static str)> {
    let remedy = match kind {
        DataType::Date64 => "use `Date32` or `Timestamp(ms)`",
        DataType::Timestamp(TimeUnit::Second, None) => "use `Timestamp(ms)`",
        DataType::Timestamp(TimeUnit::Second, Some(_)) => "use `Timestamp(ms, \"UTC\")`",
        DataType::Time32(TimeUnit::Second) => "use `Time32(ms)`",
        DataType::Duration(_) => "use `Utf8`",
        DataType::Null | DataType::FixedSizeBinary(..=0) | DataType::FixedSizeList(_, ..=0) => {
            "it has no values"
        }
        DataType::Dictionary(key, value) => match (&**key, &**value) {
            (
                DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64,
                DataType::Utf8 | DataType::LargeUtf8,
            ) => return None,
            // A dictionary with fewer keys is full in the middle of a chunk.
            (_, DataType::Utf8 | DataType::LargeUtf8) => "use `Dictionary(Int32, Utf8)`",
            _ => "use the type of its values",
        },
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => return unwritable(field.data_type()),
        DataType::Struct(fields) => return fields.iter().find_map(|field| unwritable(field.data_type())),
        _ => return None,
    };
    Some((kind, remedy))
}

/// Returns the cause of an error with the column, if the error names it.
fn cause_of(fields: &[FieldRef], error: &serde_arrow::Error) -> String {
    // The path is only in the text.
    let text = error.to_string();
    let path = text
        .split_once("field: \"$.")
        .and_then(|(_, rest)| rest.split_once('"'));
    match path {
        Some((path, _)) => cause_in(path, fields, error),
        None => cause(error),
    }
}

/// Returns the cause of an error with the column at `path`.
pub(super) fn cause_in(path: &str, columns: &[FieldRef], error: &serde_arrow::Error) -> String {
    let name = path.split(['.', '[']).next().unwrap_or(path);
    let column = columns.iter().find(|column| column.name() == name);
    let of_type = column.map_or(String::new(), |column| format!(" of type {}", column.data_type()));
    format!("column `{path}`{of_type}: {}", cause(error))
}

/// Returns the cause of an error in the words of messages.
pub(super) fn cause(error: &serde_arrow::Error) -> String {
    let message = error.message();
    let message = message
        .strip_prefix("deserialization failed: ")
        .or_else(|| message.strip_prefix("serialization failed: "))
        .unwrap_or(message);
    if let ErrorKind::NullabilityViolation { .. } = error.kind() {
        return "it is null; a field of type `Option` accepts that".to_owned();
    }
    if let Some((_, kind)) = message.split_once("does not implement deserialize_") {
        return format!(
            "a field of type {} cannot have its values",
            kind.trim_end_matches("_at")
        );
    }
    if let Some((_, kind)) = message.split_once("does not support serialize_") {
        return format!("it cannot have values of type {kind}");
    }
    message.to_owned()
}
