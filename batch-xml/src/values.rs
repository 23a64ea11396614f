//! Parses single values, and reports invalid ones.

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::span::{Span, Spanned};
use crate::suggest;
use crate::tree::Element;

/// Maximum length of ids, which become JOB_NAME and STEP_NAME.
pub(crate) const MAX_ID_CHARS: usize = 100;

/// Parses an XML Schema boolean.
// Spec: JSL-DOC-10
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Parses an XML Schema integer from `least` to 2^31-1: optional blanks, an optional sign, digits.
// Spec: JSL-DOC-11, D-07
pub(crate) fn integer(text: &str, least: u32) -> Option<u32> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    let value = u32::try_from(trimmed.parse::<i64>().ok()?).ok()?;
    (least..=i32::MAX.unsigned_abs())
        .contains(&value)
        .then_some(value)
}

pub(crate) fn missing_attribute(element: &Element, name: &str, sink: &mut Sink) {
    sink.error(codes::MISSING_ATTRIBUTE, &element.name.span, |d| {
        d.message(format!("{} has no attribute `{name}`", quoted(&element.name)))
            .label(format!("`{name}` is required"))
    });
}

pub(crate) fn empty_value(element: &Element, name: &str, span: &Span, sink: &mut Sink) {
    sink.error(codes::EMPTY_VALUE, span, |d| {
        d.message(format!("`{name}` of {} is empty", quoted(&element.name)))
            .label("a value is required")
    });
}

/// Returns the problem of an id that a job or step must not have: empty, longer than the repository stores, with control
/// characters.
pub fn id_problem(id: &str) -> Option<String> {
    if id.is_empty() {
        return Some("the id is empty".to_owned());
    }
    if id.chars().count() > MAX_ID_CHARS {
        return Some(format!("the id is longer than {MAX_ID_CHARS} characters"));
    }
    let control = id.chars().find(|c| c.is_control())?;
    Some(format!("the id contains the control character {control:?}"))
}

pub(crate) fn long_id(span: &Span, sink: &mut Sink) {
    sink.error(codes::BAD_ID, span, |d| {
        d.message(format!("the id is longer than {MAX_ID_CHARS} characters"))
            .label("the job repository cannot store it")
    });
}

pub(crate) fn bad_boolean(name: &str, value: &Spanned<String>, sink: &mut Sink) {
    bad_value(
        codes::BAD_BOOLEAN,
        name,
        value,
        "`true`, `false`, `1` or `0`",
        &["true", "false"],
        sink,
    );
}

pub(crate) fn bad_integer(name: &str, value: &Spanned<String>, least: u32, sink: &mut Sink) {
    let expected = format!("an integer from {least} to {}", i32::MAX);
    bad_value(codes::BAD_INTEGER, name, value, &expected, &[], sink);
}

pub(crate) fn bad_choice(name: &str, value: &Spanned<String>, choices: &[&str], sink: &mut Sink) {
    let expected = format!("one of `{}`", choices.join("`, `"));
    bad_value(codes::BAD_CHOICE, name, value, &expected, choices, sink);
}

fn bad_value(
    code: &'static str,
    name: &str,
    value: &Spanned<String>,
    expected: &str,
    near: &[&str],
    sink: &mut Sink,
) {
    sink.error(code, &value.span, |d| {
        let found = if value.is_empty() {
            "empty".to_owned()
        } else {
            quoted(value)
        };
        d.message(format!("`{name}` cannot be {found}"))
            .label(format!("expected {expected}"))
            .suggestion(suggest::nearest(value, near.iter().copied()))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: JSL-DOC-10
    #[test]
    fn booleans() {
        for (text, expect) in [("true", true), ("1", true), ("false", false), ("0", false)] {
            assert_eq!(boolean(text), Some(expect));
        }
        for text in ["", "TRUE", "yes", " true", "01"] {
            assert_eq!(boolean(text), None, "{text:?}");
        }
    }

    // Spec: JSL-DOC-11
    #[test]
    fn integers() {
        let good = [
            ("0", 0),
            ("-0", 0),
            ("+7", 7),
            (" \t007\n", 7),
            ("2147483647", 2147483647),
            ("00002147483647", 2147483647),
        ];
        for (text, expect) in good {
            assert_eq!(integer(text, 0), Some(expect), "{text:?}");
        }
        for text in [
            "",
            " ",
            "+",
            "-1",
            "1.0",
            "1e3",
            "0x1",
            "2147483648",
            "99999999999999999999",
            "1 2",
            "٣",
            "+-1",
            "\u{a0}1",
        ] {
            assert_eq!(integer(text, 0), None, "{text:?}");
        }
        assert_eq!(integer("0", 1), None);
        assert_eq!(integer("1", 1), Some(1));
    }
}
