//! The history of a job: durations and items of its latest executions, as SVG.

use std::fmt::Write as _;

use super::rows::ExecutionRow;
use super::{Escaped, duration};

const WIDTH: u64 = 920;
const LEFT: u64 = 70;
const HEIGHT: u64 = 130;
const BOTTOM: u64 = 4;
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
            Self::Duration => duration(value),
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

/// Draws a bar for each execution, the latest to the right. `executions` is the URL of their pages.
pub(crate) fn draw(rows: &[ExecutionRow], quantity: Quantity, executions: &str) -> String {
    let most = rows.iter().map(|row| quantity.of(row)).max().unwrap_or(0).max(1);
    let room = WIDTH - LEFT;
    let pitch = (room / (rows.len() as u64).max(1)).clamp(3, WIDEST + 8);
    let bar = (pitch * 3 / 4).max(2);
    let plot = HEIGHT - TOP - BOTTOM;
    let title = quantity.title();
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n"
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
    for (index, row) in rows.iter().rev().enumerate() {
        let value = quantity.of(row);
        let height = (value * plot / most).max(2);
        let x = LEFT + 4 + index as u64 * pitch;
        let _ = writeln!(
            svg,
            "<a href=\"{executions}/{id}\"><title>execution {id}: {status}, {text}</title>\
             <rect class=\"bar {class}\" x=\"{x}\" y=\"{y}\" width=\"{bar}\" height=\"{height}\" rx=\"2\"/></a>",
            id = row.id,
            status = row.pill.text,
            text = Escaped(&quantity.text(value)),
            class = row.pill.class,
            y = TOP + plot - height,
        );
    }
    svg.push_str("</svg>\n");
    svg
}
