//! Documents of Jakarta Batch as documents of the draft: the elements.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::draft_values::{Inner, Level, Owner, Wanted};
use super::{ALL_ITEMS, ITEM_TIME, KnownArtifacts, executed, list_of, listed};
use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::dialect::Dialect;
use crate::model::Target;
use crate::span::Span;
use crate::symbols::{self, Piece};
use crate::tree::{Attribute, Element};
use crate::values;
use crate::write::Node;

/// The state of a conversion.
pub(super) struct ToDraft<'a> {
    pub(super) from: Dialect,
    pub(super) to: Dialect,
    pub(super) artifacts: &'a dyn KnownArtifacts,
    pub(super) sink: &'a mut Sink,
    /// The properties of the enclosing elements, outermost first.
    pub(super) levels: Vec<Level>,
    /// The partitions that the place is in.
    pub(super) plan: Option<Plan>,
    /// The property of the partitions that is being converted.
    pub(super) defining: Option<String>,
    /// The job properties that expressions require, by name.
    pub(super) wanted: BTreeMap<String, Wanted>,
    /// The properties of all elements in the job.
    pub(super) inner: Vec<Inner>,
    /// Each artifact, with the properties that it declares and that no enclosing element has.
    pub(super) seen: Vec<(String, Span, Vec<String>)>,
    /// The keys of the problems that are reported once.
    reported: HashSet<String>,
}

/// The partitions of a step.
pub(super) struct Plan {
    /// True if a mapper computes them: every name may have a value.
    pub(super) is_computed: bool,
    /// The number of partitions, if it is known.
    pub(super) count: Option<usize>,
    /// The number of partitions in which each name has a value.
    pub(super) names: HashMap<String, usize>,
    /// The names whose value can be empty in a partition.
    pub(super) may_be_empty: HashSet<String>,
}

impl Plan {
    /// Returns whether all partitions have a value of this name.
    pub(super) fn is_in_all(&self, name: &str) -> bool {
        self.count
            .is_some_and(|count| self.names.get(name) == Some(&count))
    }
}

/// The container of execution elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Job,
    Flow,
}

impl<'a> ToDraft<'a> {
    pub(super) fn new(
        from: Dialect,
        to: Dialect,
        artifacts: &'a dyn KnownArtifacts,
        sink: &'a mut Sink,
    ) -> ToDraft<'a> {
        ToDraft {
            from,
            to,
            artifacts,
            sink,
            levels: Vec::new(),
            plan: None,
            defining: None,
            wanted: BTreeMap::new(),
            inner: Vec::new(),
            seen: Vec::new(),
            reported: HashSet::new(),
        }
    }

    /// Converts a job.
    pub(super) fn document(mut self, root: &'a Element) -> Node {
        let mut properties = self.enter(listed(root), Owner::Context);
        let mut node = Node::new("job");
        self.copy(root, &["id", "restartable"], &mut node);
        let listeners = self.listeners(root);
        let first = executed(root).next();
        let children: Vec<Node> = executed(root)
            .map(|child| self.element(child, Place::Job, first.unwrap_or(child)))
            .collect();
        self.leave();
        let wanted = self.wanted_properties(&properties);
        properties.extend(wanted);
        node.and(list_of(properties)).and(listeners).and(children)
    }

    /// Runs an action the first time that it is called for a key.
    pub(super) fn once(&mut self, key: &str, action: impl FnOnce(&mut Sink)) {
        if self.reported.insert(key.to_owned()) {
            action(self.sink);
        }
    }

    pub(super) fn copy(&mut self, element: &Element, names: &[&str], node: &mut Node) {
        for name in names {
            if let Some(attribute) = element.attribute(name) {
                node.set(name, self.value(attribute));
            }
        }
    }

    pub(super) fn literal<'e>(&self, element: &'e Element, name: &str) -> Option<&'e str> {
        super::literal(self.from, element, name)
    }

    fn listeners(&mut self, element: &'a Element) -> Option<Node> {
        let list = element.child("listeners")?;
        let entries: Vec<Node> = list
            .children("listener")
            .map(|listener| self.artifact("listener", listener))
            .collect();
        Some(Node::new("listeners").and(entries))
    }

    /// Converts an element that names an artifact.
    fn artifact(&mut self, name: &str, element: &'a Element) -> Node {
        let list = self.enter(listed(element), Owner::Artifact);
        let mut node = Node::new(name);
        self.copy(element, &["ref"], &mut node);
        self.leave();
        self.report_leaks(element);
        node.and(list_of(list))
    }

    /// Reports properties that the artifact gets in the draft although they are not written on it.
    fn report_leaks(&mut self, element: &'a Element) {
        let own: Vec<&str> = listed(element)
            .filter_map(|entry| Some(entry.attribute("name")?.value.value.as_str()))
            .collect();
        if let Some(reference) = element.attribute("ref") {
            self.check_leaks(reference, &own, self.plan.is_some());
        }
    }

    /// Converts an execution element. `first` is the first element of the job.
    fn element(&mut self, element: &'a Element, place: Place, first: &'a Element) -> Node {
        match element.name.value.as_str() {
            "step" => self.step(element, place, first),
            "flow" => self.flow(element, first),
            "split" => self.split(element, first),
            _ => self.decision(element, place, first),
        }
    }

    fn no_element(&mut self, span: &Span, message: &str, label: &str, help: &str) {
        let to = self.to;
        self.sink.error(codes::NO_ELEMENT, span, |d| {
            d.message(format!("{message} in the dialect `{to}`"))
                .label(label)
                .help(help)
        });
    }

    fn no_value(&mut self, attribute: &Attribute, label: &str, help: &str) {
        let to = self.to;
        self.sink.error(codes::NO_VALUE, &attribute.value.span, |d| {
            let name = quoted(&attribute.name);
            d.message(format!("the dialect `{to}` cannot express this value of {name}"))
                .label(label)
                .help(help)
        });
    }

    fn flow(&mut self, flow: &'a Element, first: &'a Element) -> Node {
        let mut node = Node::new("flow");
        self.copy(flow, &["id", "next"], &mut node);
        for child in executed(flow) {
            if matches!(child.name.value.as_str(), "flow" | "split") {
                self.no_element(
                    &child.name.span,
                    "a flow contains only steps and decisions",
                    "cannot be nested",
                    "put its elements into the flow, or the flow's elements into the job",
                );
                continue;
            }
            node.push(self.element(child, Place::Flow, first));
        }
        node
    }

    fn split(&mut self, split: &'a Element, first: &'a Element) -> Node {
        let mut node = Node::new("split");
        self.copy(split, &["id", "next"], &mut node);
        for flow in split.children("flow") {
            node.push(self.flow(flow, first));
        }
        node
    }

    fn decision(&mut self, decision: &'a Element, place: Place, first: &'a Element) -> Node {
        let list = self.enter(listed(decision), Owner::Artifact);
        let mut node = Node::new("decision");
        self.copy(decision, &["id"], &mut node);
        if let Some(decider) = decision.attribute("ref") {
            node.set("decider", self.value(decider));
        }
        let transitions = self.transitions(decision, place, first);
        self.leave();
        self.report_leaks(decision);
        node.and(list_of(list)).and(transitions.elements)
    }

    fn step(&mut self, step: &'a Element, place: Place, first: &'a Element) -> Node {
        let partition = step.child("partition");
        self.plan = partition.map(|partition| self.plan_of(partition));
        let mut list = self.enter(listed(step), Owner::Context);
        let plan = self.plan.take();
        let mut node = Node::new("step");
        self.copy(step, &["id"], &mut node);
        self.start_limit(step, &mut node);
        self.copy(step, &["allow-start-if-complete"], &mut node);
        let transitions = self.transitions(step, place, first);
        let node = node.with_some("next", transitions.next);
        self.plan = plan;
        list.extend(partition.and_then(|partition| self.threads(partition, &list)));
        let listeners = self.listeners(step);
        let body = match (step.child("chunk"), step.child("batchlet")) {
            (Some(chunk), _) => Some(self.chunk(chunk)),
            (None, Some(batchlet)) => Some(self.artifact("batchlet", batchlet)),
            (None, None) => None,
        };
        let partition = partition.map(|partition| self.partition(partition));
        self.plan = None;
        self.leave();
        node.and(list_of(list))
            .and(listeners)
            .and(body)
            .and(partition)
            .and(transitions.elements)
    }

    /// Jakarta Batch counts starts, and the draft restarts.
    fn start_limit(&mut self, step: &Element, node: &mut Node) {
        let Some(attribute) = step.attribute("start-limit") else {
            return;
        };
        let limit = self.literal(step, "start-limit");
        match limit.and_then(|limit| values::integer(limit, 0)) {
            Some(0) => node.set("start-limit", 0),
            Some(1) => self.no_value(
                attribute,
                "0 restarts would be unlimited",
                "remove it, or write `restartable=\"false\"` on the job",
            ),
            Some(limit) => node.set("start-limit", limit - 1),
            None if limit.is_some() => self.copy(step, &["start-limit"], node),
            None => {
                self.no_value(
                    attribute,
                    "counts starts; the other dialect counts restarts",
                    "write a number, or subtract one from the parameter",
                );
                self.copy(step, &["start-limit"], node);
            }
        }
    }

    fn chunk(&mut self, chunk: &'a Element) -> Node {
        let mut node = Node::new("chunk");
        let mut properties = Vec::new();
        for target in Target::ALL {
            if let Some(part) = chunk.child(target.as_str()) {
                self.part(part, target, &mut node, &mut properties);
            }
        }
        let algorithm = self.interval(chunk, &mut node);
        self.copy(chunk, &["skip-limit", "retry-limit"], &mut node);
        let list = (!properties.is_empty()).then(|| Node::new("properties").and(properties));
        let mut node = node.and(list).and(algorithm);
        self.report_classes(chunk);
        for classes in &chunk.children {
            if classes.name.value.ends_with("-exception-classes") {
                let entries = classes.children.iter().map(|entry| {
                    let mut node = Node::new(entry.name.value.as_str());
                    self.copy(entry, &["class"], &mut node);
                    node
                });
                let entries: Vec<Node> = entries.collect();
                node.push(Node::new(classes.name.value.as_str()).and(entries));
            }
        }
        node
    }

    /// Converts the reader, processor or writer.
    fn part(&mut self, part: &'a Element, target: Target, node: &mut Node, properties: &mut Vec<Node>) {
        let list = self.enter(listed(part), Owner::Artifact);
        if let Some(reference) = part.attribute("ref") {
            let text = self.value(reference);
            let own = self.levels.len() - 1;
            let uses_own = symbols::pieces(self.to, &text).any(
                |piece| matches!(piece, Piece::Symbol(name, _) if self.level_of(name.name) == Some(own)),
            );
            if uses_own {
                self.no_value(
                    reference,
                    "depends on a property of the artifact itself",
                    "move the property to the step",
                );
            }
            node.set(target.as_str(), text);
        }
        self.leave();
        self.report_leaks(part);
        let entry = |(name, value): (String, String)| {
            Node::new("property")
                .with("name", name)
                .with("value", value)
                .with("target", target.as_str())
        };
        properties.extend(list.into_iter().map(entry));
    }

    /// Converts the attributes that end a chunk. Returns the checkpoint algorithm.
    fn interval(&mut self, chunk: &'a Element, node: &mut Node) -> Option<Node> {
        let policy = chunk.attribute("checkpoint-policy");
        let text = self.literal(chunk, "checkpoint-policy");
        if let Some(policy) = policy.filter(|_| text.is_none()) {
            self.no_value(
                policy,
                "only known at the start of the job",
                "write `item` or `custom`",
            );
        }
        let limit = chunk.attribute("time-limit");
        let seconds = self
            .literal(chunk, "time-limit")
            .and_then(|limit| values::integer(limit, 0));
        let algorithm = match (text, limit) {
            (Some("custom"), _) => {
                let found = chunk.child("checkpoint-algorithm");
                node.set("checkpoint-policy", "custom");
                found.map(|found| self.artifact("checkpoint-algorithm", found))
            }
            (_, Some(limit)) if seconds != Some(0) => {
                if seconds.is_some() && self.literal(chunk, "item-count") == Some(ALL_ITEMS) {
                    node.set("checkpoint-policy", "time");
                    node.set("commit-interval", limit.value.value.as_str());
                    None
                } else {
                    node.set("checkpoint-policy", "custom");
                    Some(self.item_time(chunk, limit))
                }
            }
            _ => {
                if let Some(items) = chunk.attribute("item-count") {
                    node.set("commit-interval", self.value(items));
                }
                return None;
            }
        };
        // One write for each checkpoint, as in Jakarta Batch.
        node.set("chunk-size", ALL_ITEMS);
        algorithm
    }

    fn item_time(&mut self, chunk: &'a Element, limit: &Attribute) -> Node {
        if self.artifacts.properties(ITEM_TIME).is_some() {
            self.no_value(
                limit,
                "the artifact `item-time` of the program replaces the built-in one",
                "rename the artifact",
            );
        }
        self.levels.push(Level::default());
        let mut list = Vec::new();
        for name in ["item-count", "time-limit"] {
            if let Some(attribute) = chunk.attribute(name) {
                list.extend(self.own_property(name, attribute, attribute, Owner::Artifact));
            }
        }
        self.leave();
        Node::new("checkpoint-algorithm")
            .with("ref", ITEM_TIME)
            .and(list_of(list))
    }

    /// Warns once of each rule by which the dialects skip and retry differently.
    fn report_classes(&mut self, chunk: &Element) {
        let (from, to) = (self.from, self.to);
        let rules = [
            (
                "skippable-exception-classes",
                from.failed_write_skips_its_list() != to.failed_write_skips_its_list(),
                "a skipped write skips only the item that is the reason",
                "let the writer report the item by `BatchError::at_item`, or else it is searched for",
            ),
            (
                "retryable-exception-classes",
                from.retries_input() != to.retries_input(),
                "only writes are retried",
                "add the property `batch.retry.input` with the value `true` to the step",
            ),
        ];
        for (name, differs, message, help) in rules {
            let Some(list) = chunk
                .child(name)
                .filter(|list| differs && list.child("include").is_some())
            else {
                continue;
            };
            self.once(name, |sink| {
                sink.warning(codes::OTHER_SKIPPING, &list.name.span, |d| {
                    d.message(format!("{message} in the dialect `{to}`"))
                        .label(format!(
                            "`{from}` skips and retries lists, and retries reads and processing"
                        ))
                        .help(help)
                });
            });
        }
    }

    fn plan_of(&mut self, partition: &'a Element) -> Plan {
        let mut plan = Plan {
            is_computed: partition.child("mapper").is_some(),
            count: Some(1),
            names: HashMap::new(),
            may_be_empty: HashSet::new(),
        };
        let Some(element) = partition.child("plan") else {
            return plan;
        };
        if element.attribute("partitions").is_some() {
            let count = self
                .literal(element, "partitions")
                .and_then(|count| values::integer(count, 1));
            plan.count = count.and_then(|count| usize::try_from(count).ok());
        }
        for entry in element
            .children("properties")
            .flat_map(|list| list.children("property"))
        {
            if let Some(name) = entry.attribute("name") {
                *plan.names.entry(name.value.value.clone()).or_default() += 1;
                let value = entry.attribute("value");
                if !value.is_some_and(|value| self.is_never_empty(&value.value.value)) {
                    plan.may_be_empty.insert(name.value.value.clone());
                }
            }
        }
        plan
    }

    /// Returns the property by which the draft limits the threads of partitions.
    fn threads(&mut self, partition: &'a Element, list: &[(String, String)]) -> Option<(String, String)> {
        const THREADS: &str = "batch.partition.threads";
        let plan = partition.child("plan")?;
        let threads = plan.attribute("threads")?;
        let number = self
            .literal(plan, "threads")
            .and_then(|number| values::integer(number, 0));
        // The property takes precedence in both dialects; 0 is no limit.
        let is_needed = number != Some(0) && list.iter().all(|(name, _)| name != THREADS);
        is_needed.then(|| (THREADS.to_owned(), self.value(threads)))
    }

    fn partition(&mut self, partition: &'a Element) -> Node {
        let mut node = Node::new("partition");
        if let Some(plan) = partition.child("plan") {
            if let Some(count) = plan.attribute("partitions") {
                let plan = self.plan.take();
                node.set("instances", self.value(count));
                self.plan = plan;
            }
            let entries = self.plan_properties(plan);
            node = node.and(list_of(entries));
        }
        let plan = self.plan.take();
        let mapper = partition
            .child("mapper")
            .map(|found| self.artifact("algorithm", found));
        let reducer = partition.child("reducer");
        if let Some(reducer) = reducer {
            self.report_rollback(reducer);
        }
        let reducer = reducer.map(|found| self.artifact("logicalTX", found));
        self.plan = plan;
        let collector = partition
            .child("collector")
            .map(|found| self.artifact("collector", found));
        let plan = self.plan.take();
        let analyzer = partition
            .child("analyzer")
            .map(|found| self.artifact("analyzer", found));
        self.plan = plan;
        node.and(mapper).and(reducer).and(collector).and(analyzer)
    }

    /// Returns the properties of the partitions, with the number of the partition, counted from 1, in their names.
    fn plan_properties(&mut self, plan: &'a Element) -> Vec<(String, String)> {
        let mut entries = Vec::new();
        for list in plan.children("properties") {
            let number = self
                .literal(list, "partition")
                .and_then(|number| values::integer(number, 0));
            let Some(number) = number else {
                let span = list
                    .attribute("partition")
                    .map_or(&list.name.span, |number| &number.value.span);
                self.no_element(
                    span,
                    "the number of a partition is part of the names of its properties",
                    "only known at the start of the job",
                    "write a number",
                );
                continue;
            };
            self.levels.push(Level::default());
            for entry in list.children("property") {
                if let (Some(name), Some(value)) = (entry.attribute("name"), entry.attribute("value")) {
                    let numbered = format!("{}.{}", name.value.value, number + 1);
                    self.defining = Some(name.value.value.clone());
                    entries.extend(self.own_property(&numbered, name, value, Owner::Artifact));
                    self.defining = None;
                }
            }
            self.leave();
        }
        entries
    }

    /// Warns of partitions that are complete: they run again after a rollback.
    fn report_rollback(&mut self, reducer: &Element) {
        let (from, to) = (self.from, self.to);
        if from.compensation_resets_partitions() == to.compensation_resets_partitions() {
            return;
        }
        self.once("rollback", |sink| {
            sink.warning(codes::OTHER_ROLLBACK, &reducer.name.span, |d| {
                d.message(format!(
                    "after a rollback, all partitions run again in the dialect `{to}`"
                ))
                .label("if it has a method for the rollback; in Jakarta Batch, the incomplete ones")
                .help("let the artifact undo the work of all partitions")
            });
        });
    }
}
