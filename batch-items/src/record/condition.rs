//! Conditions on records, as text.

use std::cmp::Ordering;
use std::str::FromStr;

use regex::Regex;

use super::decimal;
use super::field::{Field, MappingError};
use super::value::{Record, Value, number};

/// Conditions that all have to hold: `delay > 15 and origin = 'MUC' and note is not null`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition(Vec<Comparison>);

#[derive(Clone, Debug)]
struct Comparison {
    field: Field,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    IsNull(bool),
    Matches(Regex, bool),
    Compares(&'static [Ordering], Value),
    /// A comparison with a word without quotes, which may be meant as the name of a field.
    Is(bool, String),
}

/// The operators that compare values; longer ones precede their prefixes.
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
    /// Returns whether the conditions hold.
    ///
    /// # Errors
    /// If a field does not exist, or cannot be compared with the value of the condition.
    pub(crate) fn holds(&self, record: &Record) -> Result<bool, MappingError> {
        for Comparison { field, test } in &self.0 {
            let value = field.of(record)?;
            let holds = match test {
                Test::IsNull(expected) => value.is_null() == *expected,
                Test::Matches(pattern, expected) => match value.as_str() {
                    Some(text) => pattern.is_match(text) == *expected,
                    None => pattern.is_match(&value.to_string()) == *expected,
                },
                Test::Is(_, word) if record.get(word).is_some() => return Err(ambiguous(word)),
                Test::Is(..) if value.is_null() => false,
                Test::Is(expected, word) => match value.as_str() {
                    Some(text) => (text == word) == *expected,
                    None => (value.to_string() == *word) == *expected,
                },
                // As in SQL, null compares with nothing.
                Test::Compares(..) if value.is_null() => false,
                Test::Compares(allowed, other) => {
                    let order =
                        compare(value, other).ok_or_else(|| incomparable(record, &field.name, other))?;
                    allowed.contains(&order)
                }
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cold]
fn incomparable(record: &Record, field: &str, other: &Value) -> MappingError {
    let expected = match other {
        Value::Bool(_) => "`true` or `false`",
        _ => "a number",
    };
    MappingError::of_field(record, field, &format!("{expected} to compare with {other}"))
}

#[cold]
fn ambiguous(word: &str) -> MappingError {
    MappingError::new(format!(
        "fields cannot be compared with each other, and the record has a field `{word}`; for the text, write `'{word}'`"
    ))
}

/// Compares as numbers, exactly, if the value of the condition is one, else as texts; `None` if the value is not of that type.
fn compare(value: &Value, other: &Value) -> Option<Ordering> {
    match (value, other) {
        (Value::Int(value), Value::Int(other)) => Some(value.cmp(other)),
        (Value::Float(value), Value::Float(other)) => value.partial_cmp(other),
        (Value::Text(value), Value::Text(other)) => Some(value.cmp(other)),
        (Value::Text(text), Value::Int(other)) => match text.parse::<i64>() {
            Ok(value) => Some(value.cmp(other)),
            Err(_) => decimal::compare(text, &other.to_string()),
        },
        (Value::Bool(_), Value::Int(_) | Value::Float(_) | Value::Decimal(_)) => None,
        (_, Value::Int(_) | Value::Float(_) | Value::Decimal(_)) => {
            decimal::compare(&value.to_string(), &other.to_string())
        }
        (_, Value::Bool(other)) => Some(value.as_bool()?.cmp(other)),
        _ => Some(value.to_string().cmp(&other.to_string())),
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut comparisons, mut rest) = (Vec::new(), text.trim());
        while !rest.is_empty() {
            let (comparison, after) = comparison(rest)?;
            comparisons.push(comparison);
            rest = after.trim_start();
            if rest.is_empty() {
                break;
            }
            rest = match first_word(rest) {
                word if word.eq_ignore_ascii_case("and") => rest[word.len()..].trim_start(),
                word if word.eq_ignore_ascii_case("or") => {
                    return Err(format!(
                        "`or` is not supported, found `{rest}`; all conditions have to hold, joined by `and`, and `~` \
                         matches one of several texts: `status ~ '^(A|B)$'`"
                    ));
                }
                _ => {
                    return Err(format!(
                        "expected `and` or the end of the condition, found `{rest}`"
                    ));
                }
            };
            if rest.is_empty() {
                return Err(format!("expected a condition after `and` in `{text}`"));
            }
        }
        Ok(Self(comparisons))
    }
}

/// Returns the characters up to a blank.
fn first_word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

/// Parses the condition at the beginning of a text, and returns the text after it.
fn comparison(text: &str) -> Result<(Comparison, &str), String> {
    let wrong = || {
        format!(
            "expected a condition such as `delay > 15`, `name ~ '^A'` or `note is not null`, found `{text}`"
        )
    };
    let end = text
        .find(|character: char| character.is_whitespace() || "<>=!~'()".contains(character))
        .filter(|end| *end > 0)
        .ok_or_else(wrong)?;
    let (field, rest) = (Field::named(&text[..end]), text[end..].trim_start());
    if let Some((expected, after)) = null_test(rest) {
        let test = Test::IsNull(expected);
        return Ok((Comparison { field, test }, after));
    }
    let pattern = match (rest.strip_prefix("!~"), rest.strip_prefix('~')) {
        (Some(rest), _) => Some((rest, false)),
        (_, Some(rest)) => Some((rest, true)),
        _ => None,
    };
    if let Some((rest, expected)) = pattern {
        let (pattern, after) = match quoted(rest.trim_start())? {
            Some(found) => found,
            None => {
                let word = first_word(rest.trim_start());
                (word.to_owned(), &rest.trim_start()[word.len()..])
            }
        };
        if pattern.is_empty() {
            return Err(wrong());
        }
        let pattern = Regex::new(&pattern).map_err(|error| error.to_string())?;
        let test = Test::Matches(pattern, expected);
        return Ok((Comparison { field, test }, after));
    }
    let operator = OPERATORS.iter().find(|(operator, _)| rest.starts_with(operator));
    let (operator, allowed) = operator.ok_or_else(wrong)?;
    let rest = rest[operator.len()..].trim_start();
    let word = first_word(rest);
    if matches!(*operator, "=" | "!=" | "<>") && is_word(word) {
        let test = Test::Is(*operator == "=", word.to_owned());
        return Ok((Comparison { field, test }, &rest[word.len()..]));
    }
    let (value, after) = operand(rest, &wrong)?;
    let test = Test::Compares(allowed, value);
    Ok((Comparison { field, test }, after))
}

/// Parses `is null` and `is not null`; returns whether the value has to be null, and the text after it.
fn null_test(text: &str) -> Option<(bool, &str)> {
    let mut rest = text;
    let mut word = |expected: &str| {
        let trimmed = rest.trim_start();
        let found = first_word(trimmed).eq_ignore_ascii_case(expected);
        if found {
            rest = &trimmed[expected.len()..];
        }
        found
    };
    let is_negated = word("is").then(|| word("not"))?;
    word("null").then_some((!is_negated, rest))
}

/// Parses a text in single quotes, where a quote is doubled, and returns the text after it; `None` if there is none.
fn quoted(text: &str) -> Result<Option<(String, &str)>, String> {
    let Some(mut rest) = text.strip_prefix('\'') else {
        return Ok(None);
    };
    let mut value = String::new();
    loop {
        let end = rest
            .find('\'')
            .ok_or_else(|| format!("the text {text} has no closing quote"))?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Ok(Some((value, rest))),
        }
    }
}

/// Returns whether a text is a word, and neither a number nor `true`, `false` or `null`.
fn is_word(text: &str) -> bool {
    let is_of_word = |character: char| character.is_alphanumeric() || "_.:-".contains(character);
    text.starts_with(char::is_alphabetic)
        && text.chars().all(is_of_word)
        && !["true", "false", "null"]
            .iter()
            .any(|other| text.eq_ignore_ascii_case(other))
}

/// Parses a value: a text in quotes, a number, `true` or `false`.
fn operand<'t>(text: &'t str, wrong: &dyn Fn() -> String) -> Result<(Value, &'t str), String> {
    if let Some((value, after)) = quoted(text)? {
        return Ok((Value::Text(value), after));
    }
    let word = first_word(text);
    let after = &text[word.len()..];
    if word.is_empty() {
        return Err(wrong());
    }
    if word.eq_ignore_ascii_case("null") {
        return Err(format!(
            "nothing equals null; write `is null` or `is not null`, found `{text}`"
        ));
    }
    match literal(word) {
        // It may be meant as the name of a field.
        Value::Text(_) => Err(format!(
            "expected a number, `true`, `false` or a text in single quotes, such as `'A'`, found `{text}`"
        )),
        value => Ok((value, after)),
    }
}

/// Returns the value of a literal: a number as in JSON, `true`, `false`, a text in single quotes, or any other text, such as `007`.
pub(crate) fn literal(text: &str) -> Value {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Value::Text(inner.replace("''", "'"));
    }
    match text.parse() {
        Ok(value) => Value::Bool(value),
        Err(_) if serde_json::from_str::<&serde_json::value::RawValue>(text).is_err() => {
            Value::Text(text.to_owned())
        }
        Err(_) => number(text).unwrap_or_else(|| Value::Text(text.to_owned())),
    }
}

/// Splits a list of `name=value`. A value that begins with a quote may contain the separator, up to its closing quote.
pub(crate) fn constants(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let list = rest?;
        let end = list.find(separator);
        let value = list.find('=').filter(|at| end.is_none_or(|end| *at < end));
        let quoted = value.and_then(|at| {
            let value = list[at + 1..].trim_start();
            let start = list.len() - value.len();
            Some(start + quoted_length(value)?)
        });
        let end = match quoted {
            Some(after) => list[after..].find(separator).map(|end| after + end),
            None => end,
        };
        rest = end.map(|end| &list[end + separator.len_utf8()..]);
        Some(&list[..end.unwrap_or(list.len())])
    })
}

/// Returns the length of the quoted text at the beginning. A quote within it is doubled.
fn quoted_length(text: &str) -> Option<usize> {
    let mut after = text.strip_prefix('\'')?;
    loop {
        let (_, rest) = after.split_once('\'')?;
        match rest.strip_prefix('\'') {
            Some(rest) => after = rest,
            None => return Some(text.len() - rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-SETTING-03
    #[test]
    fn a_constant_in_quotes_may_contain_the_separator() {
        let split = |text| constants(text, ',').collect::<Vec<_>>();
        assert_eq!(split("a=1, b=2"), ["a=1", " b=2"]);
        assert_eq!(
            split("a='x=1,y=2',b= 'it''s, so' , c"),
            ["a='x=1,y=2'", "b= 'it''s, so' ", " c"]
        );
        // Not closed, and not at the beginning of the value.
        assert_eq!(split("a='b,c=d'e,f"), ["a='b,c=d'e", "f"]);
        assert_eq!(split("a='b,c"), ["a='b", "c"]);
        assert_eq!(split("a=b'c,d='"), ["a=b'c", "d='"]);
        assert_eq!(split("a,b='c,d'"), ["a", "b='c,d'"]);
        assert_eq!(split(""), [""]);
        assert_eq!(constants("a='1;2'; b=3", ';').count(), 2);
    }

    fn check(condition: &str, expected: Result<bool, &str>) {
        let mut record = Record::new();
        record.set("delay", "16");
        record.set("origin", "MUC");
        record.set("hub", "O'Hare");
        record.set("ratio", 0.5);
        record.set("note", Value::Null);
        record.set("paid", true);
        let holds = condition
            .parse::<Condition>()
            .and_then(|condition| condition.holds(&record).map_err(|error| error.to_string()));
        assert_eq!(holds, expected.map_err(str::to_owned), "{condition}");
    }

    #[test]
    fn conditions_compare_numbers_and_texts() {
        check("", Ok(true));
        check("delay > 15", Ok(true));
        check("hub = 'O''Hare'", Ok(true));
        check("delay>=16 and delay<=16", Ok(true));
        check("delay > 9", Ok(true));
        check("delay > '9'", Ok(false));
        check("delay != 16", Ok(false));
        check("ratio < 1 AND origin = MUC", Ok(true));
        check("origin <> MUC", Ok(false));
        check("note = MUC", Ok(false));
        check(
            "origin != delay",
            Err(
                "fields cannot be compared with each other, and the record has a field `delay`; for the text, write `'delay'`",
            ),
        );
        check("origin != 'delay'", Ok(true));
        check("origin = 'a and b'", Ok(false));
        check("origin ~ '^M.C$'", Ok(true));
        check("origin !~ ^M", Ok(false));
        check("paid = true", Ok(true));
        check("note is null and delay is not null", Ok(true));
        check("note = ''", Ok(false));
        check("note != 'x'", Ok(false));
        check("none? is null and none? !~ x", Ok(true));
        check("none? = 1", Ok(false));
        check("delay? = 16", Ok(true));
    }

    #[test]
    fn a_wrong_condition_is_an_error() {
        check(
            "dely > 15",
            Err("the record has no field `dely`, but `delay`, `origin`, `hub`, `ratio`, `note`, `paid`"),
        );
        let wrong = "expected a condition such as `delay > 15`, `name ~ '^A'` or `note is not null`, found";
        check("delay", Err(&format!("{wrong} `delay`")));
        check("delay >", Err(&format!("{wrong} `delay >`")));
        check("delay between 1", Err(&format!("{wrong} `delay between 1`")));
    }

    /// Whatever is not understood is an error, not a condition that never holds.
    // Spec: ITEM-VALUE-03
    #[test]
    fn what_is_not_understood_is_rejected() {
        for condition in [
            "status = 'A' or status = 'B'",
            "status = A OR status = B",
            "delay > 1 or delay < 0",
            "origin ~ '^M' or delay > 1",
            "note is null or delay > 1",
            "status == 'A'",
            "status === A",
            "amount > 5 + 3",
            "amount > 5+3",
            "amount > 5-3",
            "amount > 2*3",
            "amount > (5)",
            "(amount > 5)",
            "not amount > 5",
            "amount + 1 > 5",
            "amount > 1.234,50",
            "amount > $5",
            "amount => 5",
            "amount > 5,",
            "amount in (1, 2)",
            "status = 'A' && delay > 1",
            "status = 'A' and",
            "status = 'A' and and delay > 1",
            "status = 'A",
            "status = 'A' 'B'",
            "status = \"A\"",
            "status = A B",
            "delay > limit",
            "delay <= MUC",
            "code = 007",
            "status = null",
            "status is",
            "status is nothing",
            "status like 'A%'",
            "origin ~ '^M' 'x'",
            "origin ~",
            "day > 2026-11-26",
            "lower(status) = 'a'",
        ] {
            assert!(condition.parse::<Condition>().is_err(), "{condition}");
        }
        check("delay < 20 and origin = 'MUC' AND note is null", Ok(true));
        check("origin = 'O''Hare and or'", Ok(false));
        check("delay<=-5", Ok(false));
    }

    // Spec: ITEM-VALUE-03
    #[test]
    fn numbers_are_compared_with_numbers_only() {
        let mut record = Record::new();
        record.set("amount", "1.234,50");
        record.set("large", Value::Decimal("9007199254740993".into()));
        record.set("paid", "yes");
        record.set("flag", true);
        record.set("none", f64::NAN);
        let holds = |condition: &str| {
            let held = condition.parse::<Condition>().unwrap().holds(&record);
            held.map_err(|error| error.to_string())
        };
        assert_eq!(
            holds("amount > 100"),
            Err("field `amount`: expected a number to compare with 100, found \"1.234,50\"".to_owned())
        );
        assert_eq!(
            holds("paid = true"),
            Err(
                "field `paid`: expected `true` or `false` to compare with true, found \"yes\" in the record with `amount` \"1.234,50\""
                    .to_owned()
            )
        );
        assert_eq!(holds("large > 9007199254740992"), Ok(true));
        assert_eq!(holds("large = 9007199254740992"), Ok(false));
        assert_eq!(holds("large > 9007199254740992.5"), Ok(true));
        for condition in ["paid = true", "flag > 0", "none > 0", "amount <= 0.5"] {
            assert!(holds(condition).is_err(), "{condition}");
        }
    }
}
