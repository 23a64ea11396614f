//! Records with added fields: a serde deserializer.

use std::marker::PhantomData;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A field that the reader adds.
pub(crate) struct Added<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: AddedValue<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum AddedValue<'a> {
    Text(&'a str),
    Number(u64),
}

/// Deserializes an item that has these fields in addition.
pub(crate) fn from_record<'de, T, D>(record: D, added: &[Added<'_>]) -> Result<T, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    if added.is_empty() {
        return T::deserialize(record);
    }
    T::deserialize(WithAdded { inner: record, added })
}

/// The same, with an error that has the path of the bad field. Slower, as each name is copied: for records that cannot be
/// deserialized.
pub(crate) fn from_record_with_path<'de, T, D>(
    record: D,
    added: &[Added<'_>],
) -> Result<T, serde_path_to_error::Error<D::Error>>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    if added.is_empty() {
        return serde_path_to_error::deserialize(record);
    }
    serde_path_to_error::deserialize(WithAdded { inner: record, added })
}

/// A deserializer of a map or struct that has further fields.
struct WithAdded<'a, D> {
    inner: D,
    added: &'a [Added<'a>],
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithAdded<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(ObjectVisitor {
            inner: visitor,
            added: self.added,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = ObjectVisitor {
            inner: visitor,
            added: self.added,
        };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Passes the added fields to a visitor of a map.
struct ObjectVisitor<'a, V> {
    inner: V,
    added: &'a [Added<'a>],
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Object {
            inner: map,
            inner_ended: false,
            added: self.added.iter(),
            value: None,
        })
    }
}

/// The fields of an object, then the added ones.
struct Object<'a, A> {
    inner: A,
    inner_ended: bool,
    added: std::slice::Iter<'a, Added<'a>>,
    value: Option<AddedValue<'a>>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Object<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        if !self.inner_ended {
            // The seed is used once only: whether there is another key shows in the result.
            let mut taken = Some(seed);
            let key = self.inner.next_key_seed(Keep { seed: &mut taken })?;
            if let Some(key) = key {
                return Ok(Some(key));
            }
            self.inner_ended = true;
            return match taken {
                Some(seed) => self.next_added(seed),
                None => Ok(None),
            };
        }
        self.next_added(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(AddedDeserializer(value, PhantomData)),
            None => self.inner.next_value_seed(seed),
        }
    }
}

impl<A> Object<'_, A> {
    fn next_added<'de, K: DeserializeSeed<'de>, E: de::Error>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, E> {
        let Some(added) = self.added.next() else {
            return Ok(None);
        };
        self.value = Some(added.value);
        seed.deserialize(added.name.into_deserializer()).map(Some)
    }
}

/// A deserializer of an added value, which may be an option or a newtype.
struct AddedDeserializer<'a, E>(AddedValue<'a>, PhantomData<E>);

impl<'de, E: de::Error> Deserializer<'de> for AddedDeserializer<'_, E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.0 {
            AddedValue::Text(text) => visitor.visit_str(text),
            AddedValue::Number(number) => visitor.visit_u64(number),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        match self.0 {
            AddedValue::Text(text) => text.into_deserializer().deserialize_enum(name, variants, visitor),
            AddedValue::Number(_) => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A seed that stays where it is unless it is used.
struct Keep<'s, K> {
    seed: &'s mut Option<K>,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Keep<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        match self.seed.take() {
            Some(seed) => seed.deserialize(deserializer),
            None => Err(de::Error::custom("the key was read already")),
        }
    }
}
