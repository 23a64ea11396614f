//! Writing, and the handling of items that the writer fails at: retry, skip, or failure of the step.
// Spec: CHUNK-SKIP-11, CHUNK-SKIP-12, CHUNK-RETRY-07 to CHUNK-RETRY-16, CHUNK-NORB-02, D-10 to D-15

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::super::call::{Failure, call};
use super::super::threads::Worker;
use super::ChunkRunner;
use super::faults::{Budget, InputPlace, Skip};
use super::interval::{Interval, Mode, RolledBack};
use crate::activity::Activity;
use crate::artifact::FailedItem;
use crate::back_off::BackOff;
use crate::error::BatchError;
use crate::observer::ItemPhase;

/// A failed call of the writer.
struct FailedWrite {
    error: Arc<BatchError>,
    range: Range<usize>,
    /// The failed item, if known.
    item: Option<usize>,
    /// True if the failed write was undone.
    undone: bool,
    /// True if the writer has left items in its output, which only a rollback removes.
    needs_rollback: bool,
}

impl ChunkRunner<'_> {
    /// Passes the remaining results to the writer.
    // Spec: CHUNK-LOOP-04, CHUNK-LOOP-05
    pub(super) fn write(&mut self, interval: &mut Interval<'_, '_>) -> Result<(), RolledBack> {
        while interval.next < self.results.len() {
            let Some(range) = self.next_list(interval)? else {
                continue;
            };
            if let Err(failed) = self.write_list(interval, range)? {
                self.write_failed(interval, failed)?;
            }
        }
        Ok(())
    }

    /// Returns the range of the next call; `None` if there is none, and the mode has changed.
    fn next_list(&mut self, interval: &mut Interval<'_, '_>) -> Result<Option<Range<usize>>, RolledBack> {
        let (next, end) = (interval.next, self.results.len());
        let list = |to: usize| Some(next..end.min(to).min(next + self.chunk.write_batch));
        match &interval.mode {
            Mode::Plain => Ok(list(end)),
            Mode::Retry { items, .. } if interval.flushed + next < items.start => {
                Ok(list(items.start - interval.flushed))
            }
            Mode::Retry { items, error } if interval.flushed + next == items.start => {
                let (count, error) = (items.len(), Arc::clone(error));
                let left = self.before_retry(interval, count, &error)?;
                Ok((left > 0).then_some(next..next + left))
            }
            Mode::Scan { until, .. } if next >= *until => {
                interval.mode = Mode::Plain;
                Ok(None)
            }
            // Writes each half in turn, if a failed write can be undone. Spec: D-10
            Mode::Scan { from, .. } if next < *from => Ok(list(*from)),
            Mode::Scan { until, bad, .. } if self.chunk.transactional => Ok(Some(if next < *bad {
                next..next + (bad - next).div_ceil(2)
            } else {
                next..next + (until - next).min(self.chunk.write_batch)
            })),
            Mode::Scan { .. } => Ok(Some(next..next + 1)),
            Mode::Retry { .. } => {
                interval.mode = Mode::Plain;
                Ok(None)
            }
        }
    }

    /// Calls the retry listeners for each item that is written again. An item whose listener throws is skipped;
    /// returns the number of the others.
    // Spec: LISTEN-RETRY-06, LISTEN-RETRY-09, LISTEN-RETRY-10
    fn before_retry(
        &mut self,
        interval: &mut Interval<'_, '_>,
        count: usize,
        error: &BatchError,
    ) -> Result<usize, RolledBack> {
        let mut index = interval.next;
        for _ in 0..count {
            let Some(item) = self.results.item(index) else {
                break;
            };
            let notified = interval.listeners.on_retry("on_retry_item", &mut |listener| {
                listener.on_retry_item(error, item)
            });
            let Err(thrown) = notified else {
                index += 1;
                continue;
            };
            self.env.context.set_exception(Arc::clone(&thrown.error));
            let faults = &self.chunk.faults;
            let failed = FailedItem::new(ItemPhase::Write, &thrown.error, Some(item), interval.skips());
            let skip = faults.skip(&mut self.policy, &failed, &interval.skips_by_class)?;
            self.budget.may_skip(skip, &thrown.error, || thrown.failure)?;
            self.drop_item(interval, index, &thrown.error)?;
        }
        Ok(index - interval.next)
    }

    /// Calls the writer once, with its listeners. The inner error is the writer's.
    // Spec: LISTEN-WRITE-02 to LISTEN-WRITE-05
    fn write_list(
        &mut self,
        interval: &mut Interval<'_, '_>,
        range: Range<usize>,
    ) -> Result<Result<(), FailedWrite>, RolledBack> {
        self.env.context.set_activity(Activity::Writing);
        let items = self.results.items(range.clone());
        interval.listeners.before_write(&items)?;
        let guarded = self.is_undoable(interval, &range);
        if guarded {
            interval.tx.set_savepoint()?;
        }
        if let Err(error) = call(|| self.writer.write(&items, &mut interval.tx)) {
            let error = Arc::new(error);
            self.env.context.set_exception(Arc::clone(&error));
            interval.listeners.on_write_error(&error, &items)?;
            // A lost connection is not the fault of an item. Without a savepoint the transaction is over anyway.
            if self.chunk.transactional && !guarded && interval.tx.is_lost() {
                return Err(Failure::thrown(&self.chunk.writer, "write_items", error).into());
            }
            let item = match range.len() {
                1 => Some(range.start),
                // A list is skipped and retried as a whole. Spec: JAK-19, JAK-31
                _ if self.chunk.faults.failed_write_skips_its_list => None,
                _ => error
                    .item_index()
                    .map(|index| range.start + index)
                    .filter(|index| range.contains(index)),
            };
            // Items before the one that the writer reports are written, and remain so without a rollback.
            let named = item.is_some() && range.len() > 1 && !matches!(interval.mode, Mode::Scan { .. });
            let needs_rollback = error.needs_rollback();
            let undone = guarded && !named;
            let kept = match (guarded, undone) {
                (false, _) => Ok(()),
                (true, true) => interval.tx.undo_to_savepoint(),
                (true, false) => interval.tx.release_savepoint(),
            };
            // The writer's error is the cause of the lost savepoint, too.
            let writer = &self.chunk.writer;
            kept.map_err(|ended| Failure::thrown(writer, "write_items", Arc::clone(&error)).because(ended))?;
            return Ok(Err(FailedWrite {
                error,
                range,
                item,
                undone: undone && !needs_rollback,
                needs_rollback,
            }));
        }
        if guarded {
            interval.tx.release_savepoint()?;
        }
        interval.listeners.after_write(&items)?;
        interval.next = range.end;
        // While the next interval is read, the reading thread frees the items, because it has allocated them.
        let is_kept = self.chunk.faults.handle_writes() && self.chunk.buffer_reads;
        if !is_kept && !self.is_reading_ahead() {
            interval.flushed += interval.next;
            interval.next = 0;
            self.results.clear();
        }
        Ok(Ok(()))
    }

    /// Returns whether a failed write of this list is undone without a rollback of the whole interval.
    fn is_undoable(&self, interval: &Interval<'_, '_>, range: &Range<usize>) -> bool {
        let faults = &self.chunk.faults;
        let alone = range.len() == 1
            || faults.failed_write_skips_its_list
            || matches!(interval.mode, Mode::Scan { .. });
        self.chunk.transactional && faults.handle_writes() && (alone || faults.may_keep_transaction())
    }

    /// Retries, skips, searches, or returns the failure.
    // Spec: CHUNK-RETRY-14, D-10, D-11
    fn write_failed(
        &mut self,
        interval: &mut Interval<'_, '_>,
        failed: FailedWrite,
    ) -> Result<(), RolledBack> {
        let (error, range, item) = (&failed.error, &failed.range, failed.item);
        if let (Mode::Scan { from, bad, .. }, None) = (&mut interval.mode, item)
            && !error.fails_the_step()
        {
            // An earlier list may have failed this time: items that were searched once are searched again, so that
            // each rollback advances the search.
            *from = range.start.min(*from);
            *bad = range.end;
            return self.continue_after(interval, failed.needs_rollback);
        }
        let faults = &self.chunk.faults;
        let again = self.budget.one_by_one > 0
            || matches!(&interval.mode, Mode::Retry { items, .. } if interval.flushed + range.start == items.start);
        let result = item.and_then(|index| self.results.item(index));
        let skipped = FailedItem::new(ItemPhase::Write, error, result, interval.skips());
        let skip = match item {
            None if self.searches_for_policy(error) => Skip::Yes,
            _ => faults.skip(&mut self.policy, &skipped, &interval.skips_by_class)?,
        };
        let failures = match faults.max_attempts {
            None => 1,
            // A list whose failed item is not known is an attempt at each of its items.
            Some(_) => {
                let tried = item.map_or_else(|| range.clone(), |index| index..index + 1);
                let count = |index| self.budget.result_failed(interval.number(index));
                tried.map(count).max().unwrap_or(1)
            }
        };
        if faults.has_attempts(failures, again, skip) && faults.retry(error, &mut self.budget) {
            self.env
                .events
                .retried(ItemPhase::Write, || self.chunk.writer.shown(error));
            return self.retry(interval, failed);
        }
        self.budget.may_skip(skip, error, || {
            let failure = Failure::thrown(&self.chunk.writer, "write_items", Arc::clone(error))
                .because(interval.items_so_far());
            failure.because_of(self.chunk.faults.remark(error, &self.budget))
        })?;
        if self.chunk.faults.failed_write_skips_its_list {
            self.drop_list(interval, range.clone(), error)?;
            return self.continue_after(interval, failed.needs_rollback);
        }
        match item {
            Some(index) => {
                let alone = range.len() == 1 || failed.undone;
                self.drop_item(interval, index, error)?;
                self.continue_after(interval, failed.needs_rollback || !alone)
            }
            None => self.write_again(interval, self.scan(range)),
        }
    }

    /// Writes on in the same mode, after a rollback if one is needed.
    fn continue_after(
        &mut self,
        interval: &mut Interval<'_, '_>,
        needs_rollback: bool,
    ) -> Result<(), RolledBack> {
        if !needs_rollback {
            return Ok(());
        }
        let mode = std::mem::replace(&mut interval.mode, Mode::Plain);
        self.write_again(interval, mode)
    }

    /// Returns whether the item of a failed write is searched, because the policy decides on it.
    fn searches_for_policy(&self, error: &BatchError) -> bool {
        let skips_list = self.chunk.faults.failed_write_skips_its_list;
        self.policy.is_some() && !skips_list && !error.fails_the_step()
    }

    /// Returns the search mode. If a failed write cannot be undone, all items are written one by one, as in the draft.
    fn scan(&self, failed: &Range<usize>) -> Mode {
        Mode::Scan {
            from: if self.chunk.transactional { failed.start } else { 0 },
            until: failed.end,
            bad: failed.end,
        }
    }

    // Spec: CHUNK-RETRY-07 to CHUNK-RETRY-11, LISTEN-RETRY-02 to LISTEN-RETRY-08, D-15
    fn retry(&mut self, interval: &mut Interval<'_, '_>, failed: FailedWrite) -> Result<(), RolledBack> {
        let FailedWrite {
            error,
            range,
            item,
            undone,
            needs_rollback,
        } = failed;
        let keeps = self.chunk.faults.keeps_transaction(&error) && !needs_rollback;
        let one_by_one = self.chunk.faults.retry_one_by_one;
        // Without a rollback the whole list is written again if the item is unknown; otherwise it is searched. Spec: D-10
        let items = match item {
            Some(index) => index..index + 1,
            None if keeps || one_by_one => range.clone(),
            None => return self.retry_from_checkpoint(interval, self.scan(&range)),
        };
        let listed = self.results.items(items.clone());
        let forced =
            interval
                .listeners
                .before_rollback("on_retry_exception", self.env.context, &mut |listener| {
                    listener.on_retry_exception(&error, &listed)
                })?;
        if one_by_one && (forced || !keeps) {
            return Err(self.read_again(interval, 0));
        }
        let first = if undone { range.start } else { items.start };
        let mode = Mode::Retry {
            items: interval.flushed + items.start..interval.flushed + items.end,
            error,
        };
        if forced || !keeps {
            return self.retry_from_checkpoint(interval, mode);
        }
        interval.next = first;
        interval.mode = mode;
        if self.pause_in_transaction() {
            Ok(())
        } else {
            Err(RolledBack::Stopped { open: true })
        }
    }

    fn count_write_skip(&mut self, interval: &mut Interval<'_, '_>, error: &BatchError) {
        let limits = &self.chunk.faults.skip_limits;
        limits.count(error, &mut interval.skips_by_class);
        let shown = || self.chunk.writer.shown(error);
        self.budget.skipped.add(error, shown);
        self.env
            .events
            .skipped(ItemPhase::Write, || self.chunk.writer.shown(error));
    }

    /// Skips a whole list, as one skip.
    // Spec: JAK-19, JAK-28
    fn drop_list(
        &mut self,
        interval: &mut Interval<'_, '_>,
        range: Range<usize>,
        error: &BatchError,
    ) -> Result<(), Failure> {
        interval.write_skips += 1;
        self.count_write_skip(interval, error);
        let items = self.results.items(range.clone());
        interval.listeners.on_skip("on_skip_in_write", &mut |listener| {
            listener.on_skip_in_write(error, &items)
        })?;
        let numbers: Vec<usize> = range.clone().map(|index| interval.number(index)).collect();
        interval.dropped.extend(numbers);
        interval.dropped.sort_unstable();
        range.clone().rev().for_each(|index| self.results.remove(index));
        interval.mode = Mode::Plain;
        Ok(())
    }

    /// Skips one item.
    // Spec: CHUNK-SKIP-11, LISTEN-SKIP-04, D-13
    fn drop_item(
        &mut self,
        interval: &mut Interval<'_, '_>,
        index: usize,
        error: &BatchError,
    ) -> Result<(), Failure> {
        interval.write_skips += 1;
        self.count_write_skip(interval, error);
        let number = interval.number(index);
        let behind = interval.dropped.partition_point(|dropped| *dropped < number);
        interval.dropped.insert(behind, number);
        let items = self.results.items(index..index + 1);
        interval.listeners.on_skip("on_skip_in_write", &mut |listener| {
            listener.on_skip_in_write(error, &items)
        })?;
        self.results.remove(index);
        match &mut interval.mode {
            Mode::Plain => {}
            // An item before those that are retried does not end the retry.
            Mode::Retry { items, .. } => {
                let position = interval.flushed + index;
                items.start -= usize::from(position < items.start);
                items.end -= usize::from(position < items.end);
                if items.start == items.end {
                    interval.mode = Mode::Plain;
                }
            }
            Mode::Scan { from, until, bad } => {
                *from -= usize::from(index < *from);
                *until -= usize::from(index < *until);
                *bad = interval.next;
            }
        }
        Ok(())
    }

    /// Rolls back to the last checkpoint, and starts again with the kept items, or else reads them again.
    // Spec: CHUNK-RETRY-07, CHUNK-RETRY-09, CHUNK-RETRY-11, CHUNK-RETRY-12, D-12
    fn write_again(&mut self, interval: &mut Interval<'_, '_>, mode: Mode) -> Result<(), RolledBack> {
        self.roll_back(interval, mode)?;
        Ok(interval.listeners.before_chunk()?)
    }

    fn roll_back(&mut self, interval: &mut Interval<'_, '_>, mode: Mode) -> Result<(), RolledBack> {
        if !self.chunk.buffer_reads {
            return Err(RolledBack::ReadAgain(mode));
        }
        if let Some(error) = self.env.context.exception() {
            interval.listeners.on_chunk_error(&error)?;
        }
        interval.step.counters.rollbacks += 1;
        interval.tx.restart();
        self.env.context.roll_back_description(true);
        self.emit_rollback(interval.step.counters, self.last_error(), None);
        self.env.running.ensure_owned(self.env.repository)?;
        self.reopen_writer(interval.state)?;
        interval.next = 0;
        interval.mode = mode;
        Ok(())
    }

    /// Like `write_again`, with a pause after repeated retries.
    fn retry_from_checkpoint(
        &mut self,
        interval: &mut Interval<'_, '_>,
        mode: Mode,
    ) -> Result<(), RolledBack> {
        self.roll_back(interval, mode)?;
        // The listeners are not told of a chunk that a stop prevents.
        if !self.pause_before_retry() {
            return Err(RolledBack::Stopped { open: false });
        }
        Ok(interval.listeners.before_chunk()?)
    }

    /// Pauses before a retry, to relieve an overloaded system. Returns `false` after a stop request.
    // Spec: CHUNK-RETRY-16, D-07
    pub(super) fn pause_before_retry(&mut self) -> bool {
        let back_off = self.chunk.faults.back_off;
        self.budget.pause_before_retry(back_off, self.env.worker)
    }

    /// See `Budget::pause_before_call`.
    pub(super) fn pause_before_call(&self, place: InputPlace) -> bool {
        let back_off = self.chunk.faults.back_off;
        self.budget.pause_before_call(place, back_off, self.env.worker)
    }

    /// As `pause_before_retry`, while the transaction of the chunk may be open.
    pub(super) fn pause_in_transaction(&mut self) -> bool {
        let back_off = self.chunk.faults.back_off.in_transaction();
        self.budget.pause_before_retry(back_off, self.env.worker)
    }
}

impl Budget {
    pub(super) fn pause_before_retry(&mut self, back_off: BackOff, worker: &Worker) -> bool {
        if let Some(pause) = self.pause(back_off) {
            worker.pause(pause);
        }
        !worker.stop_requested()
    }

    /// Pauses before a call is repeated in the same transaction. Returns `false` after a stop request.
    pub(super) fn pause_before_call(&self, place: InputPlace, back_off: BackOff, worker: &Worker) -> bool {
        if let Some(pause) = self.call_pause(place, back_off) {
            worker.pause(pause);
        }
        !worker.stop_requested()
    }

    /// Returns the pause before a call is repeated, by the number of its failures.
    fn call_pause(&self, place: InputPlace, back_off: BackOff) -> Option<Duration> {
        let failures = self.retried_inputs.get(&place).copied().unwrap_or(1);
        back_off.in_transaction().pause(failures)
    }

    /// Returns the pause before the next attempt since the last commit.
    fn pause(&mut self, back_off: BackOff) -> Option<Duration> {
        self.attempts = self.attempts.saturating_add(1);
        back_off.pause(self.attempts)
    }

    /// Counts a failure of the result with this number in its interval, and returns how often it has failed.
    fn result_failed(&mut self, number: usize) -> u32 {
        let failures = self.retried_results.entry(number).or_default();
        *failures += 1;
        *failures
    }

    /// Resets the retry state after the commit of an interval: `inputs` items were read or skipped, and gave `results` results.
    pub(super) fn committed(&mut self, inputs: usize, results: usize) {
        self.one_by_one = self.one_by_one.saturating_sub(inputs);
        self.skipped.commit();
        self.attempts = 0;
        self.open_retries = 0;
        self.losses = 0;
        // After a rollback the interval may be shorter: failures of later items remain.
        let input = |((place, call), failures): (InputPlace, u32)| {
            Some(((place.checked_sub(inputs)?, call), failures))
        };
        let result = |(number, failures): (usize, u32)| Some((number.checked_sub(results)?, failures));
        let before = std::mem::take(&mut self.retried_inputs);
        self.retried_inputs = before.into_iter().filter_map(input).collect();
        let before = std::mem::take(&mut self.retried_results);
        self.retried_results = before.into_iter().filter_map(result).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first retries run at once; later ones after ever longer pauses, until the next commit.
    // Spec: CHUNK-RETRY-16, D-07
    #[test]
    fn pauses_grow_until_the_next_commit() {
        let mut budget = Budget::default();
        let mut pauses = |count| -> Vec<_> { (0..count).map(|_| budget.pause(BackOff::default())).collect() };
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(pauses(7), [None, None, None, ms(1), ms(2), ms(4), ms(8)]);
        assert_eq!(pauses(20).last(), Some(&ms(1000)));
        budget.committed(0, 0);
        assert_eq!(budget.pause(BackOff::default()), None);
    }

    /// What other items have failed does not lengthen the pauses of a call that is repeated alone.
    // Spec: CHUNK-RETRY-16, FAULT-05, D-07
    #[test]
    fn pauses_of_a_repeated_call_are_those_of_its_item() {
        use super::super::faults::InputCall;

        let mut budget = Budget::default();
        let places = [(0, InputCall::Process), (1, InputCall::Process)];
        budget.retried_inputs = [(places[0], 7), (places[1], 1)].into();
        budget.attempts = 8;
        let pauses = places.map(|place| budget.call_pause(place, BackOff::default()));
        assert_eq!(pauses, [Some(Duration::from_millis(8)), None]);
    }

    /// A commit of the items before it does not forget how often an item has failed.
    // Spec: FAULT-02
    #[test]
    fn failures_move_with_their_items() {
        use super::super::faults::InputCall;

        let mut budget = Budget::default();
        assert_eq!([5, 5, 2].map(|number| budget.result_failed(number)), [1, 2, 1]);
        budget.retried_inputs.insert((4, InputCall::Process), 1);
        budget.committed(3, 3);
        assert_eq!(budget.result_failed(2), 3);
        assert_eq!(budget.retried_inputs, [((1, InputCall::Process), 1)].into());
        budget.committed(3, 3);
        assert_eq!(budget.result_failed(2), 1);
        assert!(budget.retried_inputs.is_empty());
    }
}
