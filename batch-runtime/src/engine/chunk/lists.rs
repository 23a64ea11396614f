//! How the results of an interval are written in lists: a state machine without artifacts or a transaction.
// Spec: CHUNK-LOOP-04, CHUNK-RETRY-08, CHUNK-RETRY-11, D-10

use std::ops::Range;
use std::sync::Arc;

use super::rules::Attempt;
use crate::error::BatchError;

/// The progress of writing. Positions count the results of the interval without those that are dropped.
#[derive(Default)]
pub(super) struct Lists {
    /// Items per call of the writer.
    batch: usize,
    /// True if a failed write can be undone, so that a search writes ever smaller lists instead of single items.
    halves: bool,
    /// The number of written results. A rollback resets it.
    pub(super) written: usize,
    /// The number of written results that are no longer in the buffer. Reading again resets it, as the next field.
    // Invariant: 0 if a rollback keeps the results.
    pub(super) flushed: usize,
    /// The results that failed writes have skipped, by their numbers in the interval, in ascending order.
    pub(super) dropped: Vec<usize>,
    /// Only a commit resets it: a rollback keeps what was found out.
    mode: Mode,
}

/// How the remaining results are written.
#[derive(Default)]
enum Mode {
    /// In lists of the chunk size.
    #[default]
    Plain,
    /// Only the item, or the list, at these positions, after calling the retry listeners.
    // Spec: CHUNK-RETRY-08
    Retry {
        items: Range<usize>,
        error: Arc<BatchError>,
    },
    /// Searches for the bad item of a failed list: writes the results from `from` to `until` one by one or by halves. The item is
    /// before `bad`.
    // Spec: D-10
    Search { from: usize, until: usize, bad: usize },
}

/// The next step of the engine.
pub(super) enum Action {
    Write(Range<usize>),
    /// Rolls back to the last checkpoint, with a pause after it if this is a retry.
    RollBack {
        is_retry: bool,
    },
    Done,
}

/// The outcome of an action.
pub(super) enum Outcome {
    /// Nothing was written: results were added or dropped, or the rollback is complete.
    Ready,
    /// All results up to this position are written.
    Written(usize),
    /// The failed items were dropped.
    Skipped(FailedList),
    /// The failed items are written again, in the same transaction if `in_place`.
    Retry { failed: FailedList, in_place: bool },
    /// The failed item is searched for.
    Search { failed: FailedList, is_retry: bool },
}

/// A failed call of the writer.
pub(super) struct FailedList {
    pub(super) error: Arc<BatchError>,
    pub(super) list: Range<usize>,
    /// The position of the failed item, if known.
    pub(super) item: Option<usize>,
    /// True if the failed write was undone.
    pub(super) undone: bool,
}

impl FailedList {
    /// Returns the positions that are retried or skipped: the failed item, or the list if the item is not known.
    pub(super) fn items(&self) -> Range<usize> {
        self.item.map_or_else(|| self.list.clone(), |item| item..item + 1)
    }
}

impl Lists {
    pub(super) fn new(batch: usize, halves: bool) -> Self {
        Self {
            batch,
            halves,
            ..Self::default()
        }
    }

    /// Begins the next interval after a commit.
    pub(super) fn commit(&mut self) {
        *self = Self::new(self.batch, self.halves);
    }

    /// Begins the interval again, whose items were not kept.
    // Spec: D-12
    pub(super) fn read_again(&mut self) {
        (self.written, self.flushed) = (0, 0);
        self.dropped.clear();
    }

    /// Returns the next action while there are `results` results.
    pub(super) fn next(&mut self, results: usize, outcome: Outcome) -> Action {
        // Invariant: a failed list begins at `written`.
        let rollback = match outcome {
            Outcome::Ready => None,
            Outcome::Written(end) => {
                self.written = end;
                None
            }
            // Other items of the list may be written already.
            Outcome::Skipped(failed) => {
                let is_alone = failed.undone || failed.items() == failed.list;
                (failed.error.needs_rollback() || !is_alone).then_some(false)
            }
            Outcome::Retry { failed, in_place } => {
                let items = failed.items();
                // The items before the failed one remain written, and the transaction may be kept.
                if !failed.undone {
                    self.written = items.start;
                }
                let error = failed.error;
                self.mode = Mode::Retry { items, error };
                (!in_place).then_some(true)
            }
            Outcome::Search { failed, is_retry } => self.search(&failed).then_some(is_retry),
        };
        if let Some(is_retry) = rollback {
            // The rollback undoes the earlier lists of the interval, too.
            self.written = 0;
            return Action::RollBack { is_retry };
        }
        while self.written < results {
            if let Some(list) = self.list(results) {
                return Action::Write(list.start..list.end.min(results));
            }
            self.mode = Mode::Plain;
        }
        Action::Done
    }

    /// Returns the next list, or `None` at the end of a retry or search.
    fn list(&self, results: usize) -> Option<Range<usize>> {
        let first = self.written;
        let until = |to: usize| first..to.min(first + self.batch);
        Some(match &self.mode {
            Mode::Plain => until(results),
            // The retried items are a separate list, so that its failure is known to be theirs.
            Mode::Retry { items, .. } if first < items.start => until(items.start),
            Mode::Retry { items, .. } if first == items.start => items.clone(),
            Mode::Search { from, .. } if first < *from => until(*from),
            Mode::Search { bad, .. } if self.halves && first < *bad => {
                first..first + (bad - first).div_ceil(2)
            }
            Mode::Search { until: end, .. } if self.halves && first < *end => until(*end),
            Mode::Search { until: end, .. } if first < *end => first..first + 1,
            Mode::Retry { .. } | Mode::Search { .. } => return None,
        })
    }

    /// Starts to search a failed list, or continues the search in it. Returns whether a rollback is needed.
    fn search(&mut self, failed: &FailedList) -> bool {
        let list = &failed.list;
        if let Mode::Search { from, bad, .. } = &mut self.mode {
            // An earlier list may have failed this time: items that were searched once are searched again, so that each
            // rollback advances the search.
            *from = list.start.min(*from);
            *bad = list.end;
            return failed.error.needs_rollback();
        }
        self.mode = Mode::Search {
            // If a failed write cannot be undone, all items are written one by one, as in the draft.
            from: if self.halves { list.start } else { 0 },
            until: list.end,
            bad: list.end,
        };
        true
    }

    /// Drops results that are skipped.
    pub(super) fn skip(&mut self, items: &Range<usize>) {
        let numbers = self.numbers(items.clone());
        self.dropped.extend(numbers);
        // `numbers` needs the ascending order: each one shifts those after it.
        self.dropped.sort_unstable();
        let after = |position: usize| position - items.len().min(position.saturating_sub(items.start));
        match &mut self.mode {
            Mode::Plain => {}
            // An item before those that are retried does not end the retry.
            Mode::Retry { items, .. } => {
                *items = after(items.start)..after(items.end);
                if items.start == items.end {
                    self.mode = Mode::Plain;
                }
            }
            Mode::Search { from, until, bad } => {
                // No other bad item is known, so a search by halves writes the rest as one list.
                (*from, *until, *bad) = (after(*from), after(*until), self.written);
            }
        }
    }

    /// Returns the reason for writing a list.
    pub(super) fn attempt(&self, list: &Range<usize>) -> Attempt {
        match &self.mode {
            Mode::Search { .. } => Attempt::Search,
            _ if self.retried_after(list).is_some() => Attempt::Retry,
            Mode::Plain | Mode::Retry { .. } => Attempt::First,
        }
    }

    /// Returns the error that a list is retried after, if it is retried.
    pub(super) fn retried_after(&self, list: &Range<usize>) -> Option<&Arc<BatchError>> {
        match &self.mode {
            Mode::Retry { items, error } if items.start == list.start => Some(error),
            _ => None,
        }
    }

    /// Returns the places in the buffer for these positions.
    pub(super) fn in_buffer(&self, items: &Range<usize>) -> Range<usize> {
        items.start - self.flushed..items.end - self.flushed
    }

    /// Returns the numbers of the results at these positions among all results of the interval.
    // Spec: FAULT-02
    pub(super) fn numbers(&self, items: Range<usize>) -> Vec<usize> {
        let next = |number, dropped: &usize| number + usize::from(*dropped <= number);
        items
            .map(|position| self.dropped.iter().fold(position, next))
            .collect()
    }
}
