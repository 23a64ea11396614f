//! Reading and processing, with their skips.
// Spec: CHUNK-LOOP-03, CHUNK-SKIP-09, CHUNK-SKIP-10

use std::any::Any;
use std::sync::Arc;

use super::super::call::{Failure, call};
use super::ahead::{FailedInput, FillResult, Halted, Input, ReadAhead, lock};
use super::faults::Faults;
use super::interval_state::{Interval, RolledBack};
use super::rules::{Attempt, Decision, Fault};
use super::{ChunkListeners, ChunkRunner, ProgressCheck};
use crate::artifact::{Fill, FillEnd, FillError, Halt, ItemObserver};
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
            let filled = match self.ahead.as_mut().and_then(ReadAhead::take) {
                Some(filled) => {
                    let mut input = lock(&self.input);
                    input.sink.swap(&mut self.results);
                    // The interval continues: results of the previous one, now in the sink, would remain in memory.
                    if matches!(filled.end, Ok(Ok(FillEnd::Full))) {
                        input.sink.clear();
                    }
                    filled
                }
                None => self.fill_now(interval, most),
            };
            interval.reads += filled.reads;
            if filled.reads > 0 {
                self.read_progress = ProgressCheck::default();
            }
            let chunk = self.chunk;
            let FailedInput { error, item, behind } = match filled.end {
                Ok(Ok(end)) => return Ok(end),
                Ok(Err(FillError::Read(error))) => {
                    self.read_failed(interval, error)?;
                    continue;
                }
                // Not observed: nothing needs the item.
                Ok(Err(FillError::Process(error))) => FailedInput {
                    error,
                    item: Box::new(()),
                    behind: self.input().sink.waiting(),
                },
                Ok(Err(FillError::Mismatch(error))) => {
                    return Err(Failure::thrown(chunk.last_input(), "process_item", error).into());
                }
                Ok(Err(FillError::Halted)) => match filled.halted {
                    Some(Halted::RolledBack(rolled_back)) => return Err(rolled_back),
                    Some(Halted::Failed(failed)) => failed,
                    None => continue,
                },
                Err(panic) => {
                    let failure = Failure::panicked(&chunk.reader, chunk.processor.as_ref(), panic);
                    return Err(failure.because(interval.beginning()).into());
                }
            };
            // The call is not repeated: a step whose calls may be is observed, and not pipelined.
            ChunkObserver::new(&mut self.faults, interval).failed(error, &*item, behind)?;
        }
    }

    /// Runs a fill on this thread, until `most` items of the interval are read.
    fn fill_now(&mut self, interval: &mut Interval<'_, '_>, most: usize) -> FillResult {
        // Of the policy `time`, more may have been read ahead.
        let max_reads = most.saturating_sub(interval.reads);
        // Results that are written, but kept for a rollback, are still in the buffer.
        let full_at = self.lists.written - self.lists.flushed + self.chunk.write_batch;
        let mut input = lock(&self.input);
        let (Input { reader, sink }, results) = (&mut *input, &mut self.results);
        sink.swap(results);
        let rules = &self.chunk.faults;
        let observed = interval.listeners.need_single_items(rules) || rules.repeats_calls();
        let stop = self.env.worker.stop_flag();
        let mut observer = ChunkObserver::new(&mut self.faults, interval);
        let fill = Fill::new(sink, stop, max_reads, full_at);
        let mut fill = if observed {
            fill.observed(&mut observer)
        } else {
            fill
        };
        // One panic guard per call, not per item.
        let end = call(|| Ok(reader.fill(&mut fill)));
        let reads = fill.reads();
        let halted = observer.rolled_back.take().map(Halted::RolledBack);
        sink.swap(results);
        FillResult { end, reads, halted }
    }

    /// Skips or repeats a failed read, or returns the reason for a rollback.
    // Spec: CHUNK-SKIP-09, LISTEN-READ-04, LISTEN-SKIP-02
    fn read_failed(&mut self, interval: &mut Interval<'_, '_>, error: BatchError) -> Result<(), RolledBack> {
        let (reader, context, error) = (&self.chunk.reader, self.env.context, Arc::new(error));
        let failure = || Failure::thrown(reader, "read_item", Arc::clone(&error));
        // No fault of an item. Spec: D-104
        if error.is_connection_lost() {
            return Err(failure().into());
        }
        context.set_exception(Arc::clone(&error));
        interval.listeners.on_read_error(&error)?;
        let number = self.faults.budget.inputs(interval.reads);
        let fault = Fault {
            phase: ItemPhase::Read,
            error: &error,
            item: None,
            numbers: &[number],
            attempt: Attempt::First,
        };
        if self.faults.decide(&fault, failure)? == Decision::Retry {
            let notify = "on_retry_read_exception";
            let forced = interval
                .listeners
                .before_rollback(notify, context, &mut |listener| {
                    listener.on_retry_read_exception(&error)
                })?;
            return self.faults.repeat(&fault, number + 1, forced);
        }
        interval.listeners.on_skip("on_skip_in_read", &mut |listener| {
            listener.on_skip_in_read(&error)
        })?;
        Ok(self.ensure_progress(&error)?)
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
}

/// Calls the listeners for each item, and applies the skip and retry rules to errors of the processor.
struct ChunkObserver<'w, 'r, 'a> {
    faults: &'w mut Faults<'a>,
    listeners: &'w mut ChunkListeners<'r>,
    /// The items read or skipped since the last commit.
    reads: usize,
    /// Those before.
    read_before: u64,
    step_name: &'w str,
    /// The reason for leaving the loop of reader and processor.
    rolled_back: Option<RolledBack>,
}

impl<'w, 'r, 'a> ChunkObserver<'w, 'r, 'a> {
    fn new(faults: &'w mut Faults<'a>, interval: &'w mut Interval<'_, 'r>) -> Self {
        Self {
            reads: faults.budget.inputs(interval.reads),
            faults,
            read_before: interval.read_before,
            step_name: &interval.step.step_name,
            listeners: &mut *interval.listeners,
            rolled_back: None,
        }
    }

    fn halt<T, E: Into<RolledBack>>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, Halt> {
        call(self).map_err(|reason| {
            self.rolled_back = Some(reason.into());
            Halt
        })
    }

    /// Skips an item that the processor failed at, or retries it: returns whether the call is repeated.
    // Spec: CHUNK-SKIP-10, LISTEN-PROC-05, LISTEN-SKIP-03, LISTEN-SKIP-05, JAK-29, JAK-31
    fn failed(&mut self, error: BatchError, item: &dyn Any, behind: usize) -> Result<bool, RolledBack> {
        let error = Arc::new(error);
        let (env, processor) = (self.faults.env, self.faults.chunk.last_input());
        env.context.set_exception(Arc::clone(&error));
        self.listeners.on_process_error(&error, item)?;
        let number = self.reads - behind;
        let fault = Fault {
            phase: ItemPhase::Process,
            error: &error,
            item: Some(item),
            numbers: &[number],
            attempt: Attempt::First,
        };
        let decided = self.faults.decide(&fault, || {
            let failure = Failure::thrown(processor, "process_item", Arc::clone(&error));
            failure.at_item(self.read_before + number as u64, self.step_name)
        });
        let decision = decided.inspect_err(|_| self.faults.inputs_failed(&error, number..=number))?;
        if decision == Decision::Retry {
            let notify = "on_retry_process_exception";
            let forced = self
                .listeners
                .before_rollback(notify, env.context, &mut |listener| {
                    listener.on_retry_process_exception(&error, item)
                })?;
            self.faults.repeat(&fault, self.reads, forced)?;
            return Ok(true);
        }
        self.listeners.on_skip("on_skip_in_process", &mut |listener| {
            listener.on_skip_in_process(&error, item)
        })?;
        Ok(false)
    }
}

impl ItemObserver for ChunkObserver<'_, '_, '_> {
    fn before_read(&mut self) -> Result<(), Halt> {
        self.halt(|this| this.listeners.before_read())
    }
    fn after_read(&mut self, item: &dyn Any) -> Result<(), Halt> {
        self.reads += 1;
        self.halt(|this| this.listeners.after_read(item))
    }
    fn before_process(&mut self, item: &dyn Any) -> Result<(), Halt> {
        self.halt(|this| this.listeners.before_process(item))
    }
    fn after_process(&mut self, item: &dyn Any, result: Option<&dyn Any>) -> Result<(), Halt> {
        self.halt(|this| this.listeners.after_process(item, result))
    }
    fn process_failed(
        &mut self,
        error: BatchError,
        item: Box<dyn Any + Send>,
        behind: usize,
    ) -> Result<Option<Box<dyn Any + Send>>, Halt> {
        let repeats = self.halt(|this| this.failed(error, &*item, behind))?;
        Ok(repeats.then_some(item))
    }
}
