//! Ranks of boxes: the first two steps of the layered layout.

use std::collections::HashSet;

use crate::search::{Visit, depth_first};

/// The boxes that a line leads from and to.
pub(super) type Ends = (usize, usize);

/// Returns the links to reverse to break all cycles: those that lead back on the current path.
pub(super) fn turned(count: usize, links: &[Ends]) -> Vec<bool> {
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (index, (from, to)) in links.iter().enumerate() {
        leaving[*from].push(index);
        edges[*from].push(*to);
    }
    let mut turned = vec![false; links.len()];
    depth_first(&edges, 0..count, |visit| {
        if let Visit::Back {
            path: [.., (from, followed)],
            ..
        } = visit
        {
            turned[leaving[*from][followed - 1]] = true;
        }
    });
    turned
}

/// Returns the layer of each box: the length of the longest path to it.
pub(super) fn layers(count: usize, links: &[Ends], turned: &[bool]) -> Vec<usize> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut open = vec![0_usize; count];
    for (link, turned) in links.iter().zip(turned) {
        let (upper, lower) = ends(*link, *turned);
        below[upper].push(lower);
        open[lower] += 1;
    }
    let mut layers = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|item| open[*item] == 0).collect();
    while let Some(item) = ready.pop() {
        for lower in &below[item] {
            layers[*lower] = layers[*lower].max(layers[item] + 1);
            open[*lower] -= 1;
            if open[*lower] == 0 {
                ready.push(*lower);
            }
        }
    }
    // Boxes without predecessors are placed right above their successors.
    let led_to: HashSet<usize> = below.iter().flatten().copied().collect();
    for item in (0..count).filter(|item| !led_to.contains(item)) {
        if let Some(next) = below[item].iter().map(|lower| layers[*lower]).min() {
            layers[item] = next - 1;
        }
    }
    layers
}

/// Returns the upper and the lower end of a link.
pub(super) fn ends((from, to): Ends, turned: bool) -> Ends {
    if turned { (to, from) } else { (from, to) }
}
