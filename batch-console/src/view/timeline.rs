//! The timeline of steps and partitions, as SVG.

use std::fmt::Write as _;

use batch_runtime::Timestamp;
use batch_runtime::execution::StepExecution;

use super::rows::StepRow;
use super::{Escaped, duration};

const NAMES: u64 = 200;
const BARS: u64 = 640;
const RIGHT: u64 = 80;
const ROW: u64 = 28;
const BAR: u64 = 16;
const TOP: u64 = 30;
/// The longest name, in characters; the rest is in the tooltip.
const LONGEST_NAME: usize = 28;
/// The number of rows that are drawn; more would be hard to read.
const MOST_ROWS: usize = 100;
/// The steps between marks, in milliseconds: the first that gives at most [`MOST_MARKS`].
const MARK_STEPS: [u64; 19] = [
    1, 5, 10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000,
    3_600_000, 7_200_000, 21_600_000, 86_400_000,
];
const MOST_MARKS: u64 = 6;

/// Draws a bar for each step, from its start to its end. `link` is the page of the execution.
pub(crate) fn draw(
    steps: &[StepExecution],
    is_dead: bool,
    begin: Timestamp,
    now: Timestamp,
    link: &str,
) -> String {
    let shown = &steps[..steps.len().min(MOST_ROWS)];
    let end_of = |step: &StepExecution| match step.ended {
        Some(ended) => ended,
        None if is_dead || step.status.is_final() => step.last_updated,
        None => now,
    };
    let end = shown.iter().map(end_of).max().unwrap_or(begin);
    let whole = end.millis_since(begin).max(1);
    let x = |time: Timestamp| NAMES + time.millis_since(begin).min(whole) * BARS / whole;
    let (width, height) = (NAMES + BARS + RIGHT, TOP + shown.len() as u64 * ROW + 6);
    let mut svg = format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"When each step ran\">\n"
    );
    marks(&mut svg, whole, height);
    for (row, step) in shown.iter().enumerate() {
        let view = StepRow::new(step, is_dead, now);
        let (from, to) = (x(step.started), x(end_of(step)));
        let top = TOP + row as u64 * ROW;
        let baseline = top + BAR - 4;
        let indent = if view.is_of_partition { 14 } else { 0 };
        let name = &view.name;
        let short: String = match name.char_indices().nth(LONGEST_NAME) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.clone(),
        };
        let (class, took) = (view.pill.class, &view.took);
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            svg,
            "<a href=\"{link}/steps/{}\"><title>{}: {}, {took}</title>\
             <text class=\"name\" x=\"{indent}\" y=\"{baseline}\">{}</text>\
             <rect class=\"track\" x=\"{NAMES}\" y=\"{top}\" width=\"{BARS}\" height=\"{BAR}\" rx=\"4\"/>\
             <rect class=\"bar {class}\" x=\"{from}\" y=\"{top}\" width=\"{}\" height=\"{BAR}\" rx=\"4\"/>\
             <text class=\"took\" x=\"{}\" y=\"{baseline}\">{took}</text></a>",
            view.id,
            Escaped(name),
            view.pill.text,
            Escaped(&short),
            (to - from).max(3),
            to.max(from + 3) + 6,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws lines at round times.
fn marks(svg: &mut String, whole: u64, height: u64) {
    let step = MARK_STEPS.into_iter().find(|step| whole / step <= MOST_MARKS);
    let step = step.unwrap_or(whole.div_ceil(MOST_MARKS));
    for millis in (0..=whole).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let x = NAMES + millis * BARS / whole;
        let text = if millis == 0 { "0".into() } else { duration(millis) };
        let _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{x}\" y1=\"20\" x2=\"{x}\" y2=\"{}\"/>\
             <text class=\"time\" x=\"{x}\" y=\"13\">{text}</text>",
            height - 4
        );
    }
}

/// Returns the number of steps that the timeline leaves out.
pub(crate) fn left_out(steps: usize) -> usize {
    steps.saturating_sub(MOST_ROWS)
}
