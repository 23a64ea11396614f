//! Computes the positions and sizes of shapes from the elements.

use super::layers::{Item, Layout, Link, Route, lay_out};
use super::{Edge, Exit, ExitKind, Group, Node, NodeKind};

/// A part of the picture. Coordinates count from the middle of the upper edge of its parent.
#[derive(Debug)]
pub(super) enum Shape {
    /// Translated shapes.
    Moved(f64, f64, Vec<Shape>),
    /// An element, with its tooltip.
    Element(NodeKind, String, Vec<Shape>),
    /// A rectangle: left, top, width, height.
    Rectangle(Look, f64, f64, f64, f64),
    /// A diamond around the middle: half its width, its height.
    Diamond(Look, f64, f64),
    /// The end of a transition out of the job: left, top, width, height.
    Exit(ExitKind, f64, f64, f64, f64),
    /// A text: its start or middle, and its baseline.
    Text(Writing, f64, f64, String),
    /// The pattern of a transition: its middle and width.
    Label(Line, f64, f64, f64, String),
    /// A line with an arrow at its end.
    Arrow(Line, Route),
    /// The start of a job or flow: the middle.
    Begin(f64, f64),
    /// The end of a job or flow: the middle.
    End(f64, f64),
    /// The bar where the flows of a split part or meet: left, top, width.
    Bar(f64, f64, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Step,
    Decision,
    Flow,
    Split,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// The id of an element, centered.
    Name,
    /// Its description.
    Detail,
    /// The title at the upper left of a container.
    Title,
    /// The text of an exit.
    Exit,
}

/// Lines by their condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The attribute `next`, or an implicit edge.
    Always,
    /// The element `next`.
    Next,
    Exit(ExitKind),
}

/// The whole picture.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The shapes; coordinates count from the upper left.
    pub(super) shapes: Vec<Shape>,
}

/// Shapes with their size.
struct Block {
    item: Item,
    shapes: Vec<Shape>,
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
    let width = inner.item.left + inner.item.right + 2.0 * MARGIN;
    Scene {
        width,
        height: inner.item.height + 2.0 * MARGIN,
        shapes: vec![Shape::Moved(MARGIN + inner.item.left, MARGIN, inner.shapes)],
    }
}

/// Lays out the contents of the job, a flow or a split; `marked` draws its begin and end.
fn inner(group: &Group, marked: bool) -> Block {
    let mut blocks: Vec<Block> = group.nodes.iter().map(node).collect();
    let count = blocks.len();
    let (begin, end) = (count, count + 1);
    let mut links: Vec<Link> = Vec::new();
    let mut lines: Vec<(Line, Option<String>)> = Vec::new();
    let mut link = |from, to, line, label: Option<String>| {
        let label = label.map(|label| cut(&label));
        links.push(Link {
            from,
            to,
            label: label.as_deref().map(label_width),
            // The unconditional path is the main one.
            weight: if line == Line::Always { 2.0 } else { 1.0 },
        });
        lines.push((line, label));
    };
    if marked {
        let mark = if group.is_split { bar() } else { dot() };
        blocks.push(Block {
            item: mark,
            shapes: Vec::new(),
        });
        for start in &group.starts {
            link(begin, *start, Line::Always, None);
        }
        if !group.ends.is_empty() {
            blocks.push(Block {
                item: mark,
                shapes: Vec::new(),
            });
        }
    }
    for edge in &group.edges {
        link(edge.from, edge.to, line_of(edge), edge.label());
    }
    if marked {
        for last in &group.ends {
            link(*last, end, Line::Always, None);
        }
    }
    let items: Vec<Item> = blocks.iter().map(|block| block.item).collect();
    let layout = lay_out(&items, &links);
    // Lines from above enter where the first element is.
    let middle = match group.starts.as_slice() {
        [first] => layout.at[*first].0,
        _ => (layout.left + layout.right) / 2.0,
    };
    let item = Item {
        left: middle - layout.left,
        right: layout.right - middle,
        height: layout.height,
        inset: 0.0,
        port: 0.0,
    };
    let marks = if marked {
        marks(group, &layout, &links, begin)
    } else {
        Vec::new()
    };
    let mut shapes = Vec::new();
    let mut labels = Vec::new();
    for (route, (line, label)) in layout.routes.into_iter().zip(lines) {
        if let (Some((x, y)), Some(text)) = (route.label, label) {
            labels.push(Shape::Label(line, x, y, label_width(&text), text));
        }
        shapes.push(Shape::Arrow(line, route));
    }
    let placed = blocks.into_iter().zip(&layout.at);
    shapes.extend(placed.map(|(block, (x, y))| Shape::Moved(*x, *y, block.shapes)));
    shapes.extend(marks);
    shapes.extend(labels);
    Block {
        item,
        shapes: vec![Shape::Moved(-middle, 0.0, shapes)],
    }
}

/// Draws begin and end.
fn marks(group: &Group, layout: &Layout, links: &[Link], begin: usize) -> Vec<Shape> {
    let mut marks = Vec::new();
    for mark in begin..layout.at.len() {
        let (x, y) = layout.at[mark];
        if !group.is_split {
            marks.push(if mark == begin {
                Shape::Begin(x, y + DOT / 2.0)
            } else {
                Shape::End(x, y + DOT / 2.0)
            });
            continue;
        }
        // The bar is as long as its lines require.
        let at_mark = links.iter().zip(&layout.routes).filter_map(|(link, route)| {
            let leg = match mark {
                _ if link.from == mark => route.legs.first(),
                _ if link.to == mark => route.legs.last(),
                _ => None,
            };
            leg.map(|leg| leg.0)
        });
        let (left, right) = at_mark.fold((x, x), |(left, right), at| (left.min(at), right.max(at)));
        marks.push(Shape::Bar(left - BAR_END, y, right - left + 2.0 * BAR_END));
    }
    marks
}

const DOT: f64 = 12.0;
const BAR_END: f64 = 24.0;

fn dot() -> Item {
    Item {
        left: DOT / 2.0,
        right: DOT / 2.0,
        height: DOT,
        inset: 0.0,
        port: 0.0,
    }
}

fn bar() -> Item {
    Item {
        left: BAR_END,
        right: BAR_END,
        height: 5.0,
        inset: 0.0,
        port: f64::INFINITY,
    }
}

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
    let Block { mut item, mut shapes } = match (&node.group, node.kind) {
        (Some(group), kind) => container(group, kind, &format!("{} {name}", kind.word())),
        (None, NodeKind::Decision) => decision(node, name),
        (None, _) => step(node, name),
    };
    if !node.exits.is_empty() {
        exits(node, &mut item, &mut shapes);
    }
    let pointer = format!("{} {} ({})", node.kind.word(), node.id, node.place);
    Block {
        item,
        shapes: vec![Shape::Element(node.kind, pointer, shapes)],
    }
}

fn step(node: &Node, name: String) -> Block {
    let detail = cut(&node.detail);
    let half = ((text_width(&name, 14.0).max(text_width(&detail, 12.0))) / 2.0 + 16.0).max(60.0);
    let mut shapes = Vec::new();
    let mut right = half;
    let mut height = STEP_HEIGHT;
    if node.partitions.is_some() {
        // Copies behind the step show that it is partitioned.
        for behind in [8.0, 4.0] {
            shapes.push(Shape::Rectangle(
                Look::Step,
                behind - half,
                behind,
                2.0 * half,
                STEP_HEIGHT,
            ));
        }
        right += 8.0;
        height += 8.0;
    }
    shapes.push(Shape::Rectangle(Look::Step, -half, 0.0, 2.0 * half, STEP_HEIGHT));
    shapes.push(Shape::Text(Writing::Name, 0.0, 19.0, name));
    shapes.push(Shape::Text(Writing::Detail, 0.0, 36.0, detail));
    Block {
        item: Item {
            left: half,
            right,
            height,
            inset: 0.0,
            port: half - 12.0,
        },
        shapes,
    }
}

fn decision(node: &Node, name: String) -> Block {
    let detail = cut(&node.detail);
    let text = text_width(&name, 14.0).max(text_width(&detail, 12.0));
    // The text has to fit where the diamond is narrower than at its widest.
    let half = (text / 2.0 + 10.0) * 1.45;
    Block {
        item: Item {
            left: half,
            right: half,
            height: DIAMOND_HEIGHT,
            inset: 0.0,
            port: 0.0,
        },
        shapes: vec![
            Shape::Diamond(Look::Decision, half, DIAMOND_HEIGHT),
            Shape::Text(Writing::Name, 0.0, 32.0, name),
            Shape::Text(Writing::Detail, 0.0, 47.0, detail),
        ],
    }
}

fn container(group: &Group, kind: NodeKind, title: &str) -> Block {
    let is_split = kind == NodeKind::Split;
    let inner = inner(group, is_split || !is_chain(group));
    let title_width = text_width(title, 13.0) + 24.0;
    let left = inner.item.left + PADDING;
    let right = (inner.item.right + PADDING).max(title_width - left);
    let height = TITLE + inner.item.height + PADDING;
    let look = if is_split { Look::Split } else { Look::Flow };
    Block {
        item: Item {
            left,
            right,
            height,
            inset: 0.0,
            port: left.min(right) - 12.0,
        },
        shapes: vec![
            Shape::Rectangle(look, -left, 0.0, left + right, height),
            Shape::Text(Writing::Title, -left + 12.0, 19.0, title.to_owned()),
            Shape::Moved(0.0, TITLE, inner.shapes),
        ],
    }
}

/// Returns whether the elements form a chain, which needs no marks.
fn is_chain(group: &Group) -> bool {
    let follows = |pair: &Edge| pair.to == pair.from + 1 && pair.on.is_empty();
    group.edges.len() + 1 == group.nodes.len()
        && group.edges.iter().all(follows)
        && group.ends.len() == 1
        && group.nodes.iter().all(|node| node.kind == NodeKind::Step)
}

/// Draws the exits to the right of an element.
fn exits(node: &Node, item: &mut Item, shapes: &mut Vec<Shape>) {
    let from = item.right;
    let count = node.exits.len();
    let rows = (0..count).fold(0.0, |sum, _| sum + EXIT_ROW);
    let own_height = item.height;
    let total = own_height.max(rows);
    // The element stays in the middle of the rows.
    let down = (total - own_height) / 2.0;
    let own = std::mem::take(shapes);
    let labels: Vec<String> = node.exits.iter().map(|exit| cut(&exit.on)).collect();
    let widest = labels.iter().map(|label| label_width(label)).fold(0.0, f64::max);
    let bend = from
        + if node.kind == NodeKind::Decision {
            18.0
        } else {
            8.0
        };
    let exit_left = bend + widest + 26.0;
    let mut y = (total - rows) / 2.0 + EXIT_ROW / 2.0;
    let middle = total / 2.0;
    let mut right = exit_left;
    for (exit, label) in node.exits.iter().zip(labels) {
        let line = Line::Exit(exit.kind);
        // Lines start at the corner of a diamond, or anywhere at the side of a box.
        let start = match node.kind {
            NodeKind::Decision => middle,
            _ => y.clamp(down + 8.0, down + STEP_HEIGHT - 8.0),
        };
        let edge = match node.kind {
            NodeKind::Decision => from,
            // The side of a partitioned step excludes the copies behind it.
            _ => item.left,
        };
        shapes.push(Shape::Arrow(line, sideways((edge, start), (bend, y), exit_left)));
        let width = label_width(&label);
        shapes.push(Shape::Label(line, bend + width / 2.0, y, width, label));
        right = right.max(exit_left + end(exit, exit_left, y, shapes));
        y += EXIT_ROW;
    }
    shapes.push(Shape::Moved(0.0, down, own));
    item.right = right;
    item.height = total;
    item.inset = down;
}

/// Returns a line to the right; its legs are horizontal.
fn sideways(from: (f64, f64), bend: (f64, f64), to: f64) -> Route {
    Route {
        legs: vec![(from.1, from.0, from.0), (bend.1, bend.0, to)],
        label: None,
    }
}

/// Draws the end of an exit, and returns its width.
fn end(exit: &Exit, left: f64, y: f64, shapes: &mut Vec<Shape>) -> f64 {
    let text = cut(&exit.text());
    let width = text_width(&text, 12.0) + 26.0;
    shapes.push(Shape::Exit(
        exit.kind,
        left,
        y - EXIT_HEIGHT / 2.0,
        width,
        EXIT_HEIGHT,
    ));
    shapes.push(Shape::Text(Writing::Exit, left + width / 2.0, y + 4.0, text));
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
