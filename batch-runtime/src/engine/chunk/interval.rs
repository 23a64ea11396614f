//! One checkpoint interval: from one commit to the next.
//!
//! Spec: CHUNK-LOOP-03 to CHUNK-LOOP-12, CHUNK-CKPT-03, CHUNK-CKPT-04

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::super::call::{Failure, Interrupt, call};
use super::super::elements::CheckpointInterval;
use super::{ChunkListeners, ChunkRunner};
use crate::artifact::FillEnd;
use crate::error::BatchError;
use crate::execution::{StepCounters, StepExecution};
use crate::repository::{ChunkTransaction, RepositoryError, StepState};
use crate::role::CheckpointAlgorithm;

/// An interval in its making.
pub(super) struct Interval {
    pub(super) tx: ChunkTransaction,
    pub(super) reads: usize,
    pub(super) read_skips: usize,
    pub(super) process_skips: usize,
    pub(super) write_skips: usize,
    /// Results that were written and are no longer in the buffer.
    pub(super) gone: usize,
    /// Results in the buffer that are written.
    pub(super) next: usize,
    pub(super) mode: Mode,
}

/// How the results that are not written yet go to the writer. Positions are those in the interval.
pub(super) enum Mode {
    /// In lists of the chunk's size.
    Plain,
    /// The item, or the list, at these positions by itself, after the retry listeners were told. Spec: CHUNK-RETRY-08
    Retry {
        items: Range<usize>,
        error: Arc<BatchError>,
    },
    /// In search of the item that a list failed at: those from `from` to `until` alone, or in ever smaller lists where a
    /// failed write can be undone; the item stands before `bad`. Spec: D-10
    Scan { from: usize, until: usize, bad: usize },
}

/// Why an interval ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IntervalEnd {
    CheckpointDue,
    EndOfInput,
    Stop,
}

/// Why an interval is rolled back.
pub(super) enum Broken {
    /// The step ends FAILED, or may write nothing more.
    Failed(Interrupt),
    /// A stop was requested when a write was to be tried again; whether something is left to be rolled back.
    Stopped { open: bool },
    /// Its items are not kept: they are read again. Spec: D-12
    ReadAgain(Mode),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<RepositoryError> for Broken {
    fn from(error: RepositoryError) -> Self {
        Self::Failed(error.into())
    }
}

impl Interval {
    pub(super) fn new(tx: ChunkTransaction, mode: Mode) -> Self {
        Self {
            tx,
            reads: 0,
            read_skips: 0,
            process_skips: 0,
            write_skips: 0,
            gone: 0,
            next: 0,
            mode,
        }
    }

    /// The skips of the step execution, those of this interval included. Spec: CHUNK-SKIP-06
    pub(super) fn skips(&self, step: &StepExecution) -> u64 {
        let before = step.counters.read_skips + step.counters.process_skips + step.counters.write_skips;
        let here = self.read_skips + self.process_skips + self.write_skips;
        u64::try_from(before).unwrap_or(0) + here as u64
    }

    /// The counters once this interval is committed.
    fn counters(&self, before: StepCounters) -> StepCounters {
        let written = self.gone + self.next;
        let filtered = self.reads - self.process_skips - written - self.write_skips;
        StepCounters {
            reads: before.reads + as_count(self.reads),
            writes: before.writes + as_count(written),
            filters: before.filters + as_count(filtered),
            commits: before.commits + 1,
            rollbacks: before.rollbacks,
            read_skips: before.read_skips + as_count(self.read_skips),
            process_skips: before.process_skips + as_count(self.process_skips),
            write_skips: before.write_skips + as_count(self.write_skips),
        }
    }
}

impl ChunkRunner<'_> {
    /// Every interval ends with a checkpoint, an empty one too. Spec: CHUNK-LOOP-09
    pub(super) fn interval(
        &mut self,
        interval: &mut Interval,
        step: &mut StepExecution,
        state: &mut StepState,
        listeners: &mut ChunkListeners<'_>,
    ) -> Result<IntervalEnd, Broken> {
        self.ask_algorithm("begin_checkpoint", CheckpointAlgorithm::begin_checkpoint)?;
        // The clock is asked by who needs it only.
        let due_at = match &self.chunk.interval {
            CheckpointInterval::Time(time) => Instant::now().checked_add(*time),
            CheckpointInterval::Items(_) | CheckpointInterval::Custom(_) => None,
        };
        let end = loop {
            let before = interval.reads;
            let limit = match &self.chunk.interval {
                CheckpointInterval::Items(items) => items - interval.reads,
                CheckpointInterval::Time(_) | CheckpointInterval::Custom(_) => 1,
            };
            let end = self.fill(interval, limit, step, listeners)?;
            let due = match &self.chunk.interval {
                CheckpointInterval::Items(items) => interval.reads >= *items,
                CheckpointInterval::Time(_) => due_at.is_some_and(|due_at| due_at <= Instant::now()),
                // After each call of the processor, and only then. Spec: CHUNK-CKPT-03
                CheckpointInterval::Custom(_) if interval.reads == before => false,
                CheckpointInterval::Custom(_) => self
                    .ask_algorithm(
                        "is_ready_to_checkpoint",
                        CheckpointAlgorithm::is_ready_to_checkpoint,
                    )?
                    .unwrap_or(false),
            };
            match end {
                FillEnd::EndOfInput => break IntervalEnd::EndOfInput,
                FillEnd::Stop => break IntervalEnd::Stop,
                FillEnd::Limit | FillEnd::Full if due => break IntervalEnd::CheckpointDue,
                FillEnd::Limit => {}
                FillEnd::Full => self.write(interval, step, listeners)?,
            }
        };
        let begin = Instant::now();
        let written = self
            .write(interval, step, listeners)
            .and_then(|()| self.checkpoint(interval, step, state, listeners));
        self.observed.chunk(begin.elapsed(), written.is_ok());
        written?;
        self.sink.clear();
        Ok(end)
    }

    /// Collects the checkpoints and commits them with the data and the counters. Spec: CHUNK-LOOP-10 to CHUNK-LOOP-12
    fn checkpoint(
        &mut self,
        interval: &mut Interval,
        step: &mut StepExecution,
        state: &mut StepState,
        listeners: &mut ChunkListeners<'_>,
    ) -> Result<(), Broken> {
        let (chunk, around) = (self.chunk, self.around);
        let counters = interval.counters(step.counters);
        listeners.before_checkpoint()?;
        state.reader = Some(
            call(|| self.reader.checkpoint_info())
                .map_err(|error| Failure::thrown(&chunk.reader, "get_checkpoint_info", error))?,
        );
        state.writer = Some(
            call(|| self.writer.checkpoint_info())
                .map_err(|error| Failure::thrown(&chunk.writer, "get_checkpoint_info", error))?,
        );
        state.user_data = around.context.persistent_info();
        self.ask_algorithm("end_checkpoint", CheckpointAlgorithm::end_checkpoint)?;
        let before = step.counters;
        let renewal = around
            .running
            .renewal_due()
            .then(|| (Instant::now(), &around.running.lease));
        let lease = renewal.map(|(_, lease)| lease);
        around
            .repository
            .commit_chunk(&mut interval.tx, step, counters, state, lease)?;
        if let Some((asked, _)) = renewal {
            around.running.renewed(asked);
        }
        self.observed.committed(before, counters);
        self.budget.committed();
        around.context.set_counters(counters);
        around.running.publish_counters(around.place, counters);
        Ok(())
    }

    /// Calls the checkpoint algorithm, if there is one. Spec: CKALG-05 to CKALG-08
    fn ask_algorithm<T>(
        &mut self,
        method: &str,
        ask: impl FnOnce(&mut (dyn CheckpointAlgorithm + 'static)) -> Result<T, BatchError>,
    ) -> Result<Option<T>, Failure> {
        let CheckpointInterval::Custom(bound) = &self.chunk.interval else {
            return Ok(None);
        };
        let Some(algorithm) = &mut self.algorithm else {
            return Ok(None);
        };
        call(|| ask(algorithm.as_mut()))
            .map(Some)
            .map_err(|error| Failure::thrown(bound, method, error))
    }
}

fn as_count(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}
