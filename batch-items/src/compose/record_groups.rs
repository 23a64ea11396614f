//! Groups of records, by a property.

use std::num::NonZeroUsize;
use std::str::FromStr;

use batch_runtime::prelude::*;
use batch_runtime::xml::suggest::did_you_mean;

use super::grouping::{GroupPart, GroupRule};
use crate::record::{Condition, Record, field};

/// Groups of records.
///
/// | property | default | |
/// |---|---|---|
/// | `group` | required | where a group begins, see below |
///
/// | `group` | a group |
/// |---|---|
/// | `key order, year` | has equal values in these fields |
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
    Key(Vec<String>),
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
            "key" => key_fields(rest)
                .ok_or_else(|| expected("names of fields, separated by commas and each once,")),
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

/// Returns the rule of these fields, unless a name is empty or occurs twice.
fn key_fields(text: &str) -> Option<Rule> {
    let mut fields: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim) {
        if name.is_empty() || fields.iter().any(|other| other == name) {
            return None;
        }
        fields.push(name.to_owned());
    }
    Some(Rule::Key(fields))
}

impl GroupRule<Record> for RecordGroups {
    fn part(&self, previous: Option<&Record>, record: &Record) -> Result<GroupPart, BatchError> {
        match &self.rule {
            Rule::Key(fields) => {
                let mut is_same = previous.is_some();
                for name in fields {
                    let value = field(record, name)?;
                    is_same &= previous.and_then(|previous| previous.get(name)) == Some(value);
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
            Rule::Key(fields) => format!("key {}", fields.join("+")),
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
        let names = "expected names of fields, separated by commas and each once, after `key`, found";
        check("key", Err(&format!("{names} ``")));
        check("key a, ", Err(&format!("{names} `a,`")));
        check("key a, b, a", Err(&format!("{names} `a, b, a`")));
        check(
            "header",
            Err("expected a condition such as `kind = 'H'` after `header`, found ``"),
        );
        let condition =
            "expected a condition such as `delay > 15`, `name ~ '^A'` or `note is not null`, found `kind`";
        check("header kind", Err(condition));
        check("size", Err("expected a number of records after `size`, found ``"));
        check(
            "size 0",
            Err("expected a number of records after `size`, found `0`"),
        );
    }
}
