//! The history of a job: durations and items of its latest executions, as SVG.

use std::fmt::Write as _;

use super::rows::ExecutionRow;
use super::{Escaped, scaled};

const WIDTH: u64 = 920;
const LEFT: u64 = 70;
const HEIGHT: u64 = 140;
/// The room for the times.
const BOTTOM: u64 = 20;
const TOP: u64 = 14;
/// The widest bar, in units of the drawing.
const WIDEST: u64 = 26;

/// A quantity of each execution.
#[derive(Clone, Copy)]
pub(crate) enum Quantity {
    Duration,
    Written,
}

impl Quantity {
    fn of(self, row: &ExecutionRow) -> u64 {
        match self {
            Self::Duration => row.millis,
            Self::Written => u64::try_from(row.written.0).unwrap_or(0),
        }
    }

    fn text(self, value: u64) -> String {
        match self {
            Self::Duration => super::round(value),
            Self::Written => super::Count(i64::try_from(value).unwrap_or(i64::MAX)).to_string(),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Duration => "Duration of the latest executions",
            Self::Written => "Items written by the latest executions",
        }
    }
}

/// Draws a bar for each execution, the latest at the right edge. `executions` is the URL of their pages.
pub(crate) fn draw(rows: &[ExecutionRow], quantity: Quantity, executions: &str) -> String {
    // One that runs, perhaps for days because it hangs, would flatten the others.
    let ended = rows.iter().filter(|row| !row.is_open);
    let most = ended.map(|row| quantity.of(row)).max();
    let most = most
        .unwrap_or_else(|| rows.iter().map(|row| quantity.of(row)).max().unwrap_or(0))
        .max(1);
    let room = WIDTH - LEFT;
    let pitch = (room / (rows.len() as u64).max(1)).clamp(3, WIDEST + 8);
    let bar = (pitch * 3 / 4).max(2);
    let plot = HEIGHT - TOP - BOTTOM;
    let title = quantity.title();
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"group\" aria-label=\"{title}\">\n"
    );
    for (value, y) in [(most, TOP), (most / 2, TOP + plot / 2), (0, TOP + plot)] {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{WIDTH}\" y2=\"{y}\"/>\
             <text class=\"scale\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 8,
            y + 4,
            Escaped(&quantity.text(value))
        );
    }
    let mut first = WIDTH;
    for (index, row) in rows
        .iter()
        .take(usize::try_from(room / pitch).unwrap_or(0))
        .enumerate()
    {
        let value = quantity.of(row);
        let height = scaled(value, plot, most).max(2);
        let x = WIDTH - pitch * (index as u64 + 1) + (pitch - bar) / 2;
        first = x;
        // Out of the order of the keyboard: the table below has the same links.
        let _ = writeln!(
            svg,
            "<a href=\"{executions}/{id}\" tabindex=\"-1\"><title>execution {id}, {created}: {status}, {text}</title>\
             <rect class=\"bar {class}\" x=\"{x}\" y=\"{y}\" width=\"{bar}\" height=\"{height}\" rx=\"2\"/></a>",
            id = row.id,
            created = Escaped(&row.created.text),
            status = row.pill.text,
            text = Escaped(&quantity.text(value)),
            class = row.pill.class,
            y = TOP + plot - height,
        );
    }
    times(&mut svg, rows, first);
    svg.push_str("</svg>\n");
    svg
}

/// Writes when the first and the last of the executions were created.
fn times(svg: &mut String, rows: &[ExecutionRow], first: u64) {
    /// About the width of a time.
    const TIME: u64 = 130;
    let (Some(latest), Some(oldest)) = (rows.first(), rows.last()) else {
        return;
    };
    let y = HEIGHT - 4;
    let minutes = |row: &ExecutionRow| {
        let text = &row.created.text;
        text.get(..16).unwrap_or(text).to_owned()
    };
    let _ = writeln!(
        svg,
        "<text class=\"scale\" x=\"{WIDTH}\" y=\"{y}\">{}</text>",
        Escaped(&minutes(latest))
    );
    if first + 2 * TIME < WIDTH {
        let _ = writeln!(
            svg,
            "<text class=\"from\" x=\"{first}\" y=\"{y}\">{}</text>",
            Escaped(&minutes(oldest))
        );
    }
}
