//! Rows of text as items: a serde deserializer whose errors name the field.

use std::fmt;

use csv::StringRecord;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use crate::error::Field;
use crate::record::asks_for_text;

/// Converts a row to an item, by the names of its fields, or by their order if they have none.
pub fn from_row<T: DeserializeOwned>(
    names: Option<&StringRecord>,
    values: &StringRecord,
) -> Result<T, RowError> {
    T::deserialize(Row {
        names,
        values,
        next: 0,
    })
}

/// The reason why a row is not an item.
#[derive(Debug)]
pub struct RowError {
    /// The index of the bad field.
    field: Option<usize>,
    /// The field that the item requires and the row does not have.
    pub missing: Option<&'static str>,
    message: String,
}

impl RowError {
    fn at(mut self, index: usize) -> Self {
        self.field.get_or_insert(index);
        self
    }

    /// Returns the bad field of the row.
    pub fn field(&self, names: Option<&StringRecord>, values: &StringRecord) -> Option<Field> {
        let index = self.field?;
        Some(Field {
            number: index + 1,
            name: names.and_then(|names| names.get(index)).map(str::to_owned),
            value: values.get(index).unwrap_or_default().to_owned(),
        })
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RowError {}

impl de::Error for RowError {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self {
            field: None,
            missing: None,
            message: message.to_string(),
        }
    }

    fn missing_field(name: &'static str) -> Self {
        Self {
            missing: Some(name),
            ..Self::custom(format_args!("there is no field `{name}`"))
        }
    }
}

struct Row<'r> {
    names: Option<&'r StringRecord>,
    values: &'r StringRecord,
    next: usize,
}

impl<'r> Row<'r> {
    fn next_value(&mut self) -> Option<TextValue<'r>> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        Some(TextValue(value))
    }
}

impl<'de> Deserializer<'de> for Row<'de> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.names.is_some() {
            visitor.visit_map(self)
        } else {
            visitor.visit_seq(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_seq(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit_struct
        map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Row<'de> {
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        if self.next >= self.values.len() {
            return Ok(None);
        }
        let Some(name) = self.names.and_then(|names| names.get(self.next)) else {
            return Ok(None);
        };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, RowError> {
        let index = self.next;
        let value = self.next_value().unwrap_or(TextValue(""));
        seed.deserialize(value).map_err(|error| error.at(index))
    }
}

impl<'de> SeqAccess<'de> for Row<'de> {
    type Error = RowError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, RowError> {
        let index = self.next;
        let Some(value) = self.next_value() else {
            return Ok(None);
        };
        seed.deserialize(value).map(Some).map_err(|error| error.at(index))
    }
}

/// A field of a row.
#[derive(Clone, Copy)]
pub(crate) struct TextValue<'r>(pub(crate) &'r str);

macro_rules! parsed {
    ($($method:ident $visit:ident $ty:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            match self.0.parse::<$ty>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(self.expected(stringify!($ty))),
            }
        }
    )*};
}

impl TextValue<'_> {
    fn expected(self, what: &str) -> RowError {
        let hint = if self.0.is_empty() {
            "; the type `Option` accepts an empty field"
        } else if self.0.trim() != self.0 {
            "; set the property `trim` to remove the blanks"
        } else {
            ""
        };
        de::Error::custom(format_args!("expected {what}{hint}"))
    }
}

impl<'de> Deserializer<'de> for TextValue<'de> {
    type Error = RowError;

    /// For types that accept anything, and fields of a flattened struct: a number if the text is one.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        let text = self.0;
        if let Ok(value) = text.parse() {
            visitor.visit_bool(value)
        } else if let Ok(value) = text.parse() {
            visitor.visit_u64(value)
        } else if let Ok(value) = text.parse() {
            visitor.visit_i64(value)
        } else if let Ok(value) = text.parse() {
            visitor.visit_f64(value)
        } else {
            visitor.visit_borrowed_str(text)
        }
    }

    parsed! {
        deserialize_bool visit_bool bool;
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_i128 visit_i128 i128;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_u128 visit_u128 u128;
        deserialize_f32 visit_f32 f32;
        deserialize_f64 visit_f64 f64;
        deserialize_char visit_char char;
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.0.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_borrowed_bytes(self.0.as_bytes())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.0.is_empty() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        match self.0 {
            "" if asks_for_text(name) => visitor.visit_unit(),
            text if asks_for_text(name) => visitor.visit_borrowed_str(text),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_enum(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        Err(self.nested())
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, RowError> {
        Err(self.nested())
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, RowError> {
        Err(self.nested())
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        Err(self.nested())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, RowError> {
        Err(self.nested())
    }
}

impl TextValue<'_> {
    fn nested(self) -> RowError {
        de::Error::custom(
            "a field of text cannot be a list or a struct; use `#[serde(flatten)]` or a custom deserializer",
        )
    }
}

impl<'de> EnumAccess<'de> for TextValue<'de> {
    type Error = RowError;
    type Variant = Unit;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Unit), RowError> {
        let name: BorrowedStrDeserializer<'de, RowError> = BorrowedStrDeserializer::new(self.0);
        seed.deserialize(name).map(|value| (value, Unit))
    }
}

/// A variant without data: a text names it.
pub(crate) struct Unit;

impl<'de> VariantAccess<'de> for Unit {
    type Error = RowError;

    fn unit_variant(self) -> Result<(), RowError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, RowError> {
        Err(TextValue("").nested())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, RowError> {
        Err(TextValue("").nested())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, RowError> {
        Err(TextValue("").nested())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Flight {
        origin: String,
        delay: Option<i32>,
        class: Class,
        cancelled: bool,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Class {
        First,
        Second,
    }

    fn check<T: DeserializeOwned + fmt::Debug>(names: &[&str], values: &[&str]) -> String {
        let (names, values) = (
            StringRecord::from(names.to_vec()),
            StringRecord::from(values.to_vec()),
        );
        let names = (!names.is_empty()).then_some(&names);
        match from_row::<T>(names, &values) {
            Ok(item) => format!("{item:?}"),
            Err(error) => {
                let place = error.field(names, &values).map(|field| field.number);
                format!("{place:?} {error}")
            }
        }
    }

    const NAMES: &[&str] = &["class", "origin", "unused", "delay", "cancelled"];

    #[test]
    fn fields_are_found_by_name_or_by_order() {
        let flight = r#"Flight { origin: "MUC", delay: Some(-3), class: Second, cancelled: true }"#;
        assert_eq!(
            check::<Flight>(NAMES, &["second", "MUC", "x", "-3", "true"]),
            flight
        );
        assert_eq!(check::<Flight>(&[], &["MUC", "-3", "second", "true"]), flight);
        assert_eq!(check::<(String, u8)>(&[], &["a", "1"]), r#"("a", 1)"#);
        assert_eq!(
            check::<BTreeMap<String, String>>(&["a", "b"], &["1", "2"]),
            r#"{"a": "1", "b": "2"}"#
        );
    }

    #[test]
    fn an_error_names_the_field_and_the_type() {
        let with = |delay| check::<Flight>(NAMES, &["first", "MUC", "", delay, "false"]);
        assert_eq!(with("x"), "Some(4) expected i32");
        assert_eq!(
            with(" 1"),
            "Some(4) expected i32; set the property `trim` to remove the blanks"
        );
        assert_eq!(
            check::<Flight>(NAMES, &["third", "MUC", "", "", "true"]),
            "Some(1) unknown variant `third`, expected `first` or `second`"
        );
        assert_eq!(
            check::<Flight>(NAMES, &["first", "MUC", "", "", ""]),
            "Some(5) expected bool; the type `Option` accepts an empty field"
        );
        assert_eq!(
            check::<Flight>(&["origin"], &["MUC"]),
            "None there is no field `delay`".replace("delay", "class")
        );
        assert_eq!(
            check::<(u8, Vec<u8>)>(&[], &["1", "2"]),
            "Some(2) a field of text cannot be a list or a struct; use `#[serde(flatten)]` or a custom deserializer"
        );
    }

    #[test]
    fn a_flattened_struct_gets_the_remaining_fields() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "shown by Debug")]
        struct Outer {
            id: u8,
            #[serde(flatten)]
            rest: BTreeMap<String, Inner>,
        }
        #[derive(Debug, Deserialize)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "shown by Debug")]
        enum Inner {
            Number(f64),
            Text(String),
        }
        assert_eq!(
            check::<Outer>(&["id", "a", "b"], &["1", "x", "2.5"]),
            r#"Outer { id: 1, rest: {"a": Text("x"), "b": Number(2.5)} }"#
        );
    }
}
