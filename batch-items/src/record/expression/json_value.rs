//! The function `json_value`: a value inside of the JSON of a list or object, by a path such as `$.amount[0]."@currency"`.

use std::borrow::Cow;
use std::collections::HashMap;

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

/// Returns the value at a path; `Null` if there is none. An element of XML that occurs once is no list, and its `[0]` is itself; at the end of a
/// path an element is its text.
///
/// # Errors
/// If the text is not JSON, the path is none, or there is a list or object at the path.
pub(super) fn json_value(json: &str, path: &str) -> Result<Scalar, Cow<'static, str>> {
    let mut current = json.trim();
    for step in steps(path).ok_or("expected a path such as `$.name[0].\"other name\"`")? {
        let is_list = current.starts_with('[');
        let next = match step {
            Step::Key(_) if is_list => return Err("there is a list; choose an element, such as `[0]`".into()),
            Step::Key(key) if current.starts_with('{') => {
                let mut object: HashMap<String, &RawValue> = parsed(current)?;
                object.remove(&key)
            }
            Step::Index(index) if is_list => {
                let list: Vec<&RawValue> = parsed(current)?;
                list.get(index).copied()
            }
            Step::Index(0) => continue,
            Step::Key(_) | Step::Index(_) => None,
        };
        match next {
            Some(next) => current = next.get(),
            None => return Ok(Scalar::Null),
        }
    }
    scalar(current)
}

fn parsed<'j, T: serde::Deserialize<'j>>(json: &'j str) -> Result<T, Cow<'static, str>> {
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
    let object: HashMap<String, &RawValue> = parsed(json)?;
    match object.get("$text") {
        Some(text) => scalar(text.get()),
        None if object.keys().all(|key| key.starts_with('@')) => Ok(Scalar::Null),
        None => Err("there is an object at the path; add a step to the path".into()),
    }
}

/// Returns the steps of a path.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim().strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = if let Some(quoted) = rest.strip_prefix(".\"") {
            let (key, after) = quoted.split_once('"')?;
            (Step::Key(key.to_owned()), after)
        } else if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let key = name[..end].trim();
            (
                Step::Key((!key.is_empty()).then(|| key.to_owned())?),
                &name[end..],
            )
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            (Step::Index(index.trim().parse().ok()?), after)
        };
        steps.push(step);
        rest = after;
    }
    Some(steps)
}
