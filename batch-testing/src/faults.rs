//! Failures of artifacts, for tests of retry and skip.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use batch_runtime::prelude::*;

/// The error of [`FailsAt::check`], whose class is `batch_testing::SimulatedFailure`.
#[derive(Debug, BatchException)]
#[batch_exception(class = "batch_testing::SimulatedFailure")]
pub struct SimulatedFailure {
    item: String,
}

impl fmt::Display for SimulatedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulated failure at {}", self.item)
    }
}

impl std::error::Error for SimulatedFailure {}

/// Fails at an item, a given number of times. Clones count together.
#[derive(Clone, Debug)]
pub struct FailsAt<T> {
    item: T,
    remaining: Arc<AtomicU32>,
}

/// Returns a failure at an item: the first `times` times that [`check`](FailsAt::check) is called with it.
///
/// ```
/// use batch_testing::fails_at;
///
/// let fault = fails_at(7, 2);
/// assert!(fault.check(&6).is_ok());
/// assert!(fault.check(&7).is_err());
/// assert!(fault.check(&7).is_err());
/// assert!(fault.check(&7).is_ok());
/// ```
pub fn fails_at<T>(item: T, times: u32) -> FailsAt<T> {
    FailsAt {
        item,
        remaining: Arc::new(AtomicU32::new(times)),
    }
}

/// Returns a failure at an item, each time that [`check`](FailsAt::check) is called with it.
pub fn always_fails_at<T>(item: T) -> FailsAt<T> {
    fails_at(item, u32::MAX)
}

impl<T: PartialEq + fmt::Debug> FailsAt<T> {
    /// Fails if the item is the one, and the failures are not used up.
    ///
    /// # Errors
    /// [`SimulatedFailure`].
    pub fn check(&self, item: &T) -> Result<(), SimulatedFailure> {
        let take = |remaining: u32| remaining.checked_sub(1);
        let fails = *item == self.item
            && self
                .remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok();
        match fails {
            true => Err(SimulatedFailure {
                item: format!("{item:?}"),
            }),
            false => Ok(()),
        }
    }
}
