//! Expressions of Jakarta Batch as symbols of the draft, and lists of properties.
//!
//! A symbol has one meaning in the whole document: the job parameter, else the outermost property. An expression without a value is
//! empty, where a symbol is an error; so each name that only a parameter can define becomes a property of the job, with the default.

use std::collections::{HashMap, HashSet};

use super::draft::ToDraft;
use crate::codes;
use crate::diagnostics::quoted;
use crate::dialect::ValueSource;
use crate::span::Span;
use crate::symbols::{self, Name, Piece};
use crate::tree::{Attribute, Element};

/// The properties of an enclosing element, with their values in the draft.
#[derive(Default)]
pub(super) struct Level {
    values: HashMap<String, String>,
}

/// A property of an inner element, which must not differ from one of the job.
pub(super) struct Inner {
    name: String,
    value: String,
    span: Span,
}

/// A job property that an expression requires.
pub(super) struct Wanted {
    value: String,
    span: Span,
}

/// The owner of a list of properties.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A job or step, whose context shows the properties.
    Context,
    Artifact,
}

/// The value of a property in the draft.
enum Converted {
    Value(String),
    /// No entry is needed: the draft passes the value of this name from outside.
    Implied,
}

fn symbol(name: &str) -> String {
    format!("${{{name}}}")
}

impl<'a> ToDraft<'a> {
    /// Converts the value of an attribute at this place.
    pub(super) fn value(&mut self, attribute: &Attribute) -> String {
        let text = self.part_of(attribute, &attribute.value.value);
        if symbols::pieces(self.to, &text).any(|piece| matches!(piece, Piece::Malformed(..))) {
            self.literal_syntax(attribute);
        }
        text
    }

    /// Converts a part of a value: all of it, or the default of an expression.
    fn part_of(&mut self, attribute: &Attribute, part: &str) -> String {
        let mut text = String::new();
        for piece in symbols::pieces(self.from, part) {
            match piece {
                Piece::Literal(literal) => {
                    if literal.contains("${") {
                        self.literal_syntax(attribute);
                    }
                    text.push_str(literal);
                }
                Piece::Symbol(name, range) => {
                    let place = match part.len() == attribute.value.len() {
                        true => symbols::place(attribute, range),
                        false => attribute.value.span.clone(),
                    };
                    text.push_str(&self.expression(name, attribute, &place));
                }
                Piece::Malformed(range, mistake) => {
                    symbols::report(self.from, attribute, range, &mistake, self.sink);
                }
            }
        }
        text
    }

    fn literal_syntax(&mut self, attribute: &Attribute) {
        let to = self.to;
        self.sink
            .error(codes::LITERAL_SYNTAX, &attribute.value.span, |d| {
                d.message(format!(
                    "literal text of this value is a symbol in the dialect `{to}`"
                ))
                .label("there is no escape")
                .help("pass the text as a job parameter")
            });
    }

    fn expression(&mut self, found: Name<'_>, attribute: &Attribute, place: &Span) -> String {
        let name = found.name;
        self.check_name(name, place);
        if found.source == Some(ValueSource::Partition) {
            return self.planned(name, found.default, attribute, place);
        }
        let default = found.default.map(|default| self.part_of(attribute, default));
        let fallback = default.clone().unwrap_or_default();
        if found.source != Some(ValueSource::InnermostProperty) {
            self.check_not_planned(name, place);
            self.want(name, fallback, place);
            return symbol(name);
        }
        match self.found(name).map(str::to_owned) {
            Some(value) if !value.is_empty() => {
                if default.is_some() && !self.has_literal_text(&value) {
                    self.no_property(place, format!("the default of {} is lost", quoted(name)), |d| {
                        d.label("the value of the property may be empty")
                            .help("write the default where the property is defined")
                    });
                }
                self.check_not_planned(name, place);
                symbol(name)
            }
            // Empty, not defined, or only after this place.
            _ => fallback,
        }
    }

    /// Converts a value of the partition.
    fn planned(&mut self, name: &str, default: Option<&str>, attribute: &Attribute, place: &Span) -> String {
        let plan = self.plan.as_ref();
        let is_defined = plan.is_some_and(|plan| plan.names.contains_key(name));
        let (is_computed, is_complete) =
            plan.map_or((false, false), |plan| (plan.is_computed, plan.is_in_all(name)));
        if is_computed && default.is_none_or(|default| default == super::jakarta_values::parameter(name)) {
            // In the draft, the symbol already means the job parameter if the plan has no value.
            return symbol(name);
        }
        let outer = self.plan.take();
        let default = default.map_or(String::new(), |default| self.part_of(attribute, default));
        self.plan = outer;
        if !is_computed && !is_defined {
            return default;
        }
        if !default.is_empty() {
            self.check_default(name, place);
        }
        if !is_complete && default != symbol(name) {
            self.want(name, default, place);
        }
        symbol(name)
    }

    /// Warns of a default that replaces an empty value of the plan.
    fn check_default(&mut self, name: &str, place: &Span) {
        let plan = self.plan.as_ref();
        if plan.is_some_and(|plan| plan.may_be_empty.contains(name)) {
            self.sink.warning(codes::OTHER_OVERRIDE, place, |d| {
                d.message(format!(
                    "the default of {} applies only to partitions that do not have it",
                    quoted(name)
                ))
                .label("in Jakarta Batch, it replaces an empty value, too")
                .help("write the default where the plan defines the property")
            });
        }
    }

    /// Returns whether a value before its conversion is never empty.
    pub(super) fn is_never_empty(&self, value: &str) -> bool {
        symbols::pieces(self.from, value).any(|piece| match piece {
            Piece::Literal(literal) => !literal.is_empty(),
            Piece::Symbol(name, _) => name.default.is_some_and(|default| self.is_never_empty(default)),
            Piece::Malformed(..) => false,
        })
    }

    fn has_literal_text(&self, value: &str) -> bool {
        symbols::pieces(self.to, value).any(|piece| matches!(piece, Piece::Literal(_)))
    }

    /// A symbol ends with the first `}`.
    pub(super) fn check_name(&mut self, name: &str, place: &Span) {
        if name.contains('}') || name.contains("${") {
            self.no_property(
                place,
                format!("the name {} cannot be written in a symbol", quoted(name)),
                |d| {
                    d.label("contains `}` or `${`")
                        .help("rename the property or parameter")
                },
            );
        }
    }

    fn no_property(
        &mut self,
        place: &Span,
        message: String,
        build: impl FnOnce(crate::diagnostics::Diagnostic) -> crate::diagnostics::Diagnostic,
    ) {
        self.sink
            .error(codes::NO_PROPERTY, place, |d| build(d.message(message)));
    }

    /// Reports a name that means the value of the partition in the draft, or that of a job property which uses such a name.
    fn check_not_planned(&mut self, name: &str, place: &Span) {
        let Some(planned) = self.planned_within(name) else {
            return;
        };
        // The value of a property of the plan does not mean itself.
        if planned == name && self.defining.as_deref() == Some(name) {
            return;
        }
        let message = match planned == name {
            true => format!("the partitions have a property {} too", quoted(name)),
            false => format!(
                "the value of {} uses {}, and the partitions have a property of this name too",
                quoted(name),
                quoted(&planned)
            ),
        };
        self.no_property(place, message, |d| {
            d.label("in the draft, the value of the partition takes precedence")
                .help("give the property of the partitions another name")
        });
    }

    /// Returns the first name with a value in the partitions that a name means in the draft: itself, or one that its job property uses.
    fn planned_within(&self, name: &str) -> Option<String> {
        let plan = self.plan.as_ref()?;
        let of_job = &self.levels.first()?.values;
        let mut seen = HashSet::new();
        let mut names = vec![name];
        while let Some(name) = names.pop() {
            if plan.names.contains_key(name) {
                return Some(name.to_owned());
            }
            let value = of_job.get(name).filter(|_| seen.insert(name));
            let pieces = value
                .into_iter()
                .flat_map(|value| symbols::pieces(self.to, value));
            names.extend(pieces.filter_map(|piece| match piece {
                Piece::Symbol(used, _) => Some(used.name),
                _ => None,
            }));
        }
        None
    }

    /// Requires a job property, which is used if there is no job parameter of this name.
    fn want(&mut self, name: &str, value: String, place: &Span) {
        let inner = symbols::pieces(self.to, &value).find_map(|piece| match piece {
            Piece::Symbol(used, _) if self.level_of(used.name).is_some_and(|level| level > 0) => {
                Some(used.name.to_owned())
            }
            _ => None,
        });
        if let Some(used) = inner {
            self.no_property(
                place,
                format!("the default of {} depends on a property of a step", quoted(name)),
                |d| {
                    d.label(format!("{} is not visible in the whole job", quoted(&used)))
                        .help(format!("define {} in the job", quoted(&used)))
                },
            );
        }
        match self.wanted.get(name) {
            Some(wanted) if wanted.value != value => {
                let (other, first) = (wanted.value.clone(), wanted.span.clone());
                self.no_property(place, format!("{} has two defaults", quoted(name)), |d| {
                    d.label(format!("here {}", quoted(&value)))
                        .related(first, format!("here {}", quoted(&other)))
                        .help(
                            "in the draft a name has one value in the whole job; use one default everywhere",
                        )
                });
            }
            Some(_) => {}
            None => {
                let span = place.clone();
                self.wanted.insert(name.to_owned(), Wanted { value, span });
            }
        }
    }

    /// Returns the value of the innermost property of a name.
    fn found(&self, name: &str) -> Option<&str> {
        let mut levels = self.levels.iter().rev();
        levels
            .find_map(|level| level.values.get(name))
            .map(String::as_str)
    }

    /// Returns the innermost level that defines a name.
    pub(super) fn level_of(&self, name: &str) -> Option<usize> {
        self.levels
            .iter()
            .rposition(|level| level.values.contains_key(name))
    }

    /// Enters an element, and returns its properties in the draft.
    pub(super) fn enter(
        &mut self,
        entries: impl Iterator<Item = &'a Element>,
        owner: Owner,
    ) -> Vec<(String, String)> {
        self.levels.push(Level::default());
        let mut list = Vec::new();
        for entry in entries {
            let (Some(name), Some(value)) = (entry.attribute("name"), entry.attribute("value")) else {
                continue;
            };
            self.warn_of_parameters(name);
            list.extend(self.own_property(&name.value.value, name, value, owner));
        }
        list
    }

    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Converts a property of the innermost element; `None` if it needs no entry there.
    pub(super) fn own_property(
        &mut self,
        name: &str,
        place: &Attribute,
        value: &Attribute,
        owner: Owner,
    ) -> Option<(String, String)> {
        if symbols::has_symbols(self.from, name) {
            self.no_property(
                &place.value.span,
                "the name of a property contains an expression".to_owned(),
                |d| {
                    d.label("only known at the start of the job")
                        .help("write it without an expression")
                },
            );
            return None;
        }
        let span = &value.value.span;
        let outer = self.found(name).map(str::to_owned);
        let text = match self.own_value(name, value, &value.value.value) {
            Converted::Value(text) => text,
            Converted::Implied if owner == Owner::Artifact => return None,
            Converted::Implied => symbol(name),
        };
        if let Some(outer) = outer {
            if text != outer && text != symbol(name) {
                self.no_property(
                    span,
                    format!("the property {} has another value outside", quoted(name)),
                    |d| {
                        d.label("in the draft, the property of the outermost element takes precedence")
                            .help("give one of the properties another name")
                    },
                );
            }
            return (owner == Owner::Context).then(|| (name.to_owned(), symbol(name)));
        }
        self.define(name, text.clone(), span);
        Some((name.to_owned(), text))
    }

    /// Records a property of the innermost element.
    fn define(&mut self, name: &str, value: String, span: &Span) {
        if self.levels.len() > 1 {
            self.inner.push(Inner {
                name: name.to_owned(),
                value: value.clone(),
                span: span.clone(),
            });
        }
        if let Some(level) = self.levels.last_mut() {
            level.values.entry(name.to_owned()).or_insert(value);
        }
    }

    /// Converts the value of a property, or the default in it.
    fn own_value(&mut self, name: &str, attribute: &Attribute, part: &str) -> Converted {
        let mut pieces = symbols::pieces(self.from, part);
        let (first, rest) = (pieces.next(), pieces.next());
        let span = &attribute.value.span;
        let Some(Piece::Symbol(found, _)) = first.filter(|_| rest.is_none()) else {
            self.check_not_planned(name, span);
            return Converted::Value(self.value_of_part(attribute, part));
        };
        let default = found.default.unwrap_or_default();
        match found.source {
            _ if found.name != name => {}
            Some(ValueSource::JobParameter) => {
                self.check_not_planned(name, span);
                return Converted::Value(self.part_of(attribute, default));
            }
            Some(ValueSource::InnermostProperty) if self.found(name).is_some() && default.is_empty() => {
                self.check_not_planned(name, span);
                return Converted::Implied;
            }
            Some(ValueSource::Partition) => {
                let plan = self.plan.as_ref();
                let is_planned = plan.is_some_and(|plan| plan.is_computed || plan.names.contains_key(name));
                let is_everywhere = plan.is_some_and(|plan| plan.is_computed || plan.is_in_all(name));
                if is_planned {
                    if found.default.is_some() {
                        self.check_default(name, span);
                    }
                    // What is left is its value in partitions that do not have it.
                    let plan = self.plan.take();
                    let value = match found.default {
                        Some(default) => self.own_value(name, attribute, default),
                        None if is_everywhere => Converted::Implied,
                        None => Converted::Value(String::new()),
                    };
                    self.plan = plan;
                    return value;
                }
            }
            _ => {}
        }
        self.check_not_planned(name, span);
        Converted::Value(self.value_of_part(attribute, part))
    }

    fn value_of_part(&mut self, attribute: &Attribute, part: &str) -> String {
        match part.len() == attribute.value.len() {
            true => self.value(attribute),
            false => self.part_of(attribute, part),
        }
    }

    /// Warns once that parameters and properties share their names in the draft.
    fn warn_of_parameters(&mut self, property: &Attribute) {
        let to = self.to;
        self.once("parameters", |sink| {
            sink.warning(codes::OTHER_OVERRIDE, &property.value.span, |d| {
                d.message(format!("job parameters override the properties of the same name in the dialect `{to}`"))
                    .label("this property, and all others")
                    .help("do not pass parameters that have the name of a property, unless they are meant to set it")
            });
        });
    }

    /// Returns the job properties that expressions require, and reports those that would change another property.
    pub(super) fn wanted_properties(&mut self, of_job: &[(String, String)]) -> Vec<(String, String)> {
        let wanted = std::mem::take(&mut self.wanted);
        let mut added = Vec::new();
        let of_job: HashMap<&str, &str> = of_job
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        for (name, Wanted { value, span }) in &wanted {
            match of_job.get(name.as_str()) {
                None => added.push((name.clone(), value.clone())),
                Some(own) if own != value => {
                    self.no_property(
                        span,
                        format!("the job has a property {} too", quoted(name)),
                        |d| {
                            d.label("in the draft, it is the value if there is no parameter")
                                .help("give the property of the job another name")
                        },
                    );
                }
                Some(_) => {}
            }
        }
        for Inner { name, value, span } in std::mem::take(&mut self.inner) {
            let Some(wanted) = wanted.get(&name).filter(|wanted| wanted.value != value) else {
                continue;
            };
            self.no_property(
                &span,
                format!("the name {} is also that of a parameter", quoted(&name)),
                |d| {
                    d.label("the job gets a property of this name, which takes precedence")
                        .related(wanted.span.clone(), "the parameter is used here")
                        .help("give the property another name")
                },
            );
        }
        for (artifact, span, declared) in std::mem::take(&mut self.seen) {
            for name in declared.iter().filter(|name| wanted.contains_key(*name)) {
                self.warn_of_leak(&artifact, name, &span);
            }
        }
        added
    }

    /// Reports declared properties that the draft passes to an artifact although they are not written on it.
    pub(super) fn check_leaks(&mut self, reference: &Attribute, own: &[&str], in_partition: bool) {
        let name = reference.value.value.as_str();
        let declared = self.artifacts.properties(name).unwrap_or_default();
        let mut others = Vec::new();
        for field in declared
            .into_iter()
            .filter(|field| !own.contains(&field.name.as_str()))
        {
            let plan = self.plan.as_ref().filter(|_| in_partition);
            if self.found(&field.name).is_some()
                || plan.is_some_and(|plan| plan.names.contains_key(&field.name))
            {
                self.warn_of_leak(name, &field.name, &reference.value.span);
            } else {
                others.push(field.name);
            }
        }
        self.seen
            .push((name.to_owned(), reference.value.span.clone(), others));
    }

    fn warn_of_leak(&mut self, artifact: &str, name: &str, span: &Span) {
        self.sink.warning(codes::OTHER_OVERRIDE, span, |d| {
            d.message(format!(
                "{} gets the property {} in the draft",
                quoted(artifact),
                quoted(name)
            ))
            .label("an enclosing element has it, and artifacts see outer properties")
            .help("give one of the properties another name")
        });
    }
}
