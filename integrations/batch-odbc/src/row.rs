//! Rows as items.

use std::any::Any;
use std::sync::Arc;

use batch_items::Record;
use batch_items::record::Value;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Returns a row as an item.
pub(crate) fn item_of<T: DeserializeOwned + 'static>(
    names: &Arc<Vec<String>>,
    values: Vec<Value>,
) -> Result<T, String> {
    let mut item: Option<T> = None;
    // A record keeps the types of the values, which serde does not know.
    let of_record = (&mut item as &mut dyn Any).downcast_mut::<Option<Record>>();
    if let Some(record) = of_record {
        *record = Some(Record::of(names, values));
        return item.ok_or_else(|| "the row became no record".to_owned());
    }
    let fields = names
        .iter()
        .map(String::as_str)
        .zip(values.into_iter().map(Field));
    T::deserialize(MapDeserializer::new(fields)).map_err(|error: Error| error.to_string())
}

/// A value of a row.
struct Field(Value);

impl IntoDeserializer<'_, Error> for Field {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        /// An integer of any type that has its value.
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.as_i64() {
                Some(value) => visitor.visit_i64(value),
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

macro_rules! floats {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.as_f64() {
                Some(value) => visitor.visit_f64(value),
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Field {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Int(value) => visitor.visit_i64(value),
            Value::Float(value) => visitor.visit_f64(value),
            Value::Decimal(text) | Value::Text(text) | Value::Json(text) => visitor.visit_string(text),
            Value::Bytes(bytes) => visitor.visit_byte_buf(bytes),
        }
    }

    integers! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }

    floats! { deserialize_f32 deserialize_f64 }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Int(value @ (0 | 1)) => visitor.visit_bool(value == 1),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(text) => visitor.visit_enum(text.into_deserializer()),
            other => Err(Error::custom(format_args!("expected a text, found `{other}`"))),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
