//! The fields of an item as text: a serde serializer.

use std::fmt::{Display, Write};

use csv::StringRecord;
use serde::ser::{self, Impossible, Serialize, Serializer};

/// Splits items into the names and texts of their fields: those of a struct, or the elements of a tuple, without names.
#[derive(Default)]
pub(crate) struct FieldsOf {
    names: StringRecord,
    values: StringRecord,
    text: String,
    /// True once the names are known: all items have the same.
    named: bool,
}

impl FieldsOf {
    /// Returns the names, none for a tuple, and the values.
    pub(crate) fn of<T: Serialize>(&mut self, item: &T) -> Result<(&StringRecord, &StringRecord), String> {
        self.values.clear();
        item.serialize(Row { fields: self })
            .map_err(|Unsupported(cause)| cause)?;
        self.named = true;
        Ok((&self.names, &self.values))
    }

    fn push<V: Serialize + ?Sized>(
        &mut self,
        name: Option<&'static str>,
        value: &V,
    ) -> Result<(), Unsupported> {
        self.text.clear();
        let written = value.serialize(Value { text: &mut self.text });
        written.map_err(|Unsupported(cause)| match name {
            Some(name) => Unsupported(format!("field `{name}`: {cause}")),
            None => Unsupported(cause),
        })?;
        self.values.push_field(&self.text);
        if let (Some(name), false) = (name, self.named) {
            self.names.push_field(name);
        }
        Ok(())
    }
}

/// The reason why an item has no fields of text.
#[derive(Debug)]
struct Unsupported(String);

impl Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<M: Display>(message: M) -> Self {
        Self(message.to_string())
    }
}

fn not_a_row<T>() -> Result<T, Unsupported> {
    Err(Unsupported(
        "an item must be a struct or a tuple to have fields".to_owned(),
    ))
}

fn not_a_field<T>() -> Result<T, Unsupported> {
    Err(Unsupported(
        "a field of text cannot be a list or a struct; use `#[serde(serialize_with = \"..\")]`".to_owned(),
    ))
}

struct Row<'f> {
    fields: &'f mut FieldsOf,
}

macro_rules! scalars {
    ($result:ident: $($method:ident $ty:ty;)*) => {$(
        fn $method(self, _: $ty) -> Result<(), Unsupported> {
            $result()
        }
    )*};
}

impl<'f> Serializer for Row<'f> {
    type Ok = ();
    type Error = Unsupported;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Impossible<(), Unsupported>;
    type SerializeMap = Impossible<(), Unsupported>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), Unsupported>;

    scalars! {
        not_a_row:
        serialize_bool bool; serialize_i8 i8; serialize_i16 i16; serialize_i32 i32; serialize_i64 i64;
        serialize_u8 u8; serialize_u16 u16; serialize_u32 u32; serialize_u64 u64; serialize_f32 f32;
        serialize_f64 f64; serialize_char char; serialize_str &str; serialize_bytes &[u8];
        serialize_unit_struct &'static str;
    }

    fn serialize_none(self) -> Result<(), Unsupported> {
        not_a_row()
    }

    fn serialize_some<V: Serialize + ?Sized>(self, value: &V) -> Result<(), Unsupported> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unsupported> {
        not_a_row()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Unsupported> {
        not_a_row()
    }

    fn serialize_newtype_struct<V: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &V,
    ) -> Result<(), Unsupported> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<V: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &V,
    ) -> Result<(), Unsupported> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Unsupported>, Unsupported> {
        not_a_row()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Impossible<(), Unsupported>, Unsupported> {
        not_a_row()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Unsupported>, Unsupported> {
        not_a_row()
    }
}

macro_rules! elements {
    ($($name:ident $method:ident;)*) => {$(
        impl ser::$name for Row<'_> {
            type Ok = ();
            type Error = Unsupported;

            fn $method<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), Unsupported> {
                self.fields.push(None, value)
            }

            fn end(self) -> Result<(), Unsupported> {
                Ok(())
            }
        }
    )*};
}

elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
}

impl ser::SerializeStruct for Row<'_> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_field<V: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &V,
    ) -> Result<(), Unsupported> {
        self.fields.push(Some(name), value)
    }

    fn end(self) -> Result<(), Unsupported> {
        Ok(())
    }
}

struct Value<'t> {
    text: &'t mut String,
}

impl Value<'_> {
    fn display(self, value: impl Display) -> Result<(), Unsupported> {
        write!(self.text, "{value}").map_err(|error| Unsupported(error.to_string()))
    }
}

macro_rules! displayed {
    ($($method:ident $ty:ty;)*) => {$(
        fn $method(self, value: $ty) -> Result<(), Unsupported> {
            self.display(value)
        }
    )*};
}

impl Serializer for Value<'_> {
    type Ok = ();
    type Error = Unsupported;
    type SerializeSeq = Impossible<(), Unsupported>;
    type SerializeTuple = Impossible<(), Unsupported>;
    type SerializeTupleStruct = Impossible<(), Unsupported>;
    type SerializeTupleVariant = Impossible<(), Unsupported>;
    type SerializeMap = Impossible<(), Unsupported>;
    type SerializeStruct = Impossible<(), Unsupported>;
    type SerializeStructVariant = Impossible<(), Unsupported>;

    displayed! {
        serialize_bool bool; serialize_i8 i8; serialize_i16 i16; serialize_i32 i32; serialize_i64 i64;
        serialize_i128 i128; serialize_u8 u8; serialize_u16 u16; serialize_u32 u32; serialize_u64 u64;
        serialize_u128 u128; serialize_f32 f32; serialize_f64 f64; serialize_char char; serialize_str &str;
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Unsupported> {
        let text = std::str::from_utf8(value).map_err(|error| Unsupported(error.to_string()))?;
        self.display(text)
    }

    fn serialize_none(self) -> Result<(), Unsupported> {
        Ok(())
    }

    fn serialize_some<V: Serialize + ?Sized>(self, value: &V) -> Result<(), Unsupported> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unsupported> {
        Ok(())
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Unsupported> {
        self.display(name)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), Unsupported> {
        self.display(name)
    }

    fn serialize_newtype_struct<V: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &V,
    ) -> Result<(), Unsupported> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<V: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &V,
    ) -> Result<(), Unsupported> {
        not_a_field()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Unsupported> {
        not_a_field()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unsupported> {
        not_a_field()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Unsupported> {
        not_a_field()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unsupported> {
        not_a_field()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Unsupported> {
        not_a_field()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Unsupported> {
        not_a_field()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unsupported> {
        not_a_field()
    }
}
