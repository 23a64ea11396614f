//! Infinite and NaN floats, which JSON cannot represent: `serde_json` writes null for them, which is another value.

use std::fmt::Display;

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::value::{RawValue, to_raw_value};

/// Appends an item as JSON.
///
/// # Errors
/// If a number of the item is infinite or not a number.
pub(crate) fn append_json(item: &(impl Serialize + ?Sized), out: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(out, &Finite::<_, false>(item))
}

/// Returns an item as JSON, with infinite and NaN floats as texts.
pub(crate) fn json_to_show(item: &impl Serialize) -> serde_json::Result<Box<RawValue>> {
    to_raw_value(&Finite::<_, true>(item))
}

/// A value whose infinite and NaN floats are rejected or, with `SHOWS`, written as texts.
struct Finite<'v, T: ?Sized, const SHOWS: bool>(&'v T);

impl<T: Serialize + ?Sized, const SHOWS: bool> Serialize for Finite<'_, T, SHOWS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Checked::<_, SHOWS>(serializer))
    }
}

/// A serializer, or a part of one, that rejects infinite and NaN floats or, with `SHOWS`, writes them as texts.
struct Checked<S, const SHOWS: bool>(S);

macro_rules! forward {
    ($($method:ident: $ty:ty;)*) => {$(
        #[inline]
        fn $method(self, value: $ty) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
        }
    )*};
}

impl<S: Serializer, const SHOWS: bool> Serializer for Checked<S, SHOWS> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Checked<S::SerializeSeq, SHOWS>;
    type SerializeTuple = Checked<S::SerializeTuple, SHOWS>;
    type SerializeTupleStruct = Checked<S::SerializeTupleStruct, SHOWS>;
    type SerializeTupleVariant = Checked<S::SerializeTupleVariant, SHOWS>;
    type SerializeMap = Checked<S::SerializeMap, SHOWS>;
    type SerializeStruct = Checked<S::SerializeStruct, SHOWS>;
    type SerializeStructVariant = Checked<S::SerializeStructVariant, SHOWS>;

    forward! {
        serialize_bool: bool; serialize_char: char; serialize_str: &str; serialize_bytes: &[u8];
        serialize_i8: i8; serialize_i16: i16; serialize_i32: i32; serialize_i64: i64; serialize_i128: i128;
        serialize_u8: u8; serialize_u16: u16; serialize_u32: u32; serialize_u64: u64; serialize_u128: u128;
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        match value.is_finite() {
            true => self.0.serialize_f32(value),
            false if SHOWS => self.0.collect_str(&value),
            false => Err(no_number(value)),
        }
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        match value.is_finite() {
            true => self.0.serialize_f64(value),
            false if SHOWS => self.0.collect_str(&value),
            false => Err(no_number(value)),
        }
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Finite::<_, SHOWS>(value))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_struct(name)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Finite::<_, SHOWS>(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_newtype_variant(name, index, variant, &Finite::<_, SHOWS>(value))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(length).map(Checked)
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(length).map(Checked)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, length).map(Checked)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let variant = self.0.serialize_tuple_variant(name, index, variant, length);
        variant.map(Checked)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(length).map(Checked)
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, length).map(Checked)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let variant = self.0.serialize_struct_variant(name, index, variant, length);
        variant.map(Checked)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.collect_str(value)
    }
}

#[cold]
fn no_number<E: Error>(value: impl Display) -> E {
    E::custom(format_args!("JSON has no number for {value}"))
}

macro_rules! compound {
    ($($role:ident: $method:ident($($name:ident)?);)*) => {$(
        impl<C: $role, const SHOWS: bool> $role for Checked<C, SHOWS> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), C::Error> {
                self.0.$method($($name,)? &Finite::<_, SHOWS>(value))
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.0.end()
            }
        }
    )*};
}

compound! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeStruct: serialize_field(name);
    SerializeStructVariant: serialize_field(name);
}

impl<C: SerializeMap, const SHOWS: bool> SerializeMap for Checked<C, SHOWS> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.0.serialize_key(&Finite::<_, SHOWS>(key))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.0.serialize_value(&Finite::<_, SHOWS>(value))
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::{Record, Value};

    fn json(item: &impl Serialize) -> Result<String, String> {
        let mut out = Vec::new();
        let appended = append_json(item, &mut out);
        appended
            .map(|()| String::from_utf8(out).unwrap())
            .map_err(|error| error.to_string())
    }

    #[derive(serde::Serialize)]
    enum Shape {
        Point,
        Circle(f64),
        Box { sides: (f32, Option<f32>) },
    }

    // Spec: ITEM-VALUE-02
    #[test]
    fn other_numbers_are_rejected_wherever_they_are() {
        let nan = f64::NAN;
        let map = |value: f64| BTreeMap::from([("a", vec![1.5, value])]);
        assert_eq!(json(&map(2.0)).unwrap(), r#"{"a":[1.5,2.0]}"#);
        assert!(
            json(&map(nan))
                .unwrap_err()
                .starts_with("JSON has no number for NaN")
        );
        let shapes = |height| {
            [
                Shape::Point,
                Shape::Circle(1.0),
                Shape::Box { sides: (1.0, height) },
            ]
        };
        let expected = r#"["Point",{"Circle":1.0},{"Box":{"sides":[1.0,null]}}]"#;
        assert_eq!(json(&shapes(None)).unwrap(), expected);
        assert!(json(&shapes(Some(f32::INFINITY))).is_err());
        assert!(json(&Shape::Circle(f64::NEG_INFINITY)).is_err());
        let shown = json_to_show(&(shapes(Some(f32::INFINITY)), map(nan))).unwrap();
        let expected = r#"[["Point",{"Circle":1.0},{"Box":{"sides":[1.0,"inf"]}}],{"a":[1.5,"NaN"]}]"#;
        assert_eq!(shown.get(), expected);
    }

    // Spec: ITEM-VALUE-02
    #[test]
    fn records_keep_their_numbers_and_their_json() {
        let mut record = Record::new();
        record.set("large", Value::Decimal("12345678901234567890.5".into()));
        record.set("nested", Value::Json(r#"{"a":[1.50]}"#.into()));
        record.set("bytes", vec![10_u8]);
        assert_eq!(
            json(&record).unwrap(),
            r#"{"large":12345678901234567890.5,"nested":{"a":[1.50]},"bytes":"\\x0a"}"#
        );
        record.set("none", f64::NAN);
        assert!(json(&record).is_err());
    }
}
