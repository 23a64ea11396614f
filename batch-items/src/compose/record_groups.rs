//! Groups of records, by a property.

use std::num::NonZeroUsize;
use std::str::FromStr;

use batch_runtime::prelude::*;
use batch_runtime::xml::suggest::did_you_mean;

use super::grouping::{GroupPart, GroupRule};
use crate::record::{Condition, Expression, Record, expressions};

/// Groups of records.
///
/// | property | default | |
/// |---|---|---|
/// | `group` | required | where a group begins, see below |
///
/// | `group` | a group |
/// |---|---|
/// | `key order, year(day)` | has equal values of these expressions |
/// | `header kind = 'H'` | begins with a record that meets the conditions |
/// | `size 100` | has so many records |
///
/// Conditions are written as in the property `where` of a [`RecordProcessor`](crate::record::RecordProcessor). A pattern of the whole line is a
/// condition on the field that `raw.field` adds: `header line ~ '^H'` with `raw.field` = `line`.
#[derive(BatchArtifact)]
pub struct RecordGroups {
    #[batch_property(name = "group")]
    rule: Rule,
}

/// The value of the property `group`.
#[derive(Debug)]
enum Rule {
    Key(Vec<Expression>),
    Header(Condition),
    Size(NonZeroUsize),
}

const RULES: [&str; 3] = ["key", "header", "size"];

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (rule, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let expected = |what: &str| format!("expected {what} after `{rule}`, found `{rest}`");
        match rule {
            "key" if rest.is_empty() => Err(expected("fields or expressions")),
            "key" => key(rest),
            "header" if rest.is_empty() => Err(expected("a condition such as `kind = 'H'`")),
            "header" => rest.parse().map(Self::Header),
            "size" => rest
                .parse()
                .map(Self::Size)
                .map_err(|_| expected("a number of records")),
            _ => Err(format!(
                "expected `key FIELD, ..`, `header CONDITION` or `size NUMBER`, such as `key order` or `header kind = 'H'`, \
                 found `{text}`{}",
                did_you_mean(rule, RULES.into_iter())
            )),
        }
    }
}

/// Returns the rule of these keys, unless one is there twice.
fn key(text: &str) -> Result<Rule, String> {
    let keys = expressions(text)?;
    for (at, key) in keys.iter().enumerate() {
        if keys[..at].iter().any(|other| other.text() == key.text()) {
            return Err(format!("the key `{}` is there twice; remove one", key.text()));
        }
    }
    Ok(Rule::Key(keys))
}

impl GroupRule<Record> for RecordGroups {
    fn part(&self, previous: Option<&Record>, record: &Record) -> Result<GroupPart, BatchError> {
        match &self.rule {
            Rule::Key(keys) => {
                let mut is_same = previous.is_some();
                for key in keys {
                    let value = key.value(record)?;
                    let before = previous.map(|previous| key.value(previous)).transpose()?;
                    is_same &= before.is_some_and(|before| before.is_same(&value));
                }
                Ok(if is_same {
                    GroupPart::Detail
                } else {
                    GroupPart::First
                })
            }
            Rule::Header(condition) => {
                let is_header = condition.holds(record)?;
                Ok(if is_header {
                    GroupPart::Header
                } else {
                    GroupPart::Detail
                })
            }
            Rule::Size(_) => Ok(previous.map_or(GroupPart::First, |_| GroupPart::Detail)),
        }
    }

    fn size(&self) -> Option<NonZeroUsize> {
        match self.rule {
            Rule::Size(size) => Some(size),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let rule = text.parse::<Rule>().map(|rule| match rule {
            Rule::Key(keys) => {
                let keys: Vec<_> = keys.iter().map(Expression::text).collect();
                format!("key {}", keys.join("+"))
            }
            Rule::Header(_) => "header".to_owned(),
            Rule::Size(size) => format!("size {size}"),
        });
        assert_eq!(rule, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn a_rule_is_a_word_and_its_argument() {
        check("key order", Ok("key order"));
        check("  key order , year ", Ok("key order+year"));
        check("header kind = 'H' and total > 0", Ok("header"));
        check("size 100", Ok("size 100"));
    }

    #[test]
    fn a_wrong_rule_is_an_error() {
        let rules = "expected `key FIELD, ..`, `header CONDITION` or `size NUMBER`, such as `key order` or `header kind = 'H'`, found";
        check("", Err(&format!("{rules} ``")));
        check("order", Err(&format!("{rules} `order`")));
        check(
            "keys order",
            Err(&format!("{rules} `keys order`; did you mean `key`?")),
        );
        check("key", Err("expected fields or expressions after `key`, found ``"));
        check(
            "key a,",
            Err("expected a value, found the end at character 3 of `a,`"),
        );
        check("key a, b, a", Err("the key `a` is there twice; remove one"));
        check(
            "header",
            Err("expected a condition such as `kind = 'H'` after `header`, found ``"),
        );
        let condition = "expected a condition, found a number, `1`, at character 1 of `1`";
        check("header 1", Err(condition));
        check("size", Err("expected a number of records after `size`, found ``"));
        check(
            "size 0",
            Err("expected a number of records after `size`, found `0`"),
        );
    }
}
