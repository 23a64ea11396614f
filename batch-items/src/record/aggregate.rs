//! Groups of records, each as one record with its totals.

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;

use super::expression::Aggregates;
use super::field::MappingError;
use super::processor::{Distinct, Renamed};
use super::value::Record;

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
}

#[item_processor("recordAggregateProcessor")]
impl RecordAggregateProcessor {
    /// Returns the record of a group; `None` for an empty group.
    #[process_item]
    pub fn process(&mut self, group: Vec<Record>) -> Result<Option<Record>, BatchError> {
        let Some(first) = group.first() else {
            return Ok(None);
        };
        if let Some(name) = self
            .set
            .names()
            .find(|name| self.fields.names().any(|field| field == *name))
        {
            let cause = format!("`fields` and `set` both have the field `{name}`; rename one of them");
            return Err(ConfigurationError::new(cause).into());
        }
        let mut result = Record::new();
        for Renamed { name, from } in self.fields.iter() {
            result.set(name, from.of(first)?.clone());
        }
        let of_group = self.fields.iter().map(|field| field.from.name.as_str());
        for name in of_group.chain(self.set.fields()) {
            let of = |record: &'_ Record| record.get(name).cloned().unwrap_or_default();
            let value = of(first);
            let differs = |record: &&Record| !of(record).is_same(&value);
            if let Some(other) = group.iter().find(differs) {
                return Err(MappingError::differs(name, first, other).into());
            }
        }
        self.set.add_to(&mut result, &group)?;
        Ok(Some(result))
    }
}
