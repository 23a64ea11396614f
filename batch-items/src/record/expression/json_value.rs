//! The function `json_value`: a value inside of the JSON of a list or object, by a path such as `$.amount[0]."@currency"`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A value that is no list or object.
pub(super) enum Scalar {
    Null,
    Bool(bool),
    /// The digits as they are written.
    Number(String),
    Text(String),
}

enum Step {
    Key(String),
    Index(usize),
}

/// Returns the value at a path, or `Null`. An element of XML with attributes has the value of its text. `[0]` of a value that is not a list is the
/// value itself.
///
/// # Errors
/// If the text is not JSON, the path is not valid, or the value is a list or another object.
pub(super) fn json_value(json: &str, path: &str) -> Result<Scalar, Cow<'static, str>> {
    let mut current = json.trim();
    for step in steps(path)? {
        let is_list = current.starts_with('[');
        let next = match step {
            Step::Key(_) if is_list => return Err("there is a list; choose an element, such as `[0]`".into()),
            Step::Key(key) if current.starts_with('{') => parsed::<Fields<'_>>(current)?.value(&key)?,
            Step::Index(index) if is_list => {
                let list: Vec<&RawValue> = parsed(current)?;
                list.get(index).copied()
            }
            Step::Index(0) => continue,
            // A text is no JSON, though it has no value at the path either.
            Step::Key(_) | Step::Index(_) => parsed::<&RawValue>(current).map(|_| None)?,
        };
        match next {
            Some(next) => current = next.get(),
            None => return Ok(Scalar::Null),
        }
    }
    scalar(current)
}

/// Checks a path.
///
/// # Errors
/// If it is not valid.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    steps(path).map(drop).map_err(Cow::into_owned)
}

/// The fields of an object, of which two may have one name.
struct Fields<'j>(Vec<(String, &'j RawValue)>);

impl<'j> Fields<'j> {
    fn value(&self, key: &str) -> Result<Option<&'j RawValue>, Cow<'static, str>> {
        let mut found = self.0.iter().filter(|(name, _)| name == key);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(format!("two fields have the name `{key}`").into()),
            (first, None) => Ok(first.map(|(_, value)| *value)),
        }
    }
}

impl<'de: 'j, 'j> Deserialize<'de> for Fields<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor).map(Fields)
    }
}

fn parsed<'j, T: Deserialize<'j>>(json: &'j str) -> Result<T, Cow<'static, str>> {
    serde_json::from_str(json).map_err(|error| format!("it is not JSON: {error}").into())
}

fn scalar(json: &str) -> Result<Scalar, Cow<'static, str>> {
    match json.as_bytes().first() {
        Some(b'{') => element(json),
        Some(b'[') => Err("there is a list at the path; choose an element, such as `[0]`".into()),
        Some(b'"') => parsed(json).map(Scalar::Text),
        Some(b'n') => parsed::<()>(json).map(|()| Scalar::Null),
        Some(b't' | b'f') => parsed(json).map(Scalar::Bool),
        _ => parsed::<&RawValue>(json).map(|number| Scalar::Number(number.get().to_owned())),
    }
}

/// Returns the text of an element of XML, which may have attributes.
fn element(json: &str) -> Result<Scalar, Cow<'static, str>> {
    let object: Fields<'_> = parsed(json)?;
    match object.value("$text")? {
        Some(text) => scalar(text.get()),
        None if object.0.iter().all(|(name, _)| name.starts_with('@')) => Ok(Scalar::Null),
        None => Err("there is an object at the path; add a step to the path".into()),
    }
}

/// Returns the steps of a path.
fn steps(path: &str) -> Result<Vec<Step>, Cow<'static, str>> {
    let invalid = || format!("expected a path such as `$.name[0].\"other name\"`, found `{path}`");
    let mut rest = path.trim().strip_prefix('$').ok_or_else(invalid)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = step(rest).ok_or_else(invalid)?;
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

/// Returns the first step, and the text after it.
fn step(path: &str) -> Option<(Step, &str)> {
    if let Some(quoted) = path.strip_prefix(".\"") {
        let (key, after) = quoted.split_once('"')?;
        return Some((Step::Key(key.to_owned()), after));
    }
    if let Some(name) = path.strip_prefix('.') {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let key = name[..end].trim();
        return (!key.is_empty()).then(|| (Step::Key(key.to_owned()), &name[end..]));
    }
    let (index, after) = path.strip_prefix('[')?.split_once(']')?;
    Some((Step::Index(index.trim().parse().ok()?), after))
}
