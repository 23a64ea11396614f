//! Writes trees and models as XML text.

use crate::model::{
    ArtifactRef, CheckpointPolicy, Chunk, Concurrency, Decision, ExceptionClasses, ExecutionElement, Flow,
    Job, Partition, Property, Split, Step, StepBody, Target, Transition, TransitionKind,
};
use crate::span::Spanned;
use crate::tree::Element;
use crate::xml;

/// The lists that are written before the other children of an element.
const LEADING: [&str; 2] = ["properties", "listeners"];

/// Attributes that only control inheritance.
const CONSUMED: [&str; 2] = ["parent", "merge"];

/// An element to be written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Node>,
}

impl Node {
    pub(crate) fn new(name: impl Into<String>) -> Node {
        Node {
            name: name.into(),
            attributes: Vec::new(),
            children: Vec::new(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: impl ToString) {
        self.attributes.retain(|(other, _)| other != name);
        self.attributes.push((name.to_owned(), value.to_string()));
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Node {
        self.set(name, value);
        self
    }

    pub(crate) fn with_some(self, name: &str, value: Option<impl ToString>) -> Node {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn push(&mut self, child: Node) {
        self.children.push(child);
    }

    pub(crate) fn push_property(&mut self, name: &str, value: &str, target: Option<Target>) {
        self.child("properties").push(property(name, value, target));
    }

    fn and(mut self, children: impl IntoIterator<Item = Node>) -> Node {
        self.children.extend(children);
        self
    }

    /// Returns the child of that name, and adds it if there is none.
    pub(crate) fn child(&mut self, name: &str) -> &mut Node {
        let found = self.children.iter().position(|child| child.name == name);
        let index = found.unwrap_or_else(|| {
            self.children.push(Node::new(name));
            self.children.len() - 1
        });
        &mut self.children[index]
    }

    /// Returns the document as XML. Characters that XML cannot hold are written as they are.
    pub(crate) fn to_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        out.push_str(&indent);
        out.push('<');
        out.push_str(&self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            xml::push_escaped(out, value);
            out.push('"');
        }
        if self.children.is_empty() {
            out.push_str("/>\n");
            return;
        }
        out.push_str(">\n");
        // Lists come first; execution elements and list entries keep their order.
        let rank = |child: &&Node| LEADING.iter().position(|name| child.name == *name);
        let mut children: Vec<&Node> = self.children.iter().collect();
        children.sort_by_key(|child| rank(child).unwrap_or(LEADING.len()));
        for child in children {
            child.write(out, depth + 1);
        }
        out.push_str(&indent);
        out.push_str("</");
        out.push_str(&self.name);
        out.push_str(">\n");
    }
}

/// Returns an effective tree as XML.
///
/// Spec: JSL-DOC-19, INH-06
pub(crate) fn effective(root: &Element) -> String {
    well_formed(node(root).to_xml())
}

fn node(element: &Element) -> Node {
    let attributes = element.attributes.iter();
    let kept = attributes.filter(|attribute| !CONSUMED.contains(&attribute.name.value.as_str()));
    Node {
        name: element.name.value.clone(),
        attributes: kept
            .map(|attribute| (attribute.name.value.clone(), attribute.value.value.clone()))
            .collect(),
        children: element.children.iter().map(node).collect(),
    }
}

/// Replaces characters that XML cannot hold.
fn well_formed(text: String) -> String {
    if text.chars().all(xml::is_char) {
        return text;
    }
    let legal = |c| {
        Some(c)
            .filter(|c| xml::is_char(*c))
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    text.chars().map(legal).collect()
}

impl Job {
    /// Returns the job as self-contained XML: every value is written where it takes effect, without defaults and
    /// abstract elements. Read without parameters and system properties it is the same job, with two exceptions that
    /// XML cannot express: `${` in a value, and values [deferred](Partition::deferred) to partitions.
    ///
    /// Spec: JSL-DOC-19
    pub fn to_xml(&self) -> String {
        let mut job = Node::new("job").with("id", &self.id);
        if !self.restartable {
            job.set("restartable", false);
        }
        let outer: Vec<&str> = names(&self.properties);
        let job = job
            .and(list(&self.properties, &[], None))
            .and(listeners(&self.listeners, &outer))
            .and(self.elements.iter().map(|element| execution(element, &outer)));
        well_formed(job.to_xml())
    }
}

fn names(properties: &[Property]) -> Vec<&str> {
    properties
        .iter()
        .map(|property| property.name.value.as_str())
        .collect()
}

fn execution(element: &ExecutionElement, outer: &[&str]) -> Node {
    match element {
        ExecutionElement::Step(step) => self::step(step, outer),
        ExecutionElement::Flow(flow) => self::flow(flow, outer),
        ExecutionElement::Split(split) => self::split(split, outer),
        ExecutionElement::Decision(decision) => self::decision(decision, outer),
    }
}

fn step(step: &Step, outer: &[&str]) -> Node {
    let mut node = Node::new("step").with("id", &step.id);
    if step.start_limit > 0 {
        node.set("start-limit", step.start_limit);
    }
    if step.allow_start_if_complete {
        node.set("allow-start-if-complete", true);
    }
    let own = names(&step.properties);
    let own = own.into_iter().filter(|name| !outer.contains(name));
    let inner: Vec<&str> = outer.iter().copied().chain(own).collect();
    let body = match &step.body {
        StepBody::Chunk(chunk) => self::chunk(chunk, &inner),
        StepBody::Batchlet(batchlet) => artifact("batchlet", batchlet, &inner),
    };
    node.with_some("next", step.next.as_ref())
        .and(list(&step.properties, &[], None))
        .and(listeners(&step.listeners, &inner))
        .and([body])
        .and(partition(step.partition.as_ref(), &inner))
        .and(step.transitions.iter().map(transition))
}

fn chunk(chunk: &Chunk, outer: &[&str]) -> Node {
    let mut node = Node::new("chunk")
        .with("reader", &chunk.reader.name)
        .with("processor", &chunk.processor.name)
        .with("writer", &chunk.writer.name);
    let policy = match chunk.checkpoint_policy.value {
        CheckpointPolicy::Item => "item",
        CheckpointPolicy::Time => "time",
        CheckpointPolicy::Custom => "custom",
    };
    node.set("checkpoint-policy", policy);
    node.set("commit-interval", chunk.commit_interval);
    if chunk.buffer_reads {
        node.set("chunk-size", chunk.chunk_size);
    } else {
        node.set("buffer-reads", false);
    }
    if chunk.checkpoint_timeout > 0 {
        node.set("checkpoint-timeout", chunk.checkpoint_timeout);
    }
    let artifacts = [
        (&chunk.reader, Target::Reader),
        (&chunk.processor, Target::Processor),
        (&chunk.writer, Target::Writer),
    ];
    let lists = artifacts
        .into_iter()
        .filter_map(|(artifact, target)| list(&artifact.properties, outer, Some(target)));
    let entries: Vec<Node> = lists.flat_map(|list| list.children).collect();
    let properties = node_of("properties", entries);
    let algorithm = chunk.checkpoint_algorithm.as_ref();
    node.with_some("skip-limit", chunk.skip_limit)
        .with_some("retry-limit", chunk.retry_limit)
        .and(properties)
        .and(algorithm.map(|algorithm| artifact("checkpoint-algorithm", algorithm, outer)))
        .and(classes("skippable-exception-classes", &chunk.skippable))
        .and(classes("retryable-exception-classes", &chunk.retryable))
        .and(classes("no-rollback-exception-classes", &chunk.no_rollback))
}

fn classes(name: &str, classes: &ExceptionClasses) -> Option<Node> {
    classes.span.as_ref()?;
    let entry = |name: &'static str| move |class: &Spanned<String>| Node::new(name).with("class", class);
    let node = Node::new(name)
        .and(classes.include.iter().map(entry("include")))
        .and(classes.exclude.iter().map(entry("exclude")));
    Some(node)
}

fn flow(flow: &Flow, outer: &[&str]) -> Node {
    Node::new("flow")
        .with("id", &flow.id)
        .with_some("next", flow.next.as_ref())
        .and(flow.elements.iter().map(|element| execution(element, outer)))
        .and(partition(flow.partition.as_ref(), outer))
}

fn split(split: &Split, outer: &[&str]) -> Node {
    let Concurrency {
        logical_tx,
        collector,
        analyzer,
    } = &split.concurrency;
    let companions = [
        ("logicalTX", logical_tx),
        ("collector", collector),
        ("analyzer", analyzer),
    ];
    let children: Vec<Node> = of_names(&companions, outer).collect();
    let concurrency = node_of("concurrency", children);
    Node::new("split")
        .with("id", &split.id)
        .with_some("next", split.next.as_ref())
        .and(split.elements.iter().map(|element| execution(element, outer)))
        .and(concurrency)
}

fn decision(decision: &Decision, outer: &[&str]) -> Node {
    Node::new("decision")
        .with("id", &decision.id)
        .with("decider", &decision.decider.name)
        .and(list(&decision.decider.properties, outer, None))
        .and(decision.transitions.iter().map(transition))
}

fn transition(transition: &Transition) -> Node {
    let (name, exit_status, restart) = match &transition.kind {
        TransitionKind::Next { to } => return Node::new("next").with("on", &transition.on).with("to", to),
        TransitionKind::Fail { exit_status } => ("fail", exit_status, &None),
        TransitionKind::End { exit_status } => ("end", exit_status, &None),
        TransitionKind::Stop { exit_status, restart } => ("stop", exit_status, restart),
    };
    Node::new(name)
        .with("on", &transition.on)
        .with_some("exit-status", exit_status.as_ref())
        .with_some("restart", restart.as_ref())
}

fn partition(partition: Option<&Partition>, outer: &[&str]) -> Option<Node> {
    let partition = partition?;
    let entries: Vec<Node> = partition
        .properties
        .iter()
        .map(|property| {
            let name = format!("{}.{}", property.name, property.number);
            self::property(&name, &property.value, property.target)
        })
        .collect();
    let properties = node_of("properties", entries);
    let companions = [
        ("algorithm", &partition.algorithm),
        ("logicalTX", &partition.logical_tx),
        ("collector", &partition.collector),
        ("analyzer", &partition.analyzer),
    ];
    let node = Node::new("partition")
        .with("instances", partition.instances)
        .and(properties)
        .and(of_names(&companions, outer));
    Some(node)
}

fn of_names<'a>(
    companions: &'a [(&'a str, &'a Option<ArtifactRef>)],
    outer: &'a [&'a str],
) -> impl Iterator<Item = Node> + 'a {
    companions
        .iter()
        .filter_map(move |(name, found)| found.as_ref().map(|found| artifact(name, found, outer)))
}

/// Returns a node with these children, unless there are none.
fn node_of(name: &str, children: Vec<Node>) -> Option<Node> {
    (!children.is_empty()).then(|| Node::new(name).and(children))
}

fn listeners(listeners: &[ArtifactRef], outer: &[&str]) -> Option<Node> {
    let entries = listeners.iter();
    let entries = entries.map(|listener| artifact("listener", listener, outer));
    node_of("listeners", entries.collect())
}

fn artifact(name: &str, artifact: &ArtifactRef, outer: &[&str]) -> Node {
    Node::new(name)
        .with("ref", &artifact.name)
        .and(list(&artifact.properties, outer, None))
}

/// Returns the properties that no outer element has.
fn list(properties: &[Property], outer: &[&str], target: Option<Target>) -> Option<Node> {
    let own = properties
        .iter()
        .filter(|property| !outer.contains(&property.name.value.as_str()));
    let entries: Vec<Node> = own.map(|own| property(&own.name, &own.value, target)).collect();
    node_of("properties", entries)
}

fn property(name: &str, value: &str, target: Option<Target>) -> Node {
    Node::new("property")
        .with("name", name)
        .with("value", value)
        .with_some("target", target.map(Target::as_str))
}
