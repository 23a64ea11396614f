//! The partition and concurrency elements, and the view of one partition.

use std::collections::BTreeSet;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

use super::Lowering;
use crate::codes;
use crate::deferral::Deferral;
use crate::diagnostics::quoted;
use crate::model::{ArtifactRef, Concurrency, Partition, PartitionProperty, Property};
use crate::schema;
use crate::span::{Span, Spanned};
use crate::substitute::{Definition, Level, Subjob};
use crate::tree::Element;
use crate::values;

/// One partition of a step or flow.
#[derive(Clone, Copy, Debug)]
pub struct PartitionView<'a> {
    /// The id of the partitioned step or flow.
    pub element: &'a str,
    /// The number of the partition, from 1.
    // Spec: PART-09
    pub number: u32,
    /// The properties from the algorithm, or from the plan of an earlier execution; `None`: those in the XML.
    // Spec: PART-18, PART-21, PART-30
    pub plan: Option<&'a BTreeMap<String, String>>,
}

/// A property of a partition, with the number split off its name.
struct Numbered<'a> {
    number: NonZeroU32,
    definition: Definition<'a>,
}

/// The names of elements that dialects call differently.
struct Names {
    algorithm: &'static str,
    logical_tx: &'static str,
}

/// The partitions that the document itself defines.
struct Plan<'a> {
    count: NonZeroU32,
    threads: Option<NonZeroU32>,
    properties: Vec<Numbered<'a>>,
}

impl<'a> Lowering<'a> {
    /// Lowers the contents of a step or flow that may be partitioned: for the requested partition, or for the
    /// outside, where values of partitions are deferred.
    // Spec: PART-05, PART-14, PART-16, SUBST-09, SUBST-18, FPART-03, FPART-04, FPART-07, D-34, D-39
    pub(super) fn partitioned<T>(
        &mut self,
        owner: &'a Element,
        id: Option<&str>,
        inside: impl FnOnce(&mut Self) -> T,
    ) -> (T, Option<Partition>) {
        let Some(element) = owner.child("partition") else {
            return (inside(self), None);
        };
        let parts = self.names_of_parts();
        let has_algorithm = element
            .children
            .iter()
            .any(|child| child.name.value == parts.algorithm);
        let Plan {
            count,
            threads,
            properties,
        } = self.plan(element, has_algorithm);
        let view = self.views.iter().find(|view| Some(view.element) == id).copied();
        if let Some(view) = view {
            self.scope.subjobs.push(self.subjob(view, properties, element));
            let result = inside(self);
            let collector = element.child("collector").and_then(|child| self.artifact(child));
            self.scope.subjobs.pop();
            let partition = Partition {
                collector,
                ..outside(count, threads, element)
            };
            return (result, Some(partition));
        }
        let names = properties
            .iter()
            .map(|property| property.definition.name.value.clone());
        self.scope.deferrals.push(Deferral {
            names: (!has_algorithm).then(|| names.collect()),
            ..Deferral::default()
        });
        let result = inside(self);
        let properties = properties
            .into_iter()
            .map(|property| self.written(property))
            .collect();
        let algorithm = self.parent_side(element, parts.algorithm);
        let logical_tx = self.parent_side(element, parts.logical_tx);
        let collector = element.child("collector").and_then(|child| self.artifact(child));
        let analyzer = self.parent_side(element, "analyzer");
        let deferral = self.scope.deferrals.pop().unwrap_or_default();
        let partition = Partition {
            properties,
            algorithm,
            logical_tx,
            collector,
            analyzer,
            deferred: deferral.used,
            required: deferral.required,
            ..outside(count, threads, element)
        };
        (result, Some(partition))
    }

    fn names_of_parts(&self) -> Names {
        match self.scope.dialect.rules().parts_are_elements {
            true => Names {
                algorithm: "mapper",
                logical_tx: "reducer",
            },
            false => Names {
                algorithm: "algorithm",
                logical_tx: "logicalTX",
            },
        }
    }

    fn plan(&mut self, element: &'a Element, has_algorithm: bool) -> Plan<'a> {
        match self.scope.dialect.rules().parts_are_elements {
            true => self.plan_element(element, has_algorithm),
            false => self.plan_of_attributes(element, has_algorithm),
        }
    }

    // Spec: PART-03, PART-08, PART-18
    fn plan_of_attributes(&mut self, element: &'a Element, has_algorithm: bool) -> Plan<'a> {
        let (count, is_known) = self.count(element, "instances");
        Plan {
            count,
            threads: None,
            properties: match has_algorithm {
                true => Vec::new(),
                false => self.numbered(element, is_known.then_some(count)),
            },
        }
    }

    /// Returns the plan of a `plan` element; without one there has to be a mapper.
    fn plan_element(&mut self, element: &'a Element, has_mapper: bool) -> Plan<'a> {
        let plan = element.child("plan");
        let Some(plan) = plan.filter(|_| !has_mapper) else {
            match plan {
                Some(plan) => self.error(codes::MISSING_PART, &plan.name.span, |d| {
                    d.message("a partition cannot have both a `plan` and a `mapper`")
                        .label("the mapper computes the plan")
                }),
                None if !has_mapper && !schema::has_unknown_child(self.scope.dialect, element) => {
                    self.error(codes::MISSING_PART, &element.name.span, |d| {
                        d.message("a partition requires a `plan` or a `mapper`")
                            .label("has neither")
                    });
                }
                None => {}
            }
            return Plan {
                count: NonZeroU32::MIN,
                threads: None,
                properties: Vec::new(),
            };
        };
        let (count, is_known) = self.count(plan, "partitions");
        // 0 is the default: as many as there are partitions.
        let threads = self.integer(plan, "threads", 0).and_then(NonZeroU32::new);
        let mut properties = Vec::new();
        for list in plan
            .children
            .iter()
            .filter(|child| child.name.value == "properties")
        {
            self.properties_of_partition(plan, list, is_known.then_some(count), &mut properties);
        }
        Plan {
            count,
            threads,
            properties,
        }
    }

    /// Returns a number of partitions, and whether it is known.
    fn count(&mut self, element: &Element, attribute: &str) -> (NonZeroU32, bool) {
        let count = self.integer(element, attribute, 1).and_then(NonZeroU32::new);
        let is_known = count.is_some() || element.attribute(attribute).is_none();
        (count.unwrap_or(NonZeroU32::MIN), is_known)
    }

    /// Adds the properties of one list of a plan, which names its partition by a number from 0.
    fn properties_of_partition(
        &mut self,
        plan: &'a Element,
        list: &'a Element,
        count: Option<NonZeroU32>,
        properties: &mut Vec<Numbered<'a>>,
    ) {
        let most = count.map_or(i32::MAX.unsigned_abs(), NonZeroU32::get) - 1;
        let Some(written) = self.required(list, "partition") else {
            return;
        };
        let number = values::integer(&written, 0).filter(|number| *number <= most);
        let Some(number) = number.and_then(|number| NonZeroU32::MIN.checked_add(number)) else {
            self.error(codes::PARTITION_NUMBER, &written.span, |d| {
                d.message(format!("there is no partition {}", quoted(&written)))
                    .label(format!("expected a number from 0 to {most}"))
            });
            return;
        };
        for property in list.children("property") {
            let Some(definition) = self.scope.definition(plan, property) else {
                continue;
            };
            let same = |other: &&Numbered<'_>| {
                other.number == number && other.definition.name.value == definition.name.value
            };
            if let Some(first) = properties.iter().find(same) {
                let first = first.definition.name.span.clone();
                self.duplicate_of_partition(&definition.name, &first);
                continue;
            }
            self.scope.names.insert(definition.name.value.clone());
            properties.push(Numbered { number, definition });
        }
    }

    fn duplicate_of_partition(&mut self, name: &Spanned<String>, first: &Span) {
        self.error(codes::DUPLICATE_PROPERTY, &name.span, |d| {
            d.message(format!("duplicate property {}", quoted(name)))
                .label("the list already has a property of this name and partition")
                .related(first.clone(), "the first one is here")
        });
    }

    // Spec: PART-09, PART-13, PART-18, PART-21
    fn subjob(
        &self,
        view: PartitionView<'a>,
        properties: Vec<Numbered<'a>>,
        element: &Element,
    ) -> Subjob<'a> {
        let mut own = Level::default();
        if view.plan.is_none() {
            let of_partition = properties
                .into_iter()
                .filter(|property| property.number.get() == view.number);
            of_partition.for_each(|property| own.define(property.definition));
        }
        Subjob {
            levels: self.scope.levels.len(),
            properties: own,
            plan: view.plan,
            span: element.tag.clone(),
        }
    }

    // Spec: PART-08, PART-09, PART-10, PART-11, PART-15, D-33
    fn numbered(&mut self, element: &'a Element, count: Option<NonZeroU32>) -> Vec<Numbered<'a>> {
        let Some(list) = element.child("properties") else {
            return Vec::new();
        };
        self.boolean(list, "merge", true);
        let mut seen: HashMap<_, Span> = HashMap::new();
        let mut numbered = Vec::new();
        for property in list.children("property") {
            let Some(mut definition) = self.scope.definition(element, property) else {
                continue;
            };
            let raw = definition.name.clone();
            self.scope.names.insert(raw.value.clone());
            let Some((name, number)) = self.split_number(&raw, count) else {
                continue;
            };
            let key = (name.to_owned(), number, definition.target);
            if let Some(first) = seen.get(&key) {
                self.duplicate_of_partition(&raw, &Span::clone(first));
                continue;
            }
            seen.insert(key, raw.span.clone());
            definition.given = self.scope.given(&raw);
            definition.name = Spanned::new(name.to_owned(), raw.span.clone());
            numbered.push(Numbered { number, definition });
        }
        numbered
    }

    fn split_number<'n>(
        &mut self,
        raw: &'n Spanned<String>,
        count: Option<NonZeroU32>,
    ) -> Option<(&'n str, NonZeroU32)> {
        let parts = raw
            .rsplit_once('.')
            .filter(|(name, digits)| !name.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()));
        let found = parts.and_then(|(name, digits)| Some((name, digits.parse().ok()?)));
        let most = count.map_or(i32::MAX.unsigned_abs(), NonZeroU32::get);
        if let Some((name, number)) = found.filter(|(_, number): &(_, NonZeroU32)| number.get() <= most) {
            return Some((name, number));
        }
        self.error(codes::PARTITION_NUMBER, &raw.span, |d| {
            let d = match found {
                Some(_) => d.message(format!("{} is for a partition that does not exist", quoted(raw))),
                None => d.message(format!(
                    "{} does not end with the number of a partition",
                    quoted(raw)
                )),
            };
            let range = match most {
                1 => "`name.1`: there is one partition".to_owned(),
                most => format!("`name.1` to `name.{most}`"),
            };
            d.label(format!("expected {range}"))
        });
        None
    }

    /// Returns a property for the model. Its symbols must have a value outside or in a partition.
    fn written(&mut self, property: Numbered<'a>) -> PartitionProperty {
        let Numbered { number, definition } = property;
        if definition.given.is_none() {
            self.scope.attribute(definition.value);
        }
        PartitionProperty {
            number,
            name: definition.name,
            target: definition.target,
            value: definition.value.value.clone(),
        }
    }

    /// Returns an artifact that runs on the parent thread, where values of partitions do not exist.
    // Spec: PART-16, PART-19, PART-20, LTX-05, LTX-20, SUBJOB-08, SUBJOB-13
    fn parent_side(&mut self, partition: &'a Element, name: &str) -> Option<ArtifactRef> {
        let element = partition.children.iter().find(|child| child.name.value == name)?;
        self.scope.enter(element);
        let name = self.fixed(|lowering| lowering.required(element, "ref"));
        let mut properties = self.scope.reaching(None);
        for property in properties.iter().filter(|property| property.deferred) {
            self.own_value_must_be_known(element, property);
        }
        self.scope.leave();
        properties.retain(|property| !property.deferred);
        Some(ArtifactRef {
            name: name?,
            properties,
            deferred: false,
        })
    }

    /// Reports unresolved symbols of a property of the artifact's own list.
    fn own_value_must_be_known(&mut self, element: &'a Element, property: &Property) {
        let listed = element
            .child("properties")
            .into_iter()
            .flat_map(|list| &list.children);
        let mut values = listed.filter_map(|listed| listed.attribute("value"));
        let own = values.find(|value| value.value.span.is(&property.value.span));
        if let Some(value) = own {
            self.fixed(|lowering| lowering.scope.attribute(value));
        }
    }

    // Spec: SPLIT-15, LTX-04, LTX-05, SUBJOB-26
    pub(super) fn concurrency(&mut self, split: &'a Element) -> Concurrency {
        let Some(element) = split.child("concurrency") else {
            return Concurrency::default();
        };
        let mut artifact = |name| {
            let found = element.children.iter().find(|child| child.name.value == name);
            found.and_then(|child| self.artifact(child))
        };
        Concurrency {
            logical_tx: artifact("logicalTX"),
            collector: artifact("collector"),
            analyzer: artifact("analyzer"),
        }
    }
}

/// Returns an empty partition.
fn outside(instances: NonZeroU32, threads: Option<NonZeroU32>, element: &Element) -> Partition {
    Partition {
        instances,
        threads,
        properties: Vec::new(),
        algorithm: None,
        logical_tx: None,
        collector: None,
        analyzer: None,
        deferred: BTreeSet::new(),
        required: BTreeSet::new(),
        span: element.tag.clone(),
    }
}
