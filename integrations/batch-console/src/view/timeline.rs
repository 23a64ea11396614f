//! The timeline of steps and partitions, as SVG. The flows of a split are side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use batch_runtime::Timestamp;
use batch_runtime::execution::StepExecution;
use batch_runtime::xml::model::{ExecutionElement, Job};

use super::rows::{StepRow, without_surplus};
use super::{Escaped, scaled};

const NAMES: u64 = 200;
const BARS: u64 = 640;
const RIGHT: u64 = 80;
const ROW: u64 = 26;
/// The height of the name of a flow.
const CAPTION: u64 = 20;
/// The room below a split.
const GAP: u64 = 8;
const BAR: u64 = 15;
const TOP: u64 = 30;
const INDENT: u64 = 14;
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

/// A flow of a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    split: String,
    flow: String,
}

/// Returns the flows of splits, by the names of their steps, and by their own, which their partitions have.
pub(crate) fn lanes(job: &Job) -> BTreeMap<String, Lane> {
    let mut lanes = BTreeMap::new();
    let splits = job
        .elements
        .iter()
        .filter(|element| matches!(element, ExecutionElement::Split(_)));
    for split in splits {
        for flow in split.elements() {
            let lane = Lane {
                split: split.id().value.clone(),
                flow: flow.id().value.clone(),
            };
            for step in flow.elements() {
                lanes.insert(step.id().value.clone(), lane.clone());
            }
            lanes.insert(lane.flow.clone(), lane);
        }
    }
    lanes
}

/// The time that the timeline covers.
pub(crate) struct Period {
    pub(crate) begin: Timestamp,
    pub(crate) now: Timestamp,
    /// True if the process has died, so that nothing runs any more.
    pub(crate) is_dead: bool,
}

impl Period {
    fn end_of(&self, step: &StepExecution) -> Timestamp {
        match step.ended {
            Some(ended) => ended,
            None if self.is_dead || step.status.is_final() => step.last_updated,
            None => self.now,
        }
    }
}

/// Draws a bar for each step, from its start to its end. `link` is the page of the execution.
///
/// Returns the drawing, and the number of steps that it leaves out.
pub(crate) fn draw(
    steps: &[StepExecution],
    lanes: &BTreeMap<String, Lane>,
    period: &Period,
    link: &str,
) -> (String, usize) {
    let (mut shown, _) = without_surplus(steps, MOST_ROWS / 2);
    shown.truncate(MOST_ROWS);
    shown.sort_by_key(|step| (step.started, step.id.0));
    let end = shown.iter().map(|step| period.end_of(step)).max();
    let whole = end.map_or(1, |end| end.millis_since(period.begin).max(1));
    let (mut rows, mut bands) = (String::new(), String::new());
    let mut top = TOP;
    let mut before: Option<&Lane> = None;
    let mut band = TOP;
    let rows_in_order = grouped(&shown, lanes);
    for (index, (lane, step)) in rows_in_order.iter().enumerate() {
        if *lane != before {
            if before.map(|lane| &lane.split) != lane.map(|lane| &lane.split) {
                top += if before.is_some() { GAP } else { 0 };
                band = top;
            }
            if let Some(lane) = lane {
                caption(&mut rows, top, lane);
                top += CAPTION;
            }
            before = *lane;
        }
        bar(&mut rows, top, step, whole, lane.is_some(), period, link);
        top += ROW;
        let next = rows_in_order.get(index + 1).and_then(|(lane, _)| *lane);
        if let Some(lane) = lane.filter(|lane| next.is_none_or(|next| next.split != lane.split)) {
            let (y, height) = (band - 4, top - band + 2);
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                bands,
                "<rect class=\"band\" x=\"1\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"6\">\
                 <title>split {}</title></rect>",
                NAMES + BARS + RIGHT - 2,
                Escaped(&lane.split)
            );
        }
    }
    let (width, height) = (NAMES + BARS + RIGHT, top + 6);
    let marks = marks(whole, height);
    let svg = format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {width} {height}\" role=\"group\" aria-label=\"When each step ran\">\n\
         {bands}{marks}{rows}</svg>\n"
    );
    (svg, steps.len() - shown.len())
}

/// Returns the steps in the order of their start, but with the steps of a split, and of each of its flows, together.
fn grouped<'a>(
    steps: &'a [StepExecution],
    lanes: &'a BTreeMap<String, Lane>,
) -> Vec<(Option<&'a Lane>, &'a StepExecution)> {
    let (mut splits, mut flows) = (BTreeMap::new(), BTreeMap::new());
    let mut rows: Vec<_> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            // A partition of `load` is `load:1`, a step in a partition of `flow` is `flow:1/load`.
            let name = step
                .step_name
                .split_once(':')
                .map_or(&*step.step_name, |(name, _)| name);
            let lane = lanes.get(name);
            let split = lane.map_or(index, |lane| *splits.entry(&lane.split).or_insert(index));
            let flow = lane.map_or(index, |lane| *flows.entry(&lane.flow).or_insert(index));
            ((split, flow, index), (lane, step))
        })
        .collect();
    rows.sort_by_key(|(key, _)| *key);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn caption(svg: &mut String, top: u64, lane: &Lane) {
    let (x, y) = (8, top + CAPTION - 7);
    let (split, flow) = (Escaped(&lane.split), Escaped(&lane.flow));
    let _ = writeln!(
        svg,
        "<text class=\"lane\" x=\"{x}\" y=\"{y}\"><title>flow {flow} of split {split}</title>{flow}</text>"
    );
}

/// Draws the name of a step and its bar, on a scale in milliseconds.
fn bar(
    svg: &mut String,
    top: u64,
    step: &StepExecution,
    whole: u64,
    is_in_lane: bool,
    period: &Period,
    link: &str,
) {
    let x = |time: Timestamp| NAMES + scaled(time.millis_since(period.begin), BARS, whole);
    let view = StepRow::new(step, period.is_dead, period.now);
    let (from, to) = (x(step.started), x(period.end_of(step)));
    let width = to.saturating_sub(from).max(3);
    let baseline = top + BAR - 3;
    let indent =
        INDENT * (u64::from(view.is_of_partition) + u64::from(is_in_lane)) + u64::from(is_in_lane) * 4;
    let name = &view.name;
    let short: String = match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.clone(),
    };
    let (class, took) = (view.pill.class, &view.took);
    let _ = writeln!(
        svg,
        "<a href=\"{link}/steps/{}\"><title>{}: {}, {took}</title>\
         <text class=\"name\" x=\"{indent}\" y=\"{baseline}\">{}</text>\
         <rect class=\"track\" x=\"{NAMES}\" y=\"{top}\" width=\"{BARS}\" height=\"{BAR}\" rx=\"4\"/>\
         <rect class=\"bar {class}\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"{BAR}\" rx=\"4\"/>\
         <text class=\"took\" x=\"{}\" y=\"{baseline}\">{took}</text></a>",
        view.id,
        Escaped(name),
        view.pill.text,
        Escaped(&short),
        from + width + 6,
    );
}

/// Draws lines at round times.
fn marks(whole: u64, height: u64) -> String {
    let mut svg = String::new();
    let step = MARK_STEPS.into_iter().find(|step| whole / step <= MOST_MARKS);
    let step = step.unwrap_or(whole.div_ceil(MOST_MARKS));
    for millis in (0..=whole).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let x = NAMES + scaled(millis, BARS, whole);
        let text = if millis == 0 {
            "0".into()
        } else {
            super::round(millis)
        };
        let _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{x}\" y1=\"20\" x2=\"{x}\" y2=\"{}\"/>\
             <text class=\"time\" x=\"{x}\" y=\"13\">{text}</text>",
            height - 4
        );
    }
    svg
}
