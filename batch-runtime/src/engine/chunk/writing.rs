//! Writing: calls the writer for each list, and carries out what is decided about a failed call.
// Spec: CHUNK-SKIP-11, CHUNK-SKIP-12, CHUNK-RETRY-07 to CHUNK-RETRY-16, CHUNK-NORB-02, D-10 to D-15

use std::ops::Range;
use std::sync::Arc;

use super::super::call::{Failure, call};
use super::ChunkRunner;
use super::interval_state::{Interval, RolledBack};
use super::lists::{Action, FailedList, Outcome};
use super::rules::{Attempt, Decision, Fault};
use crate::activity::Activity;
use crate::error::BatchError;
use crate::observer::ItemPhase;
use crate::repository::ChunkTransaction;

impl ChunkRunner<'_> {
    /// Passes the remaining results to the writer.
    // Spec: CHUNK-LOOP-04, CHUNK-LOOP-05
    pub(super) fn write(&mut self, interval: &mut Interval<'_, '_>) -> Result<(), RolledBack> {
        let mut outcome = Outcome::Ready;
        loop {
            let results = self.lists.flushed + self.results.len();
            outcome = match self.lists.next(results, outcome) {
                Action::Write(list) => self.write_list(interval, list)?,
                Action::RollBack { is_retry } => self.roll_back(interval, is_retry)?,
                Action::Done => return Ok(()),
            };
        }
    }

    /// Calls the writer once, with its listeners.
    // Spec: LISTEN-WRITE-02 to LISTEN-WRITE-05
    fn write_list(
        &mut self,
        interval: &mut Interval<'_, '_>,
        list: Range<usize>,
    ) -> Result<Outcome, RolledBack> {
        let list = self.before_retry(interval, list)?;
        let list = self.without_dropped(list);
        if list.is_empty() {
            return Ok(Outcome::Ready);
        }
        self.env.context.set_activity(Activity::Writing);
        let items = self.results.items(self.lists.in_buffer(&list));
        interval.listeners.before_write(&items)?;
        let guarded = self.is_undoable(&list);
        if guarded {
            interval.tx.set_savepoint()?;
        }
        if let Err(error) = call(|| self.writer.write(&items, &mut interval.tx)) {
            let error = Arc::new(self.of_destination(error, &mut interval.tx));
            self.env.context.set_exception(Arc::clone(&error));
            interval.listeners.on_write_error(&error, &items)?;
            let failed = self.undo_write(interval, list, guarded, error)?;
            return self.write_failed(interval, failed);
        }
        if guarded {
            interval.tx.release_savepoint()?;
        }
        interval.listeners.after_write(&items)?;
        // While the next interval is read, the reading thread frees the items, because it has allocated them.
        let is_kept = self.chunk.faults.handle_writes() && self.chunk.buffer_reads;
        if !is_kept && !self.is_reading_ahead() {
            self.lists.flushed = list.end;
            self.results.clear();
        }
        Ok(Outcome::Written(list.end))
    }

    /// Makes the error of a write roll the interval back if the destination cannot undo the write alone, or the transaction of the
    /// repository has a part of it.
    // Spec: MARK-09
    fn of_destination(&self, error: BatchError, tx: &mut ChunkTransaction) -> BatchError {
        match self.marked.is_some() && (!self.undoable || tx.is_used()) {
            true => BatchError::with_rollback(error),
            false => error,
        }
    }

    /// Calls the retry listeners for each item of a list that is written again. An item whose listener throws is skipped;
    /// returns the others.
    // Spec: LISTEN-RETRY-06, LISTEN-RETRY-09, LISTEN-RETRY-10
    fn before_retry(
        &mut self,
        interval: &mut Interval<'_, '_>,
        list: Range<usize>,
    ) -> Result<Range<usize>, RolledBack> {
        let Some(retried) = self.lists.retried_after(&list).map(Arc::clone) else {
            return Ok(list);
        };
        let mut end = list.start;
        for _ in list.clone() {
            let Some(item) = self.results.item(end - self.lists.flushed) else {
                break;
            };
            let notified = interval.listeners.on_retry("on_retry_item", &mut |listener| {
                listener.on_retry_item(&retried, item)
            });
            let Err(failure) = notified else {
                end += 1;
                continue;
            };
            let Some(error) = failure.exception.clone() else {
                return Err(failure.into());
            };
            self.env.context.set_exception(Arc::clone(&error));
            let fault = Fault {
                phase: ItemPhase::Write,
                error: &error,
                item: Some(item),
                numbers: &[],
                attempt: Attempt::Retry,
            };
            self.faults.decide(&fault, || failure)?;
            // The items after it move up, so `end` stays.
            self.skip_results(interval, end..end + 1, &error)?;
        }
        Ok(list.start..end)
    }

    /// Drops the results that are not in the destination, if the interval is replayed. Returns the others.
    // Spec: MARK-15
    fn without_dropped(&mut self, list: Range<usize>) -> Range<usize> {
        if self.replayed().is_none() {
            return list;
        }
        let mut end = list.end;
        let mut position = list.start;
        while position < end {
            let number = self.lists.numbers(position..position + 1);
            let replayed = self.replayed();
            if !replayed.is_some_and(|replayed| number.iter().any(|number| replayed.has_dropped(*number))) {
                position += 1;
                continue;
            }
            let place = self.lists.in_buffer(&(position..position + 1)).start;
            self.lists.skip(&(position..position + 1));
            self.results.remove(place);
            end -= 1;
        }
        list.start..end
    }

    /// Returns whether a failed write of this list is undone without a rollback of the whole interval.
    fn is_undoable(&self, list: &Range<usize>) -> bool {
        let faults = &self.chunk.faults;
        let alone = list.len() == 1
            || faults.failed_write_skips_its_list
            || self.lists.attempt(list) == Attempt::Search;
        self.undoable && faults.handle_writes() && (alone || !faults.no_rollback.is_empty())
    }

    /// Undoes a failed write if possible.
    fn undo_write(
        &mut self,
        interval: &mut Interval<'_, '_>,
        list: Range<usize>,
        guarded: bool,
        error: Arc<BatchError>,
    ) -> Result<FailedList, RolledBack> {
        let failure = || Failure::thrown(&self.chunk.writer, "write_items", Arc::clone(&error));
        // A lost connection is not the fault of an item. Without a savepoint the transaction is over anyway.
        if self.chunk.transactional && !guarded && interval.tx.is_lost() {
            return Err(failure().into());
        }
        let item = match list.len() {
            1 => Some(list.start),
            // A list is skipped and retried as a whole. Spec: JAK-19, JAK-31
            _ if self.chunk.faults.failed_write_skips_its_list => None,
            _ => error
                .item_index()
                .map(|index| list.start + index)
                .filter(|item| list.contains(item)),
        };
        // Items before the one that the writer reports are written, and remain so without a rollback.
        let named = item.is_some() && list.len() > 1 && self.lists.attempt(&list) != Attempt::Search;
        let undone = guarded && !named;
        let kept = match (guarded, undone) {
            (false, _) => Ok(()),
            (true, true) => interval.tx.undo_to_savepoint(),
            (true, false) => interval.tx.release_savepoint(),
        };
        // The writer's error is the cause of the lost savepoint, too.
        kept.map_err(|ended| failure().because(ended))?;
        Ok(FailedList {
            // The savepoint does not undo what such a writer has written outside of the transaction.
            undone: undone && !error.needs_rollback(),
            error,
            list,
            item,
        })
    }

    /// Decides about a failed write, and calls the listeners of a retry or skip.
    fn write_failed(
        &mut self,
        interval: &mut Interval<'_, '_>,
        failed: FailedList,
    ) -> Result<Outcome, RolledBack> {
        let (error, items) = (&failed.error, failed.items());
        let index = failed.item.map(|item| item - self.lists.flushed);
        let fault = Fault {
            phase: ItemPhase::Write,
            error,
            item: index.and_then(|index| self.results.item(index)),
            numbers: &self.lists.numbers(items.clone()),
            attempt: self.lists.attempt(&failed.list),
        };
        let inputs = self.faults.budget.inputs(interval.reads);
        let decided = self.faults.decide(&fault, || {
            let failure = Failure::thrown(&self.chunk.writer, "write_items", Arc::clone(error));
            failure.because(interval.first_items(inputs))
        });
        let decision = match decided {
            Ok(decision) => decision,
            Err(failure) => {
                let about = error.about().map(|index| failed.list.start + index);
                let about = about.filter(|item| failed.list.contains(item));
                let results = about.map_or(items, |item| item..item + 1);
                self.results_failed(error, results, inputs);
                return Err(failure.into());
            }
        };
        match decision {
            Decision::Retry => self.retry(interval, failed),
            // The destination has this item.
            _ if self.replayed().is_some() => {
                Err(Failure::thrown(&self.chunk.writer, "write_items", Arc::clone(error)).into())
            }
            Decision::Search { is_retry } => Ok(Outcome::Search { failed, is_retry }),
            Decision::Skip => {
                self.skip_results(interval, items, error)?;
                Ok(Outcome::Skipped(failed))
            }
        }
    }

    /// Calls the retry listeners, and pauses if the transaction is kept.
    // Spec: CHUNK-RETRY-07 to CHUNK-RETRY-11, LISTEN-RETRY-02 to LISTEN-RETRY-08, D-15
    fn retry(&mut self, interval: &mut Interval<'_, '_>, failed: FailedList) -> Result<Outcome, RolledBack> {
        let rules = &self.chunk.faults;
        let items = self.results.items(self.lists.in_buffer(&failed.items()));
        let (notify, context) = ("on_retry_exception", self.env.context);
        let forced = interval
            .listeners
            .before_rollback(notify, context, &mut |listener| {
                listener.on_retry_exception(&failed.error, &items)
            })?;
        let in_place = rules.keeps_transaction(&failed.error) && !forced;
        if rules.retry_one_by_one && !in_place {
            let touched = self.faults.budget.inputs(interval.reads);
            return Err(self.faults.read_again(touched));
        }
        if in_place && !self.faults.pause_before_retry(rules.back_off.in_transaction()) {
            return Err(RolledBack::Stopped { open: true });
        }
        Ok(Outcome::Retry { failed, in_place })
    }

    /// Removes results that are skipped, one or a whole list, after calling the skip listeners.
    // Spec: CHUNK-SKIP-11, LISTEN-SKIP-04, D-13, JAK-19, JAK-28
    fn skip_results(
        &mut self,
        interval: &mut Interval<'_, '_>,
        items: Range<usize>,
        error: &BatchError,
    ) -> Result<(), Failure> {
        let places = self.lists.in_buffer(&items);
        let skipped = self.results.items(places.clone());
        interval.listeners.on_skip("on_skip_in_write", &mut |listener| {
            listener.on_skip_in_write(error, &skipped)
        })?;
        self.lists.skip(&items);
        // From the last one, because a removal moves those after it.
        places.rev().for_each(|index| self.results.remove(index));
        Ok(())
    }

    /// Rolls back to the last checkpoint, and starts again with the kept items, or else reads them again.
    // Spec: CHUNK-RETRY-07, CHUNK-RETRY-09, CHUNK-RETRY-11, CHUNK-RETRY-12, D-12
    fn roll_back(&mut self, interval: &mut Interval<'_, '_>, is_retry: bool) -> Result<Outcome, RolledBack> {
        if !self.chunk.buffer_reads {
            return Err(RolledBack::ReadAgain);
        }
        if let Some(error) = self.env.context.exception() {
            interval.listeners.on_chunk_error(&error)?;
        }
        // Not undone with the transaction: the next commit of the step stores it.
        interval.step.counters.rollbacks += 1;
        interval.tx.restart();
        self.env.context.roll_back_description(true);
        self.emit_rollback(interval.step.counters, self.last_error(), None);
        // Before the writer is opened at its checkpoint: another process may write its output meanwhile.
        self.env.running.ensure_owned(self.env.repository)?;
        self.reopen_writer(interval.state)?;
        // The listeners are not told of a chunk that a stop prevents.
        if is_retry && !self.faults.pause_before_retry(self.chunk.faults.back_off) {
            return Err(RolledBack::Stopped { open: false });
        }
        interval.listeners.before_chunk()?;
        Ok(Outcome::Ready)
    }
}
