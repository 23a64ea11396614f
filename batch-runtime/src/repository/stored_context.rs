//! The columns of a context, as the programs of each layout read and write them.
//!
//! Spring Batch 4.3 stores the bytes of UTF-8 as characters of ISO-8859-1, later versions store the characters themselves. Until 5 an
//! object contains its class as the entry `@class`, since 6 the class precedes it: `["java.util.HashMap",{...}]`.
// Spec: REPO-66, REPO-90

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{RepositoryFormat, RepositoryLayout};

/// The entry with the class of an object, until Spring Batch 5.
pub(super) const CLASS_KEY: &str = "@class";
/// The class of a context.
const CLASS: &str = "java.util.HashMap";

/// Entries of other programs by their keys, each as JSON, which are preserved.
pub(crate) type OtherEntries = BTreeMap<String, String>;

/// The two columns of a context row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoredContext {
    /// SHORT_CONTEXT: the whole context, or its start.
    pub(crate) short: String,
    /// SERIALIZED_CONTEXT: the whole context if it does not fit into SHORT_CONTEXT.
    pub(crate) serialized: Option<String>,
}

impl StoredContext {
    /// Encodes `entries` as texts, in ASCII, which is the same in all layouts.
    pub(super) fn new<'a>(
        entries: impl Iterator<Item = (&'a str, &'a str)>,
        other_entries: &OtherEntries,
        format: &RepositoryFormat,
    ) -> Self {
        let mut text = String::with_capacity(256);
        text.push('{');
        if format.layout.has_classes_in_objects() {
            push_class(&mut text, CLASS);
        }
        for (key, value) in entries {
            push_key(&mut text, key);
            push_json_string(&mut text, value);
        }
        for (key, json) in other_entries {
            push_key(&mut text, key);
            push_ascii(&mut text, json);
        }
        text.push('}');
        // Bytes are characters.
        if text.len() <= format.max_varchar {
            return Self {
                short: text,
                serialized: None,
            };
        }
        // As Spring Batch cuts it.
        let short = format!("{} ...", &text[..format.max_varchar.saturating_sub(8)]);
        Self {
            short,
            serialized: Some(text),
        }
    }

    /// Returns the whole context, as it is stored.
    pub(crate) fn text(&self) -> &str {
        self.serialized.as_ref().unwrap_or(&self.short)
    }

    /// Returns the JSON of the whole context.
    pub(crate) fn json(&self, layout: RepositoryLayout) -> Cow<'_, str> {
        match layout.has_bytes_as_characters() {
            true => unfolded(self.text()),
            false => Cow::Borrowed(self.text()),
        }
    }

    /// Returns the context for a narrower SHORT_CONTEXT.
    pub(crate) fn cut_to(self, max_short: usize) -> Self {
        if self.short.chars().count() <= max_short {
            return self;
        }
        let text = self.text().to_owned();
        let start: String = text.chars().take(max_short.saturating_sub(8)).collect();
        Self {
            short: format!("{start} ..."),
            serialized: Some(text),
        }
    }

    /// Converts the context to another layout, in ASCII, which all versions read alike. Returns `None` if nothing changes or the text is not
    /// JSON.
    // Spec: REPO-91
    pub(crate) fn converted(&self, from: RepositoryLayout, to: &RepositoryFormat) -> Option<Self> {
        if from == to.layout {
            return None;
        }
        let json = self.json(from);
        let has_classes_in_objects = to.layout.has_classes_in_objects();
        let mut text = String::with_capacity(json.len() + 32);
        if from.has_classes_in_objects() == has_classes_in_objects {
            serde_json::from_str::<Object<'_>>(&json).ok()?;
            push_ascii(&mut text, &json);
        } else {
            let mut rewritten = Rewritten {
                text: String::new(),
                has_classes_in_objects,
                depth: 0,
            };
            rewritten.push_root(&serde_json::from_str(&json).ok()?)?;
            push_ascii(&mut text, &rewritten.text);
        }
        let whole = Self {
            short: text,
            serialized: None,
        };
        // A conversion that is repeated after an interruption finds nothing to change.
        (whole.short != self.text()).then(|| whole.cut_to(to.max_varchar))
    }
}

/// An object of JSON, with the order of its entries.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    entries.push((key, value));
                }
                Ok(Object(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

impl<'a> Object<'a> {
    /// Returns its class, if that is one of its entries.
    fn class(&self) -> Option<String> {
        let entry = self.0.iter().find(|(key, _)| key == CLASS_KEY);
        entry.and_then(|(_, class)| serde_json::from_str(class.get()).ok())
    }
}

/// JSON whose objects contain their classes, or follow them.
struct Rewritten {
    text: String,
    has_classes_in_objects: bool,
    /// The number of objects and arrays around the next value.
    depth: usize,
}

impl Rewritten {
    /// As Jackson's.
    const MAX_DEPTH: usize = 1_000;

    /// Appends a context, whose class is known without an entry. `None` if it is no JSON.
    fn push_root(&mut self, root: &Object<'_>) -> Option<()> {
        self.push_object(root, self.has_classes_in_objects.then_some(CLASS))
    }

    /// Appends an object, with `class` as an entry, if that is given.
    fn push_object(&mut self, object: &Object<'_>, class: Option<&str>) -> Option<()> {
        self.text.push('{');
        if let Some(class) = class {
            push_class(&mut self.text, class);
        }
        let has_class = object.class().is_some();
        let is_class = |key: &str| has_class && key == CLASS_KEY;
        for (key, value) in object.0.iter().filter(|(key, _)| !is_class(key)) {
            push_key(&mut self.text, key);
            self.push_value(value)?;
        }
        self.text.push('}');
        Some(())
    }

    fn push_value(&mut self, value: &RawValue) -> Option<()> {
        if self.depth >= Self::MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let json = value.get();
        match json.as_bytes().first() {
            Some(b'{') => {
                let object: Object<'_> = serde_json::from_str(json).ok()?;
                match object.class() {
                    Some(class) if !self.has_classes_in_objects => {
                        self.text.push('[');
                        push_json_string(&mut self.text, &class);
                        self.text.push(',');
                        self.push_object(&object, None)?;
                        self.text.push(']');
                    }
                    class => self.push_object(&object, class.as_deref())?,
                }
            }
            Some(b'[') => self.push_array(&serde_json::from_str::<Vec<&RawValue>>(json).ok()?)?,
            _ => self.text.push_str(json),
        }
        self.depth -= 1;
        Some(())
    }

    fn push_array(&mut self, values: &[&RawValue]) -> Option<()> {
        if let ([class, object], true) = (values, self.has_classes_in_objects)
            && let Ok(class) = serde_json::from_str::<String>(class.get())
            && let Ok(object) = serde_json::from_str::<Object<'_>>(object.get())
            && object.class().is_none()
        {
            return self.push_object(&object, Some(&class));
        }
        for (index, value) in values.iter().enumerate() {
            self.text.push(if index == 0 { '[' } else { ',' });
            self.push_value(value)?;
        }
        self.text.push_str(if values.is_empty() { "[]" } else { "]" });
        Some(())
    }
}

fn push_class(text: &mut String, class: &str) {
    push_key(text, CLASS_KEY);
    push_json_string(text, class);
}

/// Appends the key of the next entry.
fn push_key(text: &mut String, key: &str) {
    if !text.ends_with('{') {
        text.push(',');
    }
    push_json_string(text, key);
    text.push(':');
}

/// Appends `value` as a JSON string of ASCII characters only, which all versions of Spring Batch read alike.
fn push_json_string(text: &mut String, value: &str) {
    text.push('"');
    let mut rest = value;
    // Most texts are plain, or have few other characters.
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        let (plain, special) = rest.split_at(at);
        text.push_str(plain);
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some(other) => push_escaped(text, other),
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text.push('"');
}

/// Returns whether a character stands for itself in a JSON string.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn push_escaped(text: &mut String, character: char) {
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        let _ = write!(text, "\\u{unit:04x}");
    }
}

/// Returns JSON in ASCII, which a database of any encoding stores.
pub(crate) fn ascii_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    push_ascii(&mut text, json);
    text
}

/// Appends JSON in ASCII; other characters can only occur in its strings.
fn push_ascii(text: &mut String, json: &str) {
    for character in json.chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            push_escaped(text, character);
        }
    }
}

/// Decodes UTF-8 that Spring Batch wrote as characters of ISO-8859-1. Other programs may write the characters themselves.
fn unfolded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    let unfolded = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    unfolded.map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::repository::to_java;

    fn context(short: &str) -> StoredContext {
        StoredContext {
            short: short.into(),
            serialized: None,
        }
    }

    /// Returns the bytes of UTF-8 as characters.
    fn folded(text: &str) -> String {
        text.bytes().map(char::from).collect()
    }

    fn format_of(layout: RepositoryLayout, max_varchar: usize) -> RepositoryFormat {
        RepositoryFormat {
            layout,
            max_varchar,
            ..RepositoryFormat::default()
        }
    }

    /// Data of a job keeps its values and its Java types, even lists that look like values with a class.
    // Spec: DATA-03, REPO-91
    #[test]
    fn data_of_a_job_is_converted_to_any_layout() {
        let row = BTreeMap::from([("n", Some(1_i64)), ("none", None)]);
        let values = (
            ("app.Row", &row),
            ("app.Row", vec![1_u8]),
            (-0.0, BTreeMap::from([(5_i64, Vec::<&str>::new())])),
            // More values than levels that Jackson allows.
            vec![0_u8; 2 * Rewritten::MAX_DEPTH],
        );
        let of = |layout: RepositoryLayout| {
            let entries = OtherEntries::from([("größe".into(), to_java(&values, layout).unwrap())]);
            StoredContext::new(std::iter::empty(), &entries, &format_of(layout, 10_000))
        };
        for from in RepositoryLayout::ALL {
            for to in RepositoryLayout::ALL {
                let format = format_of(to, 10_000);
                let converted = of(from).converted(from, &format).unwrap_or_else(|| of(from));
                assert_eq!(converted, of(to), "{from} to {to}");
            }
        }
    }

    /// As Spring Batch 4.3, 5 and 6 write the same context.
    // Spec: REPO-66, REPO-91
    #[test]
    fn a_context_is_converted_to_any_layout() {
        let of_5 = r#"{"@class":"java.util.HashMap","d":["java.util.Date",5],"größe":"漢 Ã¶ \uD83D\uDE00","l":["java.util.ArrayList",["a",
            ["java.math.BigDecimal",1.10],{"@class":"app.Row","n":-0.0,"in":{"@class":"java.util.HashMap"}}]],"e":[]}"#;
        let of_6 = r#"{"d":["java.util.Date",5],"gr\u00f6\u00dfe":"漢 Ã¶ \uD83D\uDE00","l":["java.util.ArrayList",["a",["java.math.BigDecimal",1.10],["app.Row",{"n":-0.0,"in":["java.util.HashMap",{}]}]]],"e":[]}"#;
        let of_4 = folded(of_5);
        let all = [
            (RepositoryLayout::V4_3, &*of_4),
            (RepositoryLayout::V5, of_5),
            (RepositoryLayout::V6, of_6),
        ];
        let value = |context: &StoredContext, layout| -> serde_json::Value {
            serde_json::from_str(&context.json(layout)).unwrap()
        };
        for (from, text) in all {
            for (to, expected) in all {
                let format = format_of(to, 2_500);
                let converted = context(text).converted(from, &format);
                if from == to {
                    assert_eq!(converted, None, "{from} to {to}");
                    continue;
                }
                let converted = converted.unwrap();
                assert_eq!(
                    value(&converted, to),
                    value(&context(expected), to),
                    "{from} to {to}"
                );
                assert!(converted.short.is_ascii(), "{from} to {to}");
                // A conversion that was interrupted converts again.
                assert_eq!(converted.converted(from, &format), None, "{from} to {to}");
            }
        }
    }

    // Spec: REPO-91
    #[test]
    fn what_is_not_json_is_never_changed() {
        for text in [
            "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA==",
            "",
            "[1]",
            r#"{"a":}"#,
            "größe",
        ] {
            for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
                let [from, to] = [from, to].map(|at| RepositoryLayout::ALL[at]);
                let converted = context(text).converted(from, &format_of(to, 2_500));
                assert_eq!(converted, None, "{text} from {from} to {to}");
            }
        }
    }

    // Spec: REPO-66, REPO-91
    #[test]
    fn a_converted_context_has_the_width_of_the_column() {
        let long = r#"{"@class":"java.util.HashMap","a":"漢漢漢漢漢漢漢漢漢"}"#;
        let format = format_of(RepositoryLayout::V4_3, 60);
        let back = context(long).converted(RepositoryLayout::V5, &format).unwrap();
        assert_eq!(back.short.len(), 56);
        assert_eq!(back.serialized.unwrap(), long.replace('漢', "\\u6f22"));
    }

    // Spec: REPO-91
    #[test]
    fn what_stays_in_its_place_is_not_rewritten() {
        let xstream = r#"{"map":[{"entry":[{"string":["a",{"x":1}]}]}], "@class":7}"#;
        let format = format_of(RepositoryLayout::V5, 2_500);
        assert_eq!(context(xstream).converted(RepositoryLayout::V4_3, &format), None);
        let of_6 = format_of(RepositoryLayout::V6, 2_500);
        let converted = context(xstream).converted(RepositoryLayout::V4_3, &of_6).unwrap();
        assert!(converted.short.contains(r#""@class":7"#), "{converted:?}");
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
        assert_eq!(context(&deep).converted(RepositoryLayout::V4_3, &of_6), None);
    }
}
