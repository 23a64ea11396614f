//! Parameters of queries.

use std::fmt;
use std::str::FromStr;

use batch_runtime::xml::suggest::did_you_mean;

use crate::record::{Value, constants, literal};
use crate::sql::{Syntax, Token, variable_at};

/// A query with named parameters such as `:region`.
#[derive(Clone, Debug, PartialEq)]
pub struct Query(String);

/// The values of parameters: `region=EU; since='2026-01-01'`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters(Vec<(String, Value)>);

/// The query as it is in the Job XML, without the values of its parameters.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Query {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_end_matches(';').trim_end();
        if text.is_empty() {
            return Err("expected a query".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for Parameters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = constants(text, ';').filter(|part| !part.trim().is_empty());
        let mut parameters: Vec<(String, Value)> = Vec::new();
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .ok_or("expected `name=value`, separated by `;`")?;
            let name = name.trim().trim_start_matches(':');
            if parameters.iter().any(|(other, _)| other == name) {
                return Err(format!("`{name}` has two values; remove one"));
            }
            parameters.push((name.to_owned(), literal(value)?));
        }
        Ok(Self(parameters))
    }
}

impl Query {
    /// Returns the texts around the parameters, and their names.
    fn split(&self, syntax: &Syntax) -> Result<(Vec<String>, Vec<&str>), String> {
        let (mut texts, mut names) = (Vec::new(), Vec::new());
        let (mut text, mut at) = (String::new(), 0);
        while at < self.0.len() {
            let rest = &self.0[at..];
            // The database reports a text or a comment without an end.
            let length = Token::at(&self.0, at, syntax).map_or(rest.len(), |token| token.length);
            let mut part = &rest[..length];
            match part {
                ";" => return Err("expected one query, found `;` between two statements".to_owned()),
                "?" if syntax.has_question_marks => {
                    let cause = "the query contains `?`, which has no value; write a parameter with a name, such as `:id`";
                    return Err(cause.to_owned());
                }
                // A cast of PostgreSQL.
                ":" if rest.starts_with("::") => part = &rest[..2],
                ":" => {
                    let is_name = |character: char| character.is_alphanumeric() || character == '_';
                    let end = rest[1..]
                        .find(|next| !is_name(next))
                        .map_or(rest.len(), |end| end + 1);
                    if end > 1 {
                        names.push(&rest[1..end]);
                        texts.push(std::mem::take(&mut text));
                        at += end;
                        continue;
                    }
                }
                _ => {
                    if let Some(variable) = variable_at(&self.0, at, syntax) {
                        return Err(format!(
                            "the query contains `{variable}`, which has no value and would be null; write a parameter with a name, \
                             such as `:id`"
                        ));
                    }
                }
            }
            text.push_str(part);
            at += part.len();
        }
        texts.push(text);
        Ok((texts, names))
    }

    /// Returns the texts of the query, and the values between them.
    ///
    /// # Errors
    /// If a parameter lacks a value, a value lacks a parameter, or the query does not only read.
    pub fn bind(
        &self,
        parameters: &Parameters,
        syntax: &Syntax,
    ) -> Result<(Vec<String>, Vec<Value>), String> {
        let (texts, names) = self.split(syntax)?;
        super::selects::check(&self.0, syntax)?;
        let given = |name: &str| parameters.0.iter().find(|(given, _)| given == name);
        let values = names.iter().map(|name| {
            given(name).map(|(_, value)| value.clone()).ok_or_else(|| {
                let hint = did_you_mean(name, parameters.0.iter().map(|(name, _)| name.as_str()));
                format!("the query has a parameter `:{name}`, which `parameters` does not set{hint}")
            })
        });
        let values = values.collect::<Result<_, String>>()?;
        let unused = parameters
            .0
            .iter()
            .find(|(name, _)| !names.contains(&name.as_str()));
        if let Some((name, _)) = unused {
            let hint = did_you_mean(name, names.iter().copied());
            return Err(format!(
                "`parameters` sets `{name}`, which the query does not have{hint}"
            ));
        }
        Ok((texts, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SQLITE;

    fn check(query: &str, parameters: &str, expected: &str) {
        let bound = query
            .parse::<Query>()
            .and_then(|query| query.bind(&parameters.parse::<Parameters>()?, &SQLITE));
        let shown = match bound {
            Ok((texts, values)) => {
                let values = values
                    .iter()
                    .map(|value| format!("{value:?}"))
                    .chain([String::new()]);
                texts
                    .iter()
                    .zip(values)
                    .map(|(text, value)| format!("{text}{value}"))
                    .collect()
            }
            Err(cause) => cause,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_query_is_shown_without_values() {
        let text = "SELECT ':a', x::text FROM t WHERE a = :a AND b > :b";
        assert_eq!(text.parse::<Query>().unwrap().to_string(), text);
    }

    #[test]
    fn parameters_have_names_and_types() {
        check("SELECT 1;", "", "SELECT 1");
        check(
            "SELECT * FROM t WHERE a = :a AND b > :b AND c = :a",
            "a=EU; b=5",
            "SELECT * FROM t WHERE a = Text(\"EU\") AND b > Int(5) AND c = Text(\"EU\")",
        );
        check(
            "SELECT ':a', \":a\", x::text, :a",
            "a='007'",
            "SELECT ':a', \":a\", x::text, Text(\"007\")",
        );
        check(
            "SELECT :a",
            "",
            "the query has a parameter `:a`, which `parameters` does not set",
        );
        check(
            "SELECT :since",
            "sinse=1",
            "the query has a parameter `:since`, which `parameters` does not set; did you mean `sinse`?",
        );
        check(
            "SELECT 1",
            "a=1",
            "`parameters` sets `a`, which the query does not have",
        );
        check(
            "SELECT 1 -- don't; :a?\n, :a /* ; ' :b */",
            "a='x'",
            "SELECT 1 -- don't; :a?\n, Text(\"x\") /* ; ' :b */",
        );
        check("SELECT 'it''s; :a'", "", "SELECT 'it''s; :a'");
        let two = "expected one query, found `;` between two statements";
        check("SELECT 1; DELETE FROM t", "", two);
        check(
            "SELECT ?",
            "",
            "the query contains `?`, which has no value; write a parameter with a name, such as `:id`",
        );
        for variable in ["@id", "$id", "$1"] {
            let cause = format!(
                "the query contains `{variable}`, which has no value and would be null; write a parameter with a name, such as `:id`"
            );
            check(&format!("SELECT * FROM t WHERE id = {variable}"), "", &cause);
        }
        check("SELECT a$b, '@id' FROM t", "", "SELECT a$b, '@id' FROM t");
        check("SELECT :a", "a=007", "SELECT Text(\"007\")");
        check("", "", "expected a query");
        check("SELECT 1", "a", "expected `name=value`, separated by `;`");
        check("SELECT :a", "a=1; :a=2", "`a` has two values; remove one");
    }
}
