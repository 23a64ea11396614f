//! How much of a running step is done.

use batch_runtime::operator::Progress;

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
    /// Returns the share of a running step or partition, in an execution that this process runs.
    pub(crate) fn of(progress: &Progress, step: &str) -> Option<Self> {
        let mut all = progress.steps.iter().rev();
        let found = all.find(|one| one.step == step && one.is_running)?;
        let share = progress.share(found)?;
        let mut text = match (found.partitions, found.item_count) {
            (Some(partitions), _) => format!("{} of {} partitions", partitions.ended, partitions.planned),
            (None, count) => {
                let count = count.unwrap_or_default();
                format!("{} of {count} items", found.items_read().min(count))
            }
        };
        if let Some(left) = found.time_left() {
            text += &format!(
                ", about {} left",
                super::round(left.as_secs().saturating_mul(1_000))
            );
        }
        Some(Self {
            step: step.to_owned(),
            // 0.29 * 100.0 is a little less than 29.
            percent: (share * 100.0 + 1e-9).floor() as u64,
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use batch_runtime::execution::StepCounters;
    use batch_runtime::operator::{PartitionProgress, StepProgress};

    use super::*;

    fn shown(partitions: Option<PartitionProgress>, items: Option<u64>) -> Option<(u64, String)> {
        let mut step = StepProgress::default();
        (step.step, step.is_running, step.elapsed) = ("load".into(), true, Duration::from_secs(10));
        step.counters = StepCounters {
            reads: 5,
            ..StepCounters::default()
        };
        (step.partitions, step.item_count) = (partitions, items);
        let progress = Progress {
            steps: vec![step],
            ..Progress::default()
        };
        assert_eq!(Share::of(&progress, "other"), None);
        Share::of(&progress, "load").map(|share| (share.percent, share.text))
    }

    // Spec: CON-02
    #[test]
    fn the_share_is_shown_with_its_numbers() {
        let text = |percent: u64, text: &str| Some((percent, text.to_owned()));
        assert_eq!(shown(None, None), None);
        assert_eq!(shown(None, Some(20)), text(25, "5 of 20 items, about 30 s left"));
        assert_eq!(shown(None, Some(3)), text(100, "3 of 3 items, about 0 s left"));
        let mut partitions = PartitionProgress::default();
        (partitions.planned, partitions.ended) = (3, 2);
        assert_eq!(shown(Some(partitions), None), text(66, "2 of 3 partitions"));
    }
}
