//! The step element.

use super::Lowering;
use crate::codes;
use crate::model::{Step, StepBody, Transition, TransitionKind};
use crate::outline::{Kind, Node, Reference};
use crate::schema;
use crate::span::Spanned;
use crate::tree::Element;

impl<'a> Lowering<'a> {
    /// `None` also for an abstract step, which is never executed: of it only the id matters.
    ///
    /// Spec: JSL-STEP-01, JSL-STEP-14
    pub(super) fn step(&mut self, element: &'a Element) -> Option<Step> {
        self.scope.enter(element, self.sink);
        let is_abstract = self.boolean(element, "abstract", false);
        let node = self.node(element, Kind::Step, is_abstract);
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

    /// Spec: JSL-STEP-17
    fn concrete_step(&mut self, element: &'a Element, node: Option<Node>) -> Option<Step> {
        let inherits = self.inherits(element);
        let start_limit = self.integer(element, "start-limit", 0).unwrap_or(0);
        let allow_start_if_complete = self.boolean(element, "allow-start-if-complete", false);
        let properties = self.scope.own(self.sink);
        let listeners = self.listeners(element);
        let body = self.body(element, inherits);
        if let Some(partition) = element.child("partition") {
            self.unsupported("partition", &partition.name.span);
        }
        self.check_next_once(element);
        let transitions: Vec<Transition> = element
            .children
            .iter()
            .filter_map(|child| self.transition(child))
            .collect();
        let node = Node {
            targets: references(&transitions),
            ..node?
        };
        let (id, next) = (node.id.clone(), node.next.clone());
        self.outline.nodes.push(node);
        let body = body?;
        Some(Step {
            id,
            start_limit,
            allow_start_if_complete,
            next,
            properties,
            listeners,
            body,
            transitions,
        })
    }

    /// Spec: JSL-STEP-16
    fn body(&mut self, element: &'a Element, inherits: bool) -> Option<StepBody> {
        let chunk = element.child("chunk");
        let batchlet = element.child("batchlet");
        if let (Some(chunk), Some(batchlet)) = (chunk, batchlet) {
            let chunk_first = chunk.tag.range().start < batchlet.tag.range().start;
            let (first, second) = if chunk_first {
                (chunk, batchlet)
            } else {
                (batchlet, chunk)
            };
            self.sink.error(codes::STEP_BODY, &second.name.span, |d| {
                d.message("a step cannot hold both `chunk` and `batchlet`")
                    .label("one of them has to go")
                    .related(first.name.span.clone(), "the other one is here")
            });
        }
        match (chunk, batchlet) {
            (Some(chunk), _) => self.chunk(chunk).map(|chunk| StepBody::Chunk(Box::new(chunk))),
            (None, Some(batchlet)) => self.artifact(batchlet).map(StepBody::Batchlet),
            (None, None) => {
                // An unknown element may be a mistyped one, and was reported as such.
                if !inherits && !schema::has_unknown_child(element) {
                    self.sink.error(codes::STEP_BODY, &element.name.span, |d| {
                        d.message("a step holds either a `chunk` or a `batchlet`")
                            .label("neither is here")
                    });
                }
                None
            }
        }
    }

    /// Spec: SEQ-07
    fn check_next_once(&mut self, element: &Element) {
        if let (Some(attribute), Some(child)) = (element.attribute("next"), element.child("next")) {
            self.sink.error(codes::NEXT_TWICE, &child.name.span, |d| {
                d.message("a step has either a `next` attribute or `next` elements")
                    .label("not with the attribute")
                    .related(attribute.name.span.clone(), "the attribute is here")
                    .help("write the attribute as `<next on=\"*\" to=\"..\"/>`")
            });
        }
    }

    /// Spec: SEQ-05, SEQ-06, TERM-04, TERM-05, TERM-09
    fn transition(&mut self, element: &Element) -> Option<Transition> {
        let kind = match element.name.value.as_str() {
            "next" => {
                let to = self.required(element, "to");
                to.map(|to| TransitionKind::Next { to })
            }
            "fail" => Some(TransitionKind::Fail {
                exit_status: self.text(element, "exit-status"),
            }),
            "end" => Some(TransitionKind::End {
                exit_status: self.text(element, "exit-status"),
            }),
            "stop" => {
                let exit_status = self.text(element, "exit-status");
                Some(TransitionKind::Stop {
                    exit_status,
                    restart: self.named(element, "restart"),
                })
            }
            _ => return None,
        };
        let on = self.required(element, "on");
        Some(Transition {
            kind: kind?,
            on: on?,
            span: element.tag.clone(),
        })
    }
}

/// The ids that transitions name.
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
