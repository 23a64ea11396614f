//! Parameters of queries.

use std::fmt;
use std::str::FromStr;

use crate::nearest::did_you_mean;
use crate::record::{Value, literal};

/// A query with named parameters such as `:region`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    /// The texts around the parameters.
    texts: Vec<String>,
    names: Vec<String>,
}

/// The values of parameters: `region=EU; since='2026-01-01'`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parameters(Vec<(String, Value)>);

/// The query as it is in the Job XML, without the values of its parameters.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = self.names.iter();
        for text in &self.texts {
            f.write_str(text)?;
            if let Some(name) = names.next() {
                write!(f, ":{name}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Query {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_end_matches(';').trim_end();
        if text.is_empty() {
            return Err("expected a query".to_owned());
        }
        let (mut texts, mut names) = (vec![String::new()], Vec::new());
        let mut characters = text.chars().peekable();
        let mut quote = None;
        while let Some(character) = characters.next() {
            let current = texts.last_mut().ok_or("expected a query")?;
            current.push(character);
            match (quote, character) {
                (Some(open), _) if open == character => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"' | '`') => quote = Some(character),
                // A cast of PostgreSQL.
                (None, ':') if characters.peek() == Some(&':') => current.extend(characters.next()),
                (None, ':') => {
                    let mut name = String::new();
                    while let Some(next) = characters.next_if(|next| next.is_alphanumeric() || *next == '_') {
                        name.push(next);
                    }
                    if !name.is_empty() {
                        current.pop();
                        texts.push(String::new());
                        names.push(name);
                    }
                }
                _ => {}
            }
        }
        Ok(Self { texts, names })
    }
}

impl FromStr for Parameters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(';').filter(|part| !part.trim().is_empty());
        let parameters = parts.map(|part| {
            let (name, value) = part
                .split_once('=')
                .ok_or("expected `name=value`, separated by `;`")?;
            let name = name.trim().trim_start_matches(':');
            Ok((name.to_owned(), literal(value)))
        });
        parameters
            .collect::<Result<_, &str>>()
            .map(Self)
            .map_err(str::to_owned)
    }
}

impl Query {
    /// Returns the texts of the query, and the values between them.
    pub(super) fn bind(&self, parameters: &Parameters) -> Result<(Vec<String>, Vec<Value>), String> {
        let given = |name: &String| parameters.0.iter().find(|(given, _)| given == name);
        let values = self.names.iter().map(|name| {
            given(name).map(|(_, value)| value.clone()).ok_or_else(|| {
                let hint = did_you_mean(name, parameters.0.iter().map(|(name, _)| name.as_str()));
                format!("the query has a parameter `:{name}`, which `parameters` does not set{hint}")
            })
        });
        let values = values.collect::<Result<_, String>>()?;
        let unused = parameters.0.iter().find(|(name, _)| !self.names.contains(name));
        if let Some((name, _)) = unused {
            let hint = did_you_mean(name, self.names.iter().map(String::as_str));
            return Err(format!(
                "`parameters` sets `{name}`, which the query does not have{hint}"
            ));
        }
        Ok((self.texts.clone(), values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, parameters: &str, expected: &str) {
        let bound = query
            .parse::<Query>()
            .and_then(|query| query.bind(&parameters.parse::<Parameters>()?));
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
        check("", "", "expected a query");
        check("SELECT 1", "a", "expected `name=value`, separated by `;`");
    }
}
