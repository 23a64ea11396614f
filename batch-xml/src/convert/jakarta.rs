//! Documents of the draft as documents of Jakarta Batch: the elements.

use std::collections::{BTreeMap, HashSet};

use super::jakarta_lists::List;
use super::jakarta_partition::Plan;
use super::jakarta_values::{Level, PlanUse, Position};
use super::{KnownArtifacts, executed};
use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::dialect::{Dialect, JAKARTA_NAMESPACES};
use crate::span::Span;
use crate::symbols;
use crate::tree::{Attribute, Element};
use crate::values;
use crate::write::Node;

/// Maximum number of bytes of the properties that are written for artifacts: a larger file could not be read.
const MAX_LIST_BYTES: usize = 4 << 20;

/// The state of a conversion.
pub(super) struct ToJakarta<'a> {
    pub(super) from: Dialect,
    pub(super) to: Dialect,
    pub(super) artifacts: &'a dyn KnownArtifacts,
    pub(super) sink: &'a mut Sink,
    /// The properties of the enclosing elements, outermost first.
    pub(super) levels: Vec<Level<'a>>,
    /// The partitions that the place is in.
    pub(super) plan: Option<Plan>,
    /// The property of the partitions that is being converted.
    pub(super) defining: Option<&'a str>,
    /// The list that is being written.
    pub(super) list: Option<List>,
    /// The properties whose values are being converted.
    pub(super) pending: Vec<Position>,
    /// The symbols that the document does not define, each with its first place.
    pub(super) undefined: BTreeMap<String, Span>,
    /// The keys of the problems that are reported once.
    pub(super) reported: HashSet<String>,
    pub(super) bytes_left: usize,
    /// True if a limit is exceeded: no more properties are written.
    pub(super) is_full: bool,
}

/// The container of execution elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Job,
    Flow,
    Split,
}

impl<'a> ToJakarta<'a> {
    pub(super) fn new(
        from: Dialect,
        to: Dialect,
        artifacts: &'a dyn KnownArtifacts,
        sink: &'a mut Sink,
    ) -> ToJakarta<'a> {
        ToJakarta {
            from,
            to,
            artifacts,
            sink,
            levels: Vec::new(),
            plan: None,
            defining: None,
            list: None,
            pending: Vec::new(),
            undefined: BTreeMap::new(),
            reported: HashSet::new(),
            bytes_left: MAX_LIST_BYTES,
            is_full: false,
        }
    }

    /// Converts a job.
    pub(super) fn document(mut self, root: &'a Element) -> Node {
        self.enter(root, true);
        let mut node = Node::new("job")
            .with("xmlns", JAKARTA_NAMESPACES[0])
            .with("version", "2.0");
        self.copy(root, &["id", "restartable"], &mut node);
        let node = node
            .and(self.context_list(PlanUse::Nothing))
            .and(self.listeners(root, PlanUse::Nothing))
            .and(self.elements(root, Place::Job, None));
        self.leave();
        self.report_undefined();
        node
    }

    /// Copies attributes whose values are the same in all partitions.
    fn copy(&mut self, element: &Element, names: &[&str], node: &mut Node) {
        for name in names {
            if let Some(attribute) = element.attribute(name) {
                node.set(name, self.attribute(attribute, PlanUse::Nothing));
            }
        }
    }

    fn listeners(&mut self, element: &'a Element, plan: PlanUse) -> Option<Node> {
        let list = element.child("listeners")?;
        let entries: Vec<Node> = list
            .children("listener")
            .map(|listener| self.artifact("listener", listener, plan))
            .collect();
        Some(Node::new("listeners").and(entries))
    }

    /// Converts the execution elements of a container. `top` is the element of the job that contains them.
    fn elements(&mut self, parent: &'a Element, place: Place, top: Option<&'a Element>) -> Vec<Node> {
        for child in &parent.children {
            self.check_abstract(child);
        }
        let first = executed(parent).next();
        if let Some(decision) = first.filter(|first| first.name.value == "decision" && place != Place::Split)
        {
            self.no_element(
                &decision.name.span,
                "a job or flow cannot start with a decision",
                |d| {
                    d.label("no element precedes it")
                        .help("move the decision behind the element that leads to it")
                },
            );
        }
        let children = executed(parent);
        children
            .filter_map(|child| self.element(child, place, top.unwrap_or(child)))
            .collect()
    }

    fn element(&mut self, element: &'a Element, place: Place, top: &'a Element) -> Option<Node> {
        match element.name.value.as_str() {
            "step" => Some(self.step(element, top)),
            "flow" => Some(self.flow(element, place, top)),
            "split" => Some(self.split(element, top)),
            _ if place == Place::Split => {
                self.no_element(&element.name.span, "a split contains only flows", |d| {
                    d.label("a decision of a split").help(
                        "put the flows that the decision selects behind the split, and the decision between them",
                    )
                });
                None
            }
            _ => Some(self.decision(element, top)),
        }
    }

    /// Reports an element of which only the parameters decide whether it is abstract.
    fn check_abstract(&mut self, element: &Element) {
        let attribute = element.attribute("abstract");
        let attribute = attribute.filter(|value| symbols::has_symbols(self.from, &value.value));
        if let Some(attribute) = attribute {
            self.no_element(&attribute.name.span, "an element cannot be abstract", |d| {
                d.label("only known at the start of the job")
                    .help("write `true` or `false`")
            });
        }
    }

    /// Reports that the other dialect has no such element or attribute.
    pub(super) fn no_element(
        &mut self,
        span: &Span,
        message: &str,
        build: impl FnOnce(crate::diagnostics::Diagnostic) -> crate::diagnostics::Diagnostic,
    ) {
        let (_, to) = self.dialects();
        self.sink.error(codes::NO_ELEMENT, span, |d| {
            build(d.message(format!("{message} in the dialect `{to}`")))
        });
    }

    /// Reports a value that the other dialect cannot express.
    pub(super) fn no_value(&mut self, attribute: &Attribute, label: &str, help: &str) {
        let to = self.to;
        self.sink.error(codes::NO_VALUE, &attribute.value.span, |d| {
            let name = quoted(&attribute.name);
            d.message(format!("the dialect `{to}` cannot express this value of {name}"))
                .label(label)
                .help(help)
        });
    }

    fn flow(&mut self, flow: &'a Element, place: Place, top: &'a Element) -> Node {
        if let Some(partition) = flow.child("partition") {
            self.no_element(&partition.name.span, "a flow has no partitions", |d| {
                d.label("partitions of a flow")
                    .help("partition each step of the flow")
            });
        }
        let mut node = Node::new("flow");
        self.copy(flow, &["id"], &mut node);
        match flow.attribute("next") {
            Some(next) if place == Place::Split => {
                self.no_element(&next.name.span, "a flow of a split leads nowhere", |d| {
                    d.label("all flows of the split run in parallel")
                        .help("put the elements of both flows into one flow")
                });
            }
            _ => self.copy(flow, &["next"], &mut node),
        }
        node.and(self.elements(flow, Place::Flow, Some(top)))
    }

    fn split(&mut self, split: &'a Element, top: &'a Element) -> Node {
        if let Some(concurrency) = split.child("concurrency") {
            self.no_element(&concurrency.name.span, "a split has no `concurrency`", |d| {
                d.label("companions of the flows")
                    .help("remove it; a partitioned step can have a collector, an analyzer and a reducer")
            });
        }
        let mut node = Node::new("split");
        self.copy(split, &["id", "next"], &mut node);
        node.and(self.elements(split, Place::Split, Some(top)))
    }

    fn decision(&mut self, decision: &'a Element, top: &'a Element) -> Node {
        self.enter(decision, true);
        let decider = match decision.attribute("decider") {
            Some(_) => "decider",
            None => "ref",
        };
        let own = self.levels.len() - 1;
        let mut node = Node::new("decision");
        self.copy(decision, &["id"], &mut node);
        let node = self.artifact_here(node, (decision, decider), own, PlanUse::Nothing);
        let transitions = self.transitions(decision, top);
        self.leave();
        node.and(transitions)
    }

    fn step(&mut self, step: &'a Element, top: &'a Element) -> Node {
        self.enter(step, true);
        let mut node = Node::new("step");
        self.copy(step, &["id"], &mut node);
        self.start_limit(step, &mut node);
        self.copy(step, &["allow-start-if-complete", "next"], &mut node);
        let partition = step.child("partition");
        self.plan = partition.map(|partition| self.plan_of(partition));
        let list = self.context_list(PlanUse::Named);
        let listeners = self.listeners(step, PlanUse::Named);
        let body = match (step.child("chunk"), step.child("batchlet")) {
            (Some(chunk), _) => Some(self.chunk(chunk)),
            (None, Some(batchlet)) => Some(self.artifact("batchlet", batchlet, PlanUse::All)),
            (None, None) => None,
        };
        let partition = partition.map(|partition| self.partition(partition));
        self.plan = None;
        let transitions = self.transitions(step, top);
        self.leave();
        node.and(list)
            .and(listeners)
            .and(body)
            .and(partition)
            .and(transitions)
    }

    /// The draft counts restarts, and Jakarta Batch starts.
    fn start_limit(&mut self, step: &Element, node: &mut Node) {
        let Some(attribute) = step.attribute("start-limit") else {
            return;
        };
        let limit = self.literal(step, "start-limit");
        match limit.and_then(|limit| values::integer(limit, 0)) {
            Some(0) => node.set("start-limit", 0),
            Some(limit) => node.set("start-limit", (limit + 1).min(i32::MAX.unsigned_abs())),
            None if limit.is_some() => self.copy(step, &["start-limit"], node),
            None => {
                self.no_value(
                    attribute,
                    "counts restarts; the other dialect counts starts",
                    "write a number, or add one to the parameter",
                );
                self.copy(step, &["start-limit"], node);
            }
        }
    }
}
