//! Partitions of the draft as partitions of Jakarta Batch.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

use super::jakarta::ToJakarta;
use super::jakarta_values::{Coverage, PlanUse, View};
use super::list_of;
use crate::codes;
use crate::diagnostics::quoted;
use crate::model::Target;
use crate::tree::Element;
use crate::values;
use crate::write::Node;

/// The partitions of a step.
pub(super) struct Plan {
    /// True if an algorithm computes them: every name may have a value.
    pub(super) is_computed: bool,
    /// The number of partitions, if it is known.
    count: Option<u32>,
    names: HashMap<String, Planned>,
}

/// The partitions in which a name has a value.
#[derive(Default)]
struct Planned {
    /// The artifact for which, by the number of the partition.
    targets: HashMap<u32, Option<Target>>,
    /// The number of partitions for each artifact.
    counts: HashMap<Option<Target>, u32>,
}

impl Plan {
    pub(super) fn defines(&self, name: &str, target: Option<Target>) -> bool {
        self.coverage(name, target) != Coverage::Never
    }

    /// Returns the partitions in which the document gives a value to a name.
    pub(super) fn coverage(&self, name: &str, target: Option<Target>) -> Coverage {
        let Some(planned) = self.names.get(name) else {
            return Coverage::Never;
        };
        let count = |of: Option<Target>| planned.counts.get(&of).copied().unwrap_or(0);
        match count(None) + target.map_or(0, |target| count(Some(target))) {
            0 => Coverage::Never,
            here if Some(here) == self.count => Coverage::Always,
            _ => Coverage::Perhaps,
        }
    }

    /// Returns the names that the document defines for an artifact.
    pub(super) fn names(&self, target: Option<Target>) -> Vec<String> {
        let names = self.names.keys().filter(|name| self.defines(name, target));
        let mut names: Vec<String> = names.cloned().collect();
        names.sort();
        names
    }
}

/// Returns the name of a property of a partition and the number after it.
fn numbered(name: &str) -> Option<(&str, NonZeroU32)> {
    let (name, number) = name.rsplit_once('.')?;
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    let number = number.parse().ok().filter(|_| is_number)?;
    (!name.is_empty()).then_some((name, number))
}

impl<'a> ToJakarta<'a> {
    /// Returns what is known of the partitions of a step.
    pub(super) fn plan_of(&mut self, partition: &'a Element) -> Plan {
        let count = match partition.attribute("instances") {
            None => Some(1),
            Some(_) => self
                .literal(partition, "instances")
                .and_then(|count| values::integer(count, 1)),
        };
        let mut plan = Plan {
            is_computed: partition.child("algorithm").is_some(),
            count,
            names: HashMap::new(),
        };
        if plan.is_computed {
            return plan;
        }
        for entry in super::listed(partition) {
            let Some(own) = self.definition(entry) else {
                continue;
            };
            let Some((name, number)) = numbered(own.name) else {
                continue;
            };
            let planned = plan.names.entry(name.to_owned()).or_default();
            let other = *planned.targets.entry(number.get()).or_insert(own.target);
            if other != own.target {
                let span = entry.attribute("target").unwrap_or(own.value).value.span.clone();
                self.sink.error(codes::NO_PROPERTY, &span, |d| {
                    d.message(format!(
                        "partition {number} has {} with several targets",
                        quoted(name)
                    ))
                    .label("a partition has one value of each name")
                    .help("give the properties different names")
                });
                continue;
            }
            *planned.counts.entry(own.target).or_default() += 1;
        }
        plan
    }

    pub(super) fn partition(&mut self, partition: &'a Element) -> Node {
        let plan = match partition.child("algorithm") {
            Some(algorithm) => self.artifact("mapper", algorithm, PlanUse::Nothing),
            None => self.plan_element(partition),
        };
        let collector = partition.child("collector");
        let collector = collector.map(|child| self.artifact("collector", child, PlanUse::All));
        let analyzer = partition.child("analyzer");
        let analyzer = analyzer.map(|child| self.artifact("analyzer", child, PlanUse::Nothing));
        let reducer = partition.child("logicalTX");
        if let Some(reducer) = reducer {
            self.report_rollback(reducer);
        }
        let reducer = reducer.map(|child| self.artifact("reducer", child, PlanUse::Nothing));
        Node::new("partition")
            .and([plan])
            .and(collector)
            .and(analyzer)
            .and(reducer)
    }

    fn plan_element(&mut self, partition: &'a Element) -> Node {
        let count = partition.attribute("instances");
        let count = count.map(|count| self.attribute(count, PlanUse::Nothing));
        let mut lists: BTreeMap<u32, Vec<(String, String)>> = BTreeMap::new();
        for entry in super::listed(partition) {
            let Some(own) = self.definition(entry) else {
                continue;
            };
            let Some((name, number)) = numbered(own.name) else {
                continue;
            };
            self.check_name(own.name, &own.value.name.span);
            let view = View {
                target: own.target,
                ..self.view(PlanUse::Named)
            };
            self.defining = Some(name);
            let value = self.value(own.value, view);
            self.defining = None;
            // In the draft a job parameter replaces it under its whole name.
            let value = self.overridable(own.name, value, &own.value.value.span).text;
            let list = lists.entry(number.get() - 1).or_default();
            list.push((name.to_owned(), value));
        }
        let lists = lists
            .into_iter()
            .filter_map(|(number, entries)| list_of(entries).map(|list| list.with("partition", number)));
        Node::new("plan").with_some("partitions", count).and(lists)
    }

    /// Warns of partitions that are complete: they do not run again after a rollback.
    fn report_rollback(&mut self, reducer: &Element) {
        let (from, to) = self.dialects();
        if from.compensation_resets_partitions() == to.compensation_resets_partitions() {
            return;
        }
        self.once("rollback", |sink| {
            sink.warning(codes::OTHER_ROLLBACK, &reducer.name.span, |d| {
                d.message(format!(
                    "after a rollback, only incomplete partitions run again in the dialect `{to}`"
                ))
                .label("in the draft, all partitions run again if it has a method for the rollback")
                .help("let the artifact undo only the work of partitions that are not complete")
            });
        });
    }
}
