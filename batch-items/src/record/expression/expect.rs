//! Totals of records: expectations, such as `count() = records and sum(amount) = total`, and aggregates, such as `total=sum(amount)`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::number::Number;
use super::parse::Parser;
use super::term::{GREATER, LESS, Operand, Scope, Side, Term, Total, TotalKind, Type, total_field};
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
    /// The values that the current record changes, which may be an error.
    changed: Vec<Option<TotalValue>>,
}

#[derive(Clone, Debug)]
enum TotalValue {
    Count(u64),
    Sum(Number),
    Every(bool),
    /// The least or greatest value so far.
    Extreme(Value),
}

impl TotalValue {
    /// Returns the total of no records.
    fn new(kind: TotalKind) -> Self {
        match kind {
            TotalKind::Count | TotalKind::Skipped => Self::Count(0),
            TotalKind::Sum => Self::Sum(Number::integer(0)),
            TotalKind::Every => Self::Every(true),
            TotalKind::Min | TotalKind::Max => Self::Extreme(Value::Null),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Count(count) => {
                i64::try_from(*count).map_or_else(|_| Value::Decimal(count.to_string()), Value::Int)
            }
            Self::Sum(sum) => sum
                .as_i64()
                .map_or_else(|| Value::Decimal(sum.to_text()), Value::Int),
            Self::Every(holds) => Value::Bool(*holds),
            Self::Extreme(value) => value.clone(),
        }
    }

    /// Returns the text for a checkpoint. A minimum or maximum is stored as JSON, which keeps its type.
    fn stored(&self) -> String {
        match self {
            Self::Extreme(value) => serde_json::to_string(value).unwrap_or_default(),
            other => other.value().to_string(),
        }
    }

    fn resumed(&self, text: &str) -> Option<Self> {
        Some(match self {
            Self::Count(_) => Self::Count(text.parse().ok()?),
            Self::Sum(_) => Self::Sum(Number::parse(text)?),
            Self::Every(_) => Self::Every(text.parse().ok()?),
            Self::Extreme(_) => Self::Extreme(serde_json::from_str(text).ok()?),
        })
    }
}

/// Expressions with totals of the records of a group: `total=sum(cents), rows=count()`.
#[derive(Debug)]
pub(crate) struct Aggregates {
    source: String,
    values: Vec<(String, Term)>,
    totals: Vec<Total>,
    /// The fields outside of totals.
    fields: Vec<String>,
}

impl Aggregates {
    /// Returns the names of the values.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the fields outside of totals, which all records of a group share.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }

    /// Adds the values for a group to the result.
    ///
    /// # Errors
    /// If a total or an expression has no value.
    pub(crate) fn add_to(&self, result: &mut Record, group: &[Record]) -> Result<(), MappingError> {
        let mut totals = Totals::of(&self.totals);
        for record in group {
            totals.add(&self.totals, record, &self.source)?;
        }
        let first = group.first().cloned().unwrap_or_default();
        let (record, source) = (&totals.with_fields_of(&self.totals, first), self.source.as_str());
        for (name, term) in &self.values {
            let value = (Scope { record, source }).evaluate(term)?;
            result.set(name, value.into_value());
        }
        Ok(())
    }
}

impl FromStr for Aggregates {
    type Err = String;

    fn from_str(source: &str) -> Result<Self, String> {
        let mut parser = Parser::with_totals(source)?;
        let values = parser.list(|parser| Ok((parser.assigned()?, parser.expression()?)))?;
        let (totals, fields) = parser.into_totals();
        for (at, (name, _)) in values.iter().enumerate() {
            if values[..at].iter().any(|(other, _)| other == name) {
                return Err(format!("the name `{name}` is there twice; remove one"));
            }
        }
        if let Some(name) = fields
            .iter()
            .find(|field| values.iter().any(|(name, _)| name == *field))
        {
            return Err(format!(
                "`set` computes `{name}`, and an expression uses it; expressions do not see each other's results: give the result another name"
            ));
        }
        if let Some(total) = totals
            .iter()
            .find(|total| matches!(total.kind, TotalKind::Skipped))
        {
            return Err(format!(
                "`{}` is a total of an input, and not of a group",
                total.name
            ));
        }
        let source = source.to_owned();
        Ok(Self {
            source,
            values,
            totals,
            fields,
        })
    }
}

impl Totals {
    fn of(totals: &[Total]) -> Self {
        Self {
            values: totals.iter().map(|total| TotalValue::new(total.kind)).collect(),
            changed: Vec::new(),
        }
    }

    /// Adds a record. If it has no value for a total, none of them has it.
    fn add(&mut self, totals: &[Total], record: &Record, source: &str) -> Result<(), MappingError> {
        self.changed.clear();
        for (total, value) in totals.iter().zip(&self.values) {
            self.changed.push(with(total, value, Scope { record, source })?);
        }
        for (value, changed) in self.values.iter_mut().zip(self.changed.drain(..)) {
            if let Some(changed) = changed {
                *value = changed;
            }
        }
        Ok(())
    }

    /// Returns the fields of a record, and the totals as fields.
    fn with_fields_of(&self, totals: &[Total], mut record: Record) -> Record {
        for (total, value) in totals.iter().zip(&self.values) {
            record.set(&total_field(&total.name), value.value());
        }
        record
    }
}

impl Expectation {
    /// Returns the totals of no records.
    pub(crate) fn totals(&self) -> Totals {
        Totals::of(&self.totals)
    }

    /// Returns the totals of a checkpoint; `None` if it is of another expectation.
    pub(crate) fn resumed(&self, stored: &[StoredTotal]) -> Option<Totals> {
        let mut totals = self.totals();
        let names = self.totals.iter().map(|total| &total.name);
        if !names.eq(stored.iter().map(|total| &total.name)) {
            return None;
        }
        for (value, stored) in totals.values.iter_mut().zip(stored) {
            *value = value.resumed(&stored.value)?;
        }
        Some(totals)
    }

    /// Returns the totals for a checkpoint, with their names.
    pub(crate) fn stored(&self, totals: &Totals) -> Vec<StoredTotal> {
        let named = self.totals.iter().zip(&totals.values);
        let stored = named.map(|(total, value)| StoredTotal {
            name: total.name.clone(),
            value: value.stored(),
        });
        stored.collect()
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If a total has no value for the record. None of them has the record then.
    pub(crate) fn add(&self, totals: &mut Totals, record: &Record) -> Result<(), MappingError> {
        totals.add(&self.totals, record, &self.source)
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
        let all = totals.with_fields_of(&self.totals, trailer.clone());
        let (record, source) = (&all, self.source.as_str());
        if (Scope { record, source })
            .condition(&self.condition)
            .map_err(|error| error.to_string())?
        {
            return Ok(());
        }
        let of_totals = self
            .totals
            .iter()
            .map(|total| (&total.name, all.get(&total_field(&total.name))));
        let named = of_totals.chain(self.fields.iter().map(|name| (name, all.get(name))));
        let values: Vec<_> = named
            .filter_map(|(name, value)| Some(format!("`{name}` is {}", value?.shown())))
            .collect();
        Err(format!("expected `{}`, but {}", source.trim(), values.join(", ")))
    }
}

/// Returns a total with a record; `None` if it stays.
fn with<'r>(
    total: &'r Total,
    value: &'r TotalValue,
    scope: Scope<'r>,
) -> Result<Option<TotalValue>, MappingError> {
    Ok(match (value, &total.argument) {
        (TotalValue::Sum(sum), Some(term)) => match sum.add(scope.number(term)?) {
            Some(sum) => Some(TotalValue::Sum(sum)),
            None => {
                return Err(MappingError::new(format!(
                    "`{}` has more than 38 digits",
                    total.name
                )));
            }
        },
        (TotalValue::Every(holds), Some(term)) => Some(TotalValue::Every(*holds & scope.condition(term)?)),
        (TotalValue::Extreme(extreme), Some(term)) => {
            let next = scope.side(term)?;
            let so_far = Side {
                term,
                value: Operand::Stored(extreme),
            };
            let is_first = so_far.value.is_null();
            // A comparison of null with itself is an error.
            let other = if is_first { &next } else { &so_far };
            let wanted = if matches!(total.kind, TotalKind::Min) {
                LESS
            } else {
                GREATER
            };
            let is_next = scope.compare(wanted, &next, other)? || is_first;
            is_next.then(|| TotalValue::Extreme(next.value.into_value()))
        }
        (TotalValue::Count(count), Some(term)) => {
            scope.condition(term)?.then(|| TotalValue::Count(count + 1))
        }
        (TotalValue::Count(count), None) if matches!(total.kind, TotalKind::Count) => {
            Some(TotalValue::Count(count + 1))
        }
        // `skipped()` has no records; the parser rejects the others without an argument.
        (_, None) => None,
    })
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
