//! Records: names and values.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

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
    /// A text. All values of a file of text are.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Record {
    /// Creates a record without values.
    pub fn new() -> Self {
        Self::default()
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
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.names.iter().map(String::as_str).zip(&self.values)
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
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
    /// Returns whether there is no value.
    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// Returns a text as it is, and nothing for other values.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an integer, or a text that is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns a number, or a text that is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            // The nearest float of a large integer.
            Self::Int(value) => Some(*value as f64),
            Self::Text(text) => text.trim().parse().ok(),
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
            Self::Text(value) => value.fmt(f),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
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
            Self::Text(value) => serializer.serialize_str(value),
            Self::Bytes(value) => serializer.serialize_bytes(value),
        }
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        self.iter()
            .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// The name by which a value asks the deserializer of a row of text for the text as it is: `007` is not the number 7.
pub(crate) const TEXT: &str = "batch_items::Value";

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TEXT, ValueVisitor)
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
        Ok(i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Int))
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
        let json = serde_json::Value::deserialize(de::value::SeqAccessDeserializer::new(elements))?;
        Ok(Value::Text(json.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Value, A::Error> {
        let json = serde_json::Value::deserialize(de::value::MapAccessDeserializer::new(fields))?;
        Ok(Value::Text(json.to_string()))
    }
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
        let mut names = Names { names, next: 0 };
        let mut values = Vec::with_capacity(names.names.len());
        while fields.next_key_seed(&mut names)?.is_some() {
            values.push(fields.next_value()?);
        }
        let Names { mut names, next } = names;
        if names.len() > next {
            Arc::make_mut(&mut names).truncate(next);
        }
        LAST_NAMES.set(Arc::clone(&names));
        Ok(Record { names, values })
    }
}

thread_local! {
    /// The names of the last record of this thread. The next one usually has the same and shares them.
    static LAST_NAMES: std::cell::Cell<Arc<Vec<String>>> = std::cell::Cell::default();
}

/// Compares each name with that of the last record, and copies the names once one differs.
struct Names {
    names: Arc<Vec<String>>,
    next: usize,
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
        }
        self.next += 1;
        Ok(())
    }
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
