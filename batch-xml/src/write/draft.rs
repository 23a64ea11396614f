//! Writes jobs in the draft dialect.

use super::{Node, classes, node_of, transition};
use crate::model::{
    ArtifactRef, CheckpointPolicy, Chunk, Concurrency, Decision, ExecutionElement, Flow, Job, Partition,
    Property, Split, Step, StepBody, Target,
};

pub(super) fn job(job: &Job) -> Node {
    let mut node = Node::new("job").with("id", &job.id);
    if !job.restartable {
        node.set("restartable", false);
    }
    let outer: Vec<&str> = names(&job.properties);
    node.and(list(&job.properties, &[], None))
        .and(listeners(&job.listeners, &outer))
        .and(job.elements.iter().map(|element| execution(element, &outer)))
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
        .with_some(
            "processor",
            chunk.processor.as_ref().map(|processor| &processor.name),
        )
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
        (Some(&chunk.reader), Target::Reader),
        (chunk.processor.as_ref(), Target::Processor),
        (Some(&chunk.writer), Target::Writer),
    ];
    let artifacts = artifacts.into_iter();
    let lists = artifacts
        .filter_map(|(artifact, target)| Some((artifact?, target)))
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

pub(super) fn property(name: &str, value: &str, target: Option<Target>) -> Node {
    Node::new("property")
        .with("name", name)
        .with("value", value)
        .with_some("target", target.map(Target::as_str))
}
