//! The parts of an expression, and their values.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use regex::Regex;

use super::number::Number;
use crate::record::decimal;
use crate::record::field::{Field, MappingError, TOTAL};
use crate::record::value::{Record, Value};

/// A part of an expression, and its place in the text.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
    /// The levels of parts in it: evaluation takes a part of the stack for each.
    pub(super) depth: usize,
}

#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    /// A number with more digits than [`Number`] has, which is compared only.
    Large(Value),
    Text(String),
    Field(Field),
    Not(Box<Term>),
    Negate(Box<Term>),
    /// Whether all hold; one counts only if those before it hold.
    And(Vec<Term>),
    Or(Vec<Term>),
    Compare(Comparison, Box<Term>, Box<Term>),
    Arithmetic(Arithmetic, Box<Term>, Box<Term>),
    Concat(Vec<Term>),
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

impl Kind {
    /// Returns the levels of parts.
    pub(super) fn depth(&self) -> usize {
        let deepest = |terms: &[Term]| terms.iter().map(|term| term.depth).max().unwrap_or(0);
        let inner = match self {
            Self::Null
            | Self::Bool(_)
            | Self::Number(_)
            | Self::Large(_)
            | Self::Text(_)
            | Self::Field(_) => return 1,
            Self::Not(one)
            | Self::Negate(one)
            | Self::IsNull(one)
            | Self::Matches(one, _)
            | Self::Cast(one, _) => one.depth,
            Self::And(terms) | Self::Or(terms) | Self::Concat(terms) | Self::Call(_, terms) => deepest(terms),
            Self::Compare(_, one, other) | Self::Arithmetic(_, one, other) | Self::IsDistinct(one, other) => {
                one.depth.max(other.depth)
            }
            Self::In(one, terms) => one.depth.max(deepest(terms)),
            Self::Between(one, low, high) => one.depth.max(low.depth).max(high.depth),
            Self::Case(branches, otherwise) => {
                let branches = branches
                    .iter()
                    .map(|(condition, value)| condition.depth.max(value.depth));
                let otherwise = otherwise.as_ref().map_or(0, |value| value.depth);
                branches.max().unwrap_or(0).max(otherwise)
            }
        };
        inner + 1
    }
}

/// The orders for which a comparison holds.
pub(super) type Comparison = &'static [Ordering];

pub(super) const EQUAL: Comparison = &[Ordering::Equal];
pub(super) const UNEQUAL: Comparison = &[Ordering::Less, Ordering::Greater];
pub(super) const LESS: Comparison = &[Ordering::Less];
pub(super) const GREATER: Comparison = &[Ordering::Greater];
pub(super) const AT_LEAST: Comparison = &[Ordering::Greater, Ordering::Equal];
pub(super) const AT_MOST: Comparison = &[Ordering::Less, Ordering::Equal];

/// The longest text, in bytes, that an expression makes. Longer ones are mistakes.
const LONGEST_TEXT: usize = 16 << 20;

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

/// A total: `sum(amount)`.
#[derive(Debug)]
pub(super) struct Total {
    /// As it is written.
    pub(super) name: String,
    pub(super) kind: TotalKind,
    pub(super) argument: Option<Term>,
}

/// Returns the name of the field with the value of a total.
pub(super) fn total_field(name: &str) -> String {
    format!("{TOTAL}{name}")
}

#[derive(Clone, Copy, Debug)]
pub(super) enum TotalKind {
    /// The number of records, or of those that meet a condition.
    Count,
    Sum,
    /// Whether all records meet a condition.
    Every,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The number of records that were skipped because they cannot be read.
    Skipped,
}

impl TotalKind {
    /// Returns the kind of a function of totals.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "every" => Self::Every,
            "min" => Self::Min,
            "max" => Self::Max,
            "skipped" => Self::Skipped,
            _ => return None,
        })
    }

    /// Returns the form of a call, if it has another one.
    pub(super) fn mistake(self, has_argument: bool) -> Option<&'static str> {
        match (self, has_argument) {
            (Self::Sum, false) => Some("expected a number in `sum(amount)`"),
            (Self::Every, false) => Some("expected a condition in `every(amount > 0)`"),
            (Self::Min, false) => Some("expected a value in `min(day)`"),
            (Self::Max, false) => Some("expected a value in `max(day)`"),
            (Self::Skipped, true) => Some("`skipped()` takes no argument"),
            _ => None,
        }
    }

    /// Returns the type of the argument; `None` for any.
    pub(super) fn takes(self) -> Option<Type> {
        match self {
            Self::Sum => Some(Type::Number),
            Self::Count | Self::Every | Self::Skipped => Some(Type::Condition),
            Self::Min | Self::Max => None,
        }
    }
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

    fn is_json(&self) -> bool {
        matches!(self, Self::Stored(Value::Json(_)))
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Decimal(number.to_text()),
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
    pub(super) fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Number(_) | Self::Stored(Value::Int(_) | Value::Float(_) | Value::Decimal(_))
        )
    }

    fn is_bool(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Stored(Value::Bool(_)))
    }
}

/// A part that is compared, and its value.
pub(super) struct Side<'r> {
    pub(super) term: &'r Term,
    pub(super) value: Operand<'r>,
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
            Kind::Large(number) => Operand::Stored(number),
            Kind::Text(text) => Operand::Text(Cow::Borrowed(text)),
            Kind::Field(field) => match field.of(self.record) {
                Ok(value) => Operand::Stored(value),
                Err(error) => return Err(error.with_hint(&self.source[term.at.clone()], &field.name)),
            },
            Kind::Negate(operand) => Operand::Number(self.number(operand)?.negated()),
            Kind::Arithmetic(operation, one, other) => {
                let (one, other) = (self.number(one)?, self.number(other)?);
                Operand::Number(self.calculate(*operation, one, other, term)?)
            }
            Kind::Concat(parts) => {
                let mut text = String::new();
                for part in parts {
                    text.push_str(&self.text(part)?);
                    self.check_length(text.len(), term)?;
                }
                Operand::Text(Cow::Owned(text))
            }
            Kind::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    if self.condition(condition)? {
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
            Kind::Not(_)
            | Kind::And(_)
            | Kind::Or(_)
            | Kind::Compare(..)
            | Kind::IsNull(_)
            | Kind::IsDistinct(..)
            | Kind::In(..)
            | Kind::Between(..)
            | Kind::Matches(..) => Operand::Bool(self.condition(term)?),
        })
    }

    /// Returns whether a condition holds.
    pub(super) fn condition(&self, term: &'r Term) -> Result<bool, MappingError> {
        Ok(match &term.kind {
            Kind::Not(operand) => !self.condition(operand)?,
            Kind::And(conditions) => {
                for condition in conditions {
                    if !self.condition(condition)? {
                        return Ok(false);
                    }
                }
                true
            }
            Kind::Or(conditions) => {
                for condition in conditions {
                    if self.condition(condition)? {
                        return Ok(true);
                    }
                }
                false
            }
            Kind::Compare(comparison, one, other) => {
                self.compare(comparison, &self.side(one)?, &self.side(other)?)?
            }
            Kind::IsNull(operand) => self.evaluate(operand)?.is_null(),
            Kind::IsDistinct(one, other) => {
                let (one, other) = (self.side(one)?, self.side(other)?);
                match (one.value.is_null(), other.value.is_null()) {
                    (false, false) => !self.compare(EQUAL, &one, &other)?,
                    (one, other) => one != other,
                }
            }
            Kind::In(operand, others) => {
                let one = self.side(operand)?;
                for other in others {
                    if self.compare(EQUAL, &one, &self.side(other)?)? {
                        return Ok(true);
                    }
                }
                false
            }
            Kind::Between(operand, low, high) => {
                let (one, low, high) = (self.side(operand)?, self.side(low)?, self.side(high)?);
                self.compare(AT_LEAST, &one, &low)? && self.compare(AT_MOST, &one, &high)?
            }
            Kind::Matches(operand, pattern) => pattern.is_match(&self.text(operand)?),
            _ => {
                let operand = self.evaluate(term)?;
                match operand.as_bool() {
                    Some(value) => value,
                    None => return Err(self.mismatch(term, &operand, Type::Condition)),
                }
            }
        })
    }

    pub(super) fn number(&self, term: &'r Term) -> Result<Number, MappingError> {
        let operand = self.evaluate(term)?;
        match operand.as_number() {
            Some(number) => Ok(number),
            None if is_number(&operand) => Err(self.too_long(term)),
            None => Err(self.mismatch(term, &operand, Type::Number)),
        }
    }

    pub(super) fn integer(&self, term: &'r Term) -> Result<i64, MappingError> {
        let operand = self.evaluate(term)?;
        match operand.as_number().and_then(Number::to_integer) {
            Some(number) => Ok(number),
            None => Err(self.mismatch(term, &operand, Type::Integer)),
        }
    }

    /// Returns the text of any value but null.
    pub(super) fn text(&self, term: &'r Term) -> Result<Cow<'r, str>, MappingError> {
        let operand = self.evaluate(term)?;
        if operand.is_null() {
            return Err(self.mismatch(term, &operand, Type::Text));
        }
        Ok(operand.into_text())
    }

    /// Evaluates a part for a comparison.
    pub(super) fn side(&self, term: &'r Term) -> Result<Side<'r>, MappingError> {
        let value = self.evaluate(term)?;
        Ok(Side { term, value })
    }

    /// Compares two parts.
    pub(super) fn compare(
        &self,
        comparison: Comparison,
        one: &Side<'_>,
        other: &Side<'_>,
    ) -> Result<bool, MappingError> {
        let wrong = |side: &Side<'_>, expected| Err(self.mismatch(side.term, &side.value, expected));
        let either = |is: fn(&Operand<'_>) -> bool| is(&one.value) || is(&other.value);
        let is_ordering = comparison != EQUAL && comparison != UNEQUAL;
        if let Some(json) = [one, other]
            .into_iter()
            .find(|side| is_ordering && side.value.is_json())
        {
            return Err(self.error(format!(
                "{} is a list or an object, which has no order; use `json_value`",
                self.shown(json.term)
            )));
        }
        if let Some(null) = [one, other].into_iter().find(|side| side.value.is_null()) {
            let is_number = either(|value| value.is_number());
            return wrong(null, if is_number { Type::Number } else { Type::Text });
        }
        if either(|value| value.is_number()) {
            return match order_of_numbers(&one.value, &other.value) {
                Some(order) => Ok(comparison.contains(&order)),
                None if is_number(&one.value) => wrong(other, Type::Number),
                None => wrong(one, Type::Number),
            };
        }
        if either(|value| value.is_bool()) {
            return match (one.value.as_bool(), other.value.as_bool()) {
                (Some(one), Some(other)) => Ok(comparison.contains(&one.cmp(&other))),
                (None, _) => wrong(one, Type::Condition),
                (_, None) => wrong(other, Type::Condition),
            };
        }
        match (one.value.as_str(), other.value.as_str()) {
            (Some(first), Some(second)) if self.is_clear(comparison, one, other) => {
                Ok(comparison.contains(&first.cmp(second)))
            }
            (Some(first), Some(second)) => Err(self.error(format!(
                "{} and {} are texts, {first:?} and {second:?}, which compare as numbers in another way; write `cast({} as decimal)`",
                self.shown(one.term),
                self.shown(other.term),
                &self.source[one.term.at.clone()],
            ))),
            _ => Ok(comparison.contains(&value_text(&one.value).cmp(&value_text(&other.value)))),
        }
    }

    /// Returns whether two texts compare in the same way as numbers, if they are numbers. One that is equal to a literal text, or not, is meant as
    /// a text.
    fn is_clear(&self, comparison: Comparison, one: &Side<'_>, other: &Side<'_>) -> bool {
        let is_literal = |side: &Side<'_>| matches!(side.term.kind, Kind::Text(_));
        if (is_literal(one) || is_literal(other)) && (comparison == EQUAL || comparison == UNEQUAL) {
            return true;
        }
        match order_of_numbers(&one.value, &other.value) {
            Some(order) => {
                let as_texts = one.value.as_str().cmp(&other.value.as_str());
                comparison.contains(&order) == comparison.contains(&as_texts)
            }
            None => true,
        }
    }

    /// Checks the length of a text that an expression makes.
    pub(super) fn check_length(&self, length: usize, term: &Term) -> Result<(), MappingError> {
        match length <= LONGEST_TEXT {
            true => Ok(()),
            false => Err(self.error(format!(
                "{} would be longer than {LONGEST_TEXT} bytes",
                self.shown(term)
            ))),
        }
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
        converted.ok_or_else(|| match ty == Type::Number && is_number(&value) {
            true => self.too_long(operand),
            false => self.mismatch(operand, &value, ty),
        })
    }

    /// Returns the part of the expression in backticks.
    pub(super) fn shown(&self, term: &Term) -> String {
        format!("`{}`", &self.source[term.at.clone()])
    }

    /// Returns the error of a result that has too many digits.
    #[cold]
    pub(super) fn too_long(&self, term: &Term) -> MappingError {
        self.error(format!(
            "{} has more than 38 digits, or more than 100 after the point",
            self.shown(term)
        ))
    }

    /// Returns the error of a value that a function or an operator does not take.
    #[cold]
    pub(super) fn mismatch(&self, term: &Term, found: &Operand<'_>, expected: Type) -> MappingError {
        let shown = self.shown(term);
        if found.is_null() {
            let text = &self.source[term.at.clone()];
            let value = if expected == Type::Text { "''" } else { "0" };
            return self.error(format!(
                "{shown} is null; test `{text} is not null` before, or give it a value, such as `coalesce({text}, {value})`"
            ));
        }
        match &term.kind {
            Kind::Field(field) => MappingError::of_field(self.record, &field.name, expected.name()),
            _ => self.error(format!(
                "{shown}: expected {}, found {:?}",
                expected.name(),
                value_text(found)
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
    match value.as_str() {
        Some(text) => decimal::is_number(text.trim_ascii()),
        None => !value.is_bool() && !value.is_null() && decimal::is_number(value_text(value).trim_ascii()),
    }
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
