//! Values of JSON as Spring Batch stores them in contexts: with the Java types that JSON does not have.
//!
//! `i64` is a `Long`, `i32` an `Integer`; a sequence is an `ArrayList`, a map or struct a `HashMap`.
// Spec: DATA-03

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};

use super::RepositoryLayout;
use super::stored_context::CLASS_KEY;

/// Returns a value in the form of a layout.
pub(crate) fn to_java<T: Serialize + ?Sized>(
    value: &T,
    layout: RepositoryLayout,
) -> Result<String, serde_json::Error> {
    let mut text = Vec::new();
    let types = JavaTypes {
        has_classes_in_objects: layout.has_classes_in_objects(),
        is_in_key: false,
        depth: 0,
    };
    value.serialize(&mut Serializer::with_formatter(&mut text, types))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Returns the plain JSON of a value, without Java types. `None` if it is not JSON.
pub(crate) fn from_java(json: &str) -> Option<Value> {
    Some(plain(serde_json::from_str(json).ok()?))
}

fn plain(value: Value) -> Value {
    match value {
        Value::Array(values) => match <[Value; 2]>::try_from(values) {
            Ok([Value::String(class), typed]) if is_class(&class) => plain_elements(typed),
            Ok(pair) => pair.into_iter().map(plain).collect(),
            Err(values) => values.into_iter().map(plain).collect(),
        },
        other => plain_elements(other),
    }
}

/// Returns a value whose class is known already: an array is a list.
fn plain_elements(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(plain).collect(),
        Value::Object(entries) => {
            let entries = entries.into_iter().filter(|(key, _)| key != CLASS_KEY);
            Value::Object(
                entries
                    .map(|(key, value)| (key, plain(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        other => other,
    }
}

/// Returns whether a text is the name of a Java class with its package, or of an array of it.
fn is_class(text: &str) -> bool {
    let name = text.trim_start_matches('[');
    let name = match name.len() == text.len() {
        true => name,
        false => name.trim_end_matches(';'),
    };
    let is_part = |part: &str| {
        let mut characters = part.chars();
        let first = characters.next();
        first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|next| next.is_ascii_alphanumeric() || "_$".contains(next))
    };
    name.contains('.') && name.split('.').all(is_part)
}

/// The greatest depth of arrays and objects. The class of each doubles it, and serde_json reads 127 levels.
const MAX_DEPTH: usize = 60;

/// Writes values with their Java types.
struct JavaTypes {
    /// As an entry of each object; otherwise before it.
    has_classes_in_objects: bool,
    /// Keys have no types: a number is written there as a string.
    is_in_key: bool,
    /// The number of arrays and objects around the next value.
    depth: usize,
}

impl JavaTypes {
    fn typed<W: Write + ?Sized>(
        &self,
        writer: &mut W,
        class: &str,
        value: impl std::fmt::Display,
    ) -> io::Result<()> {
        match self.is_in_key {
            true => write!(writer, "{value}"),
            false => write!(writer, "[\"{class}\",{value}]"),
        }
    }

    fn enter(&mut self) -> io::Result<()> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => Err(io::Error::other(format!(
                "it is nested more than {MAX_DEPTH} levels deep"
            ))),
            false => Ok(()),
        }
    }
}

fn too_large(value: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!(
        "the number {value} has more than 64 bits; store it as text"
    ))
}

impl Formatter for JavaTypes {
    fn write_u32<W: Write + ?Sized>(&mut self, writer: &mut W, value: u32) -> io::Result<()> {
        self.typed(writer, "java.lang.Long", value)
    }

    fn write_i64<W: Write + ?Sized>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        self.typed(writer, "java.lang.Long", value)
    }

    fn write_u64<W: Write + ?Sized>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        match i64::try_from(value) {
            Ok(value) => self.write_i64(writer, value),
            Err(_) => self.typed(writer, "java.math.BigInteger", value),
        }
    }

    fn write_i128<W: Write + ?Sized>(&mut self, writer: &mut W, value: i128) -> io::Result<()> {
        match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => self.write_i64(writer, value),
            (_, Ok(value)) => self.write_u64(writer, value),
            _ => Err(too_large(value)),
        }
    }

    fn write_u128<W: Write + ?Sized>(&mut self, writer: &mut W, value: u128) -> io::Result<()> {
        match u64::try_from(value) {
            Ok(value) => self.write_u64(writer, value),
            Err(_) => Err(too_large(value)),
        }
    }

    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[\"java.util.ArrayList\",[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]]")
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        match self.has_classes_in_objects {
            true => writer.write_all(b"{\"@class\":\"java.util.HashMap\""),
            false => writer.write_all(b"[\"java.util.HashMap\",{"),
        }
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        match self.has_classes_in_objects {
            true => writer.write_all(b"}"),
            false => writer.write_all(b"}]"),
        }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_in_key = true;
        match first && !self.has_classes_in_objects {
            true => Ok(()),
            false => writer.write_all(b","),
        }
    }

    fn end_object_key<W: Write + ?Sized>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.is_in_key = false;
        Ok(())
    }

    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        match self.is_in_key && fragment == CLASS_KEY {
            true => Err(io::Error::other(format!("the key `{CLASS_KEY}` is reserved"))),
            false => writer.write_all(fragment.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Totals {
        small: i32,
        count: u64,
        rate: f64,
        names: Vec<&'static str>,
        nothing: Option<i64>,
    }

    const TOTALS: Totals = Totals {
        small: 5,
        count: 6,
        rate: 7.0,
        names: vec![],
        nothing: None,
    };

    // Spec: DATA-03
    #[test]
    fn values_have_java_types() {
        let of = |layout| to_java(&TOTALS, layout).unwrap();
        assert_eq!(
            of(RepositoryLayout::V4_3),
            r#"{"@class":"java.util.HashMap","small":5,"count":["java.lang.Long",6],"rate":7.0,"names":["java.util.ArrayList",[]],"nothing":null}"#
        );
        assert_eq!(of(RepositoryLayout::V5), of(RepositoryLayout::V4_3));
        assert_eq!(
            of(RepositoryLayout::V6),
            r#"["java.util.HashMap",{"small":5,"count":["java.lang.Long",6],"rate":7.0,"names":["java.util.ArrayList",[]],"nothing":null}]"#
        );
        let big = to_java(&u64::MAX, RepositoryLayout::V4_3).unwrap();
        assert_eq!(big, r#"["java.math.BigInteger",18446744073709551615]"#);
    }

    /// Keys of every Rust type are strings of JSON.
    // Spec: DATA-03
    #[test]
    fn keys_have_no_types() {
        let unsigned = BTreeMap::from([(7_u64, 1_u32), (u64::MAX, 2)]);
        let signed = BTreeMap::from([(-7_i64, vec![1_u8]), (8, vec![])]);
        let wide = BTreeMap::from([(u128::from(u64::MAX), BTreeMap::from([(-1_i128, 0_u8)]))]);
        for layout in RepositoryLayout::ALL {
            fn again<T: Serialize + serde::de::DeserializeOwned>(value: &T, layout: RepositoryLayout) -> T {
                let text = to_java(value, layout).unwrap();
                let read = from_java(&text).unwrap_or_else(|| panic!("{layout} {text}"));
                serde_json::from_value(read).unwrap()
            }
            assert_eq!(again(&unsigned, layout), unsigned);
            assert_eq!(again(&signed, layout), signed);
            assert_eq!(again(&wide, layout), wide);
        }
        let text = to_java(&unsigned, RepositoryLayout::V6).unwrap();
        assert_eq!(
            text,
            r#"["java.util.HashMap",{"7":["java.lang.Long",1],"18446744073709551615":["java.lang.Long",2]}]"#
        );
    }

    /// What could not be read again is not written.
    // Spec: DATA-03
    #[test]
    fn values_that_cannot_be_read_again_are_errors() {
        let error = |value: &dyn Fn(RepositoryLayout) -> Result<String, serde_json::Error>| {
            let errors = RepositoryLayout::ALL.map(|layout| value(layout).unwrap_err().to_string());
            assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
            errors[0].clone()
        };
        let large = "the number 18446744073709551616 has more than 64 bits; store it as text";
        assert_eq!(
            error(&|layout| to_java(&(u128::from(u64::MAX) + 1), layout)),
            large
        );
        assert_eq!(
            error(&|layout| to_java(&(i128::from(u64::MAX) + 1), layout)),
            large
        );
        assert_eq!(
            error(&|layout| to_java(&json!([{"@class": 1}]), layout)),
            "the key `@class` is reserved"
        );
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([{ "a": inner }]));
        let deepest = nested(MAX_DEPTH / 2);
        for layout in RepositoryLayout::ALL {
            let text = to_java(&deepest, layout).unwrap();
            assert_eq!(from_java(&text).as_ref(), Some(&deepest), "{layout}");
        }
        assert_eq!(
            error(&|layout| to_java(&nested(MAX_DEPTH / 2 + 1), layout)),
            "it is nested more than 60 levels deep"
        );
    }

    // Spec: DATA-03
    #[test]
    fn they_are_read_without_them() {
        let values = json!({"a": [1, -2.5, "java.lang.Long", ["x.y", 3], []], "b": {"c": {"d": null}}, "e": [["f.g"], true]});
        for layout in RepositoryLayout::ALL {
            let text = to_java(&values, layout).unwrap();
            assert_eq!(from_java(&text), Some(values.clone()), "{layout} {text}");
        }
        let of_spring = r#"["java.util.ArrayList",[["java.util.Date",5],["[Ljava.lang.String;",["a","b"]],["java.math.BigDecimal",1.10],
            ["app.Row",{"n":1}],{"@class":"app.Other","m":[1,2]}]]"#;
        let expected = json!([5, ["a", "b"], 1.1, {"n": 1}, {"m": [1, 2]}]);
        assert_eq!(from_java(of_spring), Some(expected));
        assert_eq!(from_java("["), None);
        assert_eq!(from_java(r#"["a",1]"#), Some(json!(["a", 1])));
    }
}
