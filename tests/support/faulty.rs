//! A destination with a fault.

use std::fs;

use batch_runtime::destination::{Advance, Destination, Marker};
use batch_runtime::prelude::*;

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

/// Faults of a step that reads seven [`LoggedNumbers`] in intervals of three: the fault, whether the job fails, and where the reader begins
/// until the job completes. `end` ends the session of the owner, and `take` takes the marker.
pub const FAULTS: [(&str, bool, &str); 7] = [
    ("none", false, "0 "),
    // The items of the second interval are read again.
    ("before", true, "0 3 "),
    // They are not, because the destination has them.
    ("after", true, "0 6 "),
    ("connection", false, "0 6 "),
    ("end in a write", false, "0 3 "),
    ("end in a commit", false, "0 3 "),
    ("take", false, "0 3 "),
];

/// Returns the moment of a fault for [`Faulty::new`], and what the test does then.
pub fn moment_of(fault: &str) -> (&str, &'static str) {
    match fault {
        "end in a write" => ("act:write", "end"),
        "end in a commit" => ("act:commit", "end"),
        "crash" => ("act:commit", "crash"),
        "take" => ("act:between", "take"),
        other => (other, ""),
    }
}

/// `LoggedNumbers`: reads the numbers to 7, and appends to a file where it begins.
#[derive(BatchArtifact)]
pub struct LoggedNumbers {
    #[batch_property]
    log: String,
    last: u64,
}

#[item_reader("LoggedNumbers")]
impl LoggedNumbers {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
        let earlier = fs::read_to_string(&self.log).unwrap_or_default();
        fs::write(&self.log, format!("{earlier}{} ", self.last)).expect("the log is written");
    }

    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.last += 1;
        (self.last <= 7).then_some(self.last)
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        self.last
    }
}
