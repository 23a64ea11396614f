//! Transition elements of the draft as those of Jakarta Batch, which are tried in the order of the document.

use super::jakarta::ToJakarta;
use super::jakarta_values::PlanUse;
use crate::codes;
use crate::pattern::Pattern;
use crate::symbols::{self, Piece};
use crate::tree::{Attribute, Element};
use crate::write::Node;

/// Returns the transition elements of a step or decision.
pub(super) fn transitions(element: &Element) -> impl Iterator<Item = &Element> {
    let is_transition =
        |child: &&Element| matches!(child.name.value.as_str(), "next" | "fail" | "end" | "stop");
    element.children.iter().filter(is_transition)
}

/// Writes each `*` of a literal text, which stands for at least one character, so that it may stand for none.
fn with_open_stars(text: &str) -> String {
    text.replace('*', "?*")
}

impl<'a> ToJakarta<'a> {
    /// Converts the transition elements of a step or decision. `top` is the element of the job that contains it.
    pub(super) fn transitions(&mut self, element: &'a Element, top: &'a Element) -> Vec<Node> {
        let mut all: Vec<&Element> = transitions(element).collect();
        let is_symbolic = |transition: &&&Element| {
            let on = transition.attribute("on");
            on.is_some_and(|on| symbols::has_symbols(self.from, &on.value))
        };
        let symbolic = all
            .iter()
            .find(is_symbolic)
            .and_then(|found| found.attribute("on"));
        match symbolic {
            Some(on) if all.len() > 1 => self.warn_of_order(on),
            Some(_) => {}
            None => all.sort_by_key(|transition| self.pattern_of(transition).map(|on| on.specificity())),
        }
        let everything = self.from.pattern("*");
        let is_complete = all
            .iter()
            .filter_map(|transition| self.pattern_of(transition))
            .any(|on| on.covers(&everything));
        let is_decision = element.name.value == "decision";
        let leads_on = is_decision || element.child("next").is_some();
        let mut nodes: Vec<Node> = all
            .iter()
            .map(|transition| self.transition(transition, top))
            .collect();
        if leads_on && !is_complete {
            nodes.push(Node::new("fail").with("on", "*"));
        }
        if !is_decision {
            self.report_status(&all);
        }
        nodes
    }

    fn pattern_of(&self, transition: &Element) -> Option<Pattern> {
        let on = &transition.attribute("on")?.value;
        (!symbols::has_symbols(self.from, on)).then(|| self.from.pattern(on.value.as_str()))
    }

    fn transition(&mut self, transition: &'a Element, top: &'a Element) -> Node {
        let mut node = Node::new(transition.name.value.as_str());
        if let Some(on) = transition.attribute("on") {
            node.set("on", self.pattern(on));
        }
        for name in ["to", "exit-status", "restart"] {
            if let Some(attribute) = transition.attribute(name) {
                node.set(name, self.attribute(attribute, PlanUse::Nothing));
            }
        }
        if transition.name.value == "stop" && transition.attribute("restart").is_none() {
            self.restart(transition, top, &mut node);
        }
        node
    }

    /// Writes the element at which the draft resumes.
    fn restart(&mut self, stop: &Element, top: &'a Element, node: &mut Node) {
        let (from, to) = self.dialects();
        if from.restart_resumes_at_stopped_element() == to.restart_resumes_at_stopped_element() {
            return;
        }
        if top.name.value == "decision" {
            self.sink.error(codes::NO_TRANSITION, &stop.name.span, |d| {
                d.message(format!(
                    "a restart cannot begin with a decision in the dialect `{to}`"
                ))
                .label("the draft resumes at this decision")
                .help("name a step, flow or split by `restart`")
            });
            return;
        }
        if let Some(id) = top.attribute("id") {
            // Its own properties are not visible from here if it is not the element itself.
            let levels = self.levels.split_off(self.levels.len().min(1));
            node.set("restart", self.attribute(id, PlanUse::Nothing));
            self.levels.extend(levels);
        }
    }

    /// Converts a pattern.
    fn pattern(&mut self, on: &Attribute) -> String {
        let (from, to) = self.dialects();
        if on.value.value == "*" || from.pattern("*") == to.pattern("*") {
            return on.value.value.clone();
        }
        if !symbols::has_symbols(from, &on.value) {
            return with_open_stars(&self.attribute(on, PlanUse::Nothing));
        }
        let view = self.view(PlanUse::Nothing);
        let mut text = String::new();
        for piece in symbols::pieces(from, &on.value) {
            match piece {
                Piece::Literal(literal) => text.push_str(&with_open_stars(literal)),
                Piece::Symbol(name, range) => {
                    text.push_str(&self.symbol(name.name, &symbols::place(on, range), view).text);
                }
                Piece::Malformed(range, mistake) => {
                    symbols::report(self.from, on, range, &mistake, self.sink);
                }
            }
        }
        text
    }

    fn warn_of_order(&mut self, on: &Attribute) {
        let to = self.to;
        self.sink.warning(codes::OTHER_TRANSITION, &on.value.span, |d| {
            d.message(format!(
                "the first transition that matches is taken in the dialect `{to}`"
            ))
            .label("the draft takes the most specific one, which is not known before substitution")
            .help("order the transitions from the most specific to the least")
        });
    }

    /// Warns once that the status of the step is not set.
    fn report_status(&mut self, all: &[&Element]) {
        let (from, to) = self.dialects();
        if from.termination_sets_step_status() == to.termination_sets_step_status() {
            return;
        }
        let sets = |transition: &&&Element| matches!(transition.name.value.as_str(), "stop" | "fail");
        if let Some(first) = all.iter().find(sets) {
            self.once("status", |sink| {
                sink.warning(codes::OTHER_TRANSITION, &first.name.span, |d| {
                    d.message(format!(
                        "`stop` and `fail` leave the status of their step as it is in the dialect `{to}`"
                    ))
                    .label("a completed step is not executed again after a restart")
                    .help("add `allow-start-if-complete=\"true\"` to a step that has to be executed again")
                });
            });
        }
    }
}
