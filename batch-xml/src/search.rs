//! Depth-first search over numbered nodes, without recursion: a document may chain any number of elements.

/// An event of the search.
pub(crate) enum Visit<'p> {
    /// An edge leads back to a node on the current path. Each node is there with the number of its edges that were
    /// followed, so the edge is the last one of the last node.
    Back {
        path: &'p [(usize, usize)],
        /// The place in the path that the edge leads to.
        entry: usize,
    },
    /// All nodes that can be reached from this one have been visited.
    Done(usize),
}

#[derive(Clone, Copy)]
enum State {
    New,
    /// At this place of the current path.
    OnPath(usize),
    Done,
}

/// Visits all nodes that can be reached from `starts`, edges in their order. `edges` holds the targets of each node.
pub(crate) fn depth_first(
    edges: &[Vec<usize>],
    starts: impl IntoIterator<Item = usize>,
    mut visit: impl FnMut(Visit<'_>),
) {
    let mut states = vec![State::New; edges.len()];
    for start in starts {
        let mut path = match states[start] {
            State::New => vec![(start, 0)],
            State::OnPath(_) | State::Done => continue,
        };
        states[start] = State::OnPath(0);
        while let Some((node, followed)) = path.last_mut() {
            let next = edges[*node].get(*followed).copied();
            *followed += 1;
            match next.map(|next| (next, states[next])) {
                Some((next, State::New)) => {
                    states[next] = State::OnPath(path.len());
                    path.push((next, 0));
                }
                Some((_, State::OnPath(entry))) => visit(Visit::Back { path: &path, entry }),
                Some((_, State::Done)) => {}
                None => {
                    states[*node] = State::Done;
                    visit(Visit::Done(*node));
                    path.pop();
                }
            }
        }
    }
}
