//! Expressions on records, in the syntax of SQL: conditions, keys and computed fields.
//!
//! In SQL, null makes a condition unknown. Here it is an error of the record, unless a test such as `is null` or a function such as `coalesce`
//! accepts it. A missing field and a value of another type are errors, too.

mod expect;
mod functions;
mod json_value;
mod number;
mod parse;
mod term;
#[cfg(test)]
mod tests;
mod token;

use std::str::FromStr;

pub use self::expect::StoredTotal;
pub(crate) use self::expect::{Aggregates, Expectation, Totals};
use self::parse::Parser;
use self::term::{Scope, Term, Type};
use super::field::{Field, MappingError};
use super::value::{Record, Value};

/// An expression: `round(amount * 1.19, 2)`.
#[derive(Debug)]
pub(crate) struct Expression {
    source: String,
    term: Term,
}

impl Expression {
    /// Returns the value for a record.
    ///
    /// # Errors
    /// If a field does not exist, or a value is null or of another type where the expression needs one.
    pub(crate) fn value(&self, record: &Record) -> Result<Value, MappingError> {
        let scope = Scope {
            record,
            source: &self.source,
        };
        scope.evaluate(&self.term).map(term::Operand::into_value)
    }

    /// Parses an expression, and returns its fields, too.
    pub(crate) fn with_fields(source: &str) -> Result<(Self, Vec<String>), String> {
        let mut parser = Parser::with_totals(source)?;
        let term = parser.expression()?;
        parser.end()?;
        let (totals, fields) = parser.into_totals();
        if let Some(total) = totals.first() {
            return Err(format!(
                "`{}` is a total of records, which a decision does not have; use a counter such as `read_count`",
                total.name
            ));
        }
        let source = source.to_owned();
        Ok((Self { source, term }, fields))
    }

    /// Returns the expression of a field.
    pub(crate) fn field(name: &str) -> Self {
        let kind = term::Kind::Field(Field::new(name.to_owned(), false));
        let (at, depth) = (0..name.len(), kind.depth());
        Self {
            source: name.to_owned(),
            term: Term { kind, at, depth },
        }
    }

    /// Returns the text of the expression.
    pub(crate) fn text(&self) -> &str {
        &self.source[self.term.at.clone()]
    }
}

/// A condition: `delay > 15 and origin in ('MUC', 'FRA')`. An empty one holds for every record.
#[derive(Debug, Default)]
pub(crate) struct Condition(Option<Expression>);

impl Condition {
    /// Returns the text of the condition.
    pub(crate) fn text(&self) -> &str {
        self.0.as_ref().map_or("", |expression| &expression.source)
    }

    /// Returns whether the condition holds for every record because it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the condition holds for a record.
    ///
    /// # Errors
    /// As [`Expression::value`].
    pub(crate) fn holds(&self, record: &Record) -> Result<bool, MappingError> {
        let Some(Expression { source, term }) = &self.0 else {
            return Ok(true);
        };
        Scope { record, source }.condition(term)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(source: &str) -> Result<Self, String> {
        let mut parser = Parser::new(source)?;
        if parser.is_at_end() {
            return Ok(Self::default());
        }
        let term = parser.expression()?;
        parser.end()?;
        parser.needs(&term, Type::Condition)?;
        let source = source.to_owned();
        Ok(Self(Some(Expression { source, term })))
    }
}

/// Parses the name of a field: in quotes if it begins with a quote or ends with `?`, and with `?` if records may lack it.
pub(crate) fn field(text: &str) -> Result<Field, String> {
    token::field_name(text).map(|(name, may_lack)| Field::new(name, may_lack))
}

/// Parses expressions that are separated by commas.
pub(crate) fn expressions(source: &str) -> Result<Vec<Expression>, String> {
    let terms = Parser::new(source)?.list(Parser::expression)?;
    Ok(terms
        .into_iter()
        .map(|term| Expression {
            source: source.to_owned(),
            term,
        })
        .collect())
}

/// Parses `name = expression`, separated by commas.
pub(crate) fn assignments(source: &str) -> Result<Vec<(String, Expression)>, String> {
    let mut parser = Parser::new(source)?;
    if parser.is_at_end() {
        return Ok(Vec::new());
    }
    let assigned = parser.list(|parser| Ok((parser.assigned()?, parser.expression()?)))?;
    Ok(assigned
        .into_iter()
        .map(|(name, term)| {
            let source = source.to_owned();
            (name, Expression { source, term })
        })
        .collect())
}
