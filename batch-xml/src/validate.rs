//! What must hold between the execution elements of a job: unique ids, existing targets, no loops, nothing
//! out of reach.

use std::collections::{HashMap, HashSet};

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::outline::{Kind, Node, Outline};
use crate::span::Spanned;
use crate::suggest;

/// Checks the whole outline.
///
/// Spec: JSL-DOC-14, JSL-DOC-15, SEQ-03, SEQ-09, SEQ-12, SEQ-25, TERM-16
pub(crate) fn validate(outline: &Outline, sink: &mut Sink) {
    check_unique(outline, sink);
    let by_id = job_level(outline);
    for node in by_id.in_order() {
        if let Some(next) = &node.next {
            check_target(outline, &by_id, "next", next, sink);
        }
        for target in &node.targets {
            check_target(outline, &by_id, target.attribute, &target.id, sink);
        }
    }
    check_cycles(&by_id, sink);
    // With a wrong transition somewhere, what it was meant to lead to only seems out of reach.
    if !sink.failed() {
        check_reach(outline, &by_id, sink);
    }
}

/// The job-level elements by id; of a duplicate id the first.
struct ById<'a> {
    nodes: Vec<&'a Node>,
    index: HashMap<&'a str, usize>,
}

impl<'a> ById<'a> {
    fn get(&self, id: &str) -> Option<&'a Node> {
        self.index.get(id).map(|index| self.nodes[*index])
    }

    fn in_order(&self) -> impl Iterator<Item = &'a Node> {
        self.nodes.iter().copied()
    }
}

fn job_level(outline: &Outline) -> ById<'_> {
    let nodes: Vec<&Node> = outline.nodes.iter().filter(|node| node.at_job_level).collect();
    let mut index = HashMap::new();
    for (position, node) in nodes.iter().enumerate() {
        index.entry(node.id.as_str()).or_insert(position);
    }
    ById { nodes, index }
}

/// Spec: JSL-DOC-14, D-77
fn check_unique(outline: &Outline, sink: &mut Sink) {
    let mut first_of: HashMap<&str, &Node> = HashMap::new();
    for node in &outline.nodes {
        if let Some(first) = first_of.get(node.id.as_str()) {
            sink.error(codes::DUPLICATE_ID, &node.id.span, |d| {
                d.message(format!("the id {} is already taken", quoted(&node.id)))
                    .label("ids are unique within a job, over all levels")
                    .related(first.id.span.clone(), "the first element of this id is here")
            });
        } else {
            first_of.insert(&node.id, node);
        }
    }
}

/// Spec: SEQ-09, SEQ-12, TERM-16
fn check_target(outline: &Outline, by_id: &ById<'_>, attribute: &str, id: &Spanned<String>, sink: &mut Sink) {
    let Some(target) = by_id.get(id) else {
        sink.error(codes::UNKNOWN_TARGET, &id.span, |d| {
            let possible = by_id
                .in_order()
                .filter(|node| !node.is_abstract)
                .map(|node| node.id.as_str());
            let is_nested = outline.nodes.iter().any(|node| node.id == *id);
            d.message(format!(
                "`{attribute}` refers to an unknown element {}",
                quoted(id)
            ))
            .label(match is_nested {
                true => "the element of this id is within a flow or split, out of reach from here",
                false => "no step, flow, split or decision has this id",
            })
            .suggestion(suggest::nearest(id, possible))
        });
        return;
    };
    let reason = match (target.is_abstract, target.kind, attribute) {
        (true, ..) => "is abstract and never executed",
        (false, Kind::Decision, "restart") => "is a decision: a job restarts at a step, flow or split",
        _ => return,
    };
    sink.error(codes::BAD_TARGET, &id.span, |d| {
        d.message(format!("{} {reason}", quoted(id)))
            .label(format!("cannot be the target of `{attribute}`"))
            .related(target.id.span.clone(), "the element is here")
    });
}

/// Finds the loops of `next` attributes. Every element has at most one, so each loop is met once by walking
/// on from every element until a known one.
///
/// Spec: SEQ-25, D-76
fn check_cycles(by_id: &ById<'_>, sink: &mut Sink) {
    let mut known: HashSet<&str> = HashSet::new();
    for start in by_id.in_order() {
        let mut path: Vec<&Node> = Vec::new();
        let mut on_path: HashMap<&str, usize> = HashMap::new();
        let mut at = Some(start);
        while let Some(node) = at.filter(|node| known.insert(&node.id)) {
            on_path.insert(&node.id, path.len());
            path.push(node);
            at = node.next.as_ref().and_then(|next| by_id.get(next));
        }
        let entry = at.and_then(|node| on_path.get(node.id.as_str()));
        if let (Some(entry), Some(next)) = (entry, path.last().and_then(|last| last.next.as_ref())) {
            let ids: Vec<String> = path[*entry..]
                .iter()
                .map(|node| &node.id)
                .chain([next])
                .map(|id| quoted(id))
                .collect();
            sink.error(codes::TRANSITION_CYCLE, &next.span, |d| {
                d.message(format!("`next` leads in a circle: {}", cut(&ids).join(" -> ")))
                    .label("this would execute an element a second time")
            });
        }
    }
}

/// A long path with its middle left out.
fn cut(ids: &[String]) -> Vec<&str> {
    const ENDS: usize = 5;
    let all = ids.iter().map(String::as_str);
    if ids.len() <= 2 * ENDS + 1 {
        return all.collect();
    }
    all.clone()
        .take(ENDS)
        .chain(["…"])
        .chain(all.skip(ids.len() - ENDS))
        .collect()
}

/// Spec: SEQ-03
fn check_reach(outline: &Outline, by_id: &ById<'_>, sink: &mut Sink) {
    let mut reached: HashSet<&str> = HashSet::new();
    let mut waiting: Vec<&Node> = outline.first().into_iter().collect();
    while let Some(node) = waiting.pop() {
        if reached.insert(&node.id) {
            let named = node.targets.iter().map(|target| &target.id).chain(&node.next);
            waiting.extend(named.filter_map(|id| by_id.get(id)));
        }
    }
    for node in by_id
        .in_order()
        .filter(|node| !node.is_abstract && !reached.contains(node.id.as_str()))
    {
        sink.warning(codes::UNREACHABLE, &node.id.span, |d| {
            d.message(format!("{} is never executed", quoted(&node.id)))
                .label("no path of transitions leads here from the first element")
                .help("only the first element starts by itself; name this one in a `next`")
        });
    }
}
