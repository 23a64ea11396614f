//! Chunk steps: read, process, write, checkpoint.
// Spec: Appendix B.2 of the catalogue

mod ahead;
mod class_limits;
mod faults;
mod interval;
mod interval_state;
mod listeners;
mod lists;
mod marker;
mod origin;
mod reading;
mod rules;
mod writing;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::body::{BodyEnd, StepEnv};
use super::bound::Bound;
use super::call::{Failure, Interrupt, call};
use super::elements::{BoundChunk, CheckpointInterval};
use crate::artifact::{ContextScope, ItemSink, ResultBuffer};
use crate::checkpoint::CheckpointInfo;
use crate::context_gate::ContextGate;
use crate::error::BatchError;
use crate::execution::{StepCounters, StepExecution};
use crate::observer::JobEventKind;
use crate::repository::{ChunkTransaction, StepState};
use crate::role::{CheckpointAlgorithm, ItemWriter};
use crate::status::BatchStatus;

pub(crate) use self::class_limits::ClassLimits;
pub(crate) use self::listeners::ChunkListeners;
pub(crate) use self::marker::Marked;
pub(crate) use self::rules::FaultRules;

use self::ahead::{Input, ReadAhead, lock};
use self::faults::{Faults, Policy};
use self::interval_state::{Interval, IntervalEnd, RolledBack};
use self::lists::Lists;
use self::marker::IntervalSize;
use self::rules::Budget;

/// The longest wait for a destination whose connection was lost, however long a lease is.
const MAX_PATIENCE: Duration = Duration::from_secs(60);

/// Runs one chunk.
pub(crate) struct ChunkRunner<'a> {
    chunk: &'a BoundChunk,
    env: StepEnv<'a>,
    input: Arc<Mutex<Input>>,
    /// Only if the step is pipelined.
    ahead: Option<ReadAhead>,
    /// True if the reader has to be closed, once for each time it was opened.
    // Spec: D-80
    reader_is_open: bool,
    /// The results of the interval, for the writer.
    results: ResultBuffer,
    /// True if a failed write can be undone alone, by a savepoint.
    undoable: bool,
    lists: Lists,
    writer: Box<dyn ItemWriter>,
    writer_is_open: bool,
    /// The writer's destination, if it has one.
    marked: Option<Marked>,
    /// Only for the checkpoint policy `custom`.
    algorithm: Option<Box<dyn CheckpointAlgorithm>>,
    faults: Faults<'a>,
    read_progress: ProgressCheck,
}

/// Detects a reader that fails repeatedly without progress.
#[derive(Default)]
struct ProgressCheck {
    /// The number of consecutive skipped reads.
    skips: u32,
    /// The position of the reader at one of them.
    position: Option<CheckpointInfo>,
}

impl<'a> ChunkRunner<'a> {
    pub(crate) fn make(
        chunk: &'a BoundChunk,
        contexts: &ContextScope,
        env: StepEnv<'a>,
    ) -> Result<Self, Failure> {
        let reader = chunk.reader.item_reader(contexts)?;
        let gate = Arc::new(ContextGate::new());
        let sink = processors(chunk, contexts, &gate)?;
        let results = sink.new_buffer();
        let writer = chunk.writer.item_writer(contexts)?;
        let policy = chunk.skip_policy.as_ref();
        let policy = policy.map(|policy| Policy::make(policy, contexts)).transpose()?;
        let algorithm = match &chunk.interval {
            CheckpointInterval::Custom(bound) => Some(bound.checkpoint_algorithm(contexts)?),
            CheckpointInterval::Items { .. } | CheckpointInterval::Time(_) => None,
        };
        let input = Arc::new(Mutex::new(Input { reader, sink }));
        let ahead = chunk.pipelined.then(|| ReadAhead::new(&input, env.worker, gate));
        Ok(Self {
            chunk,
            env,
            input,
            ahead,
            reader_is_open: false,
            results,
            undoable: chunk.transactional,
            lists: Lists::new(chunk.write_batch, chunk.transactional),
            writer,
            writer_is_open: false,
            marked: None,
            algorithm,
            faults: Faults {
                chunk,
                contexts: contexts.clone(),
                failed: None,
                env,
                policy,
                budget: Budget::default(),
            },
            read_progress: ProgressCheck::default(),
        })
    }

    /// Opens the artifacts, runs the intervals, and closes the artifacts. `state` contains the checkpoints of the
    /// last committed interval, of this execution or an earlier one.
    // Spec: CHUNK-LOOP-01, CHUNK-LOOP-02
    pub(crate) fn run(
        &mut self,
        step: &mut StepExecution,
        mut state: StepState,
        listeners: &mut ChunkListeners<'_>,
    ) -> Result<BodyEnd, Interrupt> {
        self.ask_for_destination()?;
        let opened = self.open(step, &mut state, Duration::ZERO);
        let result = opened.and_then(|()| self.intervals(step, &mut state, listeners));
        self.close();
        result
    }

    /// Returns the destination, to remove its marker once the end of the step is recorded.
    pub(crate) fn take_marked(&mut self) -> Option<Marked> {
        self.marked.take()
    }

    /// Restores the skips of this execution and of earlier ones.
    fn restore_skips(&mut self, step: &StepExecution, state: &StepState) -> Result<(), Failure> {
        let stored = state.skips.as_ref().map(CheckpointInfo::decode).transpose();
        let stored =
            stored.map_err(|error| Failure::new(format!("cannot read the skips by class: {error}")))?;
        // The skip limit applies to the instance: a job that was killed in between must not skip more.
        let counters = self.env.context.earlier_counters().plus(step.counters);
        self.faults.budget.restore(counters, stored.unwrap_or_default());
        Ok(())
    }

    fn open(
        &mut self,
        step: &mut StepExecution,
        state: &mut StepState,
        patience: Duration,
    ) -> Result<(), Interrupt> {
        // Before the reader is opened: the marker may be ahead of the repository.
        self.claim_marker(step, state, patience)?;
        self.restore_skips(step, state)?;
        self.open_reader(state)?;
        self.publish_item_count();
        Ok(self.open_writer(state)?)
    }

    /// Asks the writer for its destination.
    // Spec: MARK-03
    fn ask_for_destination(&mut self) -> Result<(), Failure> {
        let writer = &mut self.writer;
        let destination = self.chunk.writer.call("destination", || writer.destination())?;
        if let Some(destination) = destination {
            let marked = self.marked.insert(Marked::new(destination));
            self.undoable = marked.has_savepoints();
            self.lists = Lists::new(self.chunk.write_batch, self.undoable);
        }
        Ok(())
    }

    /// Claims the marker in the destination, if there is one.
    // Spec: MARK-05
    fn claim_marker(
        &mut self,
        step: &mut StepExecution,
        state: &mut StepState,
        patience: Duration,
    ) -> Result<(), Interrupt> {
        if let Some(marked) = &mut self.marked {
            let claimed = marked.claim(&self.chunk.writer, self.env, step, state, patience);
            // The end of the step is recorded next, on the same database perhaps.
            let committed = claimed.inspect_err(|_| marked.roll_back())?;
            if let Some(IntervalSize { inputs, results }) = committed {
                self.faults.budget.commit(inputs, results);
            }
        }
        Ok(())
    }

    fn open_writer(&mut self, state: &StepState) -> Result<(), Failure> {
        let checkpoint = state.writer.as_ref();
        self.chunk.writer.call("open", || self.writer.open(checkpoint))?;
        // `#[close]` is called once for each `#[open]` that has succeeded.
        self.writer_is_open = true;
        Ok(())
    }

    /// Reopens the writer after a rollback, if its checkpoint is a position: it has advanced past what was rolled back.
    // Spec: D-12
    fn reopen_writer(&mut self, state: &StepState) -> Result<(), Failure> {
        if !self.chunk.writer_keeps_position {
            return Ok(());
        }
        self.close_writer();
        self.open_writer(state)
    }

    /// Completes the output.
    // Spec: D-96
    fn finish(&mut self) -> Result<BodyEnd, Failure> {
        self.chunk.writer.call("finish", || self.writer.finish())?;
        Ok(BodyEnd::Completed { exit_status: None })
    }

    /// Locks reader and processor. Take or discard a pending fill before: its thread holds the lock.
    fn input(&self) -> MutexGuard<'_, Input> {
        lock(&self.input)
    }

    /// Closes reader and writer, also after a failure; errors here do not hide the first one.
    // Spec: CHUNK-LOOP-14, D-80
    fn close(&mut self) {
        // The reading thread holds the lock of the reader until its fill has ended.
        self.discard_input();
        self.close_writer();
        self.close_reader();
    }

    /// Discards the items that are not committed.
    fn discard_input(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            ahead.discard();
        }
        self.input().sink.discard();
        self.results.clear();
    }

    fn close_writer(&mut self) {
        // Taken before the call, so that a `#[close]` that fails is not called again.
        if std::mem::take(&mut self.writer_is_open)
            && let Err(error) = call(|| self.writer.close())
        {
            tracing::error!(
                writer = self.chunk.writer.name,
                error = self.chunk.writer.properties.secrets.hidden(error.chain()),
                "#[close] failed"
            );
        }
    }

    fn open_reader(&mut self, state: &StepState) -> Result<(), Failure> {
        let checkpoint = state.reader.as_ref();
        self.chunk
            .reader
            .call("open", || self.input().reader.open(checkpoint))?;
        self.reader_is_open = true;
        Ok(())
    }

    /// Publishes the item count. It is informational, so an error does not fail the step.
    fn publish_item_count(&mut self) {
        match call(|| self.input().reader.get_item_count()) {
            Ok(None) => {}
            Ok(Some(items)) => self.env.events.emit(JobEventKind::ItemsCounted { items }),
            Err(error) => tracing::warn!(
                reader = self.chunk.reader.name,
                error = self.chunk.reader.properties.secrets.hidden(error.chain()),
                "#[get_item_count] failed"
            ),
        }
    }

    fn close_reader(&mut self) {
        if std::mem::take(&mut self.reader_is_open)
            && let Err(error) = call(|| self.input().reader.close())
        {
            tracing::error!(
                reader = self.chunk.reader.name,
                error = self.chunk.reader.properties.secrets.hidden(error.chain()),
                "#[close] failed"
            );
        }
    }

    /// Resumes from the last checkpoint after the connection to the database was lost. Returns `false` after repeated
    /// losses without a commit, and an error if the database stays unreachable.
    ///
    /// Artifacts are opened as on a restart, because the state in their memory may be ahead of the database.
    fn resume(
        &mut self,
        interrupt: &Interrupt,
        step: &mut StepExecution,
        state: &mut StepState,
    ) -> Result<bool, Interrupt> {
        let Interrupt::Failed(failure) = interrupt else {
            return Ok(false);
        };
        if !self.faults.budget.resume() {
            return Ok(false);
        }
        let repository = self.env.repository;
        let kept = match repository.step(step.id) {
            // Another VERSION shows that another process has changed the row: nothing may be repeated here.
            Ok(Some((row, kept))) if row.version == step.version => kept,
            Ok(_) => return Ok(false),
            Err(error) => {
                tracing::error!(%error, "the database stays unreachable");
                // The first failure does not mention it.
                let remark = format!(
                    "the connection to the database was lost, and the database stays unreachable: {error}"
                );
                return Err(failure.clone().because(remark).into());
            }
        };
        // The outage may have outlasted the lease, so that another process runs the instance.
        self.env.running.ensure_owned(repository)?;
        tracing::warn!(
            error = failure.message,
            "the connection to the database was lost; resuming from the last checkpoint"
        );
        // What was set after the checkpoint belongs to items that are read again.
        self.env.context.restore_persistent_info(kept.user_data.clone());
        *state = kept;
        self.close();
        // Skips after the checkpoint are counted again when their items are read again.
        self.open(step, state, repository.lease_time().min(MAX_PATIENCE))?;
        Ok(true)
    }

    pub(super) fn is_reading_ahead(&self) -> bool {
        self.ahead.as_ref().is_some_and(ReadAhead::is_pending)
    }

    fn intervals(
        &mut self,
        step: &mut StepExecution,
        state: &mut StepState,
        listeners: &mut ChunkListeners<'_>,
    ) -> Result<BodyEnd, Interrupt> {
        loop {
            let _span = tracing::debug_span!("chunk", commit = step.counters.commits + 1).entered();
            // VERSION rejects a commit without the lease, but no output outside of the transaction.
            self.env.running.ensure_owned(self.env.repository)?;
            let counters = self.env.context.earlier_counters().plus(step.counters);
            let read_before = counters.reads.saturating_add(counters.read_skips);
            let is_replay = self.replayed().is_some();
            listeners.set_silent(is_replay);
            let mut interval = Interval {
                step,
                state,
                listeners,
                tx: self.begin_transaction(),
                reads: 0,
                read_before: u64::try_from(read_before).unwrap_or(0),
                position: None,
                failed_after: None,
            };
            let ran = self.interval(&mut interval);
            // Asked while the transactions are open.
            let is_lost = ran
                .as_ref()
                .is_err_and(|rolled_back| interval.tx.is_lost() || rolled_back.is_connection_lost());
            self.end_transaction(&mut interval.tx);
            match ran {
                Ok(end) => {
                    // An error from here on fails the step, but the interval stays committed.
                    interval.listeners.after_checkpoint()?;
                    match end {
                        _ if is_replay => {
                            let Interval { step, state, .. } = interval;
                            self.reopen_after_replay(step, state)?;
                        }
                        IntervalEnd::CheckpointDue => {}
                        // A stop request comes too late if the commit has recorded the end of a partition.
                        IntervalEnd::EndOfInput
                            if self.env.worker.stop_requested()
                                && interval.step.status != BatchStatus::Completed =>
                        {
                            return Ok(BodyEnd::stopped());
                        }
                        IntervalEnd::EndOfInput => return Ok(self.finish()?),
                        IntervalEnd::Stop => return Ok(BodyEnd::stopped()),
                    }
                }
                Err(rolled_back) => {
                    if let Some(end) = self.rolled_back(interval, rolled_back, is_lost)? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Opens the artifacts where the destination's interval ended, which the repository has committed now, too.
    // Spec: MARK-15
    fn reopen_after_replay(&mut self, step: &StepExecution, state: &StepState) -> Result<(), Failure> {
        self.close();
        if let Some((collecting, _)) = self.env.collecting {
            collecting.committed_after_all();
        }
        self.env.context.restore_persistent_info(state.user_data.clone());
        self.restore_skips(step, state)?;
        self.open_reader(state)?;
        self.open_writer(state)
    }

    /// Returns the transaction of an interval, with the destination.
    fn begin_transaction(&mut self) -> ChunkTransaction {
        let mut tx = self.env.repository.begin_chunk();
        if let Some(marked) = &mut self.marked {
            let shows_commit = marked.is_claimed();
            let has_items = marked.replayed().is_some();
            tx.attach(marked.lend(), shows_commit, has_items);
        }
        tx
    }

    /// Takes the destination back, and rolls back what it has not committed.
    fn end_transaction(&mut self, tx: &mut ChunkTransaction) {
        let destination = tx.detach();
        if let Some(marked) = &mut self.marked {
            marked.take_back(destination);
        }
    }

    /// Notifies of a rollback, and prepares the next interval or returns the end of the step.
    // Spec: CHUNK-LOOP-13, REPO-60
    fn rolled_back(
        &mut self,
        mut interval: Interval<'_, '_>,
        rolled_back: RolledBack,
        is_lost: bool,
    ) -> Result<Option<BodyEnd>, Interrupt> {
        let rolled_back = self.notify_chunk_error(&mut interval, rolled_back);
        let Interval {
            step,
            state,
            tx,
            failed_after,
            ..
        } = interval;
        // Rolls back.
        drop(tx);
        // The items are read again from the checkpoint, so their results would be written twice.
        self.discard_input();
        self.faults.budget.read_again();
        // A stop with nothing open follows a rollback that is counted already.
        if !matches!(rolled_back, RolledBack::Stopped { open: false }) {
            step.counters.rollbacks += 1;
            self.emit_rollback(step.counters, self.error_of(&rolled_back), failed_after);
        }
        // Listeners of the checkpoint may have seen counters that were not committed.
        self.env.context.set_counters(step.counters);
        self.env.context.roll_back_description(false);
        // The payload of an interval that is replayed waits since its first run.
        if let Some((collecting, _)) = self.env.collecting.filter(|_| self.replayed().is_none()) {
            collecting.roll_back();
        }
        self.recover(rolled_back, is_lost, step, state)
    }

    /// Emits a rollback; `counters` include it.
    fn emit_rollback(&self, counters: StepCounters, error: Option<String>, elapsed: Option<Duration>) {
        self.env.events.emit(JobEventKind::ChunkRolledBack {
            counters,
            error,
            elapsed,
        });
    }

    /// Returns the error that rolls an interval back, for observers.
    fn error_of(&self, rolled_back: &RolledBack) -> Option<String> {
        match rolled_back {
            RolledBack::Stopped { .. } => None,
            RolledBack::ReadAgain => self.last_error(),
            RolledBack::Failed(Interrupt::Failed(failure)) => Some(failure.message.clone()),
            RolledBack::Failed(Interrupt::Fenced(error)) => Some(error.to_string()),
        }
    }

    /// Returns the error that an artifact threw last, for observers.
    fn last_error(&self) -> Option<String> {
        let error = self.env.context.exception()?;
        Some(self.chunk.reader.shown(&error))
    }

    /// Calls the chunk listeners with the error that rolls an interval back.
    // Spec: JAK-27
    fn notify_chunk_error(&self, interval: &mut Interval<'_, '_>, rolled_back: RolledBack) -> RolledBack {
        let error = match &rolled_back {
            RolledBack::Stopped { .. } | RolledBack::Failed(Interrupt::Fenced(_)) => return rolled_back,
            RolledBack::ReadAgain => self.env.context.exception(),
            RolledBack::Failed(Interrupt::Failed(failure)) => {
                let thrown = failure.exception.clone();
                thrown.or_else(|| Some(Arc::new(BatchError::msg(&failure.message))))
            }
        };
        let notified = error.map_or(Ok(()), |error| interval.listeners.on_chunk_error(&error));
        match (rolled_back, notified) {
            (rolled_back, Ok(())) => rolled_back,
            (RolledBack::Failed(first), Err(failure)) => {
                tracing::error!(message = failure.message, "another listener failed");
                RolledBack::Failed(first)
            }
            (_, Err(failure)) => failure.into(),
        }
    }

    /// Prepares the next interval after a rollback, or returns the end of the step.
    fn recover(
        &mut self,
        rolled_back: RolledBack,
        is_lost: bool,
        step: &mut StepExecution,
        state: &mut StepState,
    ) -> Result<Option<BodyEnd>, Interrupt> {
        // Otherwise the end of the step, or the items that are read again, would commit these changes.
        self.env.data.roll_back_chunk();
        let failed = self.faults.failed.take();
        match rolled_back {
            RolledBack::Failed(Interrupt::Failed(failure)) if !is_lost => {
                return Err(self
                    .faults
                    .with_origin(failure, failed, state.reader.as_ref())
                    .into());
            }
            RolledBack::Failed(interrupt) if !is_lost => return Err(interrupt),
            RolledBack::Failed(interrupt) => match self.resume(&interrupt, step, state) {
                // Only the connection failed; a restart writes the remaining items.
                Ok(true) if self.env.worker.stop_requested() => return Ok(Some(BodyEnd::stopped())),
                Ok(true) => self.lists.commit(),
                Ok(false) => return Err(interrupt),
                // Stopped while a connection is lost: a restart writes the remaining items.
                Err(Interrupt::Failed(_)) if self.env.worker.stop_requested() => {
                    return Ok(Some(BodyEnd::stopped()));
                }
                Err(unreachable) => return Err(unreachable),
            },
            // Stopped between two retries; a restart writes the remaining items. Spec: CHUNK-RETRY-16
            RolledBack::Stopped { .. } => return Ok(Some(BodyEnd::stopped())),
            RolledBack::ReadAgain if !self.faults.pause_before_retry(self.chunk.faults.back_off) => {
                return Ok(Some(BodyEnd::stopped()));
            }
            RolledBack::ReadAgain => {
                self.env.context.roll_back_persistent_info();
                self.lists.read_again();
                // Otherwise the reader would continue after items that were not written. Spec: JSL-CHUNK-17
                self.close_reader();
                self.open_reader(state)?;
                self.reopen_writer(state)?;
            }
        }
        Ok(None)
    }
}

/// Returns the sink of a chunk without a processor.
fn pass_through(reader: &Bound) -> Result<ItemSink, Failure> {
    let sink = reader.registration.pass_through();
    let name = &reader.name;
    sink.ok_or_else(|| Failure::new(format!("the items of reader `{name}` need a processor")))
}

/// Creates the processor, or several that share the items.
// Spec: D-99
fn processors(
    chunk: &BoundChunk,
    contexts: &ContextScope,
    gate: &Arc<ContextGate>,
) -> Result<ItemSink, Failure> {
    let Some(processor) = &chunk.processor else {
        return pass_through(&chunk.reader);
    };
    let make = || -> Result<ItemSink, Failure> { Ok(processor.item_processor(contexts)?.into_sink()) };
    if chunk.processors == 1 {
        return make();
    }
    let sinks = (0..chunk.processors).map(|_| make()).collect::<Result<_, _>>()?;
    let name = &processor.name;
    ItemSink::parallel(sinks, gate).map_err(|error| {
        Failure::new(format!(
            "cannot start the threads of item processor `{name}`: {error}"
        ))
    })
}
