//! Lists and objects, as the JSON that records have for them.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::sync::LazyLock;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::lists::{is_list, twice};

/// Precedes blanks that are the whole text of an XML element: `quick-xml` takes blanks alone for indentation. No XML contains this
/// character.
pub(crate) const BLANKS_FOLLOW: &str = "\u{ffff}blanks\u{ffff}";

/// The name that a value gives to ask a deserializer for the text as it is: a row of text, where `007` is not the number 7, and JSON, whose
/// numbers may have more digits than a float. [`RawValue`] gives the same name.
pub(super) static AS_IT_IS: LazyLock<&'static str> = LazyLock::new(|| {
    let mut name = "batch_items::Value";
    // The probe always fails, after it has recorded the name.
    let _ = <&RawValue>::deserialize(NameProbe(&mut name));
    name
});

/// Returns whether a value asks for the text as it is.
pub(crate) fn asks_for_text(name: &str) -> bool {
    name == *AS_IT_IS
}

struct NameProbe<'n>(&'n mut &'static str);

impl<'de> Deserializer<'de> for NameProbe<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only the name is needed"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = name;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Bytes as a text that a column of bytes takes.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\\x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Appends the JSON of a value to a text. What JSON does not hold exactly is an error. The reader of XML limits
/// the depth, and in Parquet and Arrow the schema does.
pub(super) struct Nested<'j> {
    json: &'j mut String,
}

impl<'j> Nested<'j> {
    pub(super) fn new(json: &'j mut String) -> Self {
        Self { json }
    }

    fn inner(&mut self) -> Nested<'_> {
        Nested::new(self.json)
    }

    fn push(&mut self, value: impl fmt::Display) {
        // A `String` takes everything.
        let _ = write!(self.json, "{value}");
    }

    fn push_text(&mut self, text: &str) {
        self.push(serde_json::Value::from(text));
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.push("null");
        Ok(())
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<(), E> {
        self.push(value);
        Ok(())
    }

    fn visit_f64<E: de::Error>(mut self, value: f64) -> Result<(), E> {
        if !value.is_finite() {
            return Err(E::custom(format!(
                "a list or an object in a record is JSON, which does not have {value}"
            )));
        }
        self.push(serde_json::Value::from(value));
        Ok(())
    }

    fn visit_str<E>(mut self, value: &str) -> Result<(), E> {
        self.push_text(value.strip_prefix(BLANKS_FOLLOW).unwrap_or(value));
        Ok(())
    }

    fn visit_bytes<E>(mut self, value: &[u8]) -> Result<(), E> {
        self.push_text(&Hex(value).to_string());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        self.json.push('[');
        let mut end = self.json.len();
        while elements.next_element_seed(self.inner())?.is_some() {
            end = self.json.len();
            self.json.push(',');
        }
        self.json.truncate(end);
        self.json.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut object = Object::new(self);
        while let Some(name) = fields.next_key::<Name>()? {
            object.field(&name.0, &mut fields)?;
        }
        object.end();
        Ok(())
    }
}

/// Appends an object.
pub(super) struct Object<'j> {
    nested: Nested<'j>,
    names: HashSet<String>,
    /// They are the last fields.
    lists: Lists,
}

impl<'j> Object<'j> {
    pub(super) fn new(nested: Nested<'j>) -> Self {
        nested.json.push('{');
        Self {
            nested,
            names: HashSet::new(),
            lists: Lists::default(),
        }
    }

    /// Appends a field. Another one of this name is an error: an object keeps one value of a name.
    pub(super) fn field<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        fields: &mut A,
    ) -> Result<(), A::Error> {
        if is_list(name) && is_xml::<A>() {
            return self.lists.add(name, fields);
        }
        if !self.names.insert(name.to_owned()) {
            return Err(match name {
                "$text" => de::Error::custom("there is an element in its text"),
                _ => twice(name, is_xml::<A>()),
            });
        }
        self.name(name);
        fields.next_value_seed(self.nested.inner())
    }

    fn name(&mut self, name: &str) {
        if !self.nested.json.ends_with('{') {
            self.nested.json.push(',');
        }
        self.nested.push_text(name);
        self.nested.json.push(':');
    }

    /// Returns the only name.
    pub(super) fn only(&self) -> Option<&str> {
        self.names
            .iter()
            .next()
            .map(String::as_str)
            .filter(|_| self.names.len() == 1 && self.lists.0.is_empty())
    }

    pub(super) fn end(mut self) {
        for (name, json) in std::mem::take(&mut self.lists).into_json() {
            self.name(&name);
            self.nested.json.push_str(&json);
        }
        self.nested.json.push('}');
    }
}

/// The lists of an object: the name of each, and its elements as JSON, separated by commas.
#[derive(Default)]
pub(super) struct Lists(Vec<(String, String)>);

impl Lists {
    /// Adds the next element of a list.
    pub(super) fn add<'de, A: MapAccess<'de>>(&mut self, name: &str, fields: &mut A) -> Result<(), A::Error> {
        let at = self.0.iter().position(|(list, _)| list == name);
        let at = at.unwrap_or_else(|| {
            self.0.push((name.to_owned(), String::new()));
            self.0.len() - 1
        });
        let elements = &mut self.0[at].1;
        if !elements.is_empty() {
            elements.push(',');
        }
        fields.next_value_seed(Nested::new(elements))
    }

    /// Returns the name and the JSON of each list.
    pub(super) fn into_json(self) -> impl Iterator<Item = (String, String)> {
        self.0
            .into_iter()
            .map(|(name, elements)| (name, format!("[{elements}]")))
    }
}

/// Returns whether a value comes from XML, or goes there.
pub(super) fn is_xml<A>() -> bool {
    std::any::type_name::<A>().contains("quick_xml")
}

/// The name of a field, or the key of a map.
pub(super) struct Name(pub(super) String);

impl Name {
    /// Returns whether the value is JSON as it is.
    pub(super) fn asks_for_text(&self) -> bool {
        asks_for_text(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bool<E>(self, name: bool) -> Result<Name, E> {
        Ok(Name(name.to_string()))
    }

    fn visit_i64<E>(self, name: i64) -> Result<Name, E> {
        Ok(Name(name.to_string()))
    }

    fn visit_u64<E>(self, name: u64) -> Result<Name, E> {
        Ok(Name(name.to_string()))
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        Ok(Name(name.to_owned()))
    }
}
