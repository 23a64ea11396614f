//! Mapping and filtering of records.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;

use super::decimal;
use super::expression::{Condition, Expression, assignments, field};
use super::field::{Field, MappingError};
use super::value::{ExtendedNames, Record, Value};
use crate::formats;

/// Maps and filters records by properties; registered as `recordProcessor`.
///
/// | property | default | |
/// |---|---|---|
/// | `trim` | `false` | `true` removes blanks around texts |
/// | `nulls` | none | texts that are null, separated by commas: `NA, -` |
/// | `where` | none | a condition that a record has to meet: `delay > 15 and origin in ('MUC', 'FRA')`; other records are filtered |
/// | `types` | none | types of fields, separated by commas: `delay=int, amount=comma, day=date(%d.%m.%Y), paid=bool(J/N)` |
/// | `set` | none | computed fields, separated by commas: `gross=round(net * 1.19, 2), currency='EUR'` |
/// | `fields` | all | the fields of the result, separated by commas; `airport=origin` renames `origin`. Fields that `set` computes are in the result, too |
///
/// | type | reads | as |
/// |---|---|---|
/// | `int` | `16`, `16.0` | an integer |
/// | `decimal` | `1234.50` | a number with all its digits |
/// | `comma` | `1.234,50` | the same |
/// | `float` | `0.5`, `1e-3` | a number of 64 bits |
/// | `bool` or `bool(J/N)` | `true` and `false`, or the two texts | a boolean |
/// | `date(%d.%m.%Y)` | `30.11.2026`; a [pattern](crate::formats), with or without a time | a text in the form of ISO 8601 |
/// | `text` | anything | a text |
///
/// The properties are applied in this order. `where` and `set` are expressions in the syntax of SQL, see the guide; later expressions see a
/// computed field.
///
/// A field that records may lack has a `?` after its name, and is null there: `note? is null`, `id, note?`, `delay?=int`. Without it, such a
/// record is a [`MappingError`].
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
    #[batch_property(name = "trim", value = "false")]
    trim: bool,
    #[batch_property(name = "nulls")]
    nulls: Vec<String>,
    #[batch_property(name = "where", value = "")]
    condition: Condition,
    #[batch_property(name = "types", value = "")]
    types: Distinct<Typed>,
    #[batch_property(name = "set", value = "")]
    set: Computed,
    #[batch_property(name = "fields", value = "")]
    fields: Distinct<Renamed>,
    selection: Selection,
}

/// `new=old`, or a name that stays.
pub(crate) struct Renamed {
    pub(super) name: String,
    pub(super) from: Field,
}

/// `name=type`
struct Typed {
    field: Field,
    ty: Type,
}

/// Fields, each with its expression.
struct Computed(Vec<Assigned>);

struct Assigned {
    name: String,
    value: Expression,
    /// Where the field was in the last record.
    index: usize,
    names: ExtendedNames,
}

/// The names of the result of `fields`, and the records that have them.
#[derive(Default)]
struct Selection {
    of: Arc<Vec<String>>,
    names: Arc<Vec<String>>,
    /// Where the values are, and whether this is the last use of each.
    sources: Vec<(Option<usize>, bool)>,
}

/// A list of distinct names: of two equal ones, one value would replace the other.
pub(crate) struct Distinct<T>(Vec<T>);

impl Distinct<Renamed> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Renamed> {
        self.0.iter()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|field| field.name.as_str())
    }

    /// Returns the values that a record has.
    pub(crate) fn of(&self, record: &Record) -> Result<Vec<Value>, MappingError> {
        let values = self.0.iter().map(|field| field.from.of(record).cloned());
        values.collect()
    }
}

impl<T: FromStr<Err = String> + Named> FromStr for Distinct<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut values: Vec<T> = Vec::new();
        for part in split(text).filter(|_| !text.trim().is_empty()) {
            let value: T = part.trim().parse()?;
            distinct(value.name(), values.iter().map(Named::name))?;
            values.push(value);
        }
        Ok(Self(values))
    }
}

fn distinct<'n>(name: &str, mut others: impl Iterator<Item = &'n str>) -> Result<(), String> {
    match others.any(|other| other == name) {
        true => Err(format!("the name `{name}` is there twice; remove one")),
        false => Ok(()),
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

impl Named for Typed {
    fn name(&self) -> &str {
        &self.field.name
    }
}

#[derive(Debug, PartialEq)]
enum Type {
    Int,
    Decimal,
    Comma,
    Float,
    /// The texts of `true` and `false`.
    Bool(String, String),
    Date(String),
    Text,
}

impl FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let argument = text.strip_suffix(')').and_then(|text| text.split_once('('));
        match (text, argument) {
            ("int", _) => Ok(Self::Int),
            ("decimal", _) => Ok(Self::Decimal),
            ("comma", _) => Ok(Self::Comma),
            ("float", _) => Ok(Self::Float),
            ("bool", _) => Ok(Self::Bool("true".to_owned(), "false".to_owned())),
            ("text", _) => Ok(Self::Text),
            (_, Some(("date", pattern))) => {
                formats::check_pattern(pattern).map(|()| Self::Date(pattern.to_owned()))
            }
            (_, Some(("bool", words))) => match words.split_once('/') {
                Some((yes, no)) if yes.trim() != no.trim() => {
                    Ok(Self::Bool(yes.trim().to_owned(), no.trim().to_owned()))
                }
                _ => Err(format!("expected two texts, such as `bool(J/N)`, found `{text}`")),
            },
            _ => Err(format!(
                "expected `int`, `decimal`, `comma`, `float`, `bool`, `bool(J/N)`, `date(%d.%m.%Y)` or `text`, found `{text}`"
            )),
        }
    }
}

impl FromStr for Renamed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, from) = split_name(text).unwrap_or((text, text));
        let is_renamed = name.len() < text.len();
        let (name, from) = (field(name)?, field(from)?);
        if is_renamed && name.may_lack {
            let (name, old) = (name.name, from.name);
            return Err(format!(
                "`{name}?`: the `?` follows the old name, `{name}={old}?`"
            ));
        }
        let name = name.name;
        if name.is_empty() || from.name.is_empty() {
            return Err("expected the name of a field, or `new=old`".to_owned());
        }
        Ok(Self { name, from })
    }
}

/// Splits at the first `=` that is not in quotes.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let at = outside(text, '=')?;
    Some((&text[..at], &text[at + 1..]))
}

/// Splits a list at its commas.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let list = rest?;
        let end = outside(list, ',');
        rest = end.map(|end| &list[end + 1..]);
        Some(&list[..end.unwrap_or(list.len())])
    })
}

/// Finds a character that is neither in the quotes of a name nor in the parentheses of a type.
fn outside(text: &str, wanted: char) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0_usize);
    text.find(|character| {
        match character {
            _ if quote == Some(character) => quote = None,
            _ if quote.is_some() => {}
            '"' | '`' => quote = Some(character),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        quote.is_none() && depth == 0 && character == wanted
    })
}

impl FromStr for Computed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut computed: Vec<Assigned> = Vec::new();
        for (name, value) in assignments(text)? {
            distinct(&name, computed.iter().map(|other| other.name.as_str()))?;
            computed.push(Assigned {
                name,
                value,
                index: 0,
                names: ExtendedNames::default(),
            });
        }
        Ok(Self(computed))
    }
}

impl FromStr for Typed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, ty) = split_name(text).ok_or("expected `name=type`")?;
        Ok(Self {
            field: field(name).and_then(|field| match field.name.is_empty() {
                true => Err("expected `name=type`".to_owned()),
                false => Ok(field),
            })?,
            ty: ty.trim().parse()?,
        })
    }
}

impl Type {
    /// Converts a value that is not null; a cause is complete, or is what was expected.
    fn convert(&self, value: &Value) -> Result<Value, Cow<'static, str>> {
        let shown = || {
            value
                .as_str()
                .map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
        };
        let (converted, expected) = match self {
            Self::Int => {
                let integer = value
                    .as_i64()
                    .or_else(|| decimal::integer(value.as_str()?.trim_ascii()));
                (integer.map(Value::Int), "an integer")
            }
            Self::Float => (value.as_f64().map(Value::Float), "a number"),
            Self::Decimal => (number_of(value), "a number"),
            Self::Comma => (
                match value {
                    Value::Text(text) => formats::point_of_comma(text)
                        .ok()
                        .and_then(|text| decimal::plain(&text).map(Value::Decimal)),
                    _ => number_of(value),
                },
                "a number such as `1.234,56`",
            ),
            Self::Bool(yes, no) => {
                let found = [(yes, true), (no, false)]
                    .into_iter()
                    .find(|(word, _)| *shown() == **word);
                match found {
                    Some((_, value)) => (Some(Value::Bool(value)), ""),
                    None => return Err(format!("`{yes}` or `{no}`").into()),
                }
            }
            Self::Date(pattern) => match formats::date_of(pattern, &shown()) {
                Ok(iso) => (Some(Value::Text(iso)), ""),
                Err(_) => return Err(format!("a date as `{pattern}`").into()),
            },
            Self::Text => (Some(Value::Text(value.to_string())), ""),
        };
        converted.ok_or(Cow::Borrowed(expected))
    }
}

/// Returns a number with all its digits.
fn number_of(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_) | Value::Float(_) | Value::Decimal(_) => Some(value.clone()),
        Value::Text(text) => decimal::plain(text.trim_ascii()).map(Value::Decimal),
        _ => None,
    }
}

impl Assigned {
    fn apply(&mut self, record: &mut Record) -> Result<(), MappingError> {
        let value = self.value.value(record)?;
        if let Some((index, _)) = record.find(&self.name, self.index) {
            self.index = index;
            record.replace(index, value);
            return Ok(());
        }
        let names = self.names.after(record, std::slice::from_ref(&self.name));
        let names =
            names.map_err(|name| MappingError::new(format!("the record has a field `{name}` already")))?;
        record.extend(names, [value]);
        Ok(())
    }
}

impl Selection {
    /// Finds the values of the result in records that have these names.
    fn new(record: &Record, fields: &[Renamed], computed: &[Assigned]) -> Result<Self, BatchError> {
        let (mut names, mut sources) = (Vec::new(), Vec::new());
        let mut add = |name: &str, from: &Field| -> Result<(), MappingError> {
            from.of(record)?;
            names.push(name.to_owned());
            sources.push((record.names().iter().position(|other| *other == from.name), true));
            Ok(())
        };
        for Renamed { name, from } in fields {
            add(name, from)?;
        }
        for Assigned { name, .. } in computed {
            let same = fields.iter().find(|field| field.name == *name);
            if let Some(Renamed { from, .. }) = same.filter(|field| field.from.name != *name) {
                return Err(ConfigurationError::new(format!(
                    "`set` computes the field `{name}`, which `fields` would replace by `{}`; give one of them another name",
                    from.name
                ))
                .into());
            }
            if same.is_none() {
                add(name, &Field::new(name.clone(), false))?;
            }
        }
        for at in 1..sources.len() {
            let (source, earlier) = (sources[at].0, &mut sources[..at]);
            earlier
                .iter_mut()
                .filter(|(other, _)| *other == source)
                .for_each(|(_, is_last)| *is_last = false);
        }
        Ok(Self {
            of: Arc::clone(record.names()),
            names: Arc::new(names),
            sources,
        })
    }

    fn apply(&self, record: Record) -> Record {
        let mut values = record.into_values();
        let selected = self.sources.iter().map(|(source, is_last)| match source {
            Some(source) if *is_last => std::mem::take(&mut values[*source]),
            Some(source) => values[*source].clone(),
            None => Value::Null,
        });
        let selected = selected.collect();
        Record::of(&self.names, selected)
    }
}

impl RecordProcessor {
    /// Returns whether all records stay as they are.
    pub(crate) fn does_nothing(&self) -> bool {
        let Self {
            trim,
            nulls,
            condition,
            types,
            set,
            fields,
            ..
        } = self;
        let maps = !(types.0.is_empty() && set.0.is_empty() && fields.0.is_empty());
        !(*trim || maps) && nulls.is_empty() && condition.is_empty()
    }
}

#[item_processor("recordProcessor")]
impl RecordProcessor {
    /// Maps a record, or filters it.
    #[process_item]
    pub fn process(&mut self, mut record: Record) -> Result<Option<Record>, BatchError> {
        if self.trim {
            record.trim();
        }
        if !self.nulls.is_empty() {
            record.nullify(&self.nulls);
        }
        if !self.condition.holds(&record)? {
            return Ok(None);
        }
        for Typed { field, ty } in &self.types.0 {
            let (name, value) = (&field.name, field.of(&record)?);
            if !value.is_null() {
                let converted = ty.convert(value);
                let converted =
                    converted.map_err(|expected| MappingError::of_field(&record, name, &expected))?;
                record.set(name, converted);
            }
        }
        for assigned in &mut self.set.0 {
            assigned.apply(&mut record)?;
        }
        if self.fields.0.is_empty() {
            return Ok(Some(record));
        }
        if !Arc::ptr_eq(&self.selection.of, record.names()) {
            self.selection = Selection::new(&record, &self.fields.0, &self.set.0)?;
        }
        Ok(Some(self.selection.apply(record)))
    }
}
