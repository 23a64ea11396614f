//! The parts of an expression, and their values.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use regex::Regex;

use super::number::Number;
use crate::record::decimal;
use crate::record::field::{Field, MappingError};
use crate::record::value::{Record, Value};

/// A part of an expression, and its place in the text.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Field(Field),
    Not(Box<Term>),
    Negate(Box<Term>),
    /// Whether both hold; the second one counts only if the first one holds.
    And(Box<Term>, Box<Term>),
    Or(Box<Term>, Box<Term>),
    Compare(Comparison, Box<Term>, Box<Term>),
    Arithmetic(Arithmetic, Box<Term>, Box<Term>),
    Concat(Box<Term>, Box<Term>),
    IsNull(Box<Term>),
    /// `is distinct from`: two nulls are not.
    IsDistinct(Box<Term>, Box<Term>),
    In(Box<Term>, Vec<Term>),
    Between(Box<Term>, Box<Term>, Box<Term>),
    Matches(Box<Term>, Regex),
    Case(Vec<(Term, Term)>, Option<Box<Term>>),
    Cast(Box<Term>, Type),
    Call(&'static Function, Vec<Term>),
}

/// The orders for which a comparison holds.
pub(super) type Comparison = &'static [Ordering];

pub(super) const EQUAL: Comparison = &[Ordering::Equal];

#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A type that an expression may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Condition,
    Number,
    Integer,
    Text,
}

impl Type {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Condition => "`true` or `false`",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Text => "a text",
        }
    }
}

/// A function: its name, the number of its arguments, and the type of its result, if it is always the same.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) arguments: RangeInclusive<usize>,
    pub(super) returns: Option<Type>,
    pub(super) call: for<'r> fn(&Scope<'r>, &'r [Term]) -> Called<'r>,
}

pub(super) type Called<'r> = Result<Operand<'r>, MappingError>;

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A value while an expression is evaluated.
#[derive(Debug)]
pub(super) enum Operand<'r> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'r, str>),
    /// The value of a field. Its text may be a number.
    Stored(&'r Value),
}

impl<'r> Operand<'r> {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::Stored(Value::Null))
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Decimal(number.to_string()),
            },
            Self::Text(text) => Value::Text(text.into_owned()),
            Self::Stored(value) => value.clone(),
        }
    }

    pub(super) fn into_text(self) -> Cow<'r, str> {
        match self {
            Self::Text(text) => text,
            Self::Stored(value) => match value.as_str() {
                Some(text) => Cow::Borrowed(text),
                None => Cow::Owned(value.to_string()),
            },
            other => Cow::Owned(other.into_value().to_string()),
        }
    }

    fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Stored(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Stored(value) => value.as_bool(),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Returns the number, if it has at most 38 digits.
    fn as_number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => Number::parse(text),
            Self::Stored(Value::Int(value)) => Some(Number::integer(*value)),
            Self::Stored(Value::Float(value)) => Number::parse(zmij::Buffer::new().format(*value)),
            Self::Stored(Value::Text(text) | Value::Decimal(text)) => Number::parse(text),
            _ => None,
        }
    }

    /// Returns whether the type of the value, not only its text, is a number.
    fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Number(_) | Self::Stored(Value::Int(_) | Value::Float(_) | Value::Decimal(_))
        )
    }

    fn is_bool(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Stored(Value::Bool(_)))
    }
}

/// The record of an evaluation, and the text of the expression, which errors show.
#[derive(Clone, Copy)]
pub(super) struct Scope<'r> {
    pub(super) record: &'r Record,
    pub(super) source: &'r str,
}

impl<'r> Scope<'r> {
    pub(super) fn evaluate(&self, term: &'r Term) -> Result<Operand<'r>, MappingError> {
        Ok(match &term.kind {
            Kind::Null => Operand::Null,
            Kind::Bool(value) => Operand::Bool(*value),
            Kind::Number(number) => Operand::Number(*number),
            Kind::Text(text) => Operand::Text(Cow::Borrowed(text)),
            Kind::Field(field) => match field.of(self.record) {
                Ok(value) => Operand::Stored(value),
                Err(error) => return Err(error.with_hint(&field.name)),
            },
            Kind::Negate(operand) => Operand::Number(self.number(operand)?.negated()),
            Kind::Arithmetic(operation, one, other) => {
                let (one, other) = (self.number(one)?, self.number(other)?);
                Operand::Number(self.calculate(*operation, one, other, term)?)
            }
            Kind::Concat(one, other) => {
                let mut text = self.text(one)?.into_owned();
                text.push_str(&self.text(other)?);
                Operand::Text(Cow::Owned(text))
            }
            Kind::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    if self.holds(condition)? {
                        return self.evaluate(value);
                    }
                }
                match otherwise {
                    Some(value) => self.evaluate(value)?,
                    None => Operand::Null,
                }
            }
            Kind::Cast(operand, ty) => self.cast(operand, *ty)?,
            Kind::Call(function, arguments) => (function.call)(self, arguments)?,
            _ => Operand::Bool(self.condition(term)?),
        })
    }

    /// Returns the value of a part that is a condition by its form.
    fn condition(&self, term: &'r Term) -> Result<bool, MappingError> {
        Ok(match &term.kind {
            Kind::Not(operand) => !self.holds(operand)?,
            Kind::And(one, other) => self.holds(one)? && self.holds(other)?,
            Kind::Or(one, other) => self.holds(one)? || self.holds(other)?,
            Kind::Compare(comparison, one, other) => self.compare(comparison, one, other)?,
            Kind::IsNull(operand) => self.evaluate(operand)?.is_null(),
            Kind::IsDistinct(one, other) => {
                let nulls = (self.evaluate(one)?.is_null(), self.evaluate(other)?.is_null());
                match nulls {
                    (false, false) => !self.compare(EQUAL, one, other)?,
                    (one, other) => one != other,
                }
            }
            Kind::In(operand, values) => {
                for value in values {
                    if self.compare(EQUAL, operand, value)? {
                        return Ok(true);
                    }
                }
                false
            }
            Kind::Between(operand, low, high) => {
                self.compare(&[Ordering::Greater, Ordering::Equal], operand, low)?
                    && self.compare(&[Ordering::Less, Ordering::Equal], operand, high)?
            }
            Kind::Matches(operand, pattern) => pattern.is_match(&self.text(operand)?),
            _ => {
                let operand = self.evaluate(term)?;
                match operand.as_bool() {
                    Some(value) => value,
                    None => return Err(self.mismatch(term, operand, Type::Condition)),
                }
            }
        })
    }

    /// Returns whether a condition holds.
    pub(super) fn holds(&self, term: &'r Term) -> Result<bool, MappingError> {
        self.condition(term)
    }

    pub(super) fn number(&self, term: &'r Term) -> Result<Number, MappingError> {
        let operand = self.evaluate(term)?;
        match operand.as_number() {
            Some(number) => Ok(number),
            None => Err(self.mismatch(term, operand, Type::Number)),
        }
    }

    pub(super) fn integer(&self, term: &'r Term) -> Result<i64, MappingError> {
        let operand = self.evaluate(term)?;
        match operand.as_number().and_then(Number::to_integer) {
            Some(number) => Ok(number),
            None => Err(self.mismatch(term, operand, Type::Integer)),
        }
    }

    /// Returns the text of any value but null.
    pub(super) fn text(&self, term: &'r Term) -> Result<Cow<'r, str>, MappingError> {
        let operand = self.evaluate(term)?;
        if operand.is_null() {
            return Err(self.mismatch(term, operand, Type::Text));
        }
        Ok(operand.into_text())
    }

    fn compare(&self, comparison: Comparison, one: &'r Term, other: &'r Term) -> Result<bool, MappingError> {
        let values = (self.evaluate(one)?, self.evaluate(other)?);
        if values.0.is_null() || values.1.is_null() {
            let (term, operand) = if values.0.is_null() {
                (one, values.0)
            } else {
                (other, values.1)
            };
            return Err(self.mismatch(term, operand, Type::Text));
        }
        if values.0.is_number() || values.1.is_number() {
            return match order_of_numbers(&values.0, &values.1) {
                Some(order) => Ok(comparison.contains(&order)),
                None if is_number(&values.0) => Err(self.mismatch(other, values.1, Type::Number)),
                None => Err(self.mismatch(one, values.0, Type::Number)),
            };
        }
        if values.0.is_bool() || values.1.is_bool() {
            return match (values.0.as_bool(), values.1.as_bool()) {
                (Some(one), Some(other)) => Ok(comparison.contains(&one.cmp(&other))),
                (None, _) => Err(self.mismatch(one, values.0, Type::Condition)),
                (_, None) => Err(self.mismatch(other, values.1, Type::Condition)),
            };
        }
        let holds = match (values.0.as_str(), values.1.as_str()) {
            (Some(one), Some(other)) => comparison.contains(&one.cmp(other)),
            _ => return Ok(comparison.contains(&values.0.into_text().cmp(&values.1.into_text()))),
        };
        // Two fields of a file of text: they may be numbers.
        if let (Operand::Stored(Value::Text(first)), Operand::Stored(Value::Text(second))) = &values
            && let Some(order) = order_of_numbers(&values.0, &values.1)
            && comparison.contains(&order) != holds
        {
            return Err(self.error(format!(
                "{} and {} are texts, {first:?} and {second:?}, which compare as numbers in another way; write \
                 `cast({} as decimal)`, or declare `types`",
                self.shown(one),
                self.shown(other),
                &self.source[one.at.clone()],
            )));
        }
        Ok(holds)
    }

    /// Returns whether two values that are not null are equal.
    pub(super) fn are_equal(&self, one: &'r Term, other: &'r Term) -> Result<bool, MappingError> {
        self.compare(EQUAL, one, other)
    }

    fn calculate(
        &self,
        operation: Arithmetic,
        one: Number,
        other: Number,
        term: &Term,
    ) -> Result<Number, MappingError> {
        let result = match operation {
            Arithmetic::Add => one.add(other),
            Arithmetic::Subtract => one.subtract(other),
            Arithmetic::Multiply => one.multiply(other),
            Arithmetic::Divide => one.divide(other),
            Arithmetic::Remainder => one.remainder(other),
        };
        let is_division = matches!(operation, Arithmetic::Divide | Arithmetic::Remainder);
        result.ok_or_else(|| match is_division && other.is_zero() {
            true => self.error(format!("{} divides by zero", self.shown(term))),
            false => self.too_long(term),
        })
    }

    fn cast(&self, operand: &'r Term, ty: Type) -> Result<Operand<'r>, MappingError> {
        let value = self.evaluate(operand)?;
        if value.is_null() {
            return Ok(Operand::Null);
        }
        let converted = match ty {
            Type::Text => Some(Operand::Text(Cow::Owned(value_text(&value)))),
            Type::Condition => value.as_bool().map(Operand::Bool),
            Type::Number => value.as_number().map(Operand::Number),
            Type::Integer => value
                .as_number()
                .and_then(Number::to_integer)
                .map(|integer| Operand::Number(Number::integer(integer))),
        };
        converted.ok_or_else(|| self.mismatch(operand, value, ty))
    }

    /// Returns the part of the expression in backticks.
    pub(super) fn shown(&self, term: &Term) -> String {
        format!("`{}`", &self.source[term.at.clone()])
    }

    /// Returns the error of a result that has too many digits.
    #[cold]
    pub(super) fn too_long(&self, term: &Term) -> MappingError {
        self.error(format!(
            "{} has more than 38 digits; round its parts",
            self.shown(term)
        ))
    }

    /// Returns the error of a value that a function or an operator does not take.
    #[cold]
    pub(super) fn mismatch(&self, term: &Term, found: Operand<'_>, expected: Type) -> MappingError {
        let shown = self.shown(term);
        if found.is_null() {
            let text = &self.source[term.at.clone()];
            return self.error(format!(
                "{shown} is null; test `{text} is not null` before, or give it a value, such as `coalesce({text}, 0)`"
            ));
        }
        match &term.kind {
            Kind::Field(field) => MappingError::of_field(self.record, &field.name, expected.name()),
            _ => self.error(format!(
                "{shown}: expected {}, found {:?}",
                expected.name(),
                found.into_text()
            )),
        }
    }

    /// Returns an error that names the record.
    #[cold]
    pub(super) fn error(&self, cause: String) -> MappingError {
        MappingError::of_record(self.record, cause)
    }
}

/// Compares two numbers with any number of digits; `None` if a value is not one.
fn order_of_numbers(one: &Operand<'_>, other: &Operand<'_>) -> Option<Ordering> {
    if let (Some(one), Some(other)) = (one.as_number(), other.as_number())
        && let Some(order) = one.compare(other)
    {
        return Some(order);
    }
    (is_number(one) && is_number(other)).then(|| decimal::compare(&value_text(one), &value_text(other)))?
}

fn is_number(value: &Operand<'_>) -> bool {
    !value.is_bool() && !value.is_null() && decimal::is_number(value_text(value).trim())
}

fn value_text(value: &Operand<'_>) -> String {
    match value {
        Operand::Stored(value) => value.to_string(),
        Operand::Text(text) => text.to_string(),
        Operand::Number(number) => number.to_string(),
        Operand::Bool(value) => value.to_string(),
        Operand::Null => String::new(),
    }
}
