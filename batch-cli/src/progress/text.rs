//! Progress as text: lines with bars for a terminal, lines for a file.

use std::time::Duration;

use batch_runtime::execution::StepCounters;
use batch_runtime::operator::{PartitionProgress, Progress, StepProgress};

use crate::print::{cut, printable};

/// The minimum time before a rate is shown; an earlier one would be a guess.
const RATE_AFTER: Duration = Duration::from_millis(500);
/// Maximum length of a name; longer ones are cut.
const LONGEST_NAME: usize = 30;
/// The usual width of a line without its name and its bar.
const USUAL_TEXT: usize = 60;
const BAR: std::ops::RangeInclusive<usize> = 8..=24;

/// The executions that are shown, each with the prefix of its step names.
type Shown = [(String, Progress)];

/// Formats a line for each running step and partition: at most `height` lines, each at most `width` wide.
pub(super) fn lines(shown: &Shown, width: usize, height: usize) -> Vec<String> {
    let mut rows: Vec<Row> = shown
        .iter()
        .flat_map(|(name, progress)| {
            let mut running: Vec<_> = progress.steps.iter().filter(|step| step.is_running).collect();
            let start_order = |step: &StepProgress| {
                let group = outermost(&step.step);
                progress
                    .steps
                    .iter()
                    .position(|other| outermost(&other.step) == group)
            };
            running.sort_by_cached_key(|step| (start_order(step), by_number(&step.step)));
            running.into_iter().map(move |step| Row::of(name, step, progress))
        })
        .collect();
    let hidden = (rows.len() > height).then(|| rows.len() + 1 - height);
    rows.truncate(rows.len() - hidden.unwrap_or(0));
    let name_width = rows.iter().map(|row| chars(&row.name)).max().unwrap_or(0);
    let time_width = rows.iter().map(|row| chars(&row.time())).max().unwrap_or(0);
    let has_bars = rows.iter().any(|row| row.share.is_some());
    let bar_width = width
        .saturating_sub(name_width + USUAL_TEXT)
        .clamp(*BAR.start(), *BAR.end());
    let line = |row: &Row| {
        let bar = match (row.share, has_bars) {
            (Some(share), _) => bar(share, bar_width),
            (None, true) => format!("{:1$}", "", bar_width + 7),
            (None, false) => String::new(),
        };
        let text = format!(
            "{:<name_width$}  {bar}{:<time_width$}  {}",
            row.name,
            row.time(),
            row.counts()
        );
        cut(text.trim_end(), width)
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.extend(hidden.map(|hidden| cut(&format!("… and {hidden} more"), width)));
    if std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
        lines.iter_mut().for_each(|line| *line = coloured(line));
    }
    lines
}

/// Formats a line for each running step, its partitions included, and for each partitioned flow.
pub(super) fn summary(shown: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, progress) in shown {
        let mut seen: Vec<&str> = Vec::new();
        for step in progress.steps.iter().filter(|step| step.is_running) {
            let outermost = outermost(&step.step);
            if seen.contains(&outermost) {
                continue;
            }
            seen.push(outermost);
            let row = match progress.steps.iter().rev().find(|step| step.step == outermost) {
                Some(step) => Row::of(name, step, progress),
                None => Row::of_parts(name, outermost, &progress.steps),
            };
            let mut parts = Vec::new();
            parts.extend(row.share.map(|share| format!("{}%", percent(share))));
            parts.extend(Some(row.counts()).filter(|counts| !counts.is_empty()));
            parts.push(clock(row.elapsed));
            parts.extend(row.left.map(|left| format!("{} left", clock(left))));
            lines.push(format!("step {}  {}", row.name, parts.join(", ")));
        }
    }
    lines
}

/// Returns the step or flow that a partition, and those within it, belong to.
fn outermost(step: &str) -> &str {
    step.split(':').next().unwrap_or(step)
}

/// Returns a sort key that orders `load:2` before `load:10`.
fn by_number(step: &str) -> Vec<(u64, &str)> {
    let parts = step.split([':', '/']);
    parts
        .map(|part| part.parse().map_or((u64::MAX, part), |number| (number, "")))
        .collect()
}

/// The numbers of one line.
struct Row {
    name: String,
    /// Of the step in its job instance.
    counters: StepCounters,
    /// The number of items read by this execution.
    reads: i64,
    /// Items read, and items in total.
    items: Option<(u64, u64)>,
    partitions: Option<PartitionProgress>,
    /// How much is done, from 0 to 1.
    share: Option<f64>,
    left: Option<Duration>,
    elapsed: Duration,
}

impl Row {
    /// Creates the row of a step, with the work of its partitions if it has any.
    fn of(prefix: &str, step: &StepProgress, progress: &Progress) -> Self {
        let share = progress.share(step);
        if step.partitions.is_some() {
            return Self {
                partitions: step.partitions,
                share,
                elapsed: step.elapsed,
                ..Self::of_parts(prefix, &step.step, &progress.steps)
            };
        }
        Self {
            name: name(prefix, &step.step),
            counters: step.counters_of_instance(),
            reads: step.counters.reads,
            items: step.item_count.map(|count| (step.items_read().min(count), count)),
            partitions: None,
            share,
            left: step.time_left(),
            elapsed: step.elapsed,
        }
    }

    /// Creates the row of all partitions of `element` together.
    fn of_parts(prefix: &str, element: &str, all: &[StepProgress]) -> Self {
        let mut sum = Self {
            name: name(prefix, element),
            counters: StepCounters::default(),
            reads: 0,
            items: None,
            partitions: None,
            share: None,
            left: None,
            elapsed: Duration::ZERO,
        };
        let is_part = |step: &&StepProgress| {
            let rest = step.step.strip_prefix(element);
            rest.is_some_and(|rest| rest.starts_with(':'))
        };
        for part in all.iter().filter(is_part) {
            sum.counters = sum.counters.plus(part.counters_of_instance());
            sum.reads += part.counters.reads;
            sum.elapsed = sum.elapsed.max(part.elapsed);
        }
        sum
    }

    /// Returns the number of items read per second.
    fn rate(&self) -> Option<f64> {
        let is_known = self.elapsed >= RATE_AFTER && self.reads > 0;
        is_known.then(|| self.reads as f64 / self.elapsed.as_secs_f64())
    }

    /// Returns the remaining time if it is known, else the elapsed time.
    fn time(&self) -> String {
        self.left
            .map_or_else(|| clock(self.elapsed), |left| format!("{} left", clock(left)))
    }

    fn counts(&self) -> String {
        let counters = self.counters;
        let skips = counters.read_skips + counters.process_skips + counters.write_skips;
        let mut counts = Vec::new();
        if let Some(PartitionProgress { planned, ended, .. }) = self.partitions {
            counts.push(format!("{ended} of {planned} partitions"));
        }
        match self.items {
            Some((read, all)) => counts.push(format!("{read} of {all} read")),
            None if counters.reads > 0 => counts.push(format!("{} read", counters.reads)),
            None => {}
        }
        if counters.reads > 0 {
            counts.push(format!("{} written", counters.writes));
        }
        if skips > 0 {
            counts.push(format!("{skips} skipped"));
        }
        counts.extend(self.rate().map(|rate| format!("{rate:.0}/s")));
        counts.join(", ")
    }
}

fn name(prefix: &str, step: &str) -> String {
    let name = printable(&format!("{prefix}{step}")).replace('\n', " ");
    cut(&name, LONGEST_NAME)
}

/// Returns the percentage, rounded down, so that 100 means done.
fn percent(share: f64) -> u8 {
    // 0.29 * 100.0 is a little less than 29.
    (share * 100.0 + 1e-9).floor().clamp(0.0, 100.0) as u8
}

const FULL: char = '█';
const EMPTY: char = '░';

/// Returns a bar of `width` columns, and seven more columns for the percentage.
fn bar(share: f64, width: usize) -> String {
    let full = ((share * width as f64).floor() as usize).min(width);
    let bar: String = (0..width)
        .map(|column| if column < full { FULL } else { EMPTY })
        .collect();
    format!("{bar} {:>3}%  ", percent(share))
}

fn coloured(line: &str) -> String {
    match (line.find(FULL), line.rfind(FULL)) {
        (Some(from), Some(last)) => {
            let (bar, rest) = line[from..].split_at(last - from + FULL.len_utf8());
            format!("{}\x1b[32m{bar}\x1b[39m{rest}", &line[..from])
        }
        _ => line.to_owned(),
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, reads: i64, item_count: Option<u64>) -> StepProgress {
        let mut progress = StepProgress::default();
        progress.step = name.into();
        progress.counters.reads = reads;
        progress.counters.writes = reads;
        progress.item_count = item_count;
        progress.elapsed = Duration::from_secs(10);
        progress.is_running = true;
        progress
    }

    fn shown(steps: Vec<StepProgress>) -> Vec<(String, Progress)> {
        vec![(
            String::new(),
            Progress {
                steps,
                waits_for: None,
            },
        )]
    }

    fn plain(lines: &[String]) -> Vec<String> {
        let plain = |line: &String| line.replace("\x1b[32m", "").replace("\x1b[39m", "");
        lines.iter().map(plain).collect()
    }

    #[test]
    fn percents_are_whole() {
        let shares = [0.0, 0.29, 0.57, 0.999, 1.0];
        assert_eq!(shares.map(percent), [0, 29, 57, 99, 100]);
    }

    #[test]
    fn a_summary_has_counts_rate_and_time() {
        let check = |step: StepProgress, expected: &str| assert_eq!(summary(&shown(vec![step])), [expected]);
        check(step("load", 0, None), "step load  0:10");
        check(
            step("load", 9_000, None),
            "step load  9000 read, 9000 written, 900/s, 0:10",
        );
        check(
            step("load", 9_000, Some(12_000)),
            "step load  75%, 9000 of 12000 read, 9000 written, 900/s, 0:10, 0:03 left",
        );
        let mut skipping = step("load", 100, None);
        skipping.counters.process_skips = 3;
        skipping.elapsed = Duration::from_millis(100);
        check(skipping, "step load  100 read, 100 written, 3 skipped, 0:00");
        let mut ended = step("load", 0, None);
        ended.is_running = false;
        assert!(summary(&shown(vec![ended])).is_empty());
    }

    /// The bar includes what earlier executions have read; the rate covers this execution only.
    #[test]
    fn the_bar_resumes_after_a_restart() {
        let mut restarted = step("load", 1_000, Some(10_000));
        restarted.earlier.reads = 4_000;
        restarted.earlier.writes = 3_900;
        restarted.counters.read_skips = 500;
        let expected =
            "step load  55%, 5500 of 10000 read, 4900 written, 500 skipped, 100/s, 0:10, 0:30 left";
        assert_eq!(summary(&shown(vec![restarted])), [expected]);
    }

    // Spec: PART-04
    #[test]
    fn partitions_are_summed_in_a_summary_and_listed_on_a_terminal() {
        let mut load = step("load", 0, None);
        let mut partitions = PartitionProgress::default();
        (partitions.planned, partitions.ended) = (4, 1);
        load.partitions = Some(partitions);
        let mut first = step("load:1", 500, Some(500));
        first.is_running = false;
        let steps = vec![
            load,
            first,
            step("load:2", 200, Some(1000)),
            step("other", 0, None),
        ];
        assert_eq!(
            summary(&shown(steps.clone())),
            [
                "step load  30%, 1 of 4 partitions, 700 read, 700 written, 70/s, 0:10",
                "step other  0:10"
            ]
        );
        assert_eq!(
            plain(&lines(&shown(steps), 80, 10)),
            [
                "load    ████░░░░░░░░░░  30%  0:10       1 of 4 partitions, 700 read, 700 writte…",
                "load:2  ██░░░░░░░░░░░░  20%  0:40 left  200 of 1000 read, 200 written, 20/s",
                "other                        0:10",
            ]
        );
        let flow = vec![step("flow:1/a", 100, None), step("flow:2/a", 200, None)];
        assert_eq!(
            summary(&shown(flow)),
            ["step flow  300 read, 300 written, 30/s, 0:10"]
        );
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let steps = (1..=200)
            .map(|number| step(&format!("load:{number}"), 0, None))
            .collect();
        let lines = lines(&shown(steps), 20, 3);
        assert_eq!(lines, ["load:1  0:10", "load:2  0:10", "… and 198 more"]);
        assert!(
            super::lines(&shown(vec![step("load", 100, Some(100))]), 20, 3)
                .iter()
                .all(|line| chars(&plain(std::slice::from_ref(line))[0]) <= 20)
        );
    }

    /// A reader may announce fewer items than it reads, or none.
    #[test]
    fn wrong_sizes_are_tolerated() {
        for (count, expected) in [(50, "100%, 50 of 50 read"), (0, "100%, 0 of 0 read")] {
            let text = summary(&shown(vec![step("load", 100, Some(count))])).concat();
            assert!(text.contains(expected) && text.ends_with("0:00 left"), "{text}");
        }
        assert_eq!(percent(0.9999), 99);
        assert_eq!(clock(Duration::from_secs(3_725)), "1:02:05");
    }
}
