//! The columns of items: their names and types, as items are written and as they are read.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_arrow::schema::{SchemaLike, TracingOptions};
use serde_arrow::{ArrayBuilder, ErrorKind};

use crate::nearest::did_you_mean;
use crate::record::decimal;
use crate::rows::{FieldSink, FieldValue, Names, fields_of};

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
    /// The columns other than decimals.
    plain: Vec<FieldRef>,
    decimals: Vec<DecimalColumn>,
    /// The fields of items for the columns, if the type of the items does not show them or there are decimals.
    names: Option<Names>,
}

/// A column of decimals. Their digits are converted here: `serde_arrow` cuts floats off, and takes no integers.
struct DecimalColumn {
    index: usize,
    precision: u8,
    scale: i8,
    values: Vec<Option<i128>>,
}

impl DecimalColumn {
    fn of((index, field): (usize, &FieldRef)) -> Option<Self> {
        let DataType::Decimal128(precision, scale) = *field.data_type() else {
            return None;
        };
        Some(Self {
            index,
            precision,
            scale,
            values: Vec::new(),
        })
    }

    /// Adds a value, and returns it as text if the type does not hold it.
    fn push(&mut self, value: FieldValue<'_>) -> Result<(), String> {
        let text = match value {
            FieldValue::Null => {
                self.values.push(None);
                return Ok(());
            }
            FieldValue::Int(value) => value.to_string(),
            FieldValue::Float(value) => zmij::Buffer::new().format(value).to_owned(),
            FieldValue::Number(text) | FieldValue::Text(text) => text.to_owned(),
            FieldValue::Bool(value) => return Err(value.to_string()),
            FieldValue::Bytes(_) => return Err("bytes".to_owned()),
        };
        let value =
            decimal::unscaled(&text, self.precision, self.scale).ok_or_else(|| format!("{text:?}"))?;
        self.values.push(Some(value));
        Ok(())
    }
}

/// Takes the decimals of an item.
struct Decimals<'c> {
    columns: &'c mut [DecimalColumn],
    fields: &'c [FieldRef],
    error: Option<String>,
}

impl FieldSink for Decimals<'_> {
    fn field(&mut self, index: usize, value: FieldValue<'_>) {
        let Some(column) = self.columns.iter_mut().find(|column| column.index == index) else {
            return;
        };
        if let Err(value) = column.push(value) {
            let field = &self.fields[index];
            let (name, kind) = (field.name(), field.data_type());
            let error = format!("column `{name}` of type {kind}: it cannot hold {value} exactly");
            self.error.get_or_insert(error);
        }
    }
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
            let mut columns = Self::new(fields.clone());
            if known.is_none() || !columns.decimals.is_empty() {
                let mut names = Names::default();
                names.select(selected.iter().map(String::as_str));
                columns.names = Some(names);
            }
            return Ok(columns);
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
        Ok(Self::new(fields))
    }

    fn new(fields: Vec<FieldRef>) -> Self {
        let decimals: Vec<_> = fields.iter().enumerate().filter_map(DecimalColumn::of).collect();
        let is_plain = |field: &&FieldRef| !matches!(field.data_type(), DataType::Decimal128(..));
        Self {
            plain: fields.iter().filter(is_plain).cloned().collect(),
            decimals,
            names: None,
            fields,
        }
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
        self.take_decimals(items)?;
        let schema = self.schema();
        let mut arrays = self.plain_arrays(items)?;
        let refused = |error: ArrowError| (0, error.to_string());
        for column in &mut self.decimals {
            let values = Decimal128Array::from(std::mem::take(&mut column.values));
            let values = values.with_precision_and_scale(column.precision, column.scale);
            arrays.insert(column.index, Arc::new(values.map_err(refused)?));
        }
        RecordBatch::try_new(schema, arrays).map_err(refused)
    }

    /// Returns the columns other than decimals.
    fn plain_arrays<T: Serialize>(&self, items: &[T]) -> Result<Vec<ArrayRef>, (usize, String)> {
        if self.plain.is_empty() {
            return Ok(Vec::new());
        }
        let fail = |index: usize| move |error: serde_arrow::Error| (index, cause_of(&self.fields, &error));
        let mut builder = ArrayBuilder::from_arrow(&self.plain).map_err(fail(0))?;
        builder.reserve(items.len());
        for (index, item) in items.iter().enumerate() {
            builder.push(item).map_err(fail(index))?;
        }
        builder.into_arrow().map_err(fail(0))
    }

    /// Converts the decimals of the items, and checks that the items have all fields.
    fn take_decimals<T: Serialize>(&mut self, items: &[T]) -> Result<(), (usize, String)> {
        let Some(names) = &mut self.names else {
            return Ok(());
        };
        self.decimals.iter_mut().for_each(|column| column.values.clear());
        for (index, item) in items.iter().enumerate() {
            let mut decimals = Decimals {
                columns: &mut self.decimals,
                fields: &self.fields,
                error: None,
            };
            names
                .fields_of(item, &mut decimals)
                .map_err(|cause| (index, cause))?;
            if let Some(error) = decimals.error {
                return Err((index, error));
            }
            // A field that the item lacks is null.
            let missing = self
                .decimals
                .iter_mut()
                .filter(|column| column.values.len() == index);
            missing.for_each(|column| column.values.push(None));
        }
        Ok(())
    }
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
