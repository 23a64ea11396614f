//! A clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use batch_runtime::Timestamp;
use batch_runtime::time::Clock;

/// A clock that stands still until the test moves it, for the times in the repository. Clones are the same clock.
///
/// ```
/// use std::time::Duration;
///
/// use batch_runtime::Timestamp;
/// use batch_testing::TestClock;
///
/// let clock = TestClock::at("2026-11-23T22:00".parse()?);
/// clock.advance(Duration::from_secs(2 * 3600));
/// assert_eq!(clock.time(), "2026-11-24".parse::<Timestamp>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TestClock {
    millis: Arc<AtomicI64>,
}

impl TestClock {
    /// Creates a clock that shows a time.
    pub fn at(time: Timestamp) -> Self {
        Self {
            millis: Arc::new(AtomicI64::new(time.0)),
        }
    }

    /// Returns the time.
    pub fn time(&self) -> Timestamp {
        Timestamp(self.millis.load(Ordering::Relaxed))
    }

    /// Sets the time, also to an earlier one.
    pub fn set(&self, time: Timestamp) {
        self.millis.store(time.0, Ordering::Relaxed);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.time()
    }
}
