//! The dominators of a graph: the nodes that every path to a node passes. Knows no jobs.
//!
//! The algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".

use crate::search::{Visit, depth_first};

/// The dominators of a graph with several entry nodes.
pub(crate) struct Dominators {
    /// The nearest node that every path to a node passes, by node. The last one is a virtual root, which leads to
    /// the entries.
    nearest: Vec<Option<usize>>,
}

impl Dominators {
    /// Computes the dominators. `successors` lists the nodes that each node leads to.
    pub(crate) fn of(successors: &[Vec<usize>], entries: &[usize]) -> Dominators {
        let outside = successors.len();
        let mut edges = successors.to_vec();
        edges.push(entries.to_vec());
        // The reachable nodes in post-order; the virtual root is the last.
        let mut order = Vec::new();
        depth_first(&edges, [outside], |visit| match visit {
            Visit::Done(node) => order.push(node),
            Visit::Back { .. } => {}
        });
        let mut number = vec![0; outside + 1];
        for (position, node) in order.iter().enumerate() {
            number[*node] = position;
        }
        let mut predecessors = vec![Vec::new(); outside];
        for entry in entries {
            predecessors[*entry].push(outside);
        }
        for (node, next) in successors.iter().enumerate() {
            next.iter().for_each(|next| predecessors[*next].push(node));
        }
        let mut nearest = vec![None; outside + 1];
        nearest[outside] = Some(outside);
        let mut changed = true;
        while changed {
            changed = false;
            for node in order.iter().rev().filter(|node| **node != outside) {
                let mut common: Option<usize> = None;
                for before in &predecessors[*node] {
                    if nearest[*before].is_some() {
                        common =
                            Some(common.map_or(*before, |other| meet(&nearest, &number, other, *before)));
                    }
                }
                changed |= nearest[*node] != common;
                nearest[*node] = common;
            }
        }
        Dominators { nearest }
    }

    /// Returns whether `node` is reachable and every path to it passes `before`. A node dominates itself.
    pub(crate) fn dominates(&self, before: usize, node: usize) -> bool {
        let outside = self.nearest.len() - 1;
        let mut at = self.nearest[node].map(|_| node);
        while let Some(here) = at {
            if here == before {
                return true;
            }
            at = self.nearest[here].filter(|_| here != outside);
        }
        false
    }
}

/// Returns the nearest node that dominates both.
fn meet(nearest: &[Option<usize>], number: &[usize], mut one: usize, mut other: usize) -> usize {
    while one != other {
        if number[one] > number[other] {
            std::mem::swap(&mut one, &mut other);
        }
        // Dominated nodes come first in the order, so the virtual root is the last one left.
        one = nearest[one].unwrap_or(other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the definition: without `before` there is no path.
    fn check(successors: &[Vec<usize>], entries: &[usize]) {
        let dominators = Dominators::of(successors, entries);
        let reached = |without: Option<usize>| {
            let mut seen = vec![false; successors.len()];
            let mut waiting = entries.to_vec();
            while let Some(node) = waiting.pop() {
                if Some(node) != without && !std::mem::replace(&mut seen[node], true) {
                    waiting.extend(&successors[node]);
                }
            }
            seen
        };
        let all = reached(None);
        for before in 0..successors.len() {
            let rest = reached(Some(before));
            for node in 0..successors.len() {
                assert_eq!(
                    dominators.dominates(before, node),
                    all[node] && !rest[node],
                    "{before} before {node} in {successors:?} from {entries:?}"
                );
            }
        }
    }

    #[test]
    fn small_graphs() {
        check(&[], &[]);
        check(&[vec![0]], &[0]);
        check(&[vec![1], vec![2], vec![0]], &[0]);
        check(&[vec![1, 2], vec![3], vec![3], vec![1]], &[0]);
        check(&[vec![1], vec![2], vec![0]], &[0, 2]);
        check(&[vec![], vec![0], vec![1]], &[0]);
    }

    /// A pseudo-random sample: all graphs of four nodes would be 65,536.
    #[test]
    fn many_graphs() {
        for seed in 0..20_000_u32 {
            let bits = seed.wrapping_mul(2_654_435_761);
            let leads = |from: usize, to: usize| bits >> (from * 5 + to) & 1 == 1;
            let successors: Vec<Vec<usize>> = (0..5)
                .map(|from| (0..5).filter(|to| leads(from, *to)).collect())
                .collect();
            check(&successors, &[0]);
            check(&successors, &[1, 3]);
        }
    }
}
