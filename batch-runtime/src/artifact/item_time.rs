//! `item-time`, the built-in checkpoint algorithm: a checkpoint after a number of items or after a time, whichever is first.
// Spec: JSL-CHUNK-12, CHUNK-CKPT-06, LOADER-20, D-02

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use batch_macros::BatchArtifact;

use super::registry::ArtifactRegistration;
use crate::error::BatchError;
use crate::role::CheckpointAlgorithm;

/// Not in the registry, so that an artifact of the program with this name has precedence.
pub(crate) static ITEM_TIME: ArtifactRegistration = ArtifactRegistration::checkpoint_algorithm::<ItemTime>(
    "item-time",
    concat!(module_path!(), "::ItemTime"),
    None,
    file!(),
    line!(),
);

#[derive(BatchArtifact)]
struct ItemTime {
    /// Items of an interval.
    #[batch_property(name = "item-count", value = "10")]
    item_count: NonZeroU64,
    /// Seconds of an interval; 0: no limit.
    #[batch_property(name = "time-limit", value = "0")]
    time_limit: u64,
    /// Items of this interval, including filtered and skipped ones, as for the policy `item`.
    items: u64,
    /// The start of this interval; `None` without a limit, so that the clock is not read for each item.
    since: Option<Instant>,
    clock: Clock,
}

struct Clock(fn() -> Instant);

impl Default for Clock {
    fn default() -> Self {
        Self(Instant::now)
    }
}

impl CheckpointAlgorithm for ItemTime {
    fn get_checkpoint_timeout(&mut self, timeout: i32) -> Result<i32, BatchError> {
        Ok(timeout)
    }

    fn begin_checkpoint(&mut self) -> Result<(), BatchError> {
        self.items = 0;
        self.since = (self.time_limit > 0).then(self.clock.0);
        Ok(())
    }

    fn is_ready_to_checkpoint(&mut self) -> Result<bool, BatchError> {
        self.items = self.items.saturating_add(1);
        let limit = Duration::from_secs(self.time_limit);
        let late = |since: Instant| (self.clock.0)().saturating_duration_since(since) >= limit;
        Ok(self.items >= self.item_count.get() || self.since.is_some_and(late))
    }

    fn end_checkpoint(&mut self) -> Result<(), BatchError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::inject::{BatchArtifact, ContextScope, InjectError, InjectionScope, Properties};
    use super::*;

    thread_local! {
        static NOW: Cell<Instant> = Cell::new(Instant::now());
    }

    fn pass(time: Duration) {
        NOW.set(NOW.get() + time);
    }

    fn made(properties: &[(&str, &str)]) -> Result<ItemTime, InjectError> {
        let xml = properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned(), "job.xml:1:1".to_owned()));
        let properties = Properties {
            xml: xml.collect(),
            ..Properties::default()
        };
        let contexts = ContextScope::default();
        let made = ItemTime::inject(&InjectionScope::new(&properties, &contexts))?;
        Ok(ItemTime {
            clock: Clock(|| NOW.get()),
            ..made
        })
    }

    /// Returns the number of items of an interval when each takes `time`; `None` from a thousand.
    fn interval(algorithm: &mut dyn CheckpointAlgorithm, time: Duration) -> Option<usize> {
        algorithm.begin_checkpoint().unwrap();
        let items = (1..=1000).find(|_| {
            pass(time);
            algorithm.is_ready_to_checkpoint().unwrap()
        });
        algorithm.end_checkpoint().unwrap();
        items
    }

    const MOMENT: Duration = Duration::from_millis(250);
    const LONG: Duration = Duration::from_secs(3600);

    // Spec: CHUNK-CKPT-06, D-02
    #[test]
    fn ten_items_are_the_default_and_time_has_no_limit() {
        let mut algorithm = made(&[]).unwrap();
        for time in [MOMENT, LONG, Duration::ZERO] {
            assert_eq!(interval(&mut algorithm, time), Some(10));
        }
    }

    // Spec: CHUNK-CKPT-06, D-02
    #[test]
    fn a_checkpoint_is_due_at_whichever_comes_first() {
        let mut algorithm = made(&[("item-count", "30"), ("time-limit", "5")]).unwrap();
        // 20 moments are 5 seconds; each interval counts from 0.
        assert_eq!(interval(&mut algorithm, MOMENT), Some(20));
        assert_eq!(interval(&mut algorithm, MOMENT / 2), Some(30));
        assert_eq!(interval(&mut algorithm, MOMENT), Some(20));
        assert_eq!(interval(&mut algorithm, LONG), Some(1));
        let mut by_time = made(&[("item-count", "1000000"), ("time-limit", "5")]).unwrap();
        assert_eq!(interval(&mut by_time, Duration::ZERO), None);
    }

    // Spec: CHUNK-CKPT-06, BPROP-10
    #[test]
    fn invalid_values_are_rejected() {
        for wrong in [("item-count", "0"), ("item-count", "many"), ("time-limit", "-1")] {
            assert!(made(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    // Spec: CKALG-03
    #[test]
    fn the_timeout_stays_as_it_is() {
        assert_eq!(made(&[]).unwrap().get_checkpoint_timeout(7).unwrap(), 7);
    }
}
