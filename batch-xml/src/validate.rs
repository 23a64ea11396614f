//! Checks the relations between the execution elements of a job: unique ids, existing targets, no loops, no
//! unreachable elements.

use std::collections::{HashMap, HashSet};

use crate::codes;
use crate::diagnostics::{Sink, quoted};
use crate::dominators::Dominators;
use crate::model::ElementKind;
use crate::outline::{JOB, Node, Outline};
use crate::search::{Visit, depth_first};
use crate::span::Spanned;
use crate::suggest;

/// Maximum number of siblings and transitions; above it, what has run before is not computed, because the time is quadratic.
const MAX_COMPARED: usize = 4_000;

/// Checks the whole outline.
// Spec: D-75, JSL-DOC-14, JSL-DOC-15, SEQ-03, SEQ-09, SEQ-10, SEQ-11, SEQ-12, SEQ-25, TERM-16, DEC-18
pub(crate) fn validate(outline: &Outline, sink: &mut Sink) {
    check_unique(outline, sink);
    check_partition_ids(outline, sink);
    let siblings = siblings(outline);
    for group in &siblings {
        for (attribute, id, from) in group.references() {
            let place = if attribute == "restart" {
                &siblings[JOB]
            } else {
                group
            };
            check_target(outline, place, from, attribute, id, sink);
        }
        check_cycles(group, sink);
        if group.kind == Some(ElementKind::Split) {
            check_predecessors(group, sink);
        }
    }
    // A wrong transition would make its intended target seem unreachable.
    if !sink.failed() {
        for group in &siblings {
            check_reach(outline, group, sink);
            check_repeats(outline, group, sink);
        }
    }
}

/// The elements that may lead to each other, by id; of duplicates the first.
struct Siblings<'a> {
    /// The kind of their container; `None` is the job.
    kind: Option<ElementKind>,
    nodes: Vec<&'a Node>,
    index: HashMap<&'a str, usize>,
}

fn siblings(outline: &Outline) -> Vec<Siblings<'_>> {
    let mut groups: Vec<Siblings<'_>> = outline
        .containers()
        .map(|(_, kind)| Siblings {
            kind,
            nodes: Vec::new(),
            index: HashMap::new(),
        })
        .collect();
    for node in &outline.nodes {
        let group = &mut groups[node.container];
        group.index.entry(&node.id).or_insert(group.nodes.len());
        group.nodes.push(node);
    }
    groups
}

impl<'a> Siblings<'a> {
    fn get(&self, id: &str) -> Option<&'a Node> {
        self.index.get(id).map(|index| self.nodes[*index])
    }

    /// Returns every id in an attribute, with the attribute and the element it belongs to.
    fn references(&self) -> impl Iterator<Item = (&'static str, &'a Spanned<String>, &'a Node)> {
        self.nodes.iter().flat_map(|node| {
            let next = node.next.iter().map(|id| ("next", id, *node));
            next.chain(
                node.targets
                    .iter()
                    .map(|target| (target.attribute, &target.id, *node)),
            )
        })
    }

    /// Returns the elements that a restart of the job may start with.
    fn restarts<'o>(&'o self, outline: &'o Outline) -> impl Iterator<Item = &'a Node> + 'o {
        let nested = |node: &&Node| node.container != JOB;
        // A stop within a flow or split stops all of it.
        let stops_within = outline.nodes.iter().filter(nested).any(|node| node.restarts_here);
        let here = self.nodes.iter().copied().filter(move |node| {
            node.restarts_here || stops_within && matches!(node.kind, ElementKind::Flow | ElementKind::Split)
        });
        let named = outline.nodes.iter().flat_map(|node| &node.targets);
        let named = named.filter(|target| target.attribute == "restart");
        here.chain(named.filter_map(|target| self.get(&target.id)))
            .filter(|_| self.kind.is_none())
    }

    /// Returns the element that is executed first.
    // Spec: SEQ-01, FLOW-11
    fn first(&self) -> Option<&'a Node> {
        let mut nodes = self.nodes.iter().copied();
        nodes.find(|node| !node.is_abstract && node.kind != ElementKind::Decision)
    }
}

/// Returns the siblings that an element leads to.
fn successors(node: &Node) -> impl Iterator<Item = &Spanned<String>> {
    let targets = node.targets.iter().filter(|target| target.attribute == "to");
    node.next.iter().chain(targets.map(|target| &target.id))
}

// Spec: JSL-DOC-14, D-77
fn check_unique(outline: &Outline, sink: &mut Sink) {
    let mut first_of: HashMap<&str, &Node> = HashMap::new();
    for node in &outline.nodes {
        let Some(first) = first_of.get(node.id.as_str()) else {
            first_of.insert(&node.id, node);
            continue;
        };
        sink.error(codes::DUPLICATE_ID, &node.id.span, |d| {
            let d = d
                .message(format!("duplicate id {}", quoted(&node.id)))
                .label("ids are unique within a job, across all levels");
            if node.id.span.is(&first.id.span) {
                return d.help("several elements inherit this one; give each of them its own id");
            }
            d.related(first.id.span.clone(), "the first element of this id is here")
        });
    }
}

// Spec: D-75
fn check_partition_ids(outline: &Outline, sink: &mut Sink) {
    let partitioned = outline.nodes.iter().filter(|node| node.is_partitioned);
    let partitioned: HashMap<&str, &Node> = partitioned.map(|node| (node.id.as_str(), node)).collect();
    for node in &outline.nodes {
        let Some((of, rest)) = node
            .id
            .match_indices(':')
            .map(|(at, _)| (&node.id[..at], &node.id[at + 1..]))
            .find_map(|(of, rest)| Some((partitioned.get(of)?, rest)))
        else {
            continue;
        };
        let number = rest.split_once('/').map_or(rest, |(number, _)| number);
        if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) {
            sink.error(codes::PARTITION_ID, &node.id.span, |d| {
                d.message(format!(
                    "the id {} is the name of a partition of {}",
                    quoted(&node.id),
                    quoted(&of.id)
                ))
                .label("the job repository cannot distinguish them")
                .related(of.id.span.clone(), "the partitioned element is here")
            });
        }
    }
}

// Spec: SEQ-09, SEQ-10, SEQ-11, SEQ-12, TERM-16, DEC-09, FLOW-07, SPLIT-09
fn check_target(
    outline: &Outline,
    siblings: &Siblings<'_>,
    from: &Node,
    attribute: &str,
    id: &Spanned<String>,
    sink: &mut Sink,
) {
    let Some(target) = siblings.get(id) else {
        sink.error(codes::UNKNOWN_TARGET, &id.span, |d| {
            let possible = siblings.nodes.iter().filter(|node| !node.is_abstract);
            let is_elsewhere = outline.nodes.iter().any(|node| node.id == *id);
            d.message(format!(
                "`{attribute}` refers to an unknown element {}",
                quoted(id)
            ))
            .label(match (is_elsewhere, siblings.kind) {
                (false, None) => "no step, flow, split or decision has this id",
                (false, Some(ElementKind::Split)) => "no flow or decision of this split has this id",
                (false, Some(_)) => "no step or decision of this flow has this id",
                (true, None) => {
                    "the element with this id is in a flow or split, and cannot be reached from here"
                }
                (true, Some(ElementKind::Split)) => "a split can only lead to its own flows and decisions",
                (true, Some(_)) => "a flow can only lead to its own steps and decisions",
            })
            .suggestion(suggest::nearest(id, possible.map(|node| node.id.as_str())))
        });
        return;
    };
    let reason = match (target.kind, attribute) {
        _ if target.is_abstract => "is abstract and never executed",
        (ElementKind::Decision, "restart") => "is a decision, but a job restarts at a step, flow or split",
        (ElementKind::Decision, _) if from.kind == ElementKind::Decision => {
            "is a decision, but a decision leads to a step, flow or split"
        }
        _ => return,
    };
    sink.error(codes::BAD_TARGET, &id.span, |d| {
        d.message(format!("{} {reason}", quoted(id)))
            .label(format!("cannot be the target of `{attribute}`"))
            .related(target.id.span.clone(), "the element is here")
    });
}

/// Finds loops of `next` attributes; in a split, where elements run at most once, loops of all transitions.
// Spec: SEQ-25, SPLIT-11, D-29, D-76
fn check_cycles(siblings: &Siblings<'_>, sink: &mut Sink) {
    let all = siblings.kind == Some(ElementKind::Split);
    let steps: Vec<Vec<(usize, &Spanned<String>)>> = siblings
        .nodes
        .iter()
        .map(|node| {
            let ids = successors(node).filter(|id| all || node.next.as_ref() == Some(id));
            ids.filter_map(|id| Some((*siblings.index.get(id.as_str())?, id)))
                .collect()
        })
        .collect();
    let targets = |steps: &Vec<(usize, &Spanned<String>)>| steps.iter().map(|(to, _)| *to).collect();
    let edges: Vec<Vec<usize>> = steps.iter().map(targets).collect();
    depth_first(&edges, 0..edges.len(), |visit| {
        let Visit::Back { path, entry } = visit else {
            return;
        };
        let (last, followed) = path[path.len() - 1];
        let (_, back) = steps[last][followed - 1];
        let ids = path[entry..].iter().map(|(node, _)| &siblings.nodes[*node].id);
        let ids: Vec<String> = ids.chain([back]).map(|id| quoted(id)).collect();
        sink.error(codes::TRANSITION_CYCLE, &back.span, |d| {
            d.message(format!("`next` is circular: {}", cut(&ids).join(" -> ")))
                .label("this would execute an element a second time")
        });
    });
}

// Spec: SPLIT-11, D-29
fn check_predecessors(split: &Siblings<'_>, sink: &mut Sink) {
    let mut first_of: HashMap<&str, (&Node, &Spanned<String>)> = HashMap::new();
    let steps = split
        .nodes
        .iter()
        .flat_map(|node| successors(node).map(|id| (*node, id)));
    for (node, id) in steps {
        match first_of.get(id.as_str()) {
            // A decision takes only one of its transitions.
            Some((first, _)) if first.id == node.id => {}
            Some((_, first)) => sink.error(codes::SPLIT_TARGET, &id.span, |d| {
                d.message(format!(
                    "{} follows more than one element of the split",
                    quoted(id)
                ))
                .label("flows run in parallel, so it would run more than once")
                .related(first.span.clone(), "already follows here")
            }),
            None => {
                first_of.insert(id, (node, id));
            }
        }
    }
}

/// Shortens a long path in the middle.
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

// Spec: SEQ-03, SPLIT-06, D-29
fn check_reach(outline: &Outline, siblings: &Siblings<'_>, sink: &mut Sink) {
    let mut waiting: Vec<&Node> = Vec::new();
    if siblings.kind.is_none() {
        // A stop in a flow lets the job restart at one of its own elements.
        let nested = outline.nodes.iter().filter(|node| node.container != JOB);
        let targets = nested.flat_map(|node| &node.targets);
        let restarts = targets.filter(|target| target.attribute == "restart");
        waiting.extend(restarts.filter_map(|target| siblings.get(&target.id)));
    }
    if siblings.kind == Some(ElementKind::Split) {
        let targets: HashSet<&str> = siblings
            .nodes
            .iter()
            .flat_map(|node| successors(node).map(|id| id.as_str()))
            .collect();
        let flows = siblings
            .nodes
            .iter()
            .filter(|node| node.kind == ElementKind::Flow);
        waiting.extend(flows.filter(|flow| !targets.contains(flow.id.as_str())));
    } else {
        waiting.extend(siblings.first());
    }
    let mut reached: HashSet<&str> = HashSet::new();
    while let Some(node) = waiting.pop() {
        if reached.insert(&node.id) {
            let named = node
                .targets
                .iter()
                .filter(|target| target.attribute == "to" || siblings.kind.is_none());
            let ids = named.map(|target| &target.id).chain(&node.next);
            waiting.extend(ids.filter_map(|id| siblings.get(id)));
        }
    }
    let unreached = siblings
        .nodes
        .iter()
        .filter(|node| !node.is_abstract && !reached.contains(node.id.as_str()));
    for node in unreached {
        sink.warning(codes::UNREACHABLE, &node.id.span, |d| {
            let d = d.message(format!("{} is never executed", quoted(&node.id)));
            if siblings.kind == Some(ElementKind::Split) {
                return d.label("no flow of the split leads here");
            }
            d.label("no path of transitions leads here from the first element")
                .help("only the first element starts by itself; refer to this one in a `next`")
        });
    }
}

/// Warns about transitions back to an element that has run on every path. Other loops depend on exit statuses and are
/// left to the execution.
// Spec: SEQ-25, D-76
fn check_repeats(outline: &Outline, siblings: &Siblings<'_>, sink: &mut Sink) {
    // In a split it is an error.
    if siblings.kind == Some(ElementKind::Split) {
        return;
    }
    let index_of = |id: &Spanned<String>| siblings.index.get(id.as_str()).copied();
    let nodes = siblings.nodes.iter();
    let size: usize = nodes.map(|node| 1 + successors(node).count()).sum();
    let dominators = (size <= MAX_COMPARED).then(|| {
        let nodes = siblings.nodes.iter();
        let next: Vec<Vec<usize>> = nodes
            .map(|node| successors(node).filter_map(index_of).collect())
            .collect();
        let entries = siblings.first().into_iter().chain(siblings.restarts(outline));
        let entries: Vec<usize> = entries.filter_map(|node| index_of(&node.id)).collect();
        Dominators::of(&next, &entries)
    });
    for (at, node) in siblings.nodes.iter().enumerate() {
        for to in successors(node) {
            let Some(target) = index_of(to) else { continue };
            let has_run = match &dominators {
                Some(dominators) => dominators.dominates(target, at),
                None => target == at,
            };
            if has_run {
                sink.warning(codes::REPEATED, &to.span, |d| {
                    let d = d
                        .message(format!(
                            "this transition always fails: {} has run before",
                            quoted(to)
                        ))
                        .label("a job execution runs each element once, so the job fails here");
                    if siblings.kind.is_some() || siblings.nodes[target].kind == ElementKind::Decision {
                        return d;
                    }
                    d.help(format!(
                        "to run it again, stop the job and restart it: `<stop on=\"..\" restart=\"{}\"/>`",
                        to.value
                    ))
                });
            }
        }
    }
}
