//! Builds the graph from the model.

use std::collections::{HashMap, HashSet};

use super::{Edge, Exit, ExitKind, Group, Node};
use crate::model::{
    ArtifactRef, Chunk, ElementKind, ExecutionElement, Partition, StepBody, Transition, TransitionKind,
};
use crate::span::Spanned;

/// Builds the graph of the elements of a job (`None`), flow or split.
pub(super) fn group(elements: &[ExecutionElement], within: Option<ElementKind>) -> Group {
    let index: HashMap<&str, usize> = elements
        .iter()
        .enumerate()
        .map(|(index, element)| (element.id().value.as_str(), index))
        .collect();
    let mut edges = Edges::default();
    let mut ends = Vec::new();
    let mut nodes = Vec::with_capacity(elements.len());
    for (from, element) in elements.iter().enumerate() {
        let mut exits = Vec::new();
        let mut has_next = false;
        for transition in element.transitions() {
            match exit(transition) {
                Some(exit) => exits.push(exit),
                None => {
                    has_next = true;
                    let to = target(transition).and_then(|id| index.get(id));
                    match to {
                        Some(to) if *to == from => exits.push(again(transition)),
                        Some(to) => edges.add(from, *to, Some(&transition.on)),
                        None => {}
                    }
                }
            }
        }
        if let Some(to) = element.next().and_then(|next| index.get(next.value.as_str())) {
            edges.add(from, *to, None);
        } else if !has_next && !matches!(element, ExecutionElement::Decision(_)) {
            // With `next` elements, one of them has to match. Spec: SEQ-20
            ends.push(from);
        }
        nodes.push(node(element, exits));
    }
    let edges = edges.all;
    let is_split = within == Some(ElementKind::Split);
    let starts = if is_split {
        let led_to: HashSet<usize> = edges.iter().map(|edge| edge.to).collect();
        let flows = (0..nodes.len()).filter(|node| nodes[*node].kind == ElementKind::Flow);
        flows.filter(|flow| !led_to.contains(flow)).collect()
    } else {
        let first = nodes.iter().position(|node| node.kind != ElementKind::Decision);
        first.into_iter().collect()
    };
    Group {
        nodes,
        edges,
        starts,
        ends,
        is_split,
    }
}

/// Edges, with parallel ones merged.
#[derive(Default)]
struct Edges {
    all: Vec<Edge>,
    known: HashMap<(usize, usize, bool), usize>,
}

impl Edges {
    fn add(&mut self, from: usize, to: usize, on: Option<&str>) {
        let all = &mut self.all;
        let edge = *self.known.entry((from, to, on.is_some())).or_insert_with(|| {
            all.push(Edge {
                from,
                to,
                on: Vec::new(),
            });
            all.len() - 1
        });
        all[edge].on.extend(on.map(str::to_owned));
    }
}

fn node(element: &ExecutionElement, exits: Vec<Exit>) -> Node {
    let kind = element.kind();
    let detail = match element {
        ExecutionElement::Step(step) => match &step.body {
            StepBody::Chunk(chunk) => chunk_detail(chunk),
            StepBody::Batchlet(batchlet) => batchlet_detail(batchlet),
        },
        ExecutionElement::Decision(decision) => decision.decider.name.value.clone(),
        ExecutionElement::Flow(_) | ExecutionElement::Split(_) => String::new(),
    };
    let is_container = matches!(kind, ElementKind::Flow | ElementKind::Split);
    Node {
        kind,
        id: element.id().value.clone(),
        detail,
        partitions: element.partition().map(count),
        exits,
        group: is_container.then(|| group(element.elements(), Some(kind))),
        place: element.span().to_string(),
        mark: None,
    }
}

/// Returns the name of a batchlet. The one of `batch-items` that runs another job also names that job.
fn batchlet_detail(batchlet: &ArtifactRef) -> String {
    let name = &batchlet.name.value;
    match batchlet.property("job").filter(|_| name == "runJob") {
        Some(job) => format!("{name} {}", job.value),
        None => name.clone(),
    }
}

fn chunk_detail(chunk: &Chunk) -> String {
    let artifacts = [Some(&chunk.reader), chunk.processor.as_ref(), Some(&chunk.writer)];
    let names = artifacts
        .into_iter()
        .flatten()
        .map(|artifact| artifact.name.value.as_str());
    names.collect::<Vec<_>>().join(" → ")
}

// Spec: PART-03, PART-18
fn count(partition: &Partition) -> String {
    match partition.algorithm {
        Some(_) => "n".to_owned(),
        None => partition.instances.to_string(),
    }
}

fn target(transition: &Transition) -> Option<&str> {
    match &transition.kind {
        TransitionKind::Next { to } => Some(&to.value),
        _ => None,
    }
}

fn exit(transition: &Transition) -> Option<Exit> {
    let (kind, status, restart) = match &transition.kind {
        TransitionKind::Next { .. } => return None,
        TransitionKind::End { exit_status } => (ExitKind::End, exit_status, &None),
        TransitionKind::Fail { exit_status } => (ExitKind::Fail, exit_status, &None),
        TransitionKind::Stop { exit_status, restart } => (ExitKind::Stop, exit_status, restart),
    };
    let text = |value: &Option<Spanned<String>>| value.as_ref().map(|value| value.value.clone());
    let restart_text = text(restart).map(|id| format!("↺ {id}"));
    let details = text(status).into_iter().chain(restart_text);
    Some(Exit {
        kind,
        on: transition.on.to_string(),
        detail: details.collect::<Vec<_>>().join(" "),
        restart: text(restart),
    })
}

fn again(transition: &Transition) -> Exit {
    Exit {
        kind: ExitKind::Again,
        on: transition.on.to_string(),
        detail: String::new(),
        restart: None,
    }
}
