//! The flow, split and decision elements.

use super::Lowering;
use crate::codes;
use crate::model::{Decision, ElementKind, ExecutionElement, Flow, Split};
use crate::outline::Node;
use crate::schema;
use crate::tree::Element;
use crate::values;

impl<'a> Lowering<'a> {
    /// Returns `None` for an abstract flow too: only its id matters.
    // Spec: FLOW-01, FLOW-02, FLOW-03, FLOW-04, FLOW-08, FLOW-17, FPART-01, FPART-02, FPART-05, FPART-06
    pub(super) fn flow(&mut self, element: &'a Element) -> Option<Flow> {
        let (node, container) = self.container(element, ElementKind::Flow)?;
        let (id, next) = node.map(|node| (node.id, node.next)).unzip();
        let name = id.as_ref().map(|id| id.value.as_str());
        let prefix = self.prefix_of_partition(element, name);
        let before = std::mem::replace(&mut self.prefix, prefix);
        let inside = |lowering: &mut Self| lowering.elements_of(element, container);
        let (elements, partition) = self.partitioned(element, name, inside);
        self.prefix = before;
        let parts: &[&str] = match self.scope.dialect.rules().parts_are_elements {
            true => &["step", "flow", "split"],
            false => &["step"],
        };
        self.check_not_empty(element, parts);
        self.check_first(element);
        Some(Flow {
            id: id?,
            next: next.flatten(),
            elements,
            partition,
            span: element.tag.clone(),
        })
    }

    /// Returns `None` for an abstract split too.
    // Spec: SPLIT-01, SPLIT-02, SPLIT-03, SPLIT-04, SPLIT-12, SPLIT-24
    pub(super) fn split(&mut self, element: &'a Element) -> Option<Split> {
        let (node, container) = self.container(element, ElementKind::Split)?;
        let elements = self.elements_of(element, container);
        self.check_not_empty(element, &["flow"]);
        self.check_flows_lead_nowhere(element);
        let concurrency = self.concurrency(element);
        let node = node?;
        Some(Split {
            id: node.id,
            next: node.next,
            elements,
            concurrency,
            span: element.tag.clone(),
        })
    }

    // Spec: DEC-01, DEC-02, DEC-03, DEC-05, DEC-11, DEC-18, D-28
    pub(super) fn decision(&mut self, element: &'a Element) -> Option<Decision> {
        self.scope.enter(element);
        let node = self.node(element, ElementKind::Decision, false);
        let (decider, other) = (element.attribute("decider"), element.attribute("ref"));
        let name = match (decider, other) {
            (None, Some(_)) => "ref",
            (Some(decider), Some(other)) => {
                self.error(codes::DECIDER_TWICE, &other.name.span, |d| {
                    d.message("a decision cannot have both `decider` and `ref`")
                        .label("remove one of them")
                        .related(decider.name.span.clone(), "the decider is named here")
                });
                "decider"
            }
            (Some(_), None) => "decider",
            (None, None) if self.scope.dialect.rules().parts_are_elements => "ref",
            (None, None) => "decider",
        };
        let decider = self.artifact_named(element, name, None);
        let transitions = self.transitions(element, node);
        self.scope.leave();
        let (id, transitions) = transitions?;
        Some(Decision {
            id,
            decider: decider?,
            transitions,
            span: element.tag.clone(),
        })
    }

    /// Returns the element's node among its siblings, and the number of the container that it opens. `None` if it is abstract.
    fn container(&mut self, element: &'a Element, kind: ElementKind) -> Option<(Option<Node>, usize)> {
        let is_abstract = self.fixed(|lowering| lowering.boolean(element, "abstract", false));
        let node = self.node(element, kind, is_abstract);
        self.outline.nodes.extend(node.clone());
        if is_abstract {
            return None;
        }
        Some((node, self.outline.add_container(kind)))
    }

    fn elements_of(&mut self, element: &'a Element, container: usize) -> Vec<ExecutionElement> {
        let dialect = self.scope.dialect;
        let outer = std::mem::replace(&mut self.at, container);
        let elements = element
            .children
            .iter()
            .filter(|child| schema::allows(dialect, element, child))
            .filter_map(|child| self.execution_element(child))
            .collect();
        self.at = outer;
        elements
    }

    // Spec: FLOW-16, SPLIT-14
    fn check_not_empty(&mut self, element: &Element, parts: &[&str]) {
        let children = element.children.iter();
        let mut of_kind = children.filter(|child| parts.contains(&child.name.value.as_str()));
        let is_concrete = |child: &Element| {
            let attribute = child.attribute("abstract");
            let is_abstract = attribute.and_then(|attribute| values::boolean(&attribute.value));
            is_abstract != Some(true)
        };
        if of_kind.any(is_concrete)
            || self.lacks_parent(element)
            || schema::has_unknown_child(self.scope.dialect, element)
        {
            return;
        }
        let what = match parts.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => return,
        };
        self.error(codes::EMPTY_CONTAINER, &element.name.span, |d| {
            d.message(format!("a {} without a {what}", element.name.value))
                .label(format!("a {what} that is not abstract is required"))
        });
    }

    /// Reports a decision before all other elements, in a dialect that starts with the first element.
    pub(super) fn check_first(&mut self, element: &Element) {
        if self.scope.dialect.rules().leading_decision_is_passed_over {
            return;
        }
        let mut children = element.children.iter();
        let first = children.find(|child| ElementKind::from_name(&child.name).is_some());
        if let Some(decision) = first.filter(|first| first.name.value == "decision") {
            self.error(codes::LEADING_DECISION, &decision.name.span, |d| {
                d.message(format!("a {} cannot start with a decision", element.name.value))
                    .label("no step precedes it")
            });
        }
    }

    /// Reports flows of a split that name a successor, in a dialect whose split ends with its flows.
    fn check_flows_lead_nowhere(&mut self, split: &Element) {
        if self.scope.dialect.rules().flows_of_split_lead_on {
            return;
        }
        for next in split.children("flow").filter_map(|flow| flow.attribute("next")) {
            self.error(codes::SPLIT_TARGET, &next.name.span, |d| {
                d.message("a flow of a split cannot have a `next`")
                    .label("all flows of a split run in parallel")
                    .help("what follows all flows is the `next` of the split")
            });
        }
    }

    /// Returns the length of the prefix that the repository puts before the names of steps in this flow.
    // Spec: JSL-STEP-02, D-75
    fn prefix_of_partition(&self, flow: &Element, id: Option<&str>) -> usize {
        let Some(partition) = flow.child("partition") else {
            return self.prefix;
        };
        let id = id.map_or(0, |id| id.chars().count());
        self.prefix + id + ":".len() + digits(partition) + "/".len()
    }
}

/// Returns the number of digits of the highest partition number, as far as the XML determines it.
pub(super) fn digits(partition: &Element) -> usize {
    let planned = partition
        .child("plan")
        .and_then(|plan| plan.attribute("partitions"));
    let instances = partition.attribute("instances").or(planned);
    let count = instances.and_then(|instances| values::integer(&instances.value, 1));
    count.unwrap_or(1).to_string().len()
}
