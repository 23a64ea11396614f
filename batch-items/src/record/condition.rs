//! Conditions on records, as text.

use std::cmp::Ordering;
use std::str::FromStr;

use regex::Regex;

use super::value::{Record, Value};

/// Conditions that all have to hold: `delay > 15 and origin = 'MUC' and note is not null`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition(Vec<Comparison>);

#[derive(Clone, Debug)]
struct Comparison {
    field: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    IsNull(bool),
    Matches(Regex, bool),
    Compares(&'static [Ordering], Value),
}

/// The operators; longer ones precede their prefixes.
const OPERATORS: &[(&str, &[Ordering])] = &[
    ("<=", &[Ordering::Less, Ordering::Equal]),
    (">=", &[Ordering::Greater, Ordering::Equal]),
    ("!=", &[Ordering::Less, Ordering::Greater]),
    ("<>", &[Ordering::Less, Ordering::Greater]),
    ("=", &[Ordering::Equal]),
    ("<", &[Ordering::Less]),
    (">", &[Ordering::Greater]),
];

impl Condition {
    /// Returns whether the conditions hold. Fails if a field does not exist.
    pub(crate) fn holds(&self, record: &Record) -> Result<bool, String> {
        for Comparison { field, test } in &self.0 {
            let value = record
                .get(field)
                .ok_or_else(|| format!("the record has no field `{field}`"))?;
            let holds = match test {
                Test::IsNull(expected) => value.is_null() == *expected,
                Test::Matches(pattern, expected) => pattern.is_match(&value.to_string()) == *expected,
                // As in SQL, null compares with nothing.
                Test::Compares(..) if value.is_null() => false,
                Test::Compares(allowed, other) => {
                    compare(value, other).is_some_and(|order| allowed.contains(&order))
                }
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Compares as numbers, if the value of the condition is one, else as texts.
fn compare(value: &Value, other: &Value) -> Option<Ordering> {
    match other {
        Value::Int(other) => match value.as_i64() {
            Some(value) => Some(value.cmp(other)),
            None => value.as_f64()?.partial_cmp(&(*other as f64)),
        },
        Value::Float(other) => value.as_f64()?.partial_cmp(other),
        Value::Bool(other) => Some(value.as_bool()?.cmp(other)),
        other => Some(value.to_string().cmp(&other.to_string())),
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        split(text)
            .into_iter()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Splits at ` and ` outside of quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        if character == '\'' {
            quoted = !quoted;
        }
        let rest = &text[at..];
        let is_and = !quoted
            && rest
                .get(..5)
                .is_some_and(|word| word.eq_ignore_ascii_case(" and "));
        if is_and && at >= from {
            parts.push(&text[from..at]);
            from = at + 5;
        }
    }
    parts.push(&text[from..]);
    parts
}

impl FromStr for Comparison {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || {
            format!(
                "expected a condition such as `delay > 15`, `name ~ '^A'` or `note is not null`, found `{text}`"
            )
        };
        let end = text
            .find(|character: char| character.is_whitespace() || "<>=!~".contains(character))
            .filter(|end| *end > 0)
            .ok_or_else(wrong)?;
        let (field, rest) = (text[..end].to_owned(), text[end..].trim());
        let lower = rest.to_ascii_lowercase();
        let test = match lower.as_str() {
            "is null" => Test::IsNull(true),
            "is not null" => Test::IsNull(false),
            _ => {
                let pattern = match (rest.strip_prefix("!~"), rest.strip_prefix('~')) {
                    (Some(pattern), _) => Some((pattern, false)),
                    (_, Some(pattern)) => Some((pattern, true)),
                    _ => None,
                };
                if let Some((pattern, expected)) = pattern {
                    let pattern =
                        Regex::new(&literal(pattern).to_string()).map_err(|error| error.to_string())?;
                    Test::Matches(pattern, expected)
                } else {
                    let operator = OPERATORS.iter().find(|(operator, _)| rest.starts_with(operator));
                    let (operator, allowed) = operator.ok_or_else(wrong)?;
                    let value = rest[operator.len()..].trim();
                    if value.is_empty() {
                        return Err(wrong());
                    }
                    Test::Compares(allowed, literal(value))
                }
            }
        };
        Ok(Self { field, test })
    }
}

/// Returns the value of a literal: a number, `true`, `false`, a text in single quotes, or any other text.
pub(crate) fn literal(text: &str) -> Value {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Value::Text(inner.replace("''", "'"));
    }
    if let Ok(value) = text.parse() {
        Value::Int(value)
    } else if let Ok(value) = text.parse() {
        Value::Bool(value)
    } else if let Ok(value) = text.parse() {
        Value::Float(value)
    } else {
        Value::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(condition: &str, expected: Result<bool, &str>) {
        let mut record = Record::new();
        record.set("delay", "16");
        record.set("origin", "MUC");
        record.set("ratio", 0.5);
        record.set("note", Value::Null);
        record.set("paid", true);
        let holds = condition
            .parse::<Condition>()
            .and_then(|condition| condition.holds(&record));
        assert_eq!(holds, expected.map_err(str::to_owned), "{condition}");
    }

    #[test]
    fn conditions_compare_numbers_and_texts() {
        check("", Ok(true));
        check("delay > 15", Ok(true));
        check("delay>=16 and delay<=16", Ok(true));
        check("delay > 9", Ok(true));
        check("delay > '9'", Ok(false));
        check("delay != 16", Ok(false));
        check("ratio < 1 AND origin = MUC", Ok(true));
        check("origin = 'a and b'", Ok(false));
        check("origin ~ '^M.C$'", Ok(true));
        check("origin !~ ^M", Ok(false));
        check("paid = true", Ok(true));
        check("note is null and delay is not null", Ok(true));
        check("note = ''", Ok(false));
        check("note != x", Ok(false));
    }

    #[test]
    fn a_wrong_condition_is_an_error() {
        check("dely > 15", Err("the record has no field `dely`"));
        let wrong = "expected a condition such as `delay > 15`, `name ~ '^A'` or `note is not null`, found";
        check("delay", Err(&format!("{wrong} `delay`")));
        check("delay >", Err(&format!("{wrong} `delay >`")));
        check("delay between 1", Err(&format!("{wrong} `delay between 1`")));
    }
}
