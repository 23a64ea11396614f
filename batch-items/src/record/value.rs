//! Records: names and values.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{self, Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::decimal;
use super::lists::{is_list, twice};
use super::nested::{AS_IT_IS, Hex, Lists, Name, Nested, Object, is_xml};

/// An item without a Rust type: values by name, in the order of the input.
///
/// Readers and writers of this crate that are generic over the item take records as well; some are registered under names, so that
/// Job XML alone makes a job: see [the list](crate#records).
///
/// ```
/// use batch_items::Record;
///
/// let mut record = Record::new();
/// record.set("origin", "MUC");
/// record.set("delay", 5);
/// assert_eq!(record.get("delay").and_then(|value| value.as_i64()), Some(5));
/// assert_eq!(record.to_string(), "origin=MUC delay=5");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Shared by the records of a file.
    names: Arc<Vec<String>>,
    values: Vec<Value>,
}

/// A value of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value: null in a database and in JSON, an empty field in a file of text.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// The digits of a number that is neither an `i64` nor exactly an `f64`, and decimals of databases: they keep their value.
    Decimal(String),
    /// A text. All values of a file of text are.
    Text(String),
    /// A list or object of JSON, as JSON: a text for all but JSON.
    Json(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Record {
    /// Creates a record without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a record of as many values as names, which other records share.
    #[doc(hidden)]
    pub fn of(names: &Arc<Vec<String>>, values: Vec<Value>) -> Self {
        Self {
            names: Arc::clone(names),
            values,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.index(name).map(|index| &self.values[index])
    }

    /// Sets the value of a name, which is added at the end if it is new.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        match self.index(name) {
            Some(index) => self.values[index] = value.into(),
            None => {
                Arc::make_mut(&mut self.names).push(name.to_owned());
                self.values.push(value.into());
            }
        }
    }

    /// Removes a value and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.index(name)?;
        Arc::make_mut(&mut self.names).remove(index);
        Some(self.values.remove(index))
    }

    /// Returns the names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> + Clone {
        self.names.iter().map(String::as_str).zip(&self.values)
    }

    /// Returns the first field, which names the record in a message; not all fields, because they may be confidential. `None` if it is
    /// `except`, a list, an object or bytes.
    pub(crate) fn first_field(&self, except: &str) -> Option<String> {
        let (name, value) = self.iter().next().filter(|(name, _)| *name != except)?;
        let is_long = matches!(value, Value::Json(_) | Value::Bytes(_));
        (!is_long).then(|| format!("`{name}` {}", value.shown()))
    }

    /// Returns a field and where it is. `guess` is looked at first.
    pub(super) fn find(&self, name: &str, guess: usize) -> Option<(usize, &Value)> {
        let at = match self.names.get(guess) {
            Some(other) if other == name => guess,
            _ => self.index(name)?,
        };
        Some((at, &self.values[at]))
    }

    pub(super) fn names(&self) -> &Arc<Vec<String>> {
        &self.names
    }

    /// Replaces the value of a field that [`find`](Self::find) has found.
    pub(super) fn replace(&mut self, index: usize, value: Value) {
        self.values[index] = value;
    }

    /// Adds values; `names` are the names of the record and the new ones.
    pub(crate) fn extend(&mut self, names: &Arc<Vec<String>>, values: impl IntoIterator<Item = Value>) {
        self.names = Arc::clone(names);
        self.values.extend(values);
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.values
    }

    /// Removes blanks around texts.
    pub(super) fn trim(&mut self) {
        for value in &mut self.values {
            if let Value::Text(text) = value
                && text.trim().len() < text.len()
            {
                *text = text.trim().to_owned();
            }
        }
    }

    /// Replaces texts that mean null.
    pub(super) fn nullify(&mut self, texts: &[String]) {
        for value in &mut self.values {
            if let Value::Text(text) = value
                && texts.contains(text)
            {
                *value = Value::Null;
            }
        }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
    }
}

/// The names of records before and after fields are added: records of a file share both.
#[derive(Default)]
pub(crate) struct ExtendedNames {
    before: Arc<Vec<String>>,
    after: Arc<Vec<String>>,
}

impl ExtendedNames {
    /// Returns the names of a record with new ones after them. Fails with one that the record has already.
    pub(crate) fn after<'n>(
        &mut self,
        record: &Record,
        added: &'n [String],
    ) -> Result<&Arc<Vec<String>>, &'n str> {
        if !Arc::ptr_eq(&self.before, &record.names) {
            if let Some(name) = added.iter().find(|name| record.names.contains(name)) {
                return Err(name);
            }
            self.before = Arc::clone(&record.names);
            self.after = Arc::new(record.names.iter().chain(added).cloned().collect());
        }
        Ok(&self.after)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            let blank = if index > 0 { " " } else { "" };
            write!(f, "{blank}{name}={value}")?;
        }
        Ok(())
    }
}

impl Value {
    /// Returns the value in quotes for a message; a long one is cut.
    pub(crate) fn shown(&self) -> String {
        /// In characters.
        const LONGEST: usize = 60;
        let text = self.to_string();
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{:?}..", &text[..end]),
            None => format!("{text:?}"),
        }
    }

    /// Returns whether there is no value.
    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// Returns whether two values are equal: numbers of any type by their value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_number = |value: &Self| matches!(value, Self::Int(_) | Self::Float(_) | Self::Decimal(_));
        self == other
            || (is_number(self)
                && is_number(other)
                && decimal::compare(&self.to_string(), &other.to_string()).is_some_and(Ordering::is_eq))
    }

    /// Returns a text as it is, or the digits of a decimal, and nothing for other values.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Decimal(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an integer, or a text that is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Decimal(text) => decimal::integer(text),
            // One without a fraction, such as `1.0` or `1e2` of JSON.
            Self::Float(value) => decimal::integer(&value.to_string()),
            _ => None,
        }
    }

    /// Returns a number, or a text that is one. A number that would become infinite or zero is none.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            // The nearest float of a large integer.
            Self::Int(value) => Some(*value as f64),
            Self::Text(text) | Self::Decimal(text) => decimal::float(text.trim()),
            _ => None,
        }
    }

    /// Returns a boolean, or a text that is `true` or `false`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) | Self::Json(value) | Self::Decimal(value) => value.fmt(f),
            // As a text that a column of bytes takes.
            Self::Bytes(bytes) => Hex(bytes).fmt(f),
        }
    }
}

macro_rules! from {
    ($($ty:ty: $variant:ident;)*) => {$(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from! {
    bool: Bool;
    i32: Int;
    i64: Int;
    u32: Int;
    f64: Float;
    &str: Text;
    String: Text;
    Vec<u8>: Bytes;
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Json(json) => match serde_json::from_str::<&RawValue>(json) {
                Ok(json) if is_json::<S>() => json.serialize(serializer),
                _ => serializer.serialize_str(json),
            },
            Self::Decimal(digits) => serialize_decimal(digits, serializer),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Bytes(_) if is_json::<S>() || is_xml::<S>() => serializer.collect_str(self),
            Self::Bytes(value) => serializer.serialize_bytes(value),
        }
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unnamed = || self.names.iter().filter(|name| name.is_empty());
        if is_json::<S>() && unnamed().count() > 1 {
            return Err(ser::Error::custom("two fields have no name"));
        }
        let mut map = serializer.serialize_map(Some(self.len()))?;
        self.iter()
            .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// Returns whether a serializer writes JSON.
fn is_json<S>() -> bool {
    thread_local! {
        /// The names of the last serializers, and whether they write JSON. A writer uses two in turn.
        static LAST: Cell<[(&'static str, bool); 2]> = const { Cell::new([("", false); 2]) };
    }
    let name = std::any::type_name::<S>();
    let last = LAST.get();
    if let Some((_, is_json)) = last.iter().find(|(last, _)| std::ptr::eq(*last, name)) {
        return *is_json;
    }
    let is_json = name.contains("serde_json::ser::Serializer<");
    LAST.set([(name, is_json), last[0]]);
    is_json
}

/// The name of the newtype as which a serializer gets the digits of a decimal.
pub(crate) const NUMBER: &str = "batch_items::Number";

/// Writes a number: in JSON as it is. To other serializers it is a newtype around a text, as decimals are in serde.
fn serialize_decimal<S: Serializer>(digits: &str, serializer: S) -> Result<S::Ok, S::Error> {
    if is_json::<S>()
        && let Ok(number) = serde_json::from_str::<&RawValue>(digits)
    {
        return number.serialize(serializer);
    }
    serializer.serialize_newtype_struct(NUMBER, digits)
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(*AS_IT_IS, ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        // A larger one keeps its digits.
        Ok(i64::try_from(value).map_or_else(|_| Value::Decimal(value.to_string()), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(value.to_vec()))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, elements: A) -> Result<Value, A::Error> {
        let mut json = String::new();
        Nested::new(&mut json).visit_seq(elements)?;
        Ok(Value::Json(json))
    }

    /// A map is an object, or JSON as it is.
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut json = String::new();
        let mut object = Object::new(Nested::new(&mut json));
        while let Some(name) = fields.next_key::<Name>()? {
            if name.asks_for_text() {
                return fields.next_value_seed(Json);
            }
            object.field(&name.0, &mut fields)?;
        }
        let only = object.only().map(str::to_owned);
        object.end();
        if !is_xml::<A>() {
            return Ok(Value::Json(json));
        }
        // The text of an XML element, or an element without a value.
        Ok(match only.as_deref() {
            _ if json == "{}" => Value::Null,
            Some("@nil") if [r#"{"@nil":"true"}"#, r#"{"@nil":"1"}"#].contains(&json.as_str()) => Value::Null,
            Some("$text") => {
                let text = &json[r#"{"$text":"#.len()..json.len() - 1];
                Value::Text(serde_json::from_str(text).map_err(de::Error::custom)?)
            }
            _ => Value::Json(json),
        })
    }
}

/// Reads a value from its JSON.
struct Json;

impl<'de> DeserializeSeed<'de> for Json {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Json {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E: de::Error>(self, json: &str) -> Result<Value, E> {
        of_json(json).map_err(E::custom)
    }
}

/// Returns the value of a JSON text. Lists and objects stay JSON.
fn of_json(json: &str) -> serde_json::Result<Value> {
    Ok(match json.as_bytes().first() {
        Some(b'"') => Value::Text(serde_json::from_str(json)?),
        Some(b'{' | b'[') => Value::Json(decimal::compact(json)),
        Some(b'n') => Value::Null,
        Some(b't' | b'f') => Value::Bool(serde_json::from_str(json)?),
        _ => number(json).unwrap_or_else(|| Value::Decimal(json.to_owned())),
    })
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordVisitor)
    }
}

struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record with names; a file without a header line needs the property `columns`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Record, A::Error> {
        let names = LAST_NAMES.take();
        let mut names = Names {
            names,
            next: 0,
            are_new: false,
        };
        let mut values = Vec::with_capacity(names.names.len());
        let mut lists = Lists::default();
        while fields.next_key_seed(&mut names)?.is_some() {
            if is_list(names.last()) && is_xml::<A>() {
                lists.add(names.last(), &mut fields)?;
                names.next -= 1;
                continue;
            }
            let value: Value = fields.next_value()?;
            // The reader of XML may have added this declaration.
            if value.as_str() == Some(SCHEMA_INSTANCE) && names.last().starts_with("@xmlns") && is_xml::<A>()
            {
                names.next -= 1;
            } else {
                values.push(value);
            }
        }
        for (name, json) in lists.into_json() {
            (&mut names).visit_str::<A::Error>(&name)?;
            values.push(Value::Json(json));
        }
        let Names {
            mut names,
            next,
            are_new,
        } = names;
        if are_new && let Some(name) = named_twice(&names[..next.min(names.len())]) {
            return Err(twice(name, is_xml::<A>()));
        }
        if names.len() > next {
            Arc::make_mut(&mut names).truncate(next);
        }
        LAST_NAMES.set(Arc::clone(&names));
        Ok(Record { names, values })
    }
}

/// The namespace of `xsi:nil`.
pub(crate) const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

thread_local! {
    /// The names of the last record of this thread. The next one usually has the same and shares them.
    static LAST_NAMES: Cell<Arc<Vec<String>>> = Cell::default();
}

/// Compares each name with the name in the last record, and copies the names once one differs.
struct Names {
    names: Arc<Vec<String>>,
    next: usize,
    /// Whether one differs.
    are_new: bool,
}

impl Names {
    /// Returns the current name.
    fn last(&self) -> &str {
        &self.names[self.next - 1]
    }
}

/// Returns a name that occurs twice. Columns without a name are told apart by their order.
fn named_twice(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::with_capacity(names.len());
    names
        .iter()
        .find(|name| !name.is_empty() && !seen.insert(name.as_str()))
}

impl<'de> DeserializeSeed<'de> for &mut Names {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de> Visitor<'de> for &mut Names {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        if self.names.get(self.next).is_none_or(|last| last != name) {
            let names = Arc::make_mut(&mut self.names);
            names.truncate(self.next);
            names.push(name.to_owned());
            self.are_new = true;
        }
        self.next += 1;
        Ok(())
    }
}

/// Returns a number as a value that holds it exactly; `None` if the text is not a number.
pub(crate) fn number(text: &str) -> Option<Value> {
    if let Ok(value) = text.parse() {
        return Some(Value::Int(value));
    }
    if !decimal::is_number(text) {
        return None;
    }
    // A large integer keeps its digits: as a float it would be shown as `1e20`.
    let is_integer = !text.contains(['.', 'e', 'E']);
    Some(match text.parse() {
        Ok(value) if !is_integer && decimal::is_float(text) => Value::Float(value),
        _ => Value::Decimal(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Record {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn records_keep_order_types_and_their_own_names() {
        let first = parse(r#"{"b":1,"a":"x","c":null}"#);
        let second = parse(r#"{"b":2.5,"a":true}"#);
        let third = parse(r#"{"b":18446744073709551615,"x":[1,{"y":2}]}"#);
        assert_eq!(first.to_string(), "b=1 a=x c=");
        assert_eq!(second.to_string(), "b=2.5 a=true");
        assert_eq!(third.to_string(), "b=18446744073709551615 x=[1,{\"y\":2}]");
        assert_eq!(
            serde_json::to_string(&first).unwrap(),
            r#"{"b":1,"a":"x","c":null}"#
        );
        assert_eq!(parse("{}").len(), 0);
    }

    /// As `types` converts it.
    #[test]
    fn a_number_beyond_floats_is_no_float() {
        assert_eq!(Value::from("1e400").as_f64(), None);
    }

    /// Numbers and nested values stay as they are.
    // Spec: ITEM-VALUE-02
    #[test]
    fn json_keeps_its_values() {
        for json in [
            r#"{"v":18446744073709551615}"#,
            r#"{"v":12345678901234567890123}"#,
            r#"{"v":-12345678901234567890123.450}"#,
            r#"{"v":1234567890123456.78}"#,
            r#"{"v":0.1}"#,
            r#"{"v":1e400}"#,
            r#"{"v":0.30000000000000004}"#,
            r#"{"v":9223372036854775807}"#,
        ] {
            assert_eq!(serde_json::to_string(&parse(json)).unwrap(), json);
        }
        let nested = parse(r#"{ "v" : { "b" : 1234567890123456.78, "a" : [ "x \" y", null ] } }"#);
        assert_eq!(
            nested.to_string(),
            r#"v={"b":1234567890123456.78,"a":["x \" y",null]}"#
        );
        let escaped = parse(r#"{"v":"a\"\u00e9\n","w":false,"x":null}"#);
        assert_eq!(escaped.get("v"), Some(&Value::Text("a\"é\n".into())));
        assert_eq!(escaped.get("w"), Some(&Value::Bool(false)));
        assert_eq!(escaped.get("x"), Some(&Value::Null));
    }

    // Spec: ITEM-VALUE-01
    #[test]
    fn two_fields_of_one_name_are_an_error() {
        for json in [r#"{"a":1,"a":9}"#, r#"{"a":1,"b":2,"a":null}"#] {
            parse(r#"{"a":1,"b":2}"#);
            let error = serde_json::from_str::<Record>(json).unwrap_err().to_string();
            assert!(error.starts_with("two fields have the name `a`"), "{error}");
        }
    }

    /// Columns without a name have an order, which JSON does not have.
    // Spec: ITEM-VALUE-01
    #[test]
    fn json_has_one_field_without_a_name() {
        assert_eq!(serde_json::to_string(&parse(r#"{"":1}"#)).unwrap(), r#"{"":1}"#);
        let error = serde_json::to_string(&parse(r#"{"":1,"a":2,"":3}"#)).unwrap_err();
        assert_eq!(error.to_string(), "two fields have no name");
    }

    // Spec: ITEM-VALUE-02
    #[test]
    fn nested_json_stays_json() {
        let json = r#"{"v":{"b":[1.50,null,"x"]},"w":[]}"#;
        assert_eq!(serde_json::to_string(&parse(json)).unwrap(), json);
    }

    /// Only XML has declarations, which its reader may have added.
    // Spec: ITEM-VALUE-02
    #[test]
    fn a_declaration_of_a_namespace_is_a_field_of_json() {
        let json = format!(r#"{{"@xmlns:xsi":"{SCHEMA_INSTANCE}","a":1}}"#);
        assert_eq!(serde_json::to_string(&parse(&json)).unwrap(), json);
    }

    #[test]
    fn a_change_does_not_affect_other_records() {
        let first = parse(r#"{"a":1,"b":2}"#);
        let mut second = parse(r#"{"a":3,"b":4}"#);
        assert!(Arc::ptr_eq(&first.names, &second.names));
        second.set("c", 5);
        second.set("a", "text");
        assert_eq!(second.remove("b"), Some(Value::Int(4)));
        assert_eq!(first.to_string(), "a=1 b=2");
        assert_eq!(second.to_string(), "a=text c=5");
    }
}
