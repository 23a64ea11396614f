//! Lists of properties for Jakarta Batch: of the job, of steps, and of each artifact, which sees no others.

use std::collections::HashSet;

use super::jakarta::ToJakarta;
use super::jakarta_values::{Coverage, Definition, Expression, PlanUse, Position, View, parameter};
use super::{DeclaredProperty, RUNTIME_PREFIX, list_of, names};
use crate::codes;
use crate::diagnostics::quoted;
use crate::model::Target;
use crate::span::Span;
use crate::tree::{Attribute, Element};
use crate::write::Node;

/// A list that is being written. Its properties are ordered so that each sees those that it refers to.
pub(super) struct List {
    /// The outermost level whose properties are written in this list.
    from_level: usize,
    /// True for the list of a job or step, which its context shows.
    is_of_context: bool,
    entries: Vec<(String, String)>,
    written: HashSet<String>,
}

impl List {
    pub(super) fn new(from_level: usize, is_of_context: bool) -> List {
        List {
            from_level,
            is_of_context,
            entries: Vec::new(),
            written: HashSet::new(),
        }
    }
}

impl<'a> ToJakarta<'a> {
    /// Returns whether the list that is being written contains a definition.
    pub(super) fn is_in_list(&self, position: Position) -> bool {
        let list = self.list.as_ref();
        list.is_some_and(|list| position.0 >= list.from_level || self.at(position).target.is_some())
    }

    /// Writes a definition in the list, after those that it refers to.
    pub(super) fn emit(&mut self, position: Position, view: View) {
        let Definition { name, value, .. } = self.at(position);
        if self.is_written(name) {
            return;
        }
        let text = self.inner(position, view);
        let is_of_context = self.list.as_ref().is_some_and(|list| list.is_of_context);
        let base = match is_of_context && name.starts_with(RUNTIME_PREFIX) {
            // The runtime itself looks for the job parameter.
            true => Expression::plain(text),
            false => self.overridable(name, text, &value.value.span),
        };
        let base = match is_of_context {
            true => base,
            false => self.in_partition(name, self.coverage(name, view, true), base, &value.value.span),
        };
        self.push(name, base.text, &value.value.span);
    }

    fn is_written(&self, name: &str) -> bool {
        self.list.as_ref().is_some_and(|list| list.written.contains(name))
    }

    fn push(&mut self, name: &str, value: String, span: &Span) {
        let Some(left) = self.bytes_left.checked_sub(name.len() + value.len()) else {
            return self.too_large(span);
        };
        self.bytes_left = left;
        if let Some(list) = self.list.as_mut().filter(|list| !list.written.contains(name)) {
            list.written.insert(name.to_owned());
            list.entries.push((name.to_owned(), value));
        }
    }

    fn taken_list(&mut self) -> Option<Node> {
        list_of(self.list.take()?.entries)
    }

    /// Returns the list of the innermost element, a job or step.
    pub(super) fn context_list(&mut self, plan: PlanUse) -> Option<Node> {
        let level = self.levels.len() - 1;
        let view = self.view(plan);
        self.list = Some(List::new(level, true));
        for index in 0..self.levels[level].definitions.len() {
            let own = self.at((level, index));
            if own.target.is_some() {
                continue;
            }
            let named = self
                .plan
                .as_ref()
                .is_some_and(|plan| plan.defines(own.name, None));
            if named && plan != PlanUse::Nothing {
                self.sink
                    .warning(codes::OTHER_OVERRIDE, &own.value.value.span, |d| {
                        d.message(format!(
                            "partitions no longer override the property {} of the step",
                            quoted(own.name)
                        ))
                        .label("the step context of a partition shows this value")
                        .help("artifacts in the partitions get the value of their partition")
                    });
            }
            self.entry(own.name, view, &own.value.value.span);
        }
        self.taken_list()
    }

    /// Writes a property that is visible: its value, or a reference to the one outside.
    fn entry(&mut self, name: &str, view: View, span: &Span) {
        match self.find(name, view, &[]) {
            _ if self.is_full || self.is_written(name) => {}
            Some(found) if self.is_in_list(found) => self.emit(found, view),
            Some(found) => {
                self.check_name(name, span);
                let base = self.reference_to(found, span, view);
                let is_of_context = self.list.as_ref().is_some_and(|list| list.is_of_context);
                let base = match is_of_context {
                    true => base,
                    false => self.in_partition(name, self.coverage(name, view, true), base, span),
                };
                self.push(name, base.text, span);
            }
            None => {}
        }
    }

    /// Returns the element with the name of its artifact and all properties that reach it. Its own level has been entered.
    pub(super) fn artifact_here(
        &mut self,
        node: Node,
        (element, reference): (&'a Element, &str),
        from_level: usize,
        plan: PlanUse,
    ) -> Node {
        let reference = element.attribute(reference);
        let list = self.artifact_list(reference, from_level, None, plan);
        let reference = reference.map(|reference| self.attribute(reference, plan));
        node.with_some("ref", reference).and(list)
    }

    /// Returns an element that names an artifact, with all properties that reach it.
    pub(super) fn artifact(&mut self, name: &str, element: &'a Element, plan: PlanUse) -> Node {
        self.artifact_from(name, element, self.levels.len(), plan)
    }

    pub(super) fn artifact_from(
        &mut self,
        name: &str,
        element: &'a Element,
        from_level: usize,
        plan: PlanUse,
    ) -> Node {
        self.enter(element, true);
        let node = self.artifact_here(Node::new(name), (element, "ref"), from_level, plan);
        self.leave();
        node
    }

    /// Returns the list of an artifact: the properties of the levels from `from_level` on, and those outside of them that it declares.
    pub(super) fn artifact_list(
        &mut self,
        reference: Option<&Attribute>,
        from_level: usize,
        target: Option<Target>,
        plan: PlanUse,
    ) -> Option<Node> {
        let reference = reference?;
        let (name, span) = (reference.value.value.as_str(), &reference.value.span);
        let view = View {
            target,
            ..self.view(plan)
        };
        let declared = self.artifacts.properties(name);
        if declared.is_none() {
            self.report_not_linked(name, span);
        }
        self.list = Some(List::new(from_level, false));
        let own_level = self.levels.len() - 1;
        let first = match (&declared, target) {
            (None, _) => 0,
            // Those outside of it only if it declares them.
            (Some(_), None) => own_level,
            (Some(_), Some(_)) => 1,
        };
        for (level, definition) in self.visible(target, first) {
            // Those that are written for the artifact itself are kept, whether it declares them or not.
            let is_own = target.is_none() && level == own_level || definition.target.is_some();
            let is_passed = declared.is_none() && !definition.name.starts_with(RUNTIME_PREFIX);
            if self.is_full {
                break;
            }
            if is_own || is_passed {
                self.entry(definition.name, view, &definition.value.value.span);
            }
        }
        if declared.is_none() && !self.is_full {
            self.planned_entries(view, span);
        }
        let mut lost = Vec::new();
        for field in declared.into_iter().flatten() {
            self.declared(&field, view, span, &mut lost);
        }
        self.report_lost(name, span, &lost);
        if plan == PlanUse::Named {
            self.warn_of_step_thread(span);
        }
        self.taken_list()
    }

    /// Returns the definitions that an artifact sees from a level on, with their levels.
    fn visible(&self, target: Option<Target>, first: usize) -> Vec<(usize, Definition<'a>)> {
        if self.is_full {
            return Vec::new();
        }
        let levels = self.levels.iter().enumerate().skip(first);
        let all = levels
            .flat_map(|(level, properties)| properties.definitions.iter().map(move |own| (level, *own)));
        all.filter(|(_, own)| own.target.is_none() || own.target == target)
            .collect()
    }

    /// Writes the properties that only the plan defines.
    fn planned_entries(&mut self, view: View, span: &Span) {
        let plan = self.plan.as_ref().filter(|_| view.plan != PlanUse::Nothing);
        let planned: Vec<String> = plan.map_or(Vec::new(), |plan| plan.names(view.target));
        for name in &planned {
            if self.is_written(name) || self.find(name, view, &[]).is_some() {
                continue;
            }
            let base = Expression::plain(parameter(name));
            let text = self
                .in_partition(name, self.coverage(name, view, false), base, span)
                .text;
            self.push(name, text, span);
        }
    }

    /// Writes a declared property. Adds its name to `lost` if a job parameter can no longer set it.
    fn declared(&mut self, field: &DeclaredProperty, view: View, span: &Span, lost: &mut Vec<String>) {
        let name = field.name.as_str();
        if self.find(name, view, &[]).is_some() {
            return self.entry(name, view, span);
        }
        let coverage = self.coverage(name, view, false);
        let default = field.default.as_deref();
        let is_expressible = default.is_none_or(|default| !default.contains(';') && !default.contains("#{"));
        let has_value = is_expressible && (default.is_some() || !field.is_optional);
        let is_computed = self.plan.as_ref().is_some_and(|plan| plan.is_computed);
        match coverage {
            // Without a value an expression is empty, which is not the same as no property.
            Coverage::Never if !has_value => return lost.push(field.name.clone()),
            Coverage::Perhaps if !has_value && is_computed => return lost.push(field.name.clone()),
            Coverage::Perhaps if !has_value => self.warn_of_empty(name, span),
            Coverage::Never | Coverage::Perhaps | Coverage::Always => {}
        }
        self.check_name(name, span);
        let base = match default.filter(|_| is_expressible) {
            Some(default) => self.overridable(name, default.to_owned(), span),
            None => Expression::plain(parameter(name)),
        };
        let text = self.in_partition(name, coverage, base, span).text;
        self.push(name, text, span);
    }

    /// Warns of a step listener that gets values of partitions, which do not exist on the thread of the step.
    fn warn_of_step_thread(&mut self, span: &Span) {
        let mut values = self.list.iter().flat_map(|list| &list.entries);
        let Some((name, _)) = values.find(|(_, value)| value.contains("#{partitionPlan[")) else {
            return;
        };
        self.sink.warning(codes::OTHER_OVERRIDE, span, |d| {
            d.message(format!(
                "the listener has {} only in the partitions",
                quoted(name)
            ))
            .label("on the thread of the step, the draft takes the value from outside of them")
            .help("give the property of the partitions another name if a step listener uses it")
        });
    }

    fn warn_of_empty(&mut self, name: &str, span: &Span) {
        self.sink.warning(codes::OTHER_OVERRIDE, span, |d| {
            d.message(format!(
                "{} is empty in partitions that have no value for it",
                quoted(name)
            ))
            .label("in the draft, it is not set there")
            .help(format!("give {} to every partition", quoted(name)))
        });
    }

    fn report_not_linked(&mut self, name: &str, span: &Span) {
        self.once(&format!("link {name}"), |sink| {
            sink.warning(codes::NOT_LINKED, span, |d| {
                d.message(format!("the artifact {} is not linked", quoted(name)))
                    .label("gets all properties that are visible here")
                    .help("convert with the program that contains the artifact, so that it gets only what it declares")
            });
        });
    }

    fn report_lost(&mut self, name: &str, span: &Span, lost: &[String]) {
        if lost.is_empty() {
            return;
        }
        let all = names(lost.iter().map(String::as_str));
        self.once(&format!("lost {name}"), |sink| {
            sink.warning(codes::OTHER_OVERRIDE, span, |d| {
                d.message(format!(
                    "job parameters and plans no longer set {all} of {}",
                    quoted(name)
                ))
                .label("nothing else sets them")
                .help("to set them, write `<property name=\"..\" value=\"#{jobParameters['..']}\"/>` here")
            });
        });
    }
}
