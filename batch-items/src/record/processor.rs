//! Mapping and filtering of records.

use std::str::FromStr;

use batch_runtime::prelude::*;

use super::condition::{Condition, constants, literal};
use super::field::{Field, MappingError};
use super::value::{Record, Value};

/// Maps and filters records by properties; registered as `recordProcessor`.
///
/// | property | default | |
/// |---|---|---|
/// | `where` | none | conditions that a record has to meet, joined by `and`: `delay > 15 and origin ~ '^M' and note is not null`; other records are filtered |
/// | `fields` | all | the fields of the result, separated by commas; `airport=origin` renames `origin` |
/// | `set` | none | constants, separated by commas: `currency=EUR, loaded=true`; a text in single quotes may contain a comma |
/// | `types` | none | types of fields, separated by commas: `delay=int, amount=float, paid=bool, id=text` |
/// | `trim` | `false` | `true` removes blanks around texts |
///
/// A field that records may lack has a `?` after its name, and is null there: `note? is null`, `id, note?`, `delay?=int`. Without it, such a
/// record is a [`MappingError`].
///
/// `where` compares with `=`, `!=`, `<`, `<=`, `>` and `>=`, matches regular expressions with `~` and `!~`, and tests `is null` and
/// `is not null`. All conditions have to hold: there is no `or`, and no arithmetic. Texts are in single quotes. A number is compared with
/// numbers only: another value in its field is a [`MappingError`]. All else is compared as text. The properties are applied in this
/// order: `trim`, `where`, `types`, `fields`, `set`.
///
/// ```xml
/// <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordTableWriter">
///   <properties>
///     <property name="where" value="delay > 15"/>
///     <property name="fields" value="airport=origin, delay"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct RecordProcessor {
    #[batch_property(name = "where", value = "")]
    condition: Condition,
    #[batch_property(name = "fields", value = "")]
    fields: Distinct<Renamed>,
    #[batch_property(name = "set", value = "")]
    set: Distinct<Constant>,
    #[batch_property(name = "types", value = "")]
    types: Distinct<Typed>,
    #[batch_property(name = "trim", value = "false")]
    trim: bool,
}

/// `new=old`, or a name that stays.
pub(super) struct Renamed {
    pub(super) name: String,
    pub(super) from: Field,
}

/// `name=value`
struct Constant {
    name: String,
    value: Value,
}

/// `name=type`
struct Typed {
    field: Field,
    ty: Type,
}

/// A list of distinct names: of two equal ones, one value would replace the other.
struct Distinct<T>(Vec<T>);

impl<T: FromStr<Err = String> + Named> FromStr for Distinct<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut values: Vec<T> = Vec::new();
        for part in constants(text, ',').filter(|_| !text.trim().is_empty()) {
            let value: T = part.trim().parse()?;
            if values.iter().any(|other| other.name() == value.name()) {
                return Err(format!("the name `{}` is there twice; remove one", value.name()));
            }
            values.push(value);
        }
        Ok(Self(values))
    }
}

/// A value of a list that names a field.
trait Named {
    fn name(&self) -> &str;
}

impl Named for Renamed {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Constant {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Typed {
    fn name(&self) -> &str {
        &self.field.name
    }
}

#[derive(Clone, Copy)]
enum Type {
    Int,
    Float,
    Bool,
    Text,
}

crate::choices! {
    Type { "int" => Int, "float" => Float, "bool" => Bool, "text" => Text }
}

impl FromStr for Renamed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, from) = text
            .split_once('=')
            .unwrap_or((text.trim_end().trim_end_matches('?'), text));
        let (name, from) = (name.trim().to_owned(), Field::named(from.trim()));
        if name.is_empty() || from.name.is_empty() {
            return Err("expected the name of a field, or `new=old`".to_owned());
        }
        Ok(Self { name, from })
    }
}

impl FromStr for Constant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected `name=value`")?;
        Ok(Self {
            name: name.trim().to_owned(),
            value: literal(value),
        })
    }
}

impl FromStr for Typed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, ty) = text.split_once('=').ok_or("expected `name=type`")?;
        Ok(Self {
            field: Field::named(name.trim()),
            ty: ty.trim().parse()?,
        })
    }
}

impl Type {
    fn convert(self, value: &Value) -> Option<Value> {
        match self {
            _ if value.is_null() => Some(Value::Null),
            Self::Int => value.as_i64().map(Value::Int),
            Self::Float => value.as_f64().map(Value::Float),
            Self::Bool => value.as_bool().map(Value::Bool),
            Self::Text => Some(Value::Text(value.to_string())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Int => "an integer",
            Self::Float => "a number",
            Self::Bool => "`true` or `false`",
            Self::Text => "a text",
        }
    }
}

#[item_processor("recordProcessor")]
impl RecordProcessor {
    /// Maps a record, or filters it.
    #[process_item]
    pub fn process(&mut self, mut record: Record) -> Result<Option<Record>, MappingError> {
        if self.trim {
            record = record
                .iter()
                .map(|(name, value)| match value {
                    Value::Text(text) => (name, text.trim().into()),
                    _ => (name, value.clone()),
                })
                .collect();
        }
        if !self.condition.holds(&record)? {
            return Ok(None);
        }
        for Typed { field, ty } in &self.types.0 {
            let (name, value) = (&field.name, field.of(&record)?);
            let converted = ty.convert(value);
            let converted = converted.ok_or_else(|| MappingError::of_field(&record, name, ty.name()))?;
            record.set(name, converted);
        }
        if !self.fields.0.is_empty() {
            let mut fields = Vec::with_capacity(self.fields.0.len());
            for Renamed { name, from } in &self.fields.0 {
                fields.push((name.as_str(), from.of(&record)?.clone()));
            }
            record = fields.into_iter().collect();
        }
        for Constant { name, value } in &self.set.0 {
            record.set(name, value.clone());
        }
        Ok(Some(record))
    }
}

impl<'n> FromIterator<(&'n str, Value)> for Record {
    fn from_iter<I: IntoIterator<Item = (&'n str, Value)>>(fields: I) -> Self {
        let mut record = Self::new();
        fields
            .into_iter()
            .for_each(|(name, value)| record.set(name, value));
        record
    }
}
