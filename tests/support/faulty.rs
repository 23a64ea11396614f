//! A destination with a fault.

use batch_runtime::BatchError;
use batch_runtime::destination::{Advance, Destination, Marker};

/// A destination with a fault at an interval, which happens once.
///
/// | fault | moment | |
/// |---|---|---|
/// | `before` | before the commit | it fails, and nothing is committed |
/// | `after` | after the commit | it fails, although the items are committed |
/// | `connection` | after the commit, also without a marker | the connection is lost with the answer |
/// | `act:write`, `act:commit` | before the transaction of a write or the commit of the interval | the function of the test is called |
/// | `act:between` | between the commit before the interval and its first write | the same |
pub struct Faulty<D> {
    inner: D,
    fault: String,
    interval: i64,
    /// The interval that is committed.
    committed: i64,
    lost: bool,
    act: Act<D>,
}

/// What a test does to a destination, whose marker has this key if it is known.
type Act<D> = Box<dyn FnMut(&mut D, Option<&str>) -> Result<(), BatchError> + Send>;

impl<D: Destination> Faulty<D> {
    /// Creates a destination with a fault in the second interval, or in the one that follows `@`: `before@1`.
    pub fn new(
        inner: D,
        fault: &str,
        act: impl FnMut(&mut D, Option<&str>) -> Result<(), BatchError> + Send + 'static,
    ) -> Self {
        let (fault, interval) = fault.split_once('@').unwrap_or((fault, "2"));
        Self {
            inner,
            fault: fault.to_owned(),
            interval: interval.parse().expect("the number of an interval"),
            committed: 0,
            lost: false,
            act: Box::new(act),
        }
    }

    /// Returns whether the fault is this one, in this interval.
    fn strikes(&mut self, fault: &str, interval: i64) -> bool {
        let strikes = self.fault == fault && self.interval == interval;
        if strikes {
            self.fault.clear();
        }
        strikes
    }

    fn act(&mut self, fault: &str, interval: i64, key: Option<&str>) -> Result<(), BatchError> {
        match self.strikes(fault, interval) {
            true => (self.act)(&mut self.inner, key),
            false => Ok(()),
        }
    }

    /// Fails if the connection is lost after the commit of an interval.
    fn answer(&mut self, interval: i64) -> Result<(), BatchError> {
        if self.strikes("after", interval) {
            return Err(BatchError::msg("the answer is lost"));
        }
        if self.strikes("connection", interval) {
            self.lost = true;
            return Err(BatchError::msg("the connection is lost"));
        }
        Ok(())
    }
}

impl<D: Destination> Destination for Faulty<D> {
    type Transaction = D::Transaction;

    const HAS_SAVEPOINTS: bool = D::HAS_SAVEPOINTS;

    fn place(&self) -> String {
        self.inner.place()
    }

    fn claim(&mut self, key: &str) -> Result<Marker, BatchError> {
        self.lost = false;
        let marker = self.inner.claim(key)?;
        self.committed = marker.interval;
        Ok(marker)
    }

    fn transaction(&mut self) -> Result<&mut D::Transaction, BatchError> {
        self.act("act:write", self.committed + 1, None)?;
        self.inner.transaction()
    }

    fn commit(&mut self, advance: &Advance<'_>) -> Result<bool, BatchError> {
        let interval = advance.to;
        if self.strikes("before", interval) {
            self.inner.roll_back();
            return Err(BatchError::msg("the commit is lost"));
        }
        self.act("act:commit", interval, Some(advance.key))?;
        let committed = self.inner.commit(advance)?;
        self.act("act:between", interval + 1, Some(advance.key))?;
        self.answer(interval)?;
        self.committed = interval;
        Ok(committed)
    }

    fn commit_unmarked(&mut self) -> Result<(), BatchError> {
        self.inner.commit_unmarked()?;
        self.committed += 1;
        self.answer(self.committed)
    }

    fn roll_back(&mut self) {
        self.inner.roll_back();
    }

    fn set_savepoint(&mut self) -> Result<(), BatchError> {
        self.inner.set_savepoint()
    }

    fn release_savepoint(&mut self) -> Result<(), BatchError> {
        self.inner.release_savepoint()
    }

    fn undo_to_savepoint(&mut self) -> Result<(), BatchError> {
        self.inner.undo_to_savepoint()
    }

    fn is_lost(&mut self) -> bool {
        self.lost || self.inner.is_lost()
    }

    fn remove(&mut self, key: &str, fence: i64) -> Result<(), BatchError> {
        self.inner.remove(key, fence)
    }
}
