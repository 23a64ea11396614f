//! The serde serializer of rows.

use std::fmt::{Display, Write};

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::cells::{Cell, Rows, Text};

/// The reason why an item is not a row.
#[derive(Debug)]
pub(super) enum Unsupported {
    /// A field is a list or a struct.
    Nested,
    Other(String),
}

impl Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nested => f.write_str("a list or a struct is not a value"),
            Self::Other(cause) => f.write_str(cause),
        }
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<M: Display>(message: M) -> Self {
        Self::Other(message.to_string())
    }
}

/// Appends the fields of an item.
pub(super) struct Row<'r> {
    rows: &'r mut Rows,
    /// The next key of a map.
    name: String,
}

impl<'r> Row<'r> {
    pub(super) fn of(rows: &'r mut Rows) -> Self {
        Self {
            rows,
            name: String::new(),
        }
    }

    fn push<V: Serialize + ?Sized>(&mut self, name: &str, value: &V) -> Result<(), Unsupported> {
        let rows = &mut *self.rows;
        let start = rows.bytes.len();
        let cell = value.serialize(Value {
            bytes: &mut rows.bytes,
        });
        let cell = match cell {
            Err(Unsupported::Nested) => {
                let json = serde_json::to_writer(&mut rows.bytes, value);
                json.map(|()| Cell::Text(start..rows.bytes.len()))
                    .map_err(ser::Error::custom)
            }
            cell => cell,
        };
        let cell = cell.map_err(|cause| Unsupported::Other(format!("field `{name}`: {cause}")))?;
        if rows.is_first {
            rows.names.push(name.to_owned());
        } else {
            let index = rows.cells.len() - rows.count * rows.names.len();
            if rows.names.get(index).is_none_or(|expected| expected != name) {
                return Err(Unsupported::Other(format!(
                    "the item has a field `{name}` where the one before has `{}`",
                    rows.names.get(index).map_or("none", String::as_str)
                )));
            }
        }
        rows.cells.push(cell);
        Ok(())
    }
}

fn not_a_row<T>() -> Result<T, Unsupported> {
    Err(Unsupported::Other(
        "an item must be a struct, a record or a tuple".to_owned(),
    ))
}

macro_rules! rejected {
    ($result:ident: $($method:ident($($ty:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self, $(_: $ty),*) -> Result<$ok, Unsupported> {
            $result()
        }
    )*};
}

impl Serializer for Row<'_> {
    type Ok = ();
    type Error = Unsupported;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Impossible<(), Unsupported>;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), Unsupported>;

    rejected! {
        not_a_row:
        serialize_bool(bool) -> (); serialize_i8(i8) -> (); serialize_i16(i16) -> (); serialize_i32(i32) -> ();
        serialize_i64(i64) -> (); serialize_u8(u8) -> (); serialize_u16(u16) -> (); serialize_u32(u32) -> ();
        serialize_u64(u64) -> (); serialize_f32(f32) -> (); serialize_f64(f64) -> (); serialize_char(char) -> ();
        serialize_str(&str) -> (); serialize_bytes(&[u8]) -> (); serialize_none() -> (); serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Impossible<(), Unsupported>;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Impossible<(), Unsupported>;
    }

    fn serialize_some<V: Serialize + ?Sized>(self, value: &V) -> Result<(), Unsupported> {
        value.serialize(self)
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

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Unsupported> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unsupported> {
        Ok(self)
    }
}

macro_rules! elements {
    ($($name:ident $method:ident;)*) => {$(
        impl ser::$name for Row<'_> {
            type Ok = ();
            type Error = Unsupported;

            fn $method<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), Unsupported> {
                self.push("", value)
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
        self.push(name, value)
    }

    fn end(self) -> Result<(), Unsupported> {
        Ok(())
    }
}

impl ser::SerializeMap for Row<'_> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_key<K: Serialize + ?Sized>(&mut self, key: &K) -> Result<(), Unsupported> {
        let mut bytes = Vec::new();
        let cell = key.serialize(Value { bytes: &mut bytes })?;
        match (cell, String::from_utf8(bytes)) {
            (Cell::Text(_), Ok(name)) => {
                self.name = name;
                Ok(())
            }
            _ => Err(Unsupported::Other("the names of fields must be texts".to_owned())),
        }
    }

    fn serialize_value<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), Unsupported> {
        let name = std::mem::take(&mut self.name);
        self.push(&name, value)
    }

    fn end(self) -> Result<(), Unsupported> {
        Ok(())
    }
}

/// Converts a value to a cell.
struct Value<'b> {
    bytes: &'b mut Vec<u8>,
}

impl Value<'_> {
    fn text(self, value: impl Display) -> Result<Cell, Unsupported> {
        let start = self.bytes.len();
        let written = write!(Text(self.bytes), "{value}");
        written.map_err(ser::Error::custom)?;
        Ok(Cell::Text(start..self.bytes.len()))
    }
}

fn nested<T>() -> Result<T, Unsupported> {
    Err(Unsupported::Nested)
}

macro_rules! integers {
    ($($method:ident $ty:ty;)*) => {$(
        fn $method(self, value: $ty) -> Result<Cell, Unsupported> {
            match i64::try_from(value) {
                Ok(value) => Ok(Cell::Int(value)),
                Err(_) => self.text(value),
            }
        }
    )*};
}

type Never = Impossible<Cell, Unsupported>;

impl Serializer for Value<'_> {
    type Ok = Cell;
    type Error = Unsupported;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    integers! {
        serialize_i8 i8; serialize_i16 i16; serialize_i32 i32; serialize_i64 i64; serialize_i128 i128;
        serialize_u8 u8; serialize_u16 u16; serialize_u32 u32; serialize_u64 u64; serialize_u128 u128;
    }

    rejected! {
        nested:
        serialize_seq(Option<usize>) -> Never; serialize_tuple(usize) -> Never; serialize_map(Option<usize>) -> Never;
        serialize_struct(&'static str, usize) -> Never; serialize_tuple_struct(&'static str, usize) -> Never;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Never;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Never;
    }

    fn serialize_bool(self, value: bool) -> Result<Cell, Unsupported> {
        Ok(Cell::Bool(value))
    }

    fn serialize_f32(self, value: f32) -> Result<Cell, Unsupported> {
        // The number that is shown: 0.1, not 0.10000000149.
        Ok(Cell::Float(
            value.to_string().parse().unwrap_or_else(|_| f64::from(value)),
        ))
    }

    fn serialize_f64(self, value: f64) -> Result<Cell, Unsupported> {
        Ok(Cell::Float(value))
    }

    fn serialize_char(self, value: char) -> Result<Cell, Unsupported> {
        self.text(value)
    }

    fn serialize_str(self, value: &str) -> Result<Cell, Unsupported> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value.as_bytes());
        Ok(Cell::Text(start..self.bytes.len()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Cell, Unsupported> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        Ok(Cell::Bytes(start..self.bytes.len()))
    }

    fn serialize_none(self) -> Result<Cell, Unsupported> {
        Ok(Cell::Null)
    }

    fn serialize_some<V: Serialize + ?Sized>(self, value: &V) -> Result<Cell, Unsupported> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Cell, Unsupported> {
        Ok(Cell::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Cell, Unsupported> {
        self.serialize_str(name)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<Cell, Unsupported> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<V: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &V,
    ) -> Result<Cell, Unsupported> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<V: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &V,
    ) -> Result<Cell, Unsupported> {
        nested()
    }
}
