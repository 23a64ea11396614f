//! Reading and processing, with their skips.
// Spec: CHUNK-LOOP-03, CHUNK-SKIP-09, CHUNK-SKIP-10

use std::any::Any;
use std::sync::Arc;

use super::super::body::StepEnv;
use super::super::bound::Bound;
use super::super::call::{Failure, call};
use super::super::elements::BoundChunk;
use super::ahead::{FailedAhead, FillResult, Input, ReadAhead, lock};
use super::class_limits::UsedLimits;
use super::faults::{Budget, FaultRules, InputCall, InputRetry};
use super::interval::{Interval, Mode, RolledBack};
use super::policy::Policy;
use super::{ChunkListeners, ChunkRunner, ProgressCheck};
use crate::artifact::{FailedItem, Fill, FillEnd, FillError, Halt, ItemObserver};
use crate::error::BatchError;
use crate::observer::ItemPhase;

/// After this number of consecutive skipped reads, the reader's position has to have changed.
const SUSPICIOUS_SKIPS: u32 = 1_000;

impl ChunkRunner<'_> {
    /// Reads and processes at most `limit` items, until the results fill one call of the writer. The first items of the interval may
    /// have been read ahead.
    pub(super) fn fill(
        &mut self,
        interval: &mut Interval<'_, '_>,
        limit: usize,
    ) -> Result<FillEnd, RolledBack> {
        let most = interval.reads + limit;
        loop {
            let (filled, halted) = match self.ahead.as_mut().and_then(ReadAhead::take) {
                Some(mut filled) => {
                    let mut input = lock(&self.input);
                    input.sink.swap(&mut self.results);
                    // The interval continues: results of the previous one, now in the sink, would remain in memory.
                    if matches!(filled.end, Ok(Ok(FillEnd::Full))) {
                        input.sink.clear();
                    }
                    drop(input);
                    let failed = filled.failed.take();
                    let halted =
                        failed.map_or(Ok(()), |failed| self.item_failed(interval, failed, filled.reads));
                    (filled, halted)
                }
                None => self.fill_now(interval, most),
            };
            interval.reads += filled.reads;
            if filled.reads > 0 {
                self.read_progress = ProgressCheck::default();
            }
            let chunk = self.chunk;
            match filled.end {
                Ok(Ok(end)) => return Ok(end),
                Ok(Err(FillError::Read(error))) => self.read_failed(interval, error)?,
                Ok(Err(FillError::Process(error))) => self.process_failed(interval, error)?,
                Ok(Err(FillError::Mismatch(error))) => {
                    return Err(Failure::thrown(chunk.last_input(), "process_item", error).into());
                }
                // Either the item that was read ahead is skipped, or `halted` has the reason to end.
                Ok(Err(FillError::Halted)) => halted.map_err(|halted| match halted {
                    Halted::Failed(failure) => failure.into(),
                    Halted::Retried => self.read_again(interval, 0),
                    Halted::Stopped => RolledBack::Stopped { open: true },
                })?,
                Err(panic) => {
                    let failure = Failure::panicked(&chunk.reader, chunk.processor.as_ref(), panic);
                    return Err(failure.because(interval.beginning()).into());
                }
            }
        }
    }

    /// Runs a fill on this thread, until `most` items of the interval are read.
    fn fill_now(&mut self, interval: &mut Interval<'_, '_>, most: usize) -> (FillResult, Result<(), Halted>) {
        // Of the policy `time`, more may have been read ahead.
        let max_reads = most.saturating_sub(interval.reads);
        let full_at = interval.next + self.chunk.write_batch;
        let mut input = lock(&self.input);
        let (Input { reader, sink }, results) = (&mut *input, &mut self.results);
        sink.swap(results);
        let faults = &self.chunk.faults;
        let observed = interval.listeners.active.single_items(faults) || faults.repeats_calls();
        let stop = self.env.worker.stop_flag();
        let mut observer = ChunkObserver::new(
            self.chunk,
            self.env,
            (&mut self.budget, &mut self.policy),
            interval,
            0,
        );
        let fill = Fill::new(sink, stop, max_reads, full_at);
        let mut fill = if observed {
            fill.observed(&mut observer)
        } else {
            fill
        };
        // One panic guard per call, not per item.
        let end = call(|| Ok(reader.fill(&mut fill)));
        let reads = fill.reads();
        let halted = observer.halted.take().map_or(Ok(()), Err);
        sink.swap(results);
        let failed = None;
        (FillResult { end, reads, failed }, halted)
    }

    /// Applies the skip rules to an item that failed in a fill of `reads` items, which was read ahead.
    // Spec: LISTEN-SKIP-03
    fn item_failed(
        &mut self,
        interval: &mut Interval<'_, '_>,
        failed: FailedAhead,
        reads: usize,
    ) -> Result<(), Halted> {
        let FailedAhead { error, item, behind } = failed;
        ChunkObserver::new(
            self.chunk,
            self.env,
            (&mut self.budget, &mut self.policy),
            interval,
            reads,
        )
        .failed(error, &*item, behind)
        // A step whose calls are repeated is not pipelined.
        .map(|_| ())
    }

    /// Skips a failed read, or returns the failure.
    // Spec: CHUNK-SKIP-09, LISTEN-READ-04, LISTEN-SKIP-02
    fn read_failed(&mut self, interval: &mut Interval<'_, '_>, error: BatchError) -> Result<(), RolledBack> {
        let chunk = self.chunk;
        // No fault of an item. Spec: D-104
        if error.is_connection_lost() {
            return Err(Failure::thrown(&chunk.reader, "read_item", Arc::new(error)).into());
        }
        let error = Arc::new(error);
        self.env.context.set_exception(Arc::clone(&error));
        interval.listeners.on_read_error(&error)?;
        let failed = FailedItem::new(ItemPhase::Read, &error, None, interval.skips());
        let skip = chunk
            .faults
            .skip(&mut self.policy, &failed, &interval.skips_by_class)?;
        let place = (interval.reads + interval.read_skips, InputCall::Read);
        let retry = chunk.faults.retry_input(&error, skip, place, &mut self.budget);
        if retry != InputRetry::No {
            self.env
                .events
                .retried(ItemPhase::Read, || chunk.reader.shown(&error));
            let forced = interval.listeners.before_rollback(
                "on_retry_read_exception",
                self.env.context,
                &mut |listener| listener.on_retry_read_exception(&error),
            )?;
            return match retry {
                InputRetry::Call if !forced && self.pause_before_call(place) => Ok(()),
                InputRetry::Call if !forced => Err(RolledBack::Stopped { open: true }),
                _ => Err(self.read_again(interval, 1)),
            };
        }
        self.budget.may_skip(skip, &error, || {
            let failure = Failure::thrown(&chunk.reader, "read_item", Arc::clone(&error));
            failure.because_of(chunk.faults.remark_on_input(&error, &self.budget))
        })?;
        interval.read_skips += 1;
        self.budget.skipped.add(&error, || chunk.reader.shown(&error));
        chunk
            .faults
            .skip_limits
            .count(&error, &mut interval.skips_by_class);
        self.env
            .events
            .skipped(ItemPhase::Read, || chunk.reader.shown(&error));
        interval.listeners.on_skip("on_skip_in_read", &mut |listener| {
            listener.on_skip_in_read(&error)
        })?;
        Ok(self.ensure_progress(&error)?)
    }

    /// Rolls the interval back, and reads its items again from the checkpoint. `failed` is the number of reads that failed and are
    /// not skipped.
    pub(super) fn read_again(&mut self, interval: &mut Interval<'_, '_>, failed: usize) -> RolledBack {
        if self.chunk.faults.retry_one_by_one {
            let touched = interval.reads + interval.read_skips + failed;
            self.budget.one_by_one = self.budget.one_by_one.max(touched);
        }
        RolledBack::ReadAgain(std::mem::replace(&mut interval.mode, Mode::Plain))
    }

    /// Fails if the reader makes no progress: without a skip limit it would be called forever.
    fn ensure_progress(&mut self, error: &Arc<BatchError>) -> Result<(), Failure> {
        self.read_progress.skips += 1;
        if !self.read_progress.skips.is_multiple_of(SUSPICIOUS_SKIPS) {
            return Ok(());
        }
        let reader = &self.chunk.reader;
        let position = reader.call("get_checkpoint_info", || self.input().reader.checkpoint_info())?;
        let before = self.read_progress.position.replace(position);
        if before.is_some() && before == self.read_progress.position {
            let failure = Failure::thrown(reader, "read_item", Arc::clone(error));
            return Err(failure.because(format_args!(
                "{} reads in a row were skipped, and the reader's position has not changed during the last \
                 {SUSPICIOUS_SKIPS}; the reader has to advance past input that it cannot read",
                self.read_progress.skips
            )));
        }
        Ok(())
    }

    /// Skips an item without calling a listener, or returns the failure.
    // Spec: CHUNK-SKIP-10
    fn process_failed(
        &mut self,
        interval: &mut Interval<'_, '_>,
        error: BatchError,
    ) -> Result<(), RolledBack> {
        let error = Arc::new(error);
        self.env.context.set_exception(Arc::clone(&error));
        let faults = &self.chunk.faults;
        let failed = FailedItem::new(ItemPhase::Process, &error, None, interval.skips());
        let skip = faults.skip(&mut self.policy, &failed, &interval.skips_by_class)?;
        // The processor has taken the item, so it has to be read again.
        let number = interval.reads + interval.read_skips - self.input().sink.waiting();
        let (rules, place) = (&self.chunk.faults, (number, InputCall::Process));
        let shown = |error: &BatchError| self.chunk.last_input().shown(error);
        if rules.retry_input(&error, skip, place, &mut self.budget) != InputRetry::No {
            self.env.events.retried(ItemPhase::Process, || shown(&error));
            return Err(self.read_again(interval, 0));
        }
        self.budget.may_skip(skip, &error, || {
            let remark = self.chunk.faults.remark_on_input(&error, &self.budget);
            Failure::thrown(self.chunk.last_input(), "process_item", Arc::clone(&error))
                .at_item(interval.read_before() + number as u64, &interval.step.step_name)
                .because_of(remark)
        })?;
        interval.process_skips += 1;
        self.budget.skipped.add(&error, || shown(&error));
        faults.skip_limits.count(&error, &mut interval.skips_by_class);
        self.env.events.skipped(ItemPhase::Process, || shown(&error));
        Ok(())
    }
}

/// Calls the listeners for each item, and applies the skip rules to errors of the processor.
struct ChunkObserver<'w, 'r> {
    chunk_processor: &'w Bound,
    rules: &'w FaultRules,
    env: StepEnv<'w>,
    /// The skips of the step execution at the start of the fill.
    skips: u64,
    budget: &'w mut Budget,
    policy: &'w mut Option<Policy>,
    /// The items read or skipped since the last commit.
    reads: usize,
    /// Those before.
    read_before: u64,
    step_name: &'w str,
    process_skips: &'w mut usize,
    skips_by_class: &'w mut UsedLimits,
    listeners: &'w mut ChunkListeners<'r>,
    halted: Option<Halted>,
}

/// The reason for leaving the loop of reader and processor.
enum Halted {
    Failed(Failure),
    /// The processor is called again, after a rollback.
    Retried,
    /// A stop was requested before the processor is called again.
    Stopped,
}

impl From<Failure> for Halted {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl<'w, 'r> ChunkObserver<'w, 'r> {
    /// Observes an interval after a fill whose `reads` it does not count yet.
    fn new(
        chunk: &'w BoundChunk,
        env: StepEnv<'w>,
        (budget, policy): (&'w mut Budget, &'w mut Option<Policy>),
        interval: &'w mut Interval<'_, 'r>,
        reads: usize,
    ) -> Self {
        Self {
            chunk_processor: chunk.last_input(),
            rules: &chunk.faults,
            env,
            skips: interval.skips(),
            budget,
            policy,
            reads: interval.reads + interval.read_skips + reads,
            read_before: interval.read_before(),
            step_name: &interval.step.step_name,
            process_skips: &mut interval.process_skips,
            skips_by_class: &mut interval.skips_by_class,
            listeners: &mut *interval.listeners,
            halted: None,
        }
    }

    fn halt<T>(&mut self, result: Result<T, impl Into<Halted>>) -> Result<T, Halt> {
        result.map_err(|halted| {
            self.halted = Some(halted.into());
            Halt
        })
    }

    /// Skips an item that the processor failed at, or retries it: returns whether the call is repeated.
    // Spec: LISTEN-PROC-05, LISTEN-SKIP-03, LISTEN-SKIP-05, JAK-29, JAK-31
    fn failed(&mut self, error: BatchError, item: &dyn Any, behind: usize) -> Result<bool, Halted> {
        let error = Arc::new(error);
        self.env.context.set_exception(Arc::clone(&error));
        self.listeners.on_process_error(&error, item)?;
        let failed = FailedItem::new(ItemPhase::Process, &error, Some(item), self.skips);
        let skip = self.rules.skip(self.policy, &failed, self.skips_by_class)?;
        let place = (self.reads - behind, InputCall::Process);
        let retry = self.rules.retry_input(&error, skip, place, self.budget);
        let events = self.env.events;
        if retry != InputRetry::No {
            events.retried(ItemPhase::Process, || self.chunk_processor.shown(&error));
            let forced = self.listeners.before_rollback(
                "on_retry_process_exception",
                self.env.context,
                &mut |listener| listener.on_retry_process_exception(&error, item),
            )?;
            return match retry {
                InputRetry::Call
                    if !forced
                        && self
                            .budget
                            .pause_before_call(place, self.rules.back_off, self.env.worker) =>
                {
                    Ok(true)
                }
                InputRetry::Call if !forced => Err(Halted::Stopped),
                _ => Err(Halted::Retried),
            };
        }
        self.budget.may_skip(skip, &error, || {
            let failure = Failure::thrown(self.chunk_processor, "process_item", Arc::clone(&error))
                .at_item(self.read_before + place.0 as u64, self.step_name);
            failure.because_of(self.rules.remark_on_input(&error, self.budget))
        })?;
        *self.process_skips += 1;
        let shown = || self.chunk_processor.shown(&error);
        self.budget.skipped.add(&error, shown);
        self.rules.skip_limits.count(&error, self.skips_by_class);
        events.skipped(ItemPhase::Process, || self.chunk_processor.shown(&error));
        self.skips += 1;
        let notified = self.listeners.on_skip("on_skip_in_process", &mut |listener| {
            listener.on_skip_in_process(&error, item)
        });
        notified?;
        Ok(false)
    }
}

impl ItemObserver for ChunkObserver<'_, '_> {
    fn before_read(&mut self) -> Result<(), Halt> {
        let result = self.listeners.before_read();
        self.halt(result)
    }
    fn after_read(&mut self, item: &dyn Any) -> Result<(), Halt> {
        self.reads += 1;
        let result = self.listeners.after_read(item);
        self.halt(result)
    }
    fn before_process(&mut self, item: &dyn Any) -> Result<(), Halt> {
        let result = self.listeners.before_process(item);
        self.halt(result)
    }
    fn after_process(&mut self, item: &dyn Any, result: Option<&dyn Any>) -> Result<(), Halt> {
        let result = self.listeners.after_process(item, result);
        self.halt(result)
    }
    fn process_failed(
        &mut self,
        error: BatchError,
        item: Box<dyn Any + Send>,
        behind: usize,
    ) -> Result<Option<Box<dyn Any + Send>>, Halt> {
        let failed = self.failed(error, &*item, behind);
        let repeats = self.halt(failed)?;
        Ok(repeats.then_some(item))
    }
}
