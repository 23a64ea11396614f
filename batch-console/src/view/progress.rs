//! How much of a running step is done.

use std::time::Duration;

use batch_runtime::operator::{Progress, StepProgress};

use super::duration;

/// The running time from which on the rest is estimated; an earlier estimate would be a guess.
const ESTIMATED_AFTER: Duration = Duration::from_secs(1);

/// How much of a step is done, where the total is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The name of the step.
    pub(crate) step: String,
    /// Rounded down, so that 100 means done.
    pub(crate) percent: u64,
    /// The numbers, as `20 of 30 items`.
    pub(crate) text: String,
}

impl Share {
    /// Returns that of a running step or partition, of an execution that this process runs.
    pub(crate) fn of(progress: &Progress, step: &str) -> Option<Self> {
        let mut all = progress.steps.iter().rev();
        let found = all.find(|one| one.step == step && one.is_running)?;
        let (percent, mut text) = match found.partitions.filter(|partitions| partitions.planned > 0) {
            Some(partitions) => {
                let running = parts(progress, step).filter_map(percent_of).sum::<u64>();
                let (ended, planned) = (u64::from(partitions.ended), u64::from(partitions.planned));
                let percent = (ended * 100).saturating_add(running) / planned;
                (percent, format!("{ended} of {planned} partitions"))
            }
            None => {
                let count = found.item_count?;
                let read = found.items_read().min(count);
                (percent_of(found)?, format!("{read} of {count} items"))
            }
        };
        if let Some(left) = left(found) {
            text += &format!(", about {left} left");
        }
        Some(Self {
            step: step.to_owned(),
            percent: percent.min(100),
            text,
        })
    }
}

/// Returns the running partitions of a step.
fn parts<'a>(progress: &'a Progress, step: &'a str) -> impl Iterator<Item = &'a StepProgress> {
    let is_part = move |one: &&StepProgress| {
        let number = one
            .step
            .strip_prefix(step)
            .and_then(|rest| rest.strip_prefix(':'));
        one.is_running && number.is_some_and(|number| !number.contains('/'))
    };
    progress.steps.iter().filter(is_part)
}

fn percent_of(step: &StepProgress) -> Option<u64> {
    let count = step.item_count.filter(|count| *count > 0)?;
    let percent = u128::from(step.items_read()) * 100 / u128::from(count);
    u64::try_from(percent.min(100)).ok()
}

/// Estimates the rest of the time by what this execution has read of the items.
fn left(step: &StepProgress) -> Option<String> {
    let count = step.item_count.filter(|_| step.elapsed >= ESTIMATED_AFTER)?;
    let here = step
        .items_read()
        .checked_sub(step.earlier_items)
        .filter(|here| *here > 0)?;
    let rest = u128::from(count.checked_sub(step.items_read())?);
    let millis = step.elapsed.as_millis().saturating_mul(rest) / u128::from(here);
    Some(duration(u64::try_from(millis).ok()?))
}

#[cfg(test)]
mod tests {
    use batch_runtime::execution::StepCounters;
    use batch_runtime::operator::PartitionProgress;

    use super::*;

    fn step(name: &str, reads: i64, items: Option<u64>, earlier: u64) -> StepProgress {
        let mut step = StepProgress::default();
        step.step = name.into();
        step.counters = StepCounters {
            reads,
            ..StepCounters::default()
        };
        step.item_count = items;
        step.earlier_items = earlier;
        step.elapsed = Duration::from_secs(10);
        step.is_running = true;
        step
    }

    fn check(steps: Vec<StepProgress>, name: &str, expected: Option<(u64, &str)>) {
        let progress = Progress {
            steps,
            ..Progress::default()
        };
        let share = Share::of(&progress, name);
        let share = share.as_ref().map(|share| (share.percent, share.text.as_str()));
        assert_eq!(share, expected, "{name}");
    }

    /// Spec: CON-02
    #[test]
    fn the_share_of_a_step_is_known_by_its_items_or_partitions() {
        check(vec![step("load", 5, None, 0)], "load", None);
        check(vec![step("load", 5, Some(0), 0)], "load", None);
        check(vec![step("load", 5, Some(20), 0)], "other", None);
        let expected = Some((25, "5 of 20 items, about 30.0 s left"));
        check(vec![step("load", 5, Some(20), 0)], "load", expected);
        // What earlier executions have read tells nothing about the speed of this one.
        let expected = Some((75, "15 of 20 items, about 10.0 s left"));
        check(vec![step("load", 5, Some(20), 10)], "load", expected);
        // A reader may deliver more than it has counted.
        check(
            vec![step("load", 30, Some(20), 0)],
            "load",
            Some((100, "20 of 20 items")),
        );
        let mut whole = step("load", 0, None, 0);
        let mut partitions = PartitionProgress::default();
        (partitions.planned, partitions.ended) = (4, 1);
        whole.partitions = Some(partitions);
        let all = vec![
            whole,
            step("load:2", 1, Some(2), 0),
            step("load:3/sort", 2, Some(2), 0),
        ];
        check(all, "load", Some((37, "1 of 4 partitions")));
    }
}
