//! Reports of symbols and expressions without a value.

use super::{Pending, Scope, Subjob, View};
use crate::codes;
use crate::diagnostics::quoted;
use crate::dialect::ValueSource;
use crate::span::Span;
use crate::suggest;

impl Scope<'_> {
    pub(super) fn report_cycle(&mut self, cycle: &[Pending], name: &str, place: &Span) {
        self.failed.extend(cycle.iter().map(|property| property.number));
        let names = cycle.iter().map(|property| property.name.as_str());
        let path: Vec<String> = names.chain([name]).map(quoted).collect();
        self.sink.error(codes::SYMBOL_CYCLE, place, |d| {
            d.message(format!(
                "the value of {} depends on itself: {}",
                quoted(name),
                path.join(" -> ")
            ))
            .label("no other property or parameter of this name is visible here")
        });
    }

    pub(super) fn report_unresolved(&mut self, name: &str, view: View, place: &Span) {
        self.sink.error(codes::UNRESOLVED_SYMBOL, place, |d| {
            let enclosing = self.levels[..view.levels]
                .iter()
                .flat_map(|level| &level.definitions);
            let names = enclosing
                .map(|definition| definition.name.value.as_str())
                .chain(self.subjobs.iter().flat_map(Subjob::names))
                .chain(self.values.parameters.keys().map(String::as_str))
                .chain(self.values.system.keys().map(String::as_str));
            d.message(format!("the symbol {} has no value", quoted(name)))
                .label("no job parameter, system property or enclosing property has this name")
                .suggestion(suggest::nearest(name, names))
        });
    }

    /// Warns about an expression that is always empty, with any parameters and environment.
    // Spec: JAK-45
    pub(super) fn warn_of_undefined(&mut self, name: &str, source: ValueSource, view: View, place: &Span) {
        let lists = match source {
            ValueSource::InnermostProperty => &self.levels[..view.levels],
            // A partition is resolved with the plan that a program has made.
            ValueSource::Partition if self.subjobs.is_empty() => &[],
            _ => return,
        };
        let properties = lists.iter().flat_map(|level| &level.definitions);
        let properties = properties.map(|definition| definition.name.value.as_str());
        let of_partitions = self
            .deferrals
            .iter()
            .filter_map(|deferral| deferral.names.as_ref());
        let of_partitions = of_partitions.flatten().map(String::as_str);
        let (message, near) = match source {
            ValueSource::Partition if self.deferrals.is_empty() => (
                "`partitionPlan` is empty outside of a partitioned step".to_owned(),
                None,
            ),
            ValueSource::Partition => (
                format!("the plan has no property {}", quoted(name)),
                suggest::nearest(name, of_partitions),
            ),
            _ => (
                format!("no property {} is defined before this place", quoted(name)),
                suggest::nearest(name, properties),
            ),
        };
        self.sink.warning(codes::UNDEFINED_VALUE, place, |d| {
            d.message(message)
                .label("the expression is empty")
                .suggestion(near)
        });
    }
}
