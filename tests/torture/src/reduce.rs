//! Makes a failing case smaller: without faults, elements and details that the failure does not need.

use std::time::{Duration, Instant};

use crate::case::{Case, Chunk, Element};
use crate::run::{self, Tally};
use crate::violation::Violation;
use crate::world::Databases;

/// The most runs.
const RUNS: u32 = 60;
/// The longest time.
const TIME: Duration = Duration::from_secs(600);
/// How often a smaller case may pass before it counts as one that does not fail: moments in time vary.
const TRIES: u32 = 2;

/// Returns the smallest case found that breaks the same invariant, with its violation.
pub(crate) fn smallest(databases: &Databases, case: Case, violation: Violation) -> (Case, Violation) {
    let (mut case, mut violation) = (case, violation);
    let (mut runs, begin) = (0, Instant::now());
    'smaller: loop {
        for candidate in smaller(&case) {
            for _ in 0..TRIES {
                runs += 1;
                if runs > RUNS || begin.elapsed() > TIME {
                    return (case, violation);
                }
                match run::case(databases, &candidate, None, &mut Tally::default()) {
                    Err(found) if found.invariant == violation.invariant => {
                        (case, violation) = (candidate, found);
                        continue 'smaller;
                    }
                    _ => {}
                }
            }
        }
        return (case, violation);
    }
}

/// Returns cases that lack one thing each.
fn smaller(case: &Case) -> Vec<Case> {
    let faults = (0..case.faults.len()).map(|at| {
        let mut smaller = case.clone();
        smaller.faults.remove(at);
        smaller
    });
    let alone = (0..case.faults.len()).filter(|at| case.faults[*at].killed_after.is_some());
    let alone = alone.map(|at| {
        let mut smaller = case.clone();
        smaller.faults[at].killed_after = None;
        smaller
    });
    let elements = lists_without_one(&case.elements)
        .into_iter()
        .map(|elements| Case {
            elements,
            ..case.clone()
        });
    let mut all: Vec<Case> = elements.chain(faults).chain(alone).collect();
    all.iter_mut().for_each(|case| case.seed = 0);
    all.retain(|case| is_valid(&case.elements));
    all
}

/// Returns whether decisions come after steps, and only the job can end after one.
fn is_valid(elements: &[Element]) -> bool {
    fn of_flow(elements: &[Element]) -> bool {
        let ends = matches!(
            elements.last(),
            Some(Element::Decision {
                passes_over: true,
                ..
            })
        );
        !ends && is_valid(elements)
    }
    let within = elements.iter().all(|element| match element {
        Element::Split { flows, .. } => flows.iter().all(|flow| of_flow(flow)),
        Element::Flow { elements, .. } => of_flow(elements),
        _ => true,
    });
    let is_decision = |element: &Element| matches!(element, Element::Decision { .. });
    within
        && !elements.first().is_some_and(is_decision)
        && elements
            .windows(2)
            .all(|two| !is_decision(&two[1]) || matches!(two[0], Element::Chunk(_)))
}

/// Returns the lists that lack an element, or have a smaller one.
fn lists_without_one(elements: &[Element]) -> Vec<Vec<Element>> {
    let mut lists = Vec::new();
    for at in 0..elements.len() {
        if elements.len() > 1 {
            let mut shorter = elements.to_vec();
            shorter.remove(at);
            lists.push(shorter);
        }
        for smaller in smaller_elements(&elements[at]) {
            let mut list = elements.to_vec();
            list[at] = smaller;
            lists.push(list);
        }
    }
    lists
}

fn smaller_elements(element: &Element) -> Vec<Element> {
    match element {
        Element::Chunk(chunk) => smaller_chunks(chunk).into_iter().map(Element::Chunk).collect(),
        Element::Batchlet(_) => Vec::new(),
        Element::Split { id, flows } => {
            let of_flow = |at: usize| {
                lists_without_one(&flows[at]).into_iter().map(move |flow| {
                    let mut flows = flows.clone();
                    flows[at] = flow;
                    Element::Split {
                        id: id.clone(),
                        flows,
                    }
                })
            };
            (0..flows.len()).flat_map(of_flow).collect()
        }
        Element::Flow {
            id,
            parts,
            logical_tx,
            elements,
        } => {
            let with = |parts, elements| Element::Flow {
                id: id.clone(),
                parts,
                logical_tx: *logical_tx,
                elements,
            };
            let lists = lists_without_one(elements)
                .into_iter()
                .map(|elements| with(*parts, elements));
            let fewer = (*parts > 1).then(|| with(1, elements.clone()));
            lists.chain(fewer).collect()
        }
        Element::Decision { step, .. } => vec![Element::Chunk(step.clone())],
    }
}

fn smaller_chunks(chunk: &Chunk) -> Vec<Chunk> {
    let mut all = Vec::new();
    let mut add = |changes: &dyn Fn(&mut Chunk), is_smaller: bool| {
        if is_smaller {
            let mut smaller = chunk.clone();
            changes(&mut smaller);
            all.push(smaller);
        }
    };
    add(&|chunk| chunk.parts = 1, chunk.parts > 1);
    add(&|chunk| chunk.pipeline = false, chunk.pipeline);
    add(&|chunk| chunk.processors = 1, chunk.processors > 1);
    add(&|chunk| chunk.bad_reads.clear(), !chunk.bad_reads.is_empty());
    add(&|chunk| chunk.bad_results.clear(), !chunk.bad_results.is_empty());
    add(&|chunk| chunk.bad_writes.clear(), !chunk.bad_writes.is_empty());
    add(&|chunk| chunk.transient.clear(), !chunk.transient.is_empty());
    add(&|chunk| chunk.fails_at = None, chunk.fails_at.is_some());
    add(&|chunk| chunk.logical_tx = false, chunk.logical_tx);
    add(&halve, chunk.items > 1);
    all
}

/// Halves the items, without the faults of those that are left out.
fn halve(chunk: &mut Chunk) {
    chunk.items /= 2;
    let items = chunk.items;
    for faults in [
        &mut chunk.bad_reads,
        &mut chunk.bad_results,
        &mut chunk.bad_writes,
        &mut chunk.transient,
    ] {
        faults.retain(|item| *item <= items);
    }
    chunk.fails_at = chunk.fails_at.filter(|item| *item <= items);
}
