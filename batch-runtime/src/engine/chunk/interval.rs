//! One checkpoint interval: from one commit to the next.
// Spec: CHUNK-LOOP-03 to CHUNK-LOOP-12, CHUNK-CKPT-03, CHUNK-CKPT-04

use std::time::Instant;

use super::super::call::Failure;
use super::super::elements::CheckpointInterval;
use super::super::ending::settle;
use super::ChunkRunner;
use super::ahead::{FillRequest, ReadAhead};
use super::interval_state::{Interval, IntervalEnd, RolledBack};
use super::marker::{Committing, Marked, Replayed};
use crate::activity::Activity;
use crate::artifact::FillEnd;
use crate::checkpoint::CheckpointInfo;
use crate::engine::limits::check_size;
use crate::error::BatchError;
use crate::execution::{StepCounters, StepExecution};
use crate::observer::{ItemPhase, JobEventKind};
use crate::repository::{ChunkCommit, EndOfStep, Ending, SideWrites};
use crate::role::CheckpointAlgorithm;
use crate::status::BatchStatus;

impl ChunkRunner<'_> {
    /// Runs an interval. Each ends with a checkpoint, even an empty one.
    // Spec: CHUNK-LOOP-09
    pub(super) fn interval(&mut self, interval: &mut Interval<'_, '_>) -> Result<IntervalEnd, RolledBack> {
        // Before an artifact of the interval is called: a rollback returns to what is noted here.
        self.env.data.begin_chunk();
        self.env.context.begin_interval();
        self.ask_algorithm("begin_checkpoint", CheckpointAlgorithm::begin_checkpoint)?;
        interval.listeners.before_chunk()?;
        let pending = self.ahead.as_ref().filter(|ahead| ahead.is_pending());
        // The time of an interval that was read ahead counts from the start of its reading.
        let due_at = pending.map_or_else(|| self.due_at(), ReadAhead::due_at);
        let is_replay = self.replayed().is_some();
        let end = loop {
            let before = interval.reads;
            let limit = self.most_reads(interval.reads);
            self.env.context.set_activity(Activity::Reading);
            let end = self.fill(interval, limit)?;
            let due = match &self.chunk.interval {
                // The destination has committed these items, whatever ended the interval then.
                _ if is_replay => self.most_reads(interval.reads) == 0,
                // Spec: JAK-30
                _ if self.faults.budget.one_by_one > 0 => interval.reads > 0,
                CheckpointInterval::Items { count, .. } if interval.reads >= *count => true,
                CheckpointInterval::Items { .. } | CheckpointInterval::Time(_) => {
                    due_at.is_some_and(|due_at| due_at <= Instant::now())
                }
                // Asked only after calls of the processor. Spec: CHUNK-CKPT-03
                CheckpointInterval::Custom(_) if interval.reads == before => false,
                CheckpointInterval::Custom(_) => self
                    .ask_algorithm(
                        "is_ready_to_checkpoint",
                        CheckpointAlgorithm::is_ready_to_checkpoint,
                    )?
                    .unwrap_or(false),
            };
            match end {
                // The commit compares the numbers of items.
                FillEnd::EndOfInput if is_replay => break IntervalEnd::CheckpointDue,
                FillEnd::EndOfInput => break IntervalEnd::EndOfInput,
                FillEnd::Stop if is_replay => return Err(RolledBack::Stopped { open: true }),
                FillEnd::Stop => break IntervalEnd::Stop,
                // Items that wait for a processor are part of the interval.
                FillEnd::Limit | FillEnd::Full if due && self.input().sink.waiting() == 0 => {
                    break IntervalEnd::CheckpointDue;
                }
                FillEnd::Limit => {}
                FillEnd::Full => self.write(interval)?,
            }
        };
        if end == IntervalEnd::CheckpointDue {
            self.read_ahead(interval)?;
            // The last one is durable before the writer completes its output.
            // The payload of a collector is sent after the commit, which a loss of power must not undo.
            if self.chunk.rewindable && self.env.collecting.is_none() {
                interval.tx.relax();
            }
        }
        let begin = Instant::now();
        self.write(interval)
            .and_then(|()| self.checkpoint(interval, end, begin))
            .inspect_err(|_| interval.failed_after = Some(begin.elapsed()))?;
        // The next interval exchanges them for the results that were read ahead.
        if !self.is_reading_ahead() {
            self.results.clear();
        }
        Ok(end)
    }

    /// Returns the interval whose items the destination has committed already, if it is this one.
    // Spec: MARK-15
    pub(super) fn replayed(&self) -> Option<Replayed<'_>> {
        self.marked.as_ref().and_then(Marked::replayed)
    }

    /// Returns when an interval that begins now is due. Only a limit of time needs the clock.
    fn due_at(&self) -> Option<Instant> {
        match &self.chunk.interval {
            CheckpointInterval::Items { time: Some(time), .. } | CheckpointInterval::Time(time) => {
                Instant::now().checked_add(*time)
            }
            CheckpointInterval::Items { time: None, .. } | CheckpointInterval::Custom(_) => None,
        }
    }

    /// Returns the number of items to read before the policy is asked whether a checkpoint is due.
    fn most_reads(&self, reads: usize) -> usize {
        // Each thread gets some items between two checks of the clock.
        let timed = match self.chunk.processors {
            1 => 1,
            processors => processors * 8,
        };
        if let Some(replayed) = self.replayed() {
            return replayed.remaining(reads, self.faults.budget.skipped(ItemPhase::Read));
        }
        match &self.chunk.interval {
            _ if self.faults.budget.one_by_one > 0 => 1,
            CheckpointInterval::Items { count, time: None } => count - reads,
            CheckpointInterval::Items { count, time: Some(_) } => timed.min(count - reads),
            CheckpointInterval::Time(_) => timed,
            CheckpointInterval::Custom(_) => 1,
        }
    }

    /// Starts to read the next interval if the step is pipelined. Called when all items of this one are read.
    // Spec: D-100
    fn read_ahead(&mut self, interval: &mut Interval<'_, '_>) -> Result<(), Failure> {
        let continues = self.replayed().is_none() && !self.env.worker.stop_requested();
        if self.ahead.is_none() || !continues || self.faults.budget.one_by_one > 0 {
            return Ok(());
        }
        // Before the thread reads on: after a crash, a later position would pass over items not yet written.
        interval.position = Some(self.reader_position()?);
        // The reader has set its counts of records in the call above, and is not called again if a rollback
        // keeps its items.
        self.env.context.begin_writing();
        let request = FillRequest {
            max_reads: self.most_reads(0),
            full_at: self.chunk.write_batch,
            due_at: self.due_at(),
            keeps_failed_item: interval.listeners.need_single_items(&self.chunk.faults),
            commit: interval.step.counters.commits + 2,
        };
        self.ahead.as_mut().map_or(Ok(()), |ahead| ahead.start(request))?;
        #[cfg(debug_assertions)]
        if crate::failpoints::is_on(crate::failpoints::Fault::LateCheckpoint) {
            self.ahead.iter().for_each(ReadAhead::wait_until_filled);
            interval.position = Some(self.reader_position()?);
        }
        Ok(())
    }

    /// Asks the reader for its position.
    fn reader_position(&self) -> Result<CheckpointInfo, Failure> {
        let reader = &self.chunk.reader;
        let position = reader.call("get_checkpoint_info", || self.input().reader.checkpoint_info())?;
        let limit = self.env.context.checkpoint_limit();
        check_size("reader", &reader.name, &position, limit)?;
        Ok(position)
    }

    /// Collects the checkpoints and commits them with the data, whose write began at `begin`, and the counters.
    // Spec: CHUNK-LOOP-10 to CHUNK-LOOP-12
    fn checkpoint(
        &mut self,
        interval: &mut Interval<'_, '_>,
        end: IntervalEnd,
        begin: Instant,
    ) -> Result<(), RolledBack> {
        let (chunk, env) = (self.chunk, self.env);
        env.context.set_activity(Activity::Committing);
        let before = interval.step.counters;
        let replayed = self.replayed().map(|replayed| replayed.counters_after(before));
        let counters = replayed.unwrap_or_else(|| self.counters_after(interval));
        // A listener sees what the checkpoint will contain. Spec: D-98
        env.context.set_counters(StepCounters {
            commits: before.commits,
            ..counters
        });
        self.show_skipped_lists();
        interval.listeners.after_chunk()?;
        interval.listeners.before_checkpoint()?;
        let position = match interval.position.take() {
            // While the next interval is read, the reader is past the end of this one.
            Some(position) => position,
            None => self.reader_position()?,
        };
        // If the commit fails, the step ends, or resumes with the state that the database has.
        interval.state.reader = Some(position);
        let writer = || self.writer.checkpoint_info();
        let position = chunk.writer.call("get_checkpoint_info", writer)?;
        check_size(
            "writer",
            &chunk.writer.name,
            &position,
            env.context.checkpoint_limit(),
        )?;
        interval.state.writer = Some(position);
        // Of an interval that is replayed, the marker has the payload.
        if let Some((collecting, contexts)) = env.collecting.filter(|_| replayed.is_none()) {
            // Its payload is committed with the checkpoint, so it sees the counters of the checkpoint.
            env.context.set_counters(counters);
            collecting.collect(contexts)?;
            env.context.set_counters(interval.step.counters);
        }
        interval.state.user_data = env.context.persistent_info();
        if let Some(by_class) = self.faults.budget.changed_classes() {
            let skips = CheckpointInfo::encode(by_class);
            let skips = skips.map_err(|error| Failure::new(error.to_string()))?;
            interval.state.skips = Some(skips);
        }
        self.ask_algorithm("end_checkpoint", CheckpointAlgorithm::end_checkpoint)?;
        self.commit(interval, end, counters)?;
        // Not earlier: an interval whose commit fails must not count as committed in memory.
        let results = self.lists.written + self.lists.dropped.len();
        let inputs = self.faults.budget.inputs(interval.reads);
        self.faults.budget.commit(inputs, results);
        self.lists.commit();
        env.context.set_counters(counters);
        env.context.heartbeat();
        env.events.emit(JobEventKind::ChunkCommitted {
            before,
            counters,
            elapsed: begin.elapsed(),
        });
        Ok(())
    }

    /// Returns the counters after the commit of an interval.
    fn counters_after(&self, interval: &Interval<'_, '_>) -> StepCounters {
        let (before, lists) = (interval.step.counters, &self.lists);
        let skipped = |phase| self.faults.budget.skipped(phase);
        let filtered = interval.reads - skipped(ItemPhase::Process) - lists.written - lists.dropped.len();
        StepCounters {
            reads: before.reads + as_count(interval.reads),
            writes: before.writes + as_count(lists.written),
            filters: before.filters + as_count(filtered),
            commits: before.commits + 1,
            rollbacks: before.rollbacks,
            read_skips: before.read_skips + as_count(skipped(ItemPhase::Read)),
            process_skips: before.process_skips + as_count(skipped(ItemPhase::Process)),
            write_skips: before.write_skips + as_count(skipped(ItemPhase::Write)),
        }
    }

    /// Adds the number of items in skipped lists to the exit description, if it differs from the number of skips.
    // Spec: LOSS-07, JAK-19
    fn show_skipped_lists(&self) {
        let context = &self.env.context;
        let all = context.counters();
        let items = all.reads - all.writes - all.filters - all.process_skips;
        if self.chunk.faults.failed_write_skips_its_list && items > all.write_skips {
            let line = format!("{items} items were in skipped lists; each list counts as one skip");
            context.set_exit_description("skipped lists", line);
        }
    }

    /// Commits the destination, if the writer has one, and then the data with the counters and the checkpoints, and with the end of a
    /// partition that has nothing left to do. Renews the lease when it is time.
    fn commit(
        &mut self,
        interval: &mut Interval<'_, '_>,
        end: IntervalEnd,
        counters: StepCounters,
    ) -> Result<(), RolledBack> {
        let env = self.env;
        let is_replay = self.replayed().is_some();
        let side_writes = self.side_writes(interval)?;
        #[cfg(not(debug_assertions))]
        let comes_first = true;
        #[cfg(debug_assertions)]
        let comes_first = !crate::failpoints::is_on(crate::failpoints::Fault::RepositoryFirst);
        if comes_first && !is_replay {
            self.commit_destination(interval, &side_writes, counters)?;
        }
        // The time is taken before the commit, because the lease lasts at least from then.
        let renewal = env
            .running
            .renewal_due()
            .then(|| (Instant::now(), &env.running.lease));
        let lease = renewal.map(|(_, lease)| lease);
        let ends = env
            .partition
            .and_then(|partition| Some((partition, self.last_ending(end)?)));
        let (tx, step, state) = (&mut interval.tx, &mut *interval.step, &*interval.state);
        let mut commit = |next: Option<&mut StepExecution>| {
            let commit = ChunkCommit {
                counters,
                state,
                side_writes: &side_writes,
                renew: lease,
                end: ends.as_ref().map(|(_, ending)| EndOfStep { ending, next }),
            };
            env.repository.commit_chunk(tx, step, commit)
        };
        match &ends {
            Some((partition, ending)) => partition.record(ending.status, &mut commit)?,
            None => commit(None)?,
        }
        if !comes_first && !is_replay {
            self.commit_destination(interval, &side_writes, counters)?;
        }
        env.data.committed(side_writes.data);
        // A failed commit has rolled the renewal back.
        if let Some((asked, _)) = renewal {
            env.running.renewed(asked);
        }
        // Last, because it may wait for the analyzer.
        if let Some((collecting, _)) = env.collecting.filter(|_| !is_replay) {
            collecting.committed();
        }
        Ok(())
    }

    /// Returns what the interval stores beside the state of the step. Of one that is replayed, the marker has all of it, and the state.
    fn side_writes(&mut self, interval: &mut Interval<'_, '_>) -> Result<SideWrites, Failure> {
        let env = self.env;
        let counters = self.counters_after(interval);
        let marked = self.marked.as_mut();
        let replayed = marked.map(|marked| marked.complete_replay(env, interval, counters));
        Ok(replayed.transpose()?.flatten().unwrap_or_else(|| SideWrites {
            data: env.data.pending(),
            payloads: env
                .collecting
                .map_or_else(Vec::new, |(collecting, _)| collecting.reports()),
        }))
    }

    /// Commits the items and the marker in the destination, if the writer has one.
    // Spec: MARK-04
    fn commit_destination(
        &mut self,
        interval: &mut Interval<'_, '_>,
        side_writes: &SideWrites,
        counters: StepCounters,
    ) -> Result<(), RolledBack> {
        let Some(marked) = &mut self.marked else {
            return Ok(());
        };
        let committing = Committing {
            side_writes,
            counters,
            dropped: &self.lists.dropped,
        };
        marked.commit(&self.chunk.writer, self.env, interval, &committing)
    }

    /// Returns the ending to record with the last chunk, or `None` if something is left to do after it. In a worker process that is the
    /// release of the artifacts: the next step must not begin before it.
    // Spec: D-107
    fn last_ending(&self, end: IntervalEnd) -> Option<Ending> {
        let env = self.env;
        let is_last = end == IntervalEnd::EndOfInput && !env.worker.stop_requested();
        let is_remote = env.running.lease.partition.is_some();
        // A collector may be called at the end of the step, too, and its error fails the partition.
        if !is_last || !self.chunk.ends_with_commit || env.collecting.is_some() || is_remote {
            return None;
        }
        // An exit status that cannot be stored fails the step, after this commit.
        let (ending, failure) = settle("", env.context.exit_status(), BatchStatus::Completed, None);
        let description = env
            .context
            .exit_description(&self.chunk.reader.properties.secrets);
        failure.is_none().then(|| ending.described(description))
    }

    /// Calls the checkpoint algorithm, if there is one.
    // Spec: CKALG-05 to CKALG-08
    fn ask_algorithm<T>(
        &mut self,
        method: &str,
        ask: impl FnOnce(&mut (dyn CheckpointAlgorithm + 'static)) -> Result<T, BatchError>,
    ) -> Result<Option<T>, Failure> {
        let CheckpointInterval::Custom(bound) = &self.chunk.interval else {
            return Ok(None);
        };
        let algorithm = self.algorithm.as_mut();
        let asked = algorithm.map(|algorithm| bound.call(method, || ask(algorithm.as_mut())));
        asked.transpose()
    }
}

fn as_count(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}
