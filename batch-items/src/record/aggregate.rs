//! Groups of records, each as one record with its totals.

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;

use super::expression::Aggregates;
use super::field::MappingError;
use super::processor::{Distinct, Renamed};
use super::value::{Record, Value};

/// A processor that makes one record of each group; registered as `recordAggregateProcessor`.
///
/// | property | default | |
/// |---|---|---|
/// | `fields` | none | fields that all records of a group share, such as its key, separated by commas; `customer=name` renames |
/// | `set` | required | computed fields with totals, separated by commas: `total=sum(cents), rows=count(), last=max(day)` |
///
/// The totals are `count()`, `count(condition)`, `sum(number)`, `every(condition)`, `min(value)` and `max(value)`. All records of a group must
/// have the same value of each field in `fields`, and of each field in `set` outside a total; otherwise the group is a [`MappingError`]. The
/// expressions do not see each other's results.
///
/// Sort the input by the key: a key that returns later starts another group. To reject it, give the table of the results a unique key.
///
/// ```xml
/// <chunk reader="csvRecordGroupReader" processor="recordAggregateProcessor" writer="recordTableWriter">
///   <properties>
///     <property name="resource" value="in/bookings.csv"/>
///     <property name="group" value="key account"/>
///     <property name="fields" value="account"/>
///     <property name="set" value="balance=sum(cents), bookings=count()"/>
///     <property name="table" value="balance"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct RecordAggregateProcessor {
    #[batch_property(name = "fields", value = "")]
    fields: Distinct<Renamed>,
    #[batch_property(name = "set")]
    set: Aggregates,
    is_checked: bool,
}

impl RecordAggregateProcessor {
    /// Checks the properties, which do not know each other when they are parsed.
    fn check(&mut self) -> Result<(), ConfigurationError> {
        let is_in_fields = |name: &&str| self.fields.names().any(|field| field == *name);
        if let Some(name) = self.set.names().find(is_in_fields) {
            return Err(ConfigurationError::new(format!(
                "`fields` and `set` both have the field `{name}`; rename one of them"
            )));
        }
        self.is_checked = true;
        Ok(())
    }
}

/// Returns a field; a missing one is null.
fn value_of<'r>(record: &'r Record, name: &str) -> &'r Value {
    record.get(name).unwrap_or(&Value::Null)
}

#[item_processor("recordAggregateProcessor")]
impl RecordAggregateProcessor {
    /// Returns the record of a group; `None` for an empty group.
    #[process_item]
    pub fn process(&mut self, group: Vec<Record>) -> Result<Option<Record>, BatchError> {
        let Some(first) = group.first() else {
            return Ok(None);
        };
        if !self.is_checked {
            self.check()?;
        }
        let mut result = Record::new();
        for Renamed { name, from } in self.fields.iter() {
            result.set(name, from.of(first)?.clone());
        }
        let of_group = self.fields.iter().map(|field| field.from.name.as_str());
        for name in of_group.chain(self.set.fields()) {
            let value = value_of(first, name);
            let differs = |record: &&Record| !value_of(record, name).is_same(value);
            if let Some(other) = group.iter().find(differs) {
                return Err(MappingError::differs(name, first, other).into());
            }
        }
        self.set.add_to(&mut result, &group)?;
        Ok(Some(result))
    }
}
