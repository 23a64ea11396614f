//! The timeline of steps and partitions, as SVG.

use std::fmt::Write as _;

use super::escape::{Escaped, class};
use super::{Run, duration};
use crate::print::cut;

const NAMES: u64 = 190;
const BARS: u64 = 640;
const RIGHT: u64 = 90;
const ROW: u64 = 26;
const BAR: u64 = 16;
const TOP: u64 = 30;
/// The number of intervals between the time marks.
const MARKS: u64 = 4;
/// Maximum length of a name; longer ones are cut.
const LONGEST_NAME: usize = 26;
/// Maximum number of steps in the picture; a longer one would be hard to read.
const MOST_ROWS: usize = 200;

/// Returns an SVG element with a bar for each step, from its start to its end.
pub(super) fn svg(run: &Run) -> String {
    let shown = run.steps.len().min(MOST_ROWS);
    let start = run.start();
    let end = run
        .steps
        .iter()
        .filter_map(|step| step.ended)
        .fold(run.end(), Ord::max);
    let whole = end.millis_since(start).max(1);
    let width = NAMES + BARS + RIGHT;
    let height = TOP + shown as u64 * ROW + 10;
    let x = |millis: u64| NAMES + millis.min(whole) * BARS / whole;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n\
         <title>When each step ran</title>\n"
    );
    for mark in 0..=MARKS {
        let millis = whole * mark / MARKS;
        let (x, bottom) = (x(millis), height - 8);
        let _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{bottom}\"/>\
             <text class=\"time\" x=\"{x}\" y=\"16\">{}</text>",
            TOP - 8,
            duration(millis)
        );
    }
    for (row, step) in run.steps.iter().take(shown).enumerate() {
        let from = x(step.started.millis_since(start));
        let to = x(step.ended.unwrap_or(run.now).millis_since(start)).max(from + 2);
        let y = TOP + row as u64 * ROW;
        let text = y + BAR - 4;
        let took = duration(step.ended.unwrap_or(run.now).millis_since(step.started));
        // Partitions are indented under their step.
        let indent = if step.step_name.contains(':') { 14 } else { 0 };
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"{indent}\" y=\"{text}\">{}</text>\
             <rect class=\"{}\" x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"{BAR}\" rx=\"3\"/>\
             <text class=\"took\" x=\"{}\" y=\"{text}\">{took}</text>",
            Escaped(&cut(&step.step_name, LONGEST_NAME)),
            class(step.status),
            to - from,
            to + 6
        );
    }
    svg.push_str("</svg>\n");
    if shown < run.steps.len() {
        let _ = writeln!(svg, "<p>{} more are not drawn.</p>", run.steps.len() - shown);
    }
    svg
}
