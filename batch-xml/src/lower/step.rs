//! The step element, and transition elements.

use super::Lowering;
use super::chunk::SKIP_POLICY;
use crate::codes;
use crate::diagnostics::quoted;
use crate::model::{ElementKind, Step, StepBody, Transition, TransitionKind};
use crate::outline::{Node, Reference};
use crate::pattern::Pattern;
use crate::schema;
use crate::span::Spanned;
use crate::symbols;
use crate::tree::Element;

impl<'a> Lowering<'a> {
    /// Returns `None` for an abstract step too: it is never executed, and only its id matters.
    // Spec: JSL-STEP-01, JSL-STEP-14
    pub(super) fn step(&mut self, element: &'a Element) -> Option<Step> {
        self.scope.enter(element);
        let is_abstract = self.fixed(|lowering| lowering.boolean(element, "abstract", false));
        let node = self.node(element, ElementKind::Step, is_abstract);
        let step = match node {
            Some(node) if is_abstract => {
                self.outline.nodes.push(node);
                None
            }
            node => self.concrete_step(element, node),
        };
        self.scope.leave();
        step
    }

    // Spec: JSL-STEP-17, PART-01, PART-07
    fn concrete_step(&mut self, element: &'a Element, node: Option<Node>) -> Option<Step> {
        let lacks_parent = self.lacks_parent(element);
        let start_limit = self.integer(element, "start-limit", 0).unwrap_or(0);
        let allow_start_if_complete = self.boolean(element, "allow-start-if-complete", false);
        self.check_next_once(element);
        self.check_targets_exist(element);
        let id = node.as_ref().map(|node| node.id.value.clone());
        let next = node.as_ref().and_then(|node| node.next.clone());
        let transitions = self.transitions(element, node);
        let ((properties, listeners, body), partition) =
            self.partitioned(element, id.as_deref(), |lowering| {
                let properties = lowering.scope.own();
                let listeners = lowering.listeners(element);
                (properties, listeners, lowering.body(element, lacks_parent))
            });
        let (id, transitions) = transitions?;
        Some(Step {
            id,
            start_limit,
            allow_start_if_complete,
            next,
            properties,
            listeners,
            body: body?,
            transitions,
            partition,
            span: element.tag.clone(),
        })
    }

    /// Adds the element and its successors to the outline, and returns its transition elements and its id.
    pub(super) fn transitions(
        &mut self,
        element: &Element,
        node: Option<Node>,
    ) -> Option<(Spanned<String>, Vec<Transition>)> {
        let transitions: Vec<Transition> = element
            .children
            .iter()
            .filter_map(|child| self.transition(child))
            .collect();
        self.warn_about_shadowed(&transitions, element);
        let node = Node {
            targets: references(&transitions),
            restarts_here: transitions
                .iter()
                .any(|transition| matches!(transition.kind, TransitionKind::Stop { restart: None, .. })),
            ..node?
        };
        let id = node.id.clone();
        self.outline.nodes.push(node);
        Some((id, transitions))
    }

    /// Warns about transitions that are never taken, because another one always precedes them.
    // Spec: SEQ-08, SEQ-17, SEQ-18, D-18, D-19
    fn warn_about_shadowed(&mut self, transitions: &[Transition], element: &Element) {
        let dialect = self.scope.dialect;
        let literal: Vec<&Transition> = transitions
            .iter()
            .filter(|transition| !symbols::has_symbols(dialect, transition.on.span.text()))
            .collect();
        let patterns: Vec<&Pattern> = literal.iter().map(|transition| &transition.on.value).collect();
        for (index, before) in dialect.shadowed(&patterns) {
            self.warning(codes::SHADOWED, &literal[index].on.span, |d| {
                d.message(format!(
                    "the transition on {} is never taken",
                    quoted(patterns[index])
                ))
                .label("another transition matches everything that this one matches")
                .related(
                    literal[before].on.span.clone(),
                    "this transition is more specific or earlier",
                )
            });
        }
        if element.name.value != "step" || element.child("next").is_some() {
            return;
        }
        let everything = dialect.pattern("*");
        let all = literal
            .iter()
            .find(|transition| transition.on.covers(&everything));
        if let (Some(all), Some(next)) = (all, element.attribute("next")) {
            self.warning(codes::SHADOWED, &next.value.span, |d| {
                d.message("the attribute `next` has no effect")
                    .label("transition elements are tried first")
                    .related(all.on.span.clone(), "this one always matches")
            });
        }
    }

    // Spec: JSL-STEP-16
    fn body(&mut self, element: &'a Element, lacks_parent: bool) -> Option<StepBody> {
        let chunk = element.child("chunk");
        let batchlet = element.child("batchlet");
        if let (Some(chunk), Some(batchlet)) = (chunk, batchlet) {
            let chunk_first = chunk.tag.range().start < batchlet.tag.range().start;
            let (first, second) = if chunk_first {
                (chunk, batchlet)
            } else {
                (batchlet, chunk)
            };
            self.error(codes::STEP_BODY, &second.name.span, |d| {
                d.message("a step cannot contain both `chunk` and `batchlet`")
                    .label("remove one of them")
                    .related(first.name.span.clone(), "the other one is here")
            });
        }
        match (chunk, batchlet) {
            (Some(chunk), _) => self
                .chunk(chunk, names_skip_policy(element))
                .map(|chunk| StepBody::Chunk(Box::new(chunk))),
            (None, Some(batchlet)) => self.artifact(batchlet).map(StepBody::Batchlet),
            (None, None) => {
                // An unknown element may be a typo, and has been reported.
                if !lacks_parent && !schema::has_unknown_child(self.scope.dialect, element) {
                    self.error(codes::STEP_BODY, &element.name.span, |d| {
                        d.message("a step requires a `chunk` or a `batchlet`")
                            .label("contains neither")
                    });
                }
                None
            }
        }
    }

    // Spec: SEQ-07
    fn check_next_once(&mut self, element: &Element) {
        if self.scope.dialect.rules().next_beside_transitions {
            return;
        }
        if let (Some(attribute), Some(child)) = (element.attribute("next"), element.child("next")) {
            self.error(codes::NEXT_TWICE, &child.name.span, |d| {
                d.message("a step cannot have both a `next` attribute and `next` elements")
                    .label("not allowed with the attribute")
                    .related(attribute.name.span.clone(), "the attribute is here")
                    .help("replace the attribute by `<next on=\"*\" to=\"..\"/>`")
            });
        }
    }

    /// Warns about properties that reach no artifact.
    // Spec: JSL-STEPPROP-04, JSL-CHPROP-07, D-35
    fn check_targets_exist(&mut self, step: &Element) {
        let (None, Some(batchlet)) = (step.child("chunk"), step.child("batchlet")) else {
            return;
        };
        let of_partition = step
            .child("partition")
            .and_then(|partition| partition.child("properties"));
        let lists = step.child("properties").into_iter().chain(of_partition);
        for target in lists
            .flat_map(|list| list.children("property"))
            .filter_map(|property| property.attribute("target"))
        {
            self.warning(codes::TARGET_WITHOUT_CHUNK, &target.name.span, |d| {
                d.message("a property with a target reaches no artifact of this step")
                    .label("has no effect without a chunk")
                    .related(batchlet.name.span.clone(), "the step contains a batchlet")
                    .help("remove `target`, so that the property reaches the batchlet")
            });
        }
    }

    // Spec: SEQ-05, SEQ-06, TERM-04, TERM-05, TERM-09
    fn transition(&mut self, element: &Element) -> Option<Transition> {
        let exit_status = |lowering: &mut Self| lowering.text_or_written(element, "exit-status");
        let kind = match element.name.value.as_str() {
            "next" => {
                let to = self.fixed(|lowering| lowering.required(element, "to"));
                to.map(|to| TransitionKind::Next { to })
            }
            "fail" => Some(TransitionKind::Fail {
                exit_status: exit_status(self),
            }),
            "end" => Some(TransitionKind::End {
                exit_status: exit_status(self),
            }),
            "stop" => Some(TransitionKind::Stop {
                exit_status: exit_status(self),
                restart: self.fixed(|lowering| lowering.named(element, "restart")),
            }),
            _ => return None,
        };
        let on = self.required_value(element, "on")?.text;
        Some(Transition {
            kind: kind?,
            on: Spanned::new(self.scope.dialect.pattern(on.value), on.span),
            span: element.tag.clone(),
        })
    }
}

/// Returns the ids in transitions.
fn references(transitions: &[Transition]) -> Vec<Reference> {
    let reference = |attribute, id: &Spanned<String>| Reference {
        attribute,
        id: id.clone(),
    };
    let named = |transition: &Transition| match &transition.kind {
        TransitionKind::Next { to } => Some(reference("to", to)),
        TransitionKind::Stop { restart, .. } => restart.as_ref().map(|id| reference("restart", id)),
        TransitionKind::Fail { .. } | TransitionKind::End { .. } => None,
    };
    transitions.iter().filter_map(named).collect()
}

/// Returns whether a step names a skip policy, which decides in place of exception classes.
fn names_skip_policy(step: &Element) -> bool {
    let names_it = |property: &Element| {
        let name = property.attribute("name");
        name.is_some_and(|name| name.value.value == SKIP_POLICY)
    };
    let list = step.child("properties");
    list.is_some_and(|list| list.children("property").any(names_it))
}
