//! Property lists: the levels of a scope, and the properties that reach an artifact.

use std::collections::HashSet;

use crate::codes;
use crate::diagnostics::quoted;
use crate::dialect::Dialect;
use crate::model::{Property, Target};
use crate::span::Spanned;
use crate::substitute::{Definition, Level, Scope, Subjob, Value};
use crate::symbols;
use crate::tree::{Attribute, Element};
use crate::values;

impl<'a> Scope<'a> {
    /// Enters an element, whose properties are visible from here on.
    // Spec: SUBST-11, JSL-CHPROP-08
    pub(crate) fn enter(&mut self, element: &'a Element) {
        self.levels.push(Level::default());
        let listed = element
            .child("properties")
            .into_iter()
            .flat_map(|list| list.children("property"));
        // Names and targets may contain symbols, which can only refer to properties with a literal name and target,
        // in any order.
        let (symbolic, literal): (Vec<_>, Vec<_>) =
            listed.partition(|property| has_symbolic_key(self.dialect, property));
        for property in literal.into_iter().chain(symbolic) {
            if let Some(definition) = self.definition(element, property) {
                self.define(definition);
            }
        }
        let list = element.child("properties");
        if let Some(merge) = list.and_then(|list| list.attribute("merge")) {
            self.boolean(merge);
        }
    }

    /// Leaves the innermost element.
    pub(crate) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns the value of a boolean attribute; `None`, after a report, if it is invalid.
    pub(crate) fn boolean(&mut self, attribute: &Attribute) -> Option<bool> {
        let value = self.attribute(attribute)?.known()?;
        let boolean = values::boolean(&value);
        if boolean.is_none() {
            values::bad_boolean(&attribute.name, &value, self.sink);
        }
        boolean
    }

    /// Returns the properties that reach an artifact at this place, outermost first, each name once.
    // Spec: OVR-05, OVR-13, JSL-CHPROP-04, JSL-CHPROP-05, D-35, D-36
    pub(crate) fn reaching(&mut self, target: Option<Target>) -> Vec<Property> {
        if self.stopped {
            return Vec::new();
        }
        if !self.dialect.artifacts_see_outer_properties() {
            return self.own();
        }
        let of_partitions = self.subjobs.iter().rev().map(|subjob| &subjob.properties);
        let all = of_partitions
            .chain(&self.levels)
            .flat_map(|level| &level.definitions);
        let mut seen = HashSet::new();
        let written = all
            .filter(|definition| definition.target.is_none() || definition.target == target)
            .filter(|definition| seen.insert(definition.name.value.as_str()))
            .map(|definition| definition.name.clone());
        let innermost = self.levels.len().saturating_sub(1);
        let addressed = self.levels.iter().enumerate().flat_map(|(index, level)| {
            let is_own = target.is_none() && index == innermost;
            let definitions = level.definitions.iter();
            definitions.filter(move |one| is_own || (target.is_some() && one.target == target))
        });
        let addressed: HashSet<String> = addressed.map(|one| one.name.value.clone()).collect();
        let planned = self.subjobs.iter().rev().flat_map(Subjob::planned);
        let mut names: Vec<Spanned<String>> = planned.collect();
        let known: HashSet<String> = names.iter().map(|name| name.value.clone()).collect();
        names.extend(written.filter(|name| !known.contains(&name.value)));
        let mut properties = self.effective_all(names, target);
        for property in &mut properties {
            property.is_addressed = addressed.contains(&property.name.value);
        }
        properties
    }

    /// Returns the properties of the innermost element without a target, with their effective values.
    // Spec: JSL-JOBPROP-03, JSL-STEPPROP-03, OVR-07
    pub(crate) fn own(&mut self) -> Vec<Property> {
        let own = self
            .levels
            .last()
            .into_iter()
            .flat_map(|level| &level.definitions);
        let names = own
            .filter(|definition| definition.target.is_none())
            .map(|definition| definition.name.clone());
        self.effective_all(names.collect(), None)
    }

    fn effective_all(&mut self, names: Vec<Spanned<String>>, target: Option<Target>) -> Vec<Property> {
        let mut properties = Vec::new();
        for name in names {
            let Some(Value { text, deferred }) = self.effective(&name, target) else {
                continue;
            };
            let bytes = size_of::<Property>() + name.len() + text.len();
            if self.handed(bytes, &text.span).is_none() {
                break;
            }
            properties.push(Property {
                name,
                value: text,
                deferred,
                is_addressed: true,
            });
        }
        properties
    }

    pub(crate) fn definition(&mut self, owner: &Element, property: &'a Element) -> Option<Definition<'a>> {
        let name = self.property_name(property);
        let target = self.property_target(owner, property);
        let value = property.attribute("value");
        if value.is_none() {
            values::missing_attribute(property, "value", self.sink);
        }
        self.definitions += 1;
        Some(Definition {
            number: self.definitions,
            name: name?,
            target: target?,
            value: value?,
            given: None,
        })
    }

    fn property_name(&mut self, property: &Element) -> Option<Spanned<String>> {
        let Some(attribute) = property.attribute("name") else {
            values::missing_attribute(property, "name", self.sink);
            return None;
        };
        let name = self.attribute(attribute)?.known()?;
        if name.is_empty() {
            values::empty_value(property, "name", &name.span, self.sink);
            return None;
        }
        Some(name)
    }

    /// Returns `None` if there is a target but an invalid one.
    // Spec: JSL-CHPROP-03, JSL-STEPPROP-04, D-35
    fn property_target(&mut self, owner: &Element, property: &Element) -> Option<Option<Target>> {
        let Some(attribute) = property.attribute("target") else {
            return Some(None);
        };
        if !matches!(owner.name.value.as_str(), "chunk" | "step" | "partition") {
            self.sink
                .error(codes::MISPLACED_TARGET, &attribute.name.span, |d| {
                    d.message(format!(
                        "a property of {} cannot have a target",
                        quoted(&owner.name)
                    ))
                    .label("allowed on properties of a chunk, step or partition")
                });
            return None;
        }
        let value = self.attribute(attribute)?.known()?;
        let target = Target::from_name(&value);
        if target.is_none() {
            values::bad_choice("target", &value, &Target::ALL.map(Target::as_str), self.sink);
        }
        target.map(Some)
    }

    // Spec: JSL-JOBPROP-04, JSL-CHPROP-06, OVR-14, D-38
    fn define(&mut self, definition: Definition<'a>) {
        let Some(level) = self.levels.last_mut() else {
            return;
        };
        let same = |other: &&Definition<'a>| other.target == definition.target;
        if let Some(first) = level.matching(&definition.name, definition.target).find(same) {
            self.sink
                .error(codes::DUPLICATE_PROPERTY, &definition.name.span, |d| {
                    let also = if definition.target.is_some() {
                        " with this target"
                    } else {
                        ""
                    };
                    d.message(format!("duplicate property {}", quoted(&definition.name)))
                        .label(format!("the list already has a property of this name{also}"))
                        .related(first.name.span.clone(), "the first one is here")
                });
            return;
        }
        self.names.insert(definition.name.value.clone());
        level.define(definition);
    }
}

fn has_symbolic_key(dialect: Dialect, property: &Element) -> bool {
    let mut keys = ["name", "target"]
        .into_iter()
        .filter_map(|name| property.attribute(name));
    keys.any(|key| symbols::has_symbols(dialect, &key.value))
}
