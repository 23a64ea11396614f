//! Writes jobs in the dialect of Jakarta Batch.

use super::{Node, classes, node_of, transition};
use crate::dialect::JAKARTA_NAMESPACES;
use crate::model::{
    ArtifactRef, CheckpointPolicy, Chunk, Decision, ExecutionElement, Flow, Job, Partition, Property, Split,
    Step, StepBody,
};

pub(super) fn job(job: &Job) -> Node {
    let mut node = Node::new("job")
        .with("xmlns", JAKARTA_NAMESPACES[0])
        .with("version", "2.0")
        .with("id", &job.id);
    if !job.restartable {
        node.set("restartable", false);
    }
    node.and(list(&job.properties))
        .and(listeners(&job.listeners))
        .and(job.elements.iter().map(execution))
}

fn execution(element: &ExecutionElement) -> Node {
    match element {
        ExecutionElement::Step(step) => self::step(step),
        ExecutionElement::Flow(flow) => self::flow(flow),
        ExecutionElement::Split(split) => self::split(split),
        ExecutionElement::Decision(decision) => self::decision(decision),
    }
}

fn step(step: &Step) -> Node {
    let mut node = Node::new("step").with("id", &step.id);
    if step.start_limit > 0 {
        node.set("start-limit", step.start_limit);
    }
    if step.allow_start_if_complete {
        node.set("allow-start-if-complete", true);
    }
    let body = match &step.body {
        StepBody::Chunk(chunk) => self::chunk(chunk),
        StepBody::Batchlet(batchlet) => artifact("batchlet", batchlet),
    };
    node.with_some("next", step.next.as_ref())
        .and(list(&step.properties))
        .and(listeners(&step.listeners))
        .and([body])
        .and(step.partition.as_ref().map(partition))
        .and(step.transitions.iter().map(transition))
}

fn chunk(chunk: &Chunk) -> Node {
    let mut node = Node::new("chunk");
    match chunk.checkpoint_policy.value {
        CheckpointPolicy::Item | CheckpointPolicy::Time => node.set("item-count", chunk.commit_interval),
        CheckpointPolicy::Custom => node.set("checkpoint-policy", "custom"),
    }
    node.with_some("time-limit", chunk.time_limit)
        .with_some("skip-limit", chunk.skip_limit)
        .with_some("retry-limit", chunk.retry_limit)
        .and([artifact("reader", &chunk.reader)])
        .and(
            chunk
                .processor
                .as_ref()
                .map(|processor| artifact("processor", processor)),
        )
        .and([artifact("writer", &chunk.writer)])
        .and(
            chunk
                .checkpoint_algorithm
                .as_ref()
                .map(|found| artifact("checkpoint-algorithm", found)),
        )
        .and(classes("skippable-exception-classes", &chunk.skippable))
        .and(classes("retryable-exception-classes", &chunk.retryable))
        .and(classes("no-rollback-exception-classes", &chunk.no_rollback))
}

fn flow(flow: &Flow) -> Node {
    Node::new("flow")
        .with("id", &flow.id)
        .with_some("next", flow.next.as_ref())
        .and(flow.elements.iter().map(execution))
}

fn split(split: &Split) -> Node {
    Node::new("split")
        .with("id", &split.id)
        .with_some("next", split.next.as_ref())
        .and(split.elements.iter().map(execution))
}

fn decision(decision: &Decision) -> Node {
    artifact("decision", &decision.decider)
        .with("id", &decision.id)
        .and(decision.transitions.iter().map(transition))
}

fn partition(partition: &Partition) -> Node {
    let companion =
        |name: &'static str, found: &Option<ArtifactRef>| found.as_ref().map(|found| artifact(name, found));
    let plan = match &partition.algorithm {
        Some(mapper) => artifact("mapper", mapper),
        None => plan(partition),
    };
    Node::new("partition")
        .and([plan])
        .and(companion("collector", &partition.collector))
        .and(companion("analyzer", &partition.analyzer))
        .and(companion("reducer", &partition.logical_tx))
}

/// Returns the plan, with one list for each partition that has properties.
fn plan(partition: &Partition) -> Node {
    let mut lists: Vec<(u32, Vec<Node>)> = Vec::new();
    for own in &partition.properties {
        let number = own.number.get() - 1;
        let entry = property(&own.name, &own.value);
        match lists.iter_mut().find(|(of, _)| *of == number) {
            Some((_, entries)) => entries.push(entry),
            None => lists.push((number, vec![entry])),
        }
    }
    let lists = lists.into_iter().map(|(number, entries)| {
        let list = Node::new("properties").with("partition", number);
        list.and(entries)
    });
    Node::new("plan")
        .with("partitions", partition.instances)
        .with_some("threads", partition.threads)
        .and(lists)
}

fn listeners(listeners: &[ArtifactRef]) -> Option<Node> {
    let entries = listeners.iter().map(|listener| artifact("listener", listener));
    node_of("listeners", entries.collect())
}

fn artifact(name: &str, artifact: &ArtifactRef) -> Node {
    Node::new(name)
        .with("ref", &artifact.name)
        .and(list(&artifact.properties))
}

fn list(properties: &[Property]) -> Option<Node> {
    let entries = properties.iter().map(|own| property(&own.name, &own.value));
    node_of("properties", entries.collect())
}

fn property(name: &str, value: &str) -> Node {
    Node::new("property").with("name", name).with("value", value)
}
