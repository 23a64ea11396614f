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
/// The maximum number of intervals between the time marks.
const MARKS: u64 = 6;
/// The intervals between time marks, in milliseconds: round in seconds, minutes, hours or days.
const INTERVALS: [u64; 31] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    604_800_000,
    2_592_000_000,
    31_536_000_000,
];
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
    for millis in marks(whole) {
        let (x, bottom) = (x(millis), height - 8);
        let _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{bottom}\"/>\
             <text class=\"time\" x=\"{x}\" y=\"16\">{}</text>",
            TOP - 8,
            duration(millis).replace(".000 ", " ")
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

/// Returns the times of the marks of an axis of that length.
fn marks(whole: u64) -> impl Iterator<Item = u64> {
    let fits = |interval: &u64| whole / interval <= MARKS;
    let interval = INTERVALS.into_iter().find(fits).unwrap_or(whole);
    (0..=whole / interval).map(move |mark| mark * interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let of = |whole| marks(whole).collect::<Vec<_>>();
        assert_eq!(of(1), [0, 1]);
        assert_eq!(of(7), [0, 2, 4, 6]);
        assert_eq!(of(1_357), [0, 200, 400, 600, 800, 1_000, 1_200]);
        assert_eq!(of(60_000), [0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
        assert_eq!(
            of(5_000_000),
            [0, 900_000, 1_800_000, 2_700_000, 3_600_000, 4_500_000]
        );
        assert_eq!(of(u64::MAX).len(), 2);
    }
}
