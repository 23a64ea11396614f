//! Expectations: conditions on totals of records, such as `count() = records and sum(amount) = total`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::number::Number;
use super::parse::Parser;
use super::term::{Scope, Term, Total, TotalKind, Type};
use crate::record::field::MappingError;
use crate::record::value::{Record, Value};

/// A condition on totals of records, and on the fields of the trailer that ends them.
#[derive(Debug)]
pub(crate) struct Expectation {
    source: String,
    condition: Term,
    totals: Vec<Total>,
    /// The fields outside of totals.
    fields: Vec<String>,
}

/// A total in a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredTotal {
    /// The total as it is written.
    name: String,
    value: String,
}

/// The values of the totals, in the order of the expectation.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    values: Vec<TotalValue>,
    /// The values with a record that may be an error.
    next: Vec<TotalValue>,
}

#[derive(Clone, Copy, Debug)]
enum TotalValue {
    Count(u64),
    Sum(Number),
    Every(bool),
}

impl TotalValue {
    fn value(self) -> Value {
        match self {
            Self::Count(count) => {
                i64::try_from(count).map_or_else(|_| Value::Decimal(count.to_string()), Value::Int)
            }
            Self::Sum(sum) => sum
                .as_i64()
                .map_or_else(|| Value::Decimal(sum.to_text()), Value::Int),
            Self::Every(holds) => Value::Bool(holds),
        }
    }
}

impl Expectation {
    /// Returns the totals of no records.
    pub(crate) fn totals(&self) -> Totals {
        let values = self.totals.iter().map(|total| match total.kind {
            TotalKind::Count | TotalKind::Skipped => TotalValue::Count(0),
            TotalKind::Sum => TotalValue::Sum(Number::integer(0)),
            TotalKind::Every => TotalValue::Every(true),
        });
        Totals {
            values: values.collect(),
            next: Vec::new(),
        }
    }

    /// Returns the totals of a checkpoint; `None` if it is of another expectation.
    pub(crate) fn resumed(&self, stored: &[StoredTotal]) -> Option<Totals> {
        let mut totals = self.totals();
        let names = self.totals.iter().map(|total| &total.name);
        if !names.eq(stored.iter().map(|total| &total.name)) {
            return None;
        }
        for (value, stored) in totals.values.iter_mut().zip(stored) {
            *value = match value {
                TotalValue::Count(_) => TotalValue::Count(stored.value.parse().ok()?),
                TotalValue::Sum(_) => TotalValue::Sum(Number::parse(&stored.value)?),
                TotalValue::Every(_) => TotalValue::Every(stored.value.parse().ok()?),
            };
        }
        Some(totals)
    }

    /// Returns the totals for a checkpoint, with their names.
    pub(crate) fn stored(&self, totals: &Totals) -> Vec<StoredTotal> {
        let named = self.totals.iter().zip(&totals.values);
        let stored = named.map(|(total, value)| StoredTotal {
            name: total.name.clone(),
            value: value.value().to_string(),
        });
        stored.collect()
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If a total has no value for the record. None of them has the record then.
    pub(crate) fn add(&self, totals: &mut Totals, record: &Record) -> Result<(), MappingError> {
        totals.next.clone_from(&totals.values);
        for (total, value) in self.totals.iter().zip(&mut totals.next) {
            add(
                total,
                value,
                Scope {
                    record,
                    source: &self.source,
                },
            )?;
        }
        std::mem::swap(&mut totals.values, &mut totals.next);
        Ok(())
    }

    /// Counts a record that is skipped because it cannot be read.
    pub(crate) fn skip(&self, totals: &mut Totals) {
        for (total, value) in self.totals.iter().zip(&mut totals.values) {
            if let (TotalKind::Skipped, TotalValue::Count(count)) = (total.kind, value) {
                *count += 1;
            }
        }
    }

    /// Returns the first field outside of totals, which only a trailer has.
    pub(crate) fn field(&self) -> Option<&str> {
        self.fields.first().map(String::as_str)
    }

    /// Checks the totals, with the fields of a trailer.
    ///
    /// # Errors
    /// If the condition does not hold, with the values, or has no value.
    pub(crate) fn check(&self, totals: &Totals, trailer: &Record) -> Result<(), String> {
        let mut all = trailer.clone();
        for (total, value) in self.totals.iter().zip(&totals.values) {
            all.set(&total.name, value.value());
        }
        let (record, source) = (&all, self.source.as_str());
        if (Scope { record, source })
            .condition(&self.condition)
            .map_err(|error| error.to_string())?
        {
            return Ok(());
        }
        let names = self.totals.iter().map(|total| &total.name).chain(&self.fields);
        let values = names.filter_map(|name| Some((name, all.get(name)?)));
        let values: Vec<_> = values
            .map(|(name, value)| format!("`{name}` is {:?}", value.to_string()))
            .collect();
        Err(format!("expected `{}`, but {}", source.trim(), values.join(", ")))
    }
}

/// Adds a record to a total.
fn add<'r>(total: &'r Total, value: &mut TotalValue, scope: Scope<'r>) -> Result<(), MappingError> {
    match (value, &total.argument) {
        (TotalValue::Sum(sum), Some(term)) => {
            let next = sum.add(scope.number(term)?);
            *sum =
                next.ok_or_else(|| MappingError::new(format!("`{}` has more than 38 digits", total.name)))?;
        }
        (TotalValue::Every(holds), Some(term)) => *holds &= scope.condition(term)?,
        (TotalValue::Count(count), Some(term)) => *count += u64::from(scope.condition(term)?),
        (TotalValue::Count(count), None) if matches!(total.kind, TotalKind::Count) => *count += 1,
        // `skipped()` has no records; the parser rejects the others without an argument.
        (TotalValue::Count(_) | TotalValue::Sum(_) | TotalValue::Every(_), None) => {}
    }
    Ok(())
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(source: &str) -> Result<Self, String> {
        let mut parser = Parser::with_totals(source)?;
        let term = parser.expression()?;
        parser.end()?;
        parser.needs(&term, Type::Condition)?;
        let (totals, fields) = parser.into_totals();
        if totals.is_empty() {
            return Err(
                "expected a total, such as `count() > 0`, `sum(amount) = total` or `every(amount > 0)`"
                    .to_owned(),
            );
        }
        Ok(Self {
            source: source.to_owned(),
            condition: term,
            totals,
            fields,
        })
    }
}
