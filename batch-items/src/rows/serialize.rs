//! Items as rows of fields: a serde serializer.

use std::fmt::Display;

use serde::ser::{self, Impossible, Serialize, Serializer};

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

/// A value of a field, before it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldValue<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'v str),
    Bytes(&'v [u8]),
}

/// Receives the fields of items, one by one.
pub(crate) trait FieldSink {
    /// Receives the field with this index.
    fn field(&mut self, index: usize, value: FieldValue<'_>);
}

/// The names of the fields, which the first item defines. Those of a tuple are empty.
#[derive(Default)]
pub(crate) struct Names {
    names: Vec<String>,
    /// Where the names of a struct are in memory: those of the next item are usually the same.
    places: Vec<(usize, usize)>,
    is_complete: bool,
}

impl Names {
    /// Checks a name that is in the program's memory, where no other text can be.
    #[inline]
    fn check_static(&mut self, index: usize, name: &'static str) -> Result<(), Unsupported> {
        let place = (name.as_ptr().addr(), name.len());
        if self.is_complete && self.places.get(index) == Some(&place) {
            return Ok(());
        }
        if !self.is_complete {
            self.places.push(place);
        }
        self.check(index, name)
    }

    fn check(&mut self, index: usize, name: &str) -> Result<(), Unsupported> {
        if !self.is_complete {
            self.names.push(name.to_owned());
            return Ok(());
        }
        let expected = self.names.get(index);
        if expected.is_some_and(|expected| expected == name) {
            return Ok(());
        }
        Err(Unsupported::Other(format!(
            "the item has a field `{name}` where the one before has `{}`",
            expected.map_or("none", String::as_str)
        )))
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Passes the fields of an item to `sink`, and returns their number.
    pub(crate) fn fields_of<T: Serialize>(
        &mut self,
        item: &T,
        sink: &mut impl FieldSink,
    ) -> Result<usize, String> {
        let mut next = 0;
        let row = Row {
            names: self,
            next: &mut next,
            sink,
            name: String::new(),
        };
        item.serialize(row).map_err(|error| error.to_string())?;
        if self.is_complete && next != self.names.len() {
            return Err(format!(
                "the item has {next} fields, but the one before has {}",
                self.names.len()
            ));
        }
        self.is_complete = true;
        Ok(next)
    }
}

/// Passes the fields of an item to a sink.
struct Row<'r, S> {
    names: &'r mut Names,
    next: &'r mut usize,
    sink: &'r mut S,
    /// The next key of a map.
    name: String,
}

impl<S: FieldSink> Row<'_, S> {
    #[inline]
    fn push_static<V: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &V,
    ) -> Result<(), Unsupported> {
        self.names.check_static(*self.next, name)?;
        self.push(name, value)
    }

    /// Passes a field whose name is checked.
    #[inline]
    fn push<V: Serialize + ?Sized>(&mut self, name: &str, value: &V) -> Result<(), Unsupported> {
        let index = *self.next;
        *self.next += 1;
        let passed = value.serialize(Value {
            index,
            sink: &mut *self.sink,
        });
        match passed {
            Ok(()) => Ok(()),
            Err(Unsupported::Nested) => {
                let json = serde_json::to_string(value).map_err(|cause| in_field(name, &cause))?;
                self.sink.field(index, FieldValue::Text(&json));
                Ok(())
            }
            Err(cause) => Err(in_field(name, &cause)),
        }
    }
}

#[cold]
fn in_field(name: &str, cause: &dyn Display) -> Unsupported {
    Unsupported::Other(format!("field `{name}`: {cause}"))
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

impl<S: FieldSink> Serializer for Row<'_, S> {
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
        impl<S: FieldSink> ser::$name for Row<'_, S> {
            type Ok = ();
            type Error = Unsupported;

            fn $method<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), Unsupported> {
                self.push_static("", value)
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

impl<S: FieldSink> ser::SerializeStruct for Row<'_, S> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_field<V: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &V,
    ) -> Result<(), Unsupported> {
        self.push_static(name, value)
    }

    fn end(self) -> Result<(), Unsupported> {
        Ok(())
    }
}

impl<S: FieldSink> ser::SerializeMap for Row<'_, S> {
    type Ok = ();
    type Error = Unsupported;

    fn serialize_key<K: Serialize + ?Sized>(&mut self, key: &K) -> Result<(), Unsupported> {
        let mut text = KeyText(std::mem::take(&mut self.name), false);
        text.0.clear();
        key.serialize(Value {
            index: 0,
            sink: &mut text,
        })?;
        self.name = text.0;
        if text.1 {
            Ok(())
        } else {
            Err(Unsupported::Other("the names of fields must be texts".to_owned()))
        }
    }

    fn serialize_value<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), Unsupported> {
        let name = std::mem::take(&mut self.name);
        self.names.check(*self.next, &name)?;
        let pushed = self.push(&name, value);
        // Its memory is used again.
        self.name = name;
        pushed
    }

    fn end(self) -> Result<(), Unsupported> {
        Ok(())
    }
}

/// A key of a map, and whether it is a text.
struct KeyText(String, bool);

impl FieldSink for KeyText {
    fn field(&mut self, _: usize, value: FieldValue<'_>) {
        if let FieldValue::Text(text) = value {
            self.0.push_str(text);
            self.1 = true;
        }
    }
}

/// Passes a value to a sink.
struct Value<'s, S> {
    index: usize,
    sink: &'s mut S,
}

impl<S: FieldSink> Value<'_, S> {
    #[inline]
    fn pass(self, value: FieldValue<'_>) -> Result<(), Unsupported> {
        self.sink.field(self.index, value);
        Ok(())
    }
}

fn nested<T>() -> Result<T, Unsupported> {
    Err(Unsupported::Nested)
}

macro_rules! integers {
    ($($method:ident $ty:ty;)*) => {$(
        fn $method(self, value: $ty) -> Result<(), Unsupported> {
            match i64::try_from(value) {
                Ok(value) => self.pass(FieldValue::Int(value)),
                Err(_) => self.pass(FieldValue::Text(&value.to_string())),
            }
        }
    )*};
}

type Never = Impossible<(), Unsupported>;

impl<S: FieldSink> Serializer for Value<'_, S> {
    type Ok = ();
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

    fn serialize_bool(self, value: bool) -> Result<(), Unsupported> {
        self.pass(FieldValue::Bool(value))
    }

    fn serialize_f32(self, value: f32) -> Result<(), Unsupported> {
        // The number that is shown: 0.1, not 0.10000000149.
        let shown = zmij::Buffer::new().format(value).parse();
        self.pass(FieldValue::Float(shown.unwrap_or_else(|_| f64::from(value))))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Unsupported> {
        self.pass(FieldValue::Float(value))
    }

    fn serialize_char(self, value: char) -> Result<(), Unsupported> {
        self.pass(FieldValue::Text(value.encode_utf8(&mut [0; 4])))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Unsupported> {
        self.pass(FieldValue::Text(value))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Unsupported> {
        self.pass(FieldValue::Bytes(value))
    }

    fn serialize_none(self) -> Result<(), Unsupported> {
        self.pass(FieldValue::Null)
    }

    fn serialize_some<V: Serialize + ?Sized>(self, value: &V) -> Result<(), Unsupported> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unsupported> {
        self.pass(FieldValue::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<(), Unsupported> {
        self.pass(FieldValue::Text(name))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), Unsupported> {
        self.pass(FieldValue::Text(name))
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
        nested()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Default)]
    struct Shown(Vec<String>);

    impl FieldSink for Shown {
        fn field(&mut self, index: usize, value: FieldValue<'_>) {
            self.0.push(format!("{index} {value:?}"));
        }
    }

    #[derive(serde::Serialize)]
    struct Payment {
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'static str>,
        tags: Vec<u8>,
    }

    fn payment(id: u64, note: Option<&'static str>) -> Payment {
        Payment {
            id,
            note,
            tags: vec![1, 2],
        }
    }

    #[test]
    fn fields_have_their_types() {
        let (mut names, mut shown) = (Names::default(), Shown::default());
        names
            .fields_of(&payment(u64::MAX, Some("x")), &mut shown)
            .unwrap();
        names.fields_of(&payment(7, Some("y")), &mut shown).unwrap();
        assert_eq!(names.names(), ["id", "note", "tags"]);
        assert_eq!(
            shown.0,
            [
                "0 Text(\"18446744073709551615\")",
                "1 Text(\"x\")",
                "2 Text(\"[1,2]\")",
                "0 Int(7)",
                "1 Text(\"y\")",
                "2 Text(\"[1,2]\")",
            ]
        );
    }

    /// A value never goes to the column of another one.
    #[test]
    fn items_with_other_fields_are_rejected() {
        let fields_of = |first: &Payment, second: &Payment| {
            let mut names = Names::default();
            names.fields_of(first, &mut Shown::default()).unwrap();
            names.fields_of(second, &mut Shown::default())
        };
        let (with, without) = (payment(1, Some("x")), payment(1, None));
        assert_eq!(
            fields_of(&with, &without),
            Err("the item has a field `tags` where the one before has `note`".to_owned())
        );
        assert_eq!(
            fields_of(&without, &with),
            Err("the item has a field `note` where the one before has `tags`".to_owned())
        );
        let mut names = Names::default();
        let map = |keys: &[&str]| -> BTreeMap<String, i32> {
            keys.iter().map(|key| ((*key).to_owned(), 1)).collect()
        };
        names.fields_of(&map(&["a", "b"]), &mut Shown::default()).unwrap();
        // The names of maps are often at the same place in memory.
        for keys in [["a", "c"], ["b", "c"], ["c", "d"]] {
            assert!(names.fields_of(&map(&keys), &mut Shown::default()).is_err());
        }
        assert_eq!(
            names.fields_of(&map(&["a"]), &mut Shown::default()),
            Err("the item has 1 fields, but the one before has 2".to_owned())
        );
        assert!(names.fields_of(&map(&["a", "b"]), &mut Shown::default()).is_ok());
        assert!(names.fields_of(&5, &mut Shown::default()).is_err());
    }
}
