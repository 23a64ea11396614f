//! Layered layout of boxes and lines, from top to bottom. Knows no jobs.
//!
//! Follows Sugiyama: reverse lines until there is no cycle, assign layers, split long lines into pieces of one layer,
//! reduce crossings, and move boxes to their neighbors. Labels have the odd layers, so they never overlap boxes.

use super::rank::{Ends, ends, layers, turned};

/// A box. Lines attach along its middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Extent to the left and right of its middle.
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) height: f64,
    /// Distance of the lines' attachment points from the upper and lower edges.
    pub(super) inset: f64,
    /// Maximum distance of the lines' attachment points from the middle; infinite, if the box grows with its lines.
    pub(super) port: f64,
}

impl Item {
    /// Creates a box that reaches equally far to the left and right.
    pub(super) fn centered(half: f64, height: f64, port: f64) -> Item {
        Item {
            left: half,
            right: half,
            height,
            inset: 0.0,
            port,
        }
    }
}

/// A line between two boxes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Width of its label, if it has one.
    pub(super) label: Option<f64>,
    /// Weight of straightening it.
    pub(super) weight: f64,
}

/// The finished layout.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The middle and the upper edge of each box.
    pub(super) at: Vec<(f64, f64)>,
    pub(super) routes: Vec<Route>,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) height: f64,
}

/// The route of a line: vertical legs, to be joined by curves.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// The position from the left, the start and the end of each leg.
    pub(super) legs: Vec<(f64, f64, f64)>,
    /// The middle of the label.
    pub(super) label: Option<(f64, f64)>,
}

const BOX_GAP: f64 = 28.0;
const LINE_GAP: f64 = 14.0;
/// Between layers; every second layer is for labels.
const LAYER_GAP: f64 = 17.0;
const LABEL_HEIGHT: f64 = 20.0;
/// Between two lines of one box.
const PORT_GAP: f64 = 22.0;
/// Maximum number of pieces of long lines. Further lines are drawn straight, across boxes.
const MAX_PIECES: usize = 50_000;
/// Maximum distance of a box from the upper edge of its layer.
const MAX_DROP: f64 = 40.0;
const SWEEPS: usize = 8;
const ACROSS_SWEEPS: usize = 32;
/// Lines with a smaller offset are straightened.
const ALMOST: f64 = 70.0;

/// A box, or the piece of a long line in one layer.
struct Vertex {
    item: Item,
    layer: usize,
    is_piece: bool,
    /// The neighbors, with the weights of their lines.
    above: Vec<(usize, f64)>,
    below: Vec<(usize, f64)>,
}

struct Drawing {
    vertices: Vec<Vertex>,
    /// The vertices of each layer, from left to right.
    layers: Vec<Vec<usize>>,
    /// The vertices of each link from the upper box to the lower one; whether it was reversed; its label.
    chains: Vec<(Vec<usize>, bool, Option<usize>)>,
}

/// Lays out boxes and lines. A line must not start and end at the same box.
pub(super) fn lay_out(items: &[Item], links: &[Link]) -> Layout {
    let ends: Vec<Ends> = links.iter().map(|link| (link.from, link.to)).collect();
    let turned = turned(items.len(), &ends);
    let layers = layers(items.len(), &ends, &turned);
    let mut drawing = Drawing::new(items, links, &turned, &layers);
    drawing.order();
    let x = drawing.across();
    drawing.finish(items.len(), &x)
}

impl Drawing {
    fn new(items: &[Item], links: &[Link], turned: &[bool], layers: &[usize]) -> Drawing {
        let vertices = items.iter().zip(layers).map(|(item, layer)| Vertex {
            item: *item,
            layer: 2 * layer,
            is_piece: false,
            above: Vec::new(),
            below: Vec::new(),
        });
        let mut drawing = Drawing {
            vertices: vertices.collect(),
            layers: vec![Vec::new(); layers.iter().max().map_or(0, |most| 2 * most + 1)],
            chains: Vec::with_capacity(links.len()),
        };
        let mut left = MAX_PIECES;
        for (link, turned) in links.iter().zip(turned) {
            let (upper, lower) = ends((link.from, link.to), *turned);
            let pieces = drawing.vertices[upper].layer + 1..drawing.vertices[lower].layer;
            let mut chain = vec![upper];
            let mut label = None;
            if pieces.len() <= left {
                left -= pieces.len();
                // The label is placed where the line starts.
                let at = if *turned { pieces.end - 1 } else { pieces.start };
                for layer in pieces {
                    let width = link.label.filter(|_| layer == at);
                    label = width.map(|_| drawing.vertices.len()).or(label);
                    chain.push(drawing.vertices.len());
                    drawing.vertices.push(piece(layer, width));
                }
            }
            chain.push(lower);
            if chain.len() > 2 {
                // A reversed line may take a detour.
                let weight = if *turned { link.weight / 4.0 } else { link.weight };
                for pair in chain.windows(2) {
                    drawing.vertices[pair[0]].below.push((pair[1], weight));
                    drawing.vertices[pair[1]].above.push((pair[0], weight));
                }
            }
            drawing.chains.push((chain, *turned, label));
        }
        for (index, vertex) in drawing.vertices.iter().enumerate() {
            drawing.layers[vertex.layer].push(index);
        }
        drawing
    }

    /// Orders every layer by its neighbors, down and up in turn, and keeps the best order.
    fn order(&mut self) {
        self.sort(true);
        let mut best = (self.crossings(), self.layers.clone());
        for sweep in 1..SWEEPS {
            if best.0 == 0 {
                break;
            }
            self.sort(sweep % 2 == 0);
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    fn sort(&mut self, down: bool) {
        let mut place = vec![0.0; self.vertices.len()];
        for layer in self.sweep(down) {
            let mut keyed: Vec<(f64, usize)> = Vec::with_capacity(self.layers[layer].len());
            for (position, vertex) in self.layers[layer].iter().enumerate() {
                let joined = self.joined(*vertex, down);
                let sum: f64 = joined.iter().map(|(other, _)| place[*other]).sum();
                let key = if joined.is_empty() {
                    as_f64(position)
                } else {
                    sum / as_f64(joined.len())
                };
                keyed.push((key, *vertex));
            }
            // Equal ones keep their order.
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (position, (_, vertex)) in keyed.iter().enumerate() {
                place[*vertex] = as_f64(position);
            }
            self.layers[layer] = keyed.into_iter().map(|(_, vertex)| vertex).collect();
        }
    }

    /// Returns the layers in the order of a sweep.
    fn sweep(&self, down: bool) -> impl Iterator<Item = usize> + use<> {
        let count = self.layers.len();
        (0..count).map(move |step| if down { step } else { count - 1 - step })
    }

    fn joined(&self, vertex: usize, above: bool) -> &[(usize, f64)] {
        let vertex = &self.vertices[vertex];
        if above { &vertex.above } else { &vertex.below }
    }

    /// Counts the crossings between adjacent layers.
    fn crossings(&self) -> usize {
        let mut position = vec![0; self.vertices.len()];
        for layer in &self.layers {
            for (index, vertex) in layer.iter().enumerate() {
                position[*vertex] = index;
            }
        }
        let mut crossings = 0;
        for pair in self.layers.windows(2) {
            // Lines are sorted by their upper end; those that are inverted at the lower end cross.
            let mut seen = vec![0_usize; pair[1].len() + 1];
            let mut count = 0;
            for vertex in &pair[0] {
                let mut lower: Vec<usize> = self.vertices[*vertex]
                    .below
                    .iter()
                    .map(|(other, _)| position[*other])
                    .collect();
                lower.sort_unstable();
                for at in lower {
                    crossings += count - sum_to(&seen, at);
                    add(&mut seen, at);
                    count += 1;
                }
            }
        }
        crossings
    }

    /// Returns the middle of each vertex, from the left.
    fn across(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.vertices.len()];
        for layer in &self.layers {
            let mut at = 0.0;
            for pair in layer.windows(2) {
                at += self.distance(pair[0], pair[1]);
                x[pair[1]] = at;
            }
            layer.iter().for_each(|vertex| x[*vertex] -= at / 2.0);
        }
        for sweep in 0..ACROSS_SWEEPS {
            let down = sweep % 2 == 0;
            // The last sweeps take both sides into account.
            let both = sweep + SWEEPS >= ACROSS_SWEEPS;
            for layer in self.sweep(down) {
                self.settle(&self.layers[layer], down || both, !down || both, &mut x);
            }
        }
        self.straighten(&mut x);
        x
    }

    /// Moves the vertices of a layer towards the middle of their neighbors, keeping order and distances: minimizes
    /// the sum of squares by merging vertices that would come too close.
    fn settle(&self, layer: &[usize], above: bool, below: bool, x: &mut [f64]) {
        struct Run {
            sum: f64,
            weight: f64,
            count: usize,
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut offset = 0.0;
        let mut offsets = Vec::with_capacity(layer.len());
        for (position, vertex) in layer.iter().enumerate() {
            if position > 0 {
                offset += self.distance(layer[position - 1], *vertex);
            }
            offsets.push(offset);
            let sides = [(above, true), (below, false)];
            let joined = sides.into_iter().filter(|(wanted, _)| *wanted);
            let joined = joined.flat_map(|(_, side)| self.joined(*vertex, side));
            let (mut sum, mut weights) = (0.0, 0.0);
            for (other, weight) in joined {
                // A box that grows with its lines does not pull them.
                let grows = self.vertices[*other].item.port.is_infinite();
                let weight = if grows { weight / 1_000.0 } else { *weight };
                sum += weight * x[*other];
                weights += weight;
            }
            let wish = if weights > 0.0 { sum / weights } else { x[*vertex] };
            // Long lines are easier to follow if they are straight.
            let weight = if self.vertices[*vertex].is_piece { 3.0 } else { 1.0 };
            let mut run = Run {
                sum: (wish - offset) * weight,
                weight,
                count: 1,
            };
            while let Some(before) = runs.pop_if(|before| before.sum / before.weight > run.sum / run.weight) {
                run.sum += before.sum;
                run.weight += before.weight;
                run.count += before.count;
            }
            runs.push(run);
        }
        let places = runs
            .iter()
            .flat_map(|run| std::iter::repeat_n(run.sum / run.weight, run.count));
        for ((vertex, offset), place) in layer.iter().zip(offsets).zip(places) {
            x[*vertex] = place + offset;
        }
    }

    /// Straightens lines that are almost straight, if there is room.
    fn straighten(&self, x: &mut [f64]) {
        for down in [true, false] {
            for layer in self.sweep(down) {
                let layer = &self.layers[layer];
                for (position, vertex) in layer.iter().enumerate() {
                    let Some(main) = self.main(*vertex, down) else {
                        continue;
                    };
                    let left = position.checked_sub(1).map_or(f64::NEG_INFINITY, |left| {
                        x[layer[left]] + self.distance(layer[left], *vertex)
                    });
                    let right = layer
                        .get(position + 1)
                        .map_or(f64::INFINITY, |right| x[*right] - self.distance(*vertex, *right));
                    // A line without a label may bend anywhere.
                    let Vertex { item, is_piece, .. } = &self.vertices[*vertex];
                    let is_free = *is_piece && item.height == 0.0;
                    let is_near = (x[main] - x[*vertex]).abs() < ALMOST;
                    if (is_near || is_free) && (left..=right).contains(&x[main]) {
                        x[*vertex] = x[main];
                    }
                }
            }
        }
    }

    /// Returns the neighbor on one side with the greatest weight.
    fn main(&self, vertex: usize, above: bool) -> Option<usize> {
        let joined = self.joined(vertex, above);
        let most = joined.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let mut main = joined.iter().filter(|(_, weight)| *weight == most);
        let (main, None) = (main.next()?.0, main.next()) else {
            return None;
        };
        // A box that grows with its lines has no fixed place.
        self.vertices[main].item.port.is_finite().then_some(main)
    }

    /// Returns the minimum distance between the middles of neighbors.
    fn distance(&self, left: usize, right: usize) -> f64 {
        let (left, right) = (&self.vertices[left], &self.vertices[right]);
        let gap = if left.is_piece || right.is_piece {
            LINE_GAP
        } else {
            BOX_GAP
        };
        left.item.right + gap + right.item.left
    }

    fn finish(&self, items: usize, x: &[f64]) -> Layout {
        let mut tops = Vec::with_capacity(self.layers.len());
        let mut y = 0.0;
        for (index, layer) in self.layers.iter().enumerate() {
            let heights = layer.iter().map(|vertex| self.vertices[*vertex].item.height);
            let height = heights.fold(0.0, f64::max);
            tops.push((y, y + height));
            y += height;
            if index + 1 < self.layers.len() {
                y += LAYER_GAP;
            }
        }
        // Boxes of similar height are aligned by their middles, others by their upper edges.
        let top = |vertex: usize| {
            let (from, to) = tops[self.vertices[vertex].layer];
            from + ((to - from - self.vertices[vertex].item.height) / 2.0).min(MAX_DROP)
        };
        let lefts = (0..x.len()).map(|vertex| x[vertex] - self.vertices[vertex].item.left);
        let rights = (0..x.len()).map(|vertex| x[vertex] + self.vertices[vertex].item.right);
        let mut layout = Layout {
            at: (0..items).map(|item| (x[item], top(item))).collect(),
            left: lefts.fold(f64::INFINITY, f64::min),
            right: rights.fold(f64::NEG_INFINITY, f64::max),
            height: y,
            ..Layout::default()
        };
        let ports = self.ports(x);
        for (index, (chain, turned, label)) in self.chains.iter().enumerate() {
            let mut legs = Vec::with_capacity(chain.len());
            for (position, vertex) in chain.iter().enumerate() {
                let (from, to) = tops[self.vertices[*vertex].layer];
                let Item { height, inset, .. } = self.vertices[*vertex].item;
                if position == 0 {
                    legs.push((ports[index].0, top(*vertex) + height - inset, to));
                } else if position + 1 == chain.len() {
                    legs.push((ports[index].1, from, top(*vertex) + inset));
                } else if from < to {
                    legs.push((x[*vertex], from, to));
                }
            }
            if *turned {
                legs.reverse();
                legs.iter_mut().for_each(|leg| *leg = (leg.0, leg.2, leg.1));
            }
            let middle = |vertex: &usize| (x[*vertex], top(*vertex) + LABEL_HEIGHT / 2.0);
            layout.routes.push(Route {
                legs,
                label: label.as_ref().map(middle),
            });
        }
        layout
    }

    /// Returns where each link leaves its upper box and enters its lower one, from the left.
    fn ports(&self, x: &[f64]) -> Vec<(f64, f64)> {
        let mut ports = vec![(0.0, 0.0); self.chains.len()];
        // The links on the lower and upper side of each box, with their other ends.
        let mut sides: Vec<[Vec<(f64, usize)>; 2]> =
            self.vertices.iter().map(|_| Default::default()).collect();
        for (index, (chain, ..)) in self.chains.iter().enumerate() {
            let (upper, lower) = (chain[0], chain[chain.len() - 1]);
            sides[upper][0].push((x[chain[1]], index));
            sides[lower][1].push((x[chain[chain.len() - 2]], index));
        }
        for (vertex, sides) in sides.iter_mut().enumerate() {
            let port = self.vertices[vertex].item.port;
            for (side, links) in sides.iter_mut().enumerate() {
                links.sort_by(|a, b| a.0.total_cmp(&b.0));
                let count = as_f64(links.len());
                let gap = PORT_GAP.min(2.0 * port / count);
                for (position, (other, index)) in links.iter().enumerate() {
                    let at = if port.is_infinite() || (links.len() == 1 && (other - x[vertex]).abs() <= port)
                    {
                        *other
                    } else {
                        x[vertex] + (as_f64(position) - (count - 1.0) / 2.0) * gap
                    };
                    match side {
                        0 => ports[*index].0 = at,
                        _ => ports[*index].1 = at,
                    }
                }
            }
        }
        ports
    }
}

fn piece(layer: usize, label: Option<f64>) -> Vertex {
    let half = label.unwrap_or_default() / 2.0;
    Vertex {
        item: Item::centered(half, label.map_or(0.0, |_| LABEL_HEIGHT), 0.0),
        layer,
        is_piece: true,
        above: Vec::new(),
        below: Vec::new(),
    }
}

/// Returns the sum of a Fenwick tree up to and including a place.
fn sum_to(tree: &[usize], place: usize) -> usize {
    let mut sum = 0;
    let mut at = place + 1;
    while at > 0 {
        sum += tree[at];
        at &= at - 1;
    }
    sum
}

fn add(tree: &mut [usize], place: usize) {
    let mut at = place + 1;
    while at < tree.len() {
        tree[at] += 1;
        at += at & at.wrapping_neg();
    }
}

/// Counts of boxes are far below the 2^53 that an `f64` represents exactly.
#[expect(clippy::cast_precision_loss, reason = "counts of boxes are small")]
fn as_f64(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Item = Item {
        left: 40.0,
        right: 40.0,
        height: 30.0,
        inset: 0.0,
        port: 30.0,
    };

    fn link(from: usize, to: usize) -> Link {
        Link {
            from,
            to,
            label: None,
            weight: 1.0,
        }
    }

    fn overlap(a: (f64, f64), b: (f64, f64)) -> bool {
        (a.0 - b.0).abs() < BOX.left + BOX.right && (a.1 - b.1).abs() < BOX.height
    }

    #[track_caller]
    fn check(count: usize, links: &[Link]) -> Layout {
        let layout = lay_out(&vec![BOX; count], links);
        for a in 0..count {
            for b in a + 1..count {
                assert!(!overlap(layout.at[a], layout.at[b]), "{a} {b}: {:?}", layout.at);
            }
        }
        layout
    }

    #[test]
    fn a_chain_is_straight() {
        let layout = check(3, &[link(0, 1), link(1, 2)]);
        assert!(layout.at.iter().all(|at| at.0 == layout.at[0].0));
        assert!(layout.at.is_sorted_by(|a, b| a.1 < b.1));
        for route in &layout.routes {
            assert!(route.legs.iter().all(|leg| leg.0 == layout.at[0].0));
        }
    }

    #[test]
    fn branches_stand_side_by_side_and_their_parent_in_the_middle() {
        let layout = check(4, &[link(0, 1), link(0, 2), link(1, 3), link(2, 3)]);
        assert_eq!(layout.at[1].1, layout.at[2].1);
        let middle = (layout.at[1].0 + layout.at[2].0) / 2.0;
        assert!((layout.at[0].0 - middle).abs() < 0.01, "{:?}", layout.at);
    }

    #[test]
    fn a_way_back_goes_up() {
        let layout = check(2, &[link(0, 1), link(1, 0)]);
        let legs = &layout.routes[1].legs;
        let (first, last) = (legs[0], legs[legs.len() - 1]);
        assert!(first.1 > last.2, "{legs:?}");
        assert_ne!(
            layout.routes[0].legs[1].0, layout.routes[1].legs[1].0,
            "side by side"
        );
    }

    #[test]
    fn lines_that_need_not_cross_do_not() {
        // The second layer is named in the wrong order.
        let layout = check(6, &[link(0, 2), link(0, 1), link(1, 3), link(2, 4), link(2, 5)]);
        let left_to_right = layout.at[1].0 < layout.at[2].0;
        assert_eq!(left_to_right, layout.at[3].0 < layout.at[4].0);
    }

    #[test]
    fn a_long_line_keeps_clear_of_boxes() {
        let layout = check(4, &[link(0, 1), link(1, 2), link(2, 3), link(0, 3)]);
        for leg in &layout.routes[3].legs {
            for at in &layout.at[1..3] {
                let beside = (leg.0 - at.0).abs() > BOX.left;
                let apart = leg.1 > at.1 + BOX.height || leg.2 < at.1;
                assert!(beside || apart, "{leg:?} {at:?}");
            }
        }
    }

    #[test]
    fn labels_of_one_box_stand_side_by_side() {
        let wide = |to| Link {
            from: 0,
            to,
            label: Some(100.0),
            weight: 1.0,
        };
        let layout = check(3, &[wide(1), wide(2)]);
        let labels: Vec<f64> = layout
            .routes
            .iter()
            .filter_map(|route| Some(route.label?.0))
            .collect();
        assert_eq!(labels.len(), 2);
        assert!((labels[0] - labels[1]).abs() >= 100.0, "{labels:?}");
    }

    #[test]
    fn nothing_is_laid_out_as_nothing() {
        assert!(lay_out(&[], &[]).at.is_empty());
    }

    /// Long lines from every box, whose pieces would take gigabytes.
    #[test]
    fn many_long_lines_are_bounded() {
        let count = 5_000;
        let chain = (1..count).map(|to| link(to - 1, to));
        let long = (0..count - 2).map(|from| link(from, count - 1));
        let links: Vec<Link> = chain.chain(long).collect();
        let layout = lay_out(&vec![BOX; count], &links);
        let legs: usize = layout.routes.iter().map(|route| route.legs.len()).sum();
        assert!(legs <= MAX_PIECES + 2 * links.len());
    }
}
