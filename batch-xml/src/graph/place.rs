//! Computes the positions and sizes of shapes from the elements.

use super::layers::{Item, Layout, Link, Route, lay_out};
use super::svg::{Area, Line, Picture, Scene};
use super::{Edge, Exit, Group, Node};
use crate::model::ElementKind;

/// A drawn box.
struct Block {
    item: Item,
    picture: Picture,
}

const MARGIN: f64 = 12.0;
const PADDING: f64 = 18.0;
const TITLE: f64 = 30.0;
const STEP_HEIGHT: f64 = 46.0;
const DIAMOND_HEIGHT: f64 = 68.0;
const EXIT_HEIGHT: f64 = 22.0;
const EXIT_ROW: f64 = 28.0;
const LABEL_PADDING: f64 = 14.0;
/// Maximum length of a text.
const MAX_CHARS: usize = 48;

/// Lays out the whole picture.
pub(super) fn place(root: &Group) -> Scene {
    let inner = inner(root, true);
    let mut picture = Picture::default();
    picture.moved(MARGIN + inner.item.left, MARGIN, inner.picture);
    Scene {
        width: inner.item.left + inner.item.right + 2.0 * MARGIN,
        height: inner.item.height + 2.0 * MARGIN,
        picture,
    }
}

/// The lines between boxes: for the layout, and with what is drawn of them.
#[derive(Default)]
struct Lines {
    links: Vec<Link>,
    looks: Vec<(Line, Option<String>)>,
}

impl Lines {
    fn add(&mut self, from: usize, to: usize, line: Line, label: Option<String>) {
        let label = label.map(|label| cut(&label));
        self.links.push(Link {
            from,
            to,
            label: label.as_deref().map(label_width),
            // The unconditional path is the main one.
            weight: if line == Line::Always { 2.0 } else { 1.0 },
        });
        self.looks.push((line, label));
    }

    /// Returns the lines of a group whose begin and end, if it has these marks, follow its elements.
    fn of(group: &Group, marked: bool) -> Lines {
        let mut lines = Lines::default();
        let begin = group.nodes.len();
        for start in group.starts.iter().filter(|_| marked) {
            lines.add(begin, *start, Line::Always, None);
        }
        for edge in &group.edges {
            lines.add(edge.from, edge.to, line_of(edge), edge.label());
        }
        for last in group.ends.iter().filter(|_| marked) {
            lines.add(*last, begin + 1, Line::Always, None);
        }
        lines
    }
}

/// Lays out the contents of the job, a flow or a split; `marked` draws its begin and end.
fn inner(group: &Group, marked: bool) -> Block {
    let blocks: Vec<Block> = group.nodes.iter().map(node).collect();
    let mark = if group.is_split {
        Item::centered(BAR_END, 5.0, f64::INFINITY)
    } else {
        Item::centered(DOT / 2.0, DOT, 0.0)
    };
    let marks = match (marked, group.ends.is_empty()) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => 2,
    };
    let items = blocks.iter().map(|block| block.item);
    let items: Vec<Item> = items.chain(std::iter::repeat_n(mark, marks)).collect();
    let lines = Lines::of(group, marked);
    let layout = lay_out(&items, &lines.links);
    // Lines from above enter where the first element is.
    let middle = match group.starts.as_slice() {
        [first] => layout.at[*first].0,
        _ => (layout.left + layout.right) / 2.0,
    };
    let mut picture = Picture::default();
    picture.moved(-middle, 0.0, drawn(group, blocks, &lines, &layout));
    Block {
        item: Item {
            left: middle - layout.left,
            right: layout.right - middle,
            height: layout.height,
            inset: 0.0,
            port: 0.0,
        },
        picture,
    }
}

/// Draws the lines of a layout first, then its boxes and marks, and the labels on top.
fn drawn(group: &Group, blocks: Vec<Block>, lines: &Lines, layout: &Layout) -> Picture {
    let mut picture = Picture::default();
    let mut labels = Picture::default();
    for (route, (line, label)) in layout.routes.iter().zip(&lines.looks) {
        if let (Some((x, y)), Some(text)) = (route.label, label) {
            labels.label(*line, x, y, label_width(text), text);
        }
        picture.arrow(*line, route);
    }
    let begin = blocks.len();
    for (block, (x, y)) in blocks.into_iter().zip(&layout.at) {
        picture.moved(*x, *y, block.picture);
    }
    for mark in begin..layout.at.len() {
        let (x, y) = layout.at[mark];
        if group.is_split {
            let (left, right) = reach(mark, x, &lines.links, layout);
            picture.bar(left - BAR_END, y, right - left + 2.0 * BAR_END);
        } else if mark == begin {
            picture.begin(x, y + DOT / 2.0);
        } else {
            picture.end(x, y + DOT / 2.0);
        }
    }
    picture.append(labels);
    picture
}

/// Returns the extent to the left and right of the lines at a mark, whose position is `x`.
fn reach(mark: usize, x: f64, links: &[Link], layout: &Layout) -> (f64, f64) {
    let at_mark = links.iter().zip(&layout.routes).filter_map(|(link, route)| {
        let leg = match mark {
            _ if link.from == mark => route.legs.first(),
            _ if link.to == mark => route.legs.last(),
            _ => None,
        };
        leg.map(|leg| leg.0)
    });
    at_mark.fold((x, x), |(left, right), at| (left.min(at), right.max(at)))
}

const DOT: f64 = 12.0;
const BAR_END: f64 = 24.0;

fn line_of(edge: &Edge) -> Line {
    if edge.on.is_empty() {
        Line::Always
    } else {
        Line::Next
    }
}

fn node(node: &Node) -> Block {
    let mut name = cut(&node.id);
    if let Some(count) = &node.partitions {
        name.push_str(&format!(" × {count}"));
    }
    let mut block = match (&node.group, node.kind) {
        (Some(group), kind) => container(group, kind, &format!("{} {name}", kind.as_str())),
        (None, ElementKind::Decision) => decision(node, &name),
        (None, _) => step(node, &name),
    };
    if !node.exits.is_empty() {
        block = with_exits(node, block);
    }
    let tooltip = format!("{} {} ({})", node.kind.as_str(), node.id, node.place);
    Block {
        picture: block.picture.of_element(node.kind, &tooltip, node.mark.as_ref()),
        ..block
    }
}

fn step(node: &Node, name: &str) -> Block {
    let detail = cut(&node.detail);
    let half = ((text_width(name, 14.0).max(text_width(&detail, 12.0))) / 2.0 + 16.0).max(60.0);
    let mut picture = Picture::default();
    // Copies in the background show that the step is partitioned.
    let behind = if node.partitions.is_some() { 8.0 } else { 0.0 };
    for offset in [8.0, 4.0, 0.0].into_iter().filter(|offset| *offset <= behind) {
        let area = Area::new(offset - half, offset, 2.0 * half, STEP_HEIGHT);
        picture.rectangle(ElementKind::Step, area);
    }
    picture.text("name", 0.0, 19.0, name);
    picture.text("detail", 0.0, 36.0, &detail);
    Block {
        item: Item {
            left: half,
            right: half + behind,
            height: STEP_HEIGHT + behind,
            inset: 0.0,
            port: half - 12.0,
        },
        picture,
    }
}

fn decision(node: &Node, name: &str) -> Block {
    let detail = cut(&node.detail);
    let text = text_width(name, 14.0).max(text_width(&detail, 12.0));
    // The text has to fit where the diamond is narrower than at its widest.
    let half = (text / 2.0 + 10.0) * 1.45;
    let mut picture = Picture::default();
    picture.diamond(half, DIAMOND_HEIGHT);
    picture.text("name", 0.0, 32.0, name);
    picture.text("detail", 0.0, 47.0, &detail);
    Block {
        item: Item::centered(half, DIAMOND_HEIGHT, 0.0),
        picture,
    }
}

fn container(group: &Group, kind: ElementKind, title: &str) -> Block {
    let inner = inner(group, group.is_split || !is_chain(group));
    let title_width = text_width(title, 13.0) + 24.0;
    let left = inner.item.left + PADDING;
    let right = (inner.item.right + PADDING).max(title_width - left);
    let height = TITLE + inner.item.height + PADDING;
    let mut picture = Picture::default();
    picture.rectangle(kind, Area::new(-left, 0.0, left + right, height));
    picture.text("title", -left + 12.0, 19.0, title);
    picture.moved(0.0, TITLE, inner.picture);
    Block {
        item: Item {
            left,
            right,
            height,
            inset: 0.0,
            port: left.min(right) - 12.0,
        },
        picture,
    }
}

/// Returns whether the elements form a chain, which needs no marks.
fn is_chain(group: &Group) -> bool {
    let follows = |pair: &Edge| pair.to == pair.from + 1 && pair.on.is_empty();
    group.edges.len() + 1 == group.nodes.len()
        && group.edges.iter().all(follows)
        && group.ends.len() == 1
        && group.nodes.iter().all(|node| node.kind == ElementKind::Step)
}

/// Adds the exits of an element, to its right.
fn with_exits(node: &Node, Block { item, picture: own }: Block) -> Block {
    let is_decision = node.kind == ElementKind::Decision;
    let rows = (0..node.exits.len()).fold(0.0, |sum, _| sum + EXIT_ROW);
    let total = item.height.max(rows);
    // The element stays in the middle of the rows.
    let down = (total - item.height) / 2.0;
    let labels: Vec<String> = node.exits.iter().map(|exit| cut(&exit.on)).collect();
    let widest = labels.iter().map(|label| label_width(label)).fold(0.0, f64::max);
    let bend = item.right + if is_decision { 18.0 } else { 8.0 };
    let exit_left = bend + widest + 26.0;
    let mut y = (total - rows) / 2.0 + EXIT_ROW / 2.0;
    let mut right = exit_left;
    let mut picture = Picture::default();
    for (exit, label) in node.exits.iter().zip(labels) {
        let line = Line::Exit(exit.kind);
        // Lines start at the corner of a diamond, or anywhere at the side of a box; the box of a partitioned step
        // excludes its copies.
        let start = if is_decision {
            (item.right, total / 2.0)
        } else {
            (item.left, y.clamp(down + 8.0, down + STEP_HEIGHT - 8.0))
        };
        picture.arrow(line, &sideways(start, (bend, y), exit_left));
        let width = label_width(&label);
        picture.label(line, bend + width / 2.0, y, width, &label);
        right = right.max(exit_left + end(exit, exit_left, y, &mut picture));
        y += EXIT_ROW;
    }
    picture.moved(0.0, down, own);
    Block {
        item: Item {
            right,
            height: total,
            inset: down,
            ..item
        },
        picture,
    }
}

/// Returns a line to the right; its legs are horizontal.
fn sideways(from: (f64, f64), bend: (f64, f64), to: f64) -> Route {
    Route {
        legs: vec![(from.1, from.0, from.0), (bend.1, bend.0, to)],
        label: None,
    }
}

/// Draws the end of an exit, and returns its width.
fn end(exit: &Exit, left: f64, y: f64, picture: &mut Picture) -> f64 {
    let text = cut(&exit.text());
    let width = text_width(&text, 12.0) + 26.0;
    picture.exit(
        exit.kind,
        Area::new(left, y - EXIT_HEIGHT / 2.0, width, EXIT_HEIGHT),
    );
    picture.text("word", left + width / 2.0, y + 4.0, &text);
    width
}

/// Shortens a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn label_width(text: &str) -> f64 {
    text_width(text, 12.0) + LABEL_PADDING
}

/// Estimates the width of a text in a sans-serif font, rather too wide than too narrow.
fn text_width(text: &str, size: f64) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '(' | ')' => 0.34,
        'f' | 't' | 'r' | '-' | '/' | '*' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '→' => 0.92,
        'A'..='Z' | '&' | '_' => 0.72,
        _ if c.is_ascii() => 0.6,
        // Letters of other scripts may be twice as wide.
        '\u{1100}'.. => 1.05,
        _ => 0.68,
    };
    text.chars().map(of).sum::<f64>() * size
}
