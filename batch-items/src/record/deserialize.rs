//! Deserializes records into types: rows of ODBC, and the keys and values of look-ups. A number or a boolean may be a text, and a text a number, as
//! long as no value is changed; a fraction is rounded to the precision of the type.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::value::{Record, Value};
use crate::rows::{RowError, TextValue};

/// Returns a record as an item. Fails with the cause.
#[doc(hidden)]
pub fn from_record<T: DeserializeOwned>(record: &Record) -> Result<T, String> {
    value_of(record, &[])
}

/// Returns the key of a record. Fails with the cause.
pub(crate) fn key_of<K: DeserializeOwned>(record: &Record, columns: &[String]) -> Result<K, String> {
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        match record.get(column) {
            None => return Err(format!("there is no column `{column}`, which `key` names")),
            Some(Value::Null) => return Err(format!("the column `{column}` of the key is empty")),
            Some(value) => values.push((column.as_str(), value)),
        }
    }
    let key = match values.as_slice() {
        [(name, value)] => K::deserialize(Field(value)).map_err(|error| format!("column `{name}`: {error}")),
        several => K::deserialize(Fields(several.iter().copied(), None)).map_err(|error| error.to_string()),
    };
    key.map_err(|cause| format!("the key cannot be read: {cause}"))
}

/// Returns the value of a record beside its key. Fails with the cause.
pub(crate) fn value_of<V: DeserializeOwned>(record: &Record, key: &[String]) -> Result<V, String> {
    V::deserialize(Row { record, key }).map_err(|error| error.to_string())
}

/// A record as a struct, or as its only value beside the key.
struct Row<'r> {
    record: &'r Record,
    key: &'r [String],
}

impl<'r> Row<'r> {
    fn only(&self) -> Result<Field<'r>, RowError> {
        let is_key = |name: &str| self.key.iter().any(|key| key == name);
        let mut others = self.record.iter().filter(|(name, _)| !is_key(name));
        match (others.next(), others.next()) {
            (Some((_, value)), None) => Ok(Field(value)),
            _ => {
                let beside = if self.key.is_empty() {
                    ""
                } else {
                    " beside the key"
                };
                Err(Error::custom(format_args!(
                    "a value that is not a struct needs exactly one column{beside}"
                )))
            }
        }
    }
}

macro_rules! only {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            self.only()?.$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Row<'de> {
    type Error = RowError;

    only! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_map(Fields(self.record.iter(), None))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! { unit unit_struct seq tuple tuple_struct map struct ignored_any }
}

/// The names and values of a record, with the value whose name was read last.
struct Fields<'r, I>(I, Option<(&'r str, &'r Value)>);

impl<'de, I: Iterator<Item = (&'de str, &'de Value)>> MapAccess<'de> for Fields<'de, I> {
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        self.1 = self.0.next();
        let Some((name, _)) = self.1 else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        let (name, value) = self.1.unwrap_or(("", &Value::Null));
        let named = |error| Error::custom(format_args!("column `{name}`: {error}"));
        seed.deserialize(Field(value))
            .map_err(|error: RowError| named(error))
    }
}

impl<'de, I: Iterator<Item = (&'de str, &'de Value)>> SeqAccess<'de> for Fields<'de, I> {
    type Error = RowError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, RowError> {
        let Some((name, value)) = self.0.next() else {
            return Ok(None);
        };
        let named = |error| Error::custom(format_args!("column `{name}`: {error}"));
        seed.deserialize(Field(value))
            .map(Some)
            .map_err(|error: RowError| named(error))
    }
}

impl<'de, I: Iterator<Item = (&'de str, &'de Value)>> Deserializer<'de> for Fields<'de, I> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// A value of a record.
#[derive(Clone, Copy)]
struct Field<'r>(&'r Value);

impl<'r> Field<'r> {
    fn text(self) -> Option<TextValue<'r>> {
        match self.0 {
            Value::Text(text) | Value::Decimal(text) => Some(TextValue(text)),
            _ => None,
        }
    }

    /// Returns the value as a float, if it is a number. An integer that a float does not have is an error.
    fn float(self) -> Result<Option<f64>, RowError> {
        match (self.0, self.0.as_f64()) {
            (Value::Int(exact), Some(float)) if float as i128 != i128::from(*exact) => Err(Error::custom(
                format_args!("a float does not hold {exact}; use an integer type"),
            )),
            (_, float) => Ok(float),
        }
    }

    /// Calls the visitor with the value as its type.
    fn typed<V: Visitor<'r>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Value::Null => Err(Error::custom("it is empty; the type `Option` accepts that")),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Decimal(text) | Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Json(json) => serde_json::Deserializer::from_str(json)
                .deserialize_any(visitor)
                .map_err(Error::custom),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
        }
    }
}

macro_rules! text_or_typed {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            match self.text() {
                Some(text) => text.$method(visitor),
                None => self.typed(visitor),
            }
        }
    )*};
}

macro_rules! numbers {
    ($of:ident $visit:ident: $($method:ident)*) => {$(
        /// A number of any type that has its value.
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            match (self.0.$of(), self.text()) {
                (Some(value), _) => visitor.$visit(value),
                (None, Some(text)) => text.$method(visitor),
                (None, None) => self.typed(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = RowError;

    numbers! { as_i64 visit_i64: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let value = self.float()?.filter(|value| value.is_finite());
        match value {
            Some(value) if (value as f32).is_infinite() => {
                Err(Error::custom(format_args!("{value} is too large for an `f32`")))
            }
            _ => self.deserialize_f64(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match (self.float()?, self.text()) {
            (Some(value), _) => visitor.visit_f64(value),
            (None, Some(text)) => text.deserialize_f64(visitor),
            (None, None) => self.typed(visitor),
        }
    }

    text_or_typed! {
        deserialize_any deserialize_i128 deserialize_u128 deserialize_char deserialize_bytes deserialize_byte_buf deserialize_identifier
        deserialize_seq deserialize_map
    }

    /// SQLite and some drivers have integers in place of booleans.
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match (self.0, self.text()) {
            (Value::Int(value @ (0 | 1)), _) => visitor.visit_bool(*value == 1),
            (_, Some(text)) => text.deserialize_bool(visitor),
            _ => self.typed(visitor),
        }
    }

    /// A number or a boolean is its text.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => visitor.visit_string(self.0.to_string()),
            Value::Json(json) => visitor.visit_borrowed_str(json),
            _ => self.typed(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        match self.text() {
            Some(text) => text.deserialize_enum(name, variants, visitor),
            None => self.typed(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.deserialize_map(visitor)
    }

    forward_to_deserialize_any! { unit unit_struct tuple_struct }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Account {
        customer: String,
        branch: Option<u16>,
        blocked: bool,
    }

    fn record(values: &[(&str, Value)]) -> Record {
        let mut record = Record::new();
        for (name, value) in values {
            record.set(name, value.clone());
        }
        record
    }

    fn columns(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    // Spec: ITEM-LOOKUP-01
    #[test]
    fn a_float_that_does_not_hold_the_number_is_an_error() {
        let read = |value: Value| from_record::<f64>(&record(&[("rate", value)]));
        assert_eq!(read(Value::Int(1 << 53)), Ok(9_007_199_254_740_992.0));
        let error = read(Value::Int((1 << 53) + 1)).unwrap_err();
        assert!(
            error.contains("a float does not hold 9007199254740993"),
            "{error}"
        );
        let error = from_record::<f32>(&record(&[("rate", Value::Float(1e39))])).unwrap_err();
        assert!(error.contains("is too large for an `f32`"), "{error}");
    }

    // Spec: ITEM-LOOKUP-01
    #[test]
    fn texts_and_typed_values_are_read_alike() {
        let text = record(&[
            ("account", "7".into()),
            ("customer", "Ada".into()),
            ("branch", "12".into()),
            ("blocked", "false".into()),
        ]);
        let typed = record(&[
            ("account", 7.into()),
            ("customer", "Ada".into()),
            ("branch", 12.into()),
            ("blocked", false.into()),
        ]);
        let expected = Account {
            customer: "Ada".to_owned(),
            branch: Some(12),
            blocked: false,
        };
        for record in [text, typed] {
            assert_eq!(key_of::<u32>(&record, &columns(&["account"])), Ok(7));
            let key = key_of::<(u32, String)>(&record, &columns(&["account", "customer"]));
            assert_eq!(key, Ok((7, "Ada".to_owned())));
            assert_eq!(
                value_of::<Account>(&record, &columns(&["account"])).as_ref(),
                Ok(&expected)
            );
            let map = value_of::<BTreeMap<String, Value>>(&record, &columns(&["account"])).unwrap();
            assert_eq!(map["customer"], "Ada".into());
        }
    }

    // Spec: ITEM-LOOKUP-01
    #[test]
    fn the_only_other_column_is_a_value() {
        let rate = record(&[("currency", "USD".into()), ("rate", "1.25".into())]);
        assert_eq!(value_of::<f64>(&rate, &columns(&["currency"])), Ok(1.25));
        let error = value_of::<f64>(&rate, &columns(&["other"])).unwrap_err();
        assert_eq!(
            error,
            "a value that is not a struct needs exactly one column beside the key"
        );
    }

    // Spec: ITEM-LOOKUP-01, ODBC-01
    #[test]
    fn values_of_databases_have_the_type_of_the_field() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Row {
            flag: bool,
            padded: i64,
            whole: u16,
            rate: f64,
            number: String,
            large: u64,
        }
        let row = |whole: Value| {
            record(&[
                ("flag", 1.into()),
                ("padded", "7   ".into()),
                ("whole", whole),
                ("rate", Value::Decimal("1.25".to_owned())),
                ("number", 5.into()),
                ("large", Value::Decimal(u64::MAX.to_string())),
            ])
        };
        let expected = Row {
            flag: true,
            padded: 7,
            whole: 3,
            rate: 1.25,
            number: "5".to_owned(),
            large: u64::MAX,
        };
        assert_eq!(
            from_record::<Row>(&row(Value::Decimal("3.00".to_owned()))),
            Ok(expected)
        );
        for changed in [
            Value::Decimal("3.50".to_owned()),
            70_000.into(),
            (-1).into(),
            3.5.into(),
        ] {
            assert!(from_record::<Row>(&row(changed.clone())).is_err(), "{changed:?}");
        }
    }

    // Spec: ITEM-LOOKUP-01
    #[test]
    fn what_cannot_be_read_is_named() {
        let row = record(&[
            ("account", Value::Null),
            ("customer", Value::Null),
            ("branch", "x".into()),
            ("blocked", false.into()),
        ]);
        let errors = [
            key_of::<u32>(&row, &columns(&["account"])).unwrap_err(),
            key_of::<u32>(&row, &columns(&["branch"])).unwrap_err(),
            key_of::<u32>(&row, &columns(&["number"])).unwrap_err(),
            value_of::<Account>(&row, &columns(&["account"])).unwrap_err(),
        ];
        assert_eq!(
            errors,
            [
                "the column `account` of the key is empty",
                "the key cannot be read: column `branch`: expected u32",
                "there is no column `number`, which `key` names",
                "column `customer`: it is empty; the type `Option` accepts that",
            ]
        );
    }
}
