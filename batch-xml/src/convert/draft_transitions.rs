//! Transition elements of Jakarta Batch as those of the draft, of which the most specific one is taken.

use super::draft::{Place, ToDraft};
use super::jakarta_transitions::transitions;
use crate::codes;
use crate::diagnostics::quoted;
use crate::pattern::Pattern;
use crate::span::Span;
use crate::symbols;
use crate::tree::{Attribute, Element};
use crate::write::Node;

/// Maximum number of patterns with wildcards that are compared with each other.
const MAX_COMPARED: usize = 64;

/// The successors of an element in the draft.
pub(super) struct Successors {
    pub(super) next: Option<String>,
    pub(super) elements: Vec<Node>,
}

/// A transition element of one pattern.
struct Transition<'a> {
    element: &'a Element,
    on: Pattern,
    span: Span,
}

impl<'a> ToDraft<'a> {
    /// Converts the transition elements of a step or decision, and its attribute `next`. `first` is the first element of the job.
    pub(super) fn transitions(
        &mut self,
        element: &'a Element,
        place: Place,
        first: &'a Element,
    ) -> Successors {
        let all: Vec<&'a Element> = transitions(element).collect();
        let is_decision = element.name.value == "decision";
        if !is_decision {
            self.report_status(&all);
        }
        let symbolic = |on: &&Attribute| symbols::has_symbols(self.from, &on.value);
        let symbolic = all
            .iter()
            .filter_map(|found| found.attribute("on"))
            .find(symbolic);
        let (mut nodes, patterns) = match symbolic {
            Some(on) => {
                if all.len() > 1 || on.value.contains('*') {
                    self.warn_of_order(on);
                }
                let nodes = all.iter().filter_map(|transition| {
                    let on = self.value(transition.attribute("on")?);
                    Some(self.transition(transition, &on, first))
                });
                (nodes.collect(), Vec::new())
            }
            None => {
                let kept = self.literal_transitions(&all);
                let nodes = kept
                    .iter()
                    .map(|kept| self.transition(kept.element, &kept.on, first));
                let nodes: Vec<Node> = nodes.collect();
                (nodes, kept.into_iter().map(|kept| kept.on).collect())
            }
        };
        let next = element.attribute("next").map(|next| self.value(next));
        let everything = self.to.pattern("*");
        let is_complete = patterns.iter().any(|on| on.covers(&everything));
        let leads_on = element.child("next").is_some();
        if is_complete || !leads_on && !is_decision {
            let next = next.filter(|_| !is_complete);
            return Successors {
                next,
                elements: nodes,
            };
        }
        self.unmatched((element, is_decision), place, next, &patterns, &mut nodes);
        Successors {
            next: None,
            elements: nodes,
        }
    }

    /// Writes what follows if nothing matches, where the draft would fail.
    fn unmatched(
        &mut self,
        (element, is_decision): (&Element, bool),
        place: Place,
        next: Option<String>,
        patterns: &[Pattern],
        nodes: &mut Vec<Node>,
    ) {
        let last = match next {
            Some(next) => Node::new("next").with("on", "*").with("to", next),
            None if place == Place::Job => Node::new("end").with("on", "*"),
            None => {
                let to = self.to;
                self.sink.error(codes::NO_TRANSITION, &element.name.span, |d| {
                    d.message(format!(
                        "the job fails if no transition matches in the dialect `{to}`"
                    ))
                    .label("without a match, the flow ends here")
                    .help(
                        "add a last step to the flow, and a `next` element with `on=\"*\"` that leads to it",
                    )
                });
                return;
            }
        };
        // A failed step ends the job in both dialects, unless a transition element matches.
        if !is_decision && !patterns.iter().any(|on| on.matches("FAILED")) {
            nodes.push(Node::new("fail").with("on", "FAILED"));
            self.sink
                .warning(codes::OTHER_TRANSITION, &element.name.span, |d| {
                    d.message("a step that fails with an exit status of its own does not end the job")
                        .label("the transition on `*` that is added matches it")
                        .help("add a `fail` element for each exit status with which the step fails")
                });
        }
        nodes.push(last);
    }

    fn transition(&mut self, transition: &'a Element, on: &str, first: &'a Element) -> Node {
        let mut node = Node::new(transition.name.value.as_str()).with("on", on);
        self.copy(transition, &["to", "exit-status", "restart"], &mut node);
        let differs =
            self.from.restart_resumes_at_stopped_element() != self.to.restart_resumes_at_stopped_element();
        if transition.name.value == "stop" && transition.attribute("restart").is_none() && differs {
            self.copy_id(first, &mut node);
        }
        node
    }

    fn copy_id(&mut self, first: &Element, node: &mut Node) {
        if let Some(id) = first.attribute("id") {
            node.set("restart", self.value(id));
        }
    }

    /// Returns the transitions that are taken, each with one pattern of the draft; reports those that the draft would take in another
    /// order.
    fn literal_transitions(&mut self, all: &[&'a Element]) -> Vec<Transition<'a>> {
        let mut kept: Vec<Transition<'a>> = Vec::new();
        // The positions in `kept` of patterns with wildcards.
        let mut earlier: Vec<usize> = Vec::new();
        let mut wild: Vec<Pattern> = Vec::new();
        for element in all {
            let Some(on) = element.attribute("on") else {
                continue;
            };
            let pattern = self.from.pattern(on.value.value.as_str());
            // It is never taken.
            if wild.iter().any(|before| before.covers(&pattern)) {
                continue;
            }
            let Some(texts) = variants(&on.value) else {
                let to = self.to;
                self.sink.error(codes::NO_TRANSITION, &on.value.span, |d| {
                    d.message(format!(
                        "the pattern {} cannot be written in the dialect `{to}`",
                        quoted(&on.value)
                    ))
                    .label("there, each `*` stands for at least one character")
                    .help("write a transition for each case")
                });
                continue;
            };
            for text in texts {
                let transition = Transition {
                    element,
                    on: self.to.pattern(text),
                    span: on.value.span.clone(),
                };
                let before = earlier.iter().map(|position| &kept[*position]);
                self.check_order(before, &transition);
                if is_wild(&transition.on) {
                    earlier.push(kept.len());
                }
                kept.push(transition);
            }
            if is_wild(&on.value) {
                wild.push(pattern);
                if wild.len() > MAX_COMPARED {
                    self.too_many(on);
                    break;
                }
            }
        }
        kept
    }

    fn too_many(&mut self, on: &Attribute) {
        self.sink.error(codes::CONVERSION_LIMIT, &on.value.span, |d| {
            d.message(format!(
                "an element has more than {MAX_COMPARED} patterns with wildcards"
            ))
            .label("the rest is not converted")
        });
    }

    /// Reports a transition that the draft takes before an earlier one, where both match.
    fn check_order<'t>(
        &mut self,
        mut earlier: impl Iterator<Item = &'t Transition<'a>>,
        later: &Transition<'a>,
    ) where
        'a: 't,
    {
        let place = later.on.specificity();
        let precedes = |earlier: &&Transition<'_>| {
            !earlier.span.is(&later.span)
                && place < earlier.on.specificity()
                && earlier.on.overlaps(&later.on)
        };
        let Some(earlier) = earlier.find(precedes) else {
            return;
        };
        let to = self.to;
        self.sink.error(codes::NO_TRANSITION, &later.span, |d| {
            d.message(format!(
                "{} is taken before {} in the dialect `{to}`",
                quoted(&later.on),
                quoted(&earlier.on)
            ))
            .label("more specific, and an exit status can match both")
            .related(earlier.span.clone(), "the first one in the order of the document")
            .help("write patterns of which only one matches")
        });
    }

    fn warn_of_order(&mut self, on: &Attribute) {
        let to = self.to;
        self.sink.warning(codes::OTHER_TRANSITION, &on.value.span, |d| {
            d.message(format!(
                "the most specific transition is taken in the dialect `{to}`, and each `*` stands for at least one character"
            ))
            .label("not known before substitution")
            .help("check the transitions with the values that the job is started with")
        });
    }

    /// Warns once that the status of the step is set.
    fn report_status(&mut self, all: &[&Element]) {
        let (from, to) = (self.from, self.to);
        if from.termination_sets_step_status() == to.termination_sets_step_status() {
            return;
        }
        if let Some(first) = all.iter().find(|transition| transition.name.value != "next") {
            self.once("status", |sink| {
                sink.warning(codes::OTHER_TRANSITION, &first.name.span, |d| {
                    d.message(format!(
                        "`stop`, `fail` and `end` set the batch status of their step in the dialect `{to}`"
                    ))
                    .label("a step that is stopped or failed is executed again after a restart")
                    .help("name the element after the step by `restart` if it must not be executed again")
                });
            });
        }
    }
}

fn is_wild(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// Returns the patterns of the draft that match what a pattern of Jakarta Batch matches: there `*` may stand for nothing. `None` if
/// that takes more than two.
fn variants(pattern: &str) -> Option<Vec<String>> {
    let (mut with, mut without) = (String::new(), String::new());
    let mut may_be_empty = 0;
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let is_wild = |c: char| matches!(c, '*' | '?');
        if !is_wild(c) {
            with.push(c);
            without.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let run = &rest[..rest.find(|c| !is_wild(c)).unwrap_or(rest.len())];
        rest = &rest[run.len()..];
        let single = run.matches('?').count();
        if run.len() == single {
            with.push_str(run);
            without.push_str(run);
            continue;
        }
        // An exit status is never empty.
        if single == 0 && run.len() < pattern.len() {
            may_be_empty += 1;
            with.push('*');
            continue;
        }
        let run = "?".repeat(single.saturating_sub(1)) + "*";
        with.push_str(&run);
        without.push_str(&run);
    }
    match may_be_empty {
        0 => Some(vec![with]),
        1 => Some(vec![without, with]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_same_in_the_draft() {
        let check = |pattern: &str, expect: Option<&[&str]>| {
            let found = variants(pattern);
            let found: Option<Vec<&str>> = found
                .as_ref()
                .map(|found| found.iter().map(String::as_str).collect());
            assert_eq!(found.as_deref(), expect, "{pattern}");
        };
        check("A", Some(&["A"]));
        check("*", Some(&["*"]));
        check("**", Some(&["*"]));
        check("A*", Some(&["A", "A*"]));
        check("A?*", Some(&["A*"]));
        check("A*??B", Some(&["A?*B"]));
        check("?*", Some(&["*"]));
        check("*ED?", Some(&["ED?", "*ED?"]));
        check("*A*", None);
    }
}
