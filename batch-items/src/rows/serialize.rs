//! Items as rows of fields: a serde serializer.

use std::fmt::Display;

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::names::{Names, Unsupported};
use crate::json::append_json;
use crate::record::NUMBER;

/// A value of a field, before it is stored.
#[derive(Clone, Copy, Debug)]
pub enum FieldValue<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// The text of a number that is neither an `i64` nor exactly a float.
    Number(&'v str),
    Text(&'v str),
    /// A list or an object, as JSON.
    Json(&'v str),
    Bytes(&'v [u8]),
}

/// Receives the fields of items, one by one.
pub trait FieldSink {
    /// Receives the field with this index in the output. A field that the item lacks is not passed.
    fn field(&mut self, index: usize, value: FieldValue<'_>);
}

/// Receives fields that are not needed.
struct Ignored;

impl FieldSink for Ignored {
    fn field(&mut self, _: usize, _: FieldValue<'_>) {}
}

/// The names are found while an item is serialized.
impl Names {
    /// Takes the fields of the first item, unless they are known. An item that cannot be written is left to [`fields_of`](Self::fields_of).
    ///
    /// # Errors
    /// If the items do not have the selected fields, or two of their fields have the same name.
    pub fn learn<T: Serialize>(&mut self, item: &T) -> Result<(), String> {
        if self.is_complete {
            return Ok(());
        }
        match self.pass(item, &mut Ignored) {
            Ok(_) => self.check_selected(),
            Err(Unsupported::Fields(cause)) => Err(cause),
            Err(_) => Ok(()),
        }
    }

    /// Passes the fields of an item to `sink`, and returns their number.
    pub fn fields_of<T: Serialize>(&mut self, item: &T, sink: &mut impl FieldSink) -> Result<usize, String> {
        self.learn(item)?;
        let passed = self.pass(item, sink).map_err(|error| error.to_string())?;
        if self.is_tuple && passed != self.fields.len() {
            return Err(format!(
                "the item has {passed} fields, but the first one has {}",
                self.fields.len()
            ));
        }
        self.end()?;
        Ok(passed)
    }

    fn pass<T: Serialize>(&mut self, item: &T, sink: &mut impl FieldSink) -> Result<usize, Unsupported> {
        self.begin();
        let mut next = 0;
        item.serialize(Row {
            names: self,
            next: &mut next,
            sink,
            name: String::new(),
        })?;
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
        // In the program's memory, where no other text can be.
        let place = (name.as_ptr().addr(), name.len());
        self.push(name, Some(place), value)
    }

    #[inline]
    fn push<V: Serialize + ?Sized>(
        &mut self,
        name: &str,
        place: Option<(usize, usize)>,
        value: &V,
    ) -> Result<(), Unsupported> {
        let index = self.names.index(*self.next, name, place)?;
        *self.next += 1;
        let Some(index) = index else {
            return Ok(());
        };
        let passed = value.serialize(Value {
            index,
            is_number: false,
            sink: &mut *self.sink,
        });
        match passed {
            Ok(()) => Ok(()),
            Err(Unsupported::Nested) => {
                let mut json = Vec::new();
                append_json(value, &mut json).map_err(|cause| in_field(name, &cause))?;
                self.sink
                    .field(index, FieldValue::Json(&String::from_utf8_lossy(&json)));
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
                self.names.is_tuple = true;
                self.push("", None, value)
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
            is_number: false,
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
        let pushed = self.push(&name, None, value);
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
    /// Whether a text is a number.
    is_number: bool,
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
                Err(_) => self.pass(FieldValue::Number(&value.to_string())),
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
        match self.is_number {
            true => self.pass(FieldValue::Number(value)),
            false => self.pass(FieldValue::Text(value)),
        }
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
        name: &'static str,
        value: &V,
    ) -> Result<(), Unsupported> {
        if name == NUMBER {
            let number = Value {
                is_number: true,
                ..self
            };
            return value.serialize(number);
        }
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
                "0 Number(\"18446744073709551615\")",
                "1 Text(\"x\")",
                "2 Json(\"[1,2]\")",
                "0 Int(7)",
                "1 Text(\"y\")",
                "2 Json(\"[1,2]\")",
            ]
        );
    }

    fn map(fields: &[(&str, i32)]) -> BTreeMap<String, i32> {
        let field = |(name, value): &(&str, i32)| ((*name).to_owned(), *value);
        fields.iter().map(field).collect()
    }

    /// Passes the second item after the first, and returns the fields of the second.
    fn second<T: Serialize>(columns: &[&str], first: &T, second: &T) -> Result<Vec<String>, String> {
        let mut names = Names::default();
        names.select(columns.iter().copied());
        names.fields_of(first, &mut Shown::default())?;
        let mut shown = Shown::default();
        names.fields_of(second, &mut shown)?;
        Ok(shown.0)
    }

    /// A value never goes to the column of another one, whatever the order of the fields is, and whichever of them an item has.
    // Spec: ITEM-VALUE-01
    #[test]
    fn fields_are_found_by_name() {
        let (with, without) = (payment(1, Some("x")), payment(2, None));
        assert_eq!(
            second(&[], &with, &without),
            Ok(vec!["0 Int(2)".into(), "2 Json(\"[1,2]\")".into()])
        );
        let unknown = second(&[], &without, &with).unwrap_err();
        assert!(
            unknown.starts_with("the item has a field `note`, which the first item does not have"),
            "{unknown}"
        );
        let all = map(&[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(
            second(&["c", "a"], &all, &map(&[("a", 4), ("c", 5)])),
            Ok(vec!["1 Int(4)".into(), "0 Int(5)".into()])
        );
        // The names of maps are often at the same place in memory.
        assert_eq!(
            second(&[], &map(&[("a", 1), ("b", 2)]), &map(&[("b", 3)])),
            Ok(vec!["1 Int(3)".into()])
        );
        assert!(second(&[], &map(&[("a", 1)]), &map(&[("b", 3)])).is_err());
        assert_eq!(
            second(&["a", "z?"], &map(&[("a", 1)]), &map(&[("a", 2), ("z", 3)])),
            Ok(vec!["0 Int(2)".into(), "1 Int(3)".into()])
        );
    }

    // Spec: ITEM-VALUE-01
    #[test]
    fn columns_that_the_items_do_not_have_are_an_error() {
        let learn = |columns: &[&str], item: &BTreeMap<String, i32>| {
            let mut names = Names::default();
            names.select(columns.iter().copied());
            names.learn(item)
        };
        let item = map(&[("amount", 1), ("b", 2)]);
        assert_eq!(
            learn(&["b", "amonut"], &item),
            Err("the items have no field `amonut`; did you mean `amount`?".to_owned())
        );
        let mut names = Names::default();
        names.select(["a", "b"].into_iter());
        assert_eq!(
            names.learn(&(1, 2, 3)),
            Err("the items have 3 fields, but `columns` names 2".to_owned())
        );
        names.learn(&(1, 2)).unwrap();
        assert!(names.fields_of(&(1, 2, 3), &mut Shown::default()).is_err());
        assert!(Names::default().fields_of(&5, &mut Shown::default()).is_err());
    }

    struct Pairs(&'static [(&'static str, i32)]);

    impl Serialize for Pairs {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().copied())
        }
    }

    // Spec: ITEM-VALUE-01
    #[test]
    fn two_fields_of_one_name_are_an_error() {
        for (name, expected) in [
            ("a", "two fields of the item have the name `a`"),
            ("", "several fields of the item have no name"),
        ] {
            let pairs: &'static [(&'static str, i32)] = if name.is_empty() {
                &[("", 1), ("", 2)]
            } else {
                &[("a", 1), ("a", 2)]
            };
            let error = Names::default().learn(&Pairs(pairs)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        // In a later item, wherever the first one has the field.
        let first = Pairs(&[("a", 1), ("b", 2)]);
        for pairs in [Pairs(&[("a", 1), ("a", 2)]), Pairs(&[("b", 1), ("b", 2)])] {
            let error = second(&[], &first, &pairs).unwrap_err();
            assert!(
                error.starts_with("two fields of the item have the name"),
                "{error}"
            );
        }
    }
}
