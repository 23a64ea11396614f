//! Chunk steps: read, process, write, checkpoint.
//!
//! Spec: Appendix B.2 of the catalogue

use std::time::Instant;

use super::bound::{BoundChunk, CheckpointInterval};
use super::call::{Failure, Interrupt, call};
use super::running::Running;
use super::step::BodyEnd;
use crate::artifact::{ContextScope, Fill, FillEnd, FillError, ItemReader, ItemSink, ItemWriter};
use crate::context::StepContext;
use crate::execution::{StepCounters, StepExecution};
use crate::repository::{ChunkTransaction, JobRepository, StepState};

/// Runs one chunk.
pub(crate) struct ChunkRunner<'a> {
    chunk: &'a BoundChunk,
    reader: Box<dyn ItemReader>,
    sink: ItemSink,
    writer: Box<dyn ItemWriter>,
    context: &'a StepContext,
    repository: &'a dyn JobRepository,
    running: &'a Running,
}

/// Why an interval ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IntervalEnd {
    CheckpointDue,
    EndOfInput,
    Stop,
}

impl<'a> ChunkRunner<'a> {
    pub(crate) fn make(
        chunk: &'a BoundChunk,
        contexts: &ContextScope,
        context: &'a StepContext,
        repository: &'a dyn JobRepository,
        running: &'a Running,
    ) -> Result<Self, Failure> {
        let reader = chunk
            .reader
            .item_reader(contexts)
            .map_err(|e| Failure::not_made(&chunk.reader, &e))?;
        let processor = chunk
            .processor
            .item_processor(contexts)
            .map_err(|e| Failure::not_made(&chunk.processor, &e))?;
        let writer = chunk
            .writer
            .item_writer(contexts)
            .map_err(|e| Failure::not_made(&chunk.writer, &e))?;
        Ok(Self {
            chunk,
            reader,
            sink: processor.into_sink(),
            writer,
            context,
            repository,
            running,
        })
    }

    /// Opens, runs interval after interval, closes. `state` holds the checkpoints of the last committed interval, of
    /// this execution or an earlier one. Spec: CHUNK-LOOP-01, CHUNK-LOOP-02
    pub(crate) fn run(
        &mut self,
        step: &mut StepExecution,
        mut state: StepState,
    ) -> Result<BodyEnd, Interrupt> {
        let chunk = self.chunk;
        call(|| self.reader.open(state.reader.as_ref()))
            .map_err(|e| Failure::thrown(&chunk.reader, "open", e))?;
        if let Err(error) = call(|| self.writer.open(state.writer.as_ref())) {
            self.close_reader();
            return Err(Failure::thrown(&chunk.writer, "open", error).into());
        }
        let result = self.intervals(step, &mut state);
        // Also after a failure; an error here does not hide the first one. Spec: CHUNK-LOOP-14, D-80
        if let Err(error) = call(|| self.writer.close()) {
            tracing::error!(
                writer = chunk.writer.name,
                error = error.chain(),
                "#[close] failed"
            );
        }
        self.close_reader();
        result
    }

    fn close_reader(&mut self) {
        if let Err(error) = call(|| self.reader.close()) {
            tracing::error!(
                reader = self.chunk.reader.name,
                error = error.chain(),
                "#[close] failed"
            );
        }
    }

    fn intervals(&mut self, step: &mut StepExecution, state: &mut StepState) -> Result<BodyEnd, Interrupt> {
        loop {
            self.running.ensure_owned(self.repository)?;
            let tx = self.repository.begin_chunk()?;
            match self.interval(tx, step, state) {
                Ok(IntervalEnd::CheckpointDue) => {}
                Ok(IntervalEnd::EndOfInput) if self.running.stop_requested() => return Ok(BodyEnd::stopped()),
                Ok(IntervalEnd::EndOfInput) => return Ok(BodyEnd::Completed { exit_status: None }),
                Ok(IntervalEnd::Stop) => return Ok(BodyEnd::stopped()),
                Err(interrupt) => {
                    // The transaction has been dropped, which rolled it back. Spec: CHUNK-LOOP-13, REPO-60
                    step.counters.rollbacks += 1;
                    return Err(interrupt);
                }
            }
        }
    }

    /// From one commit to the next. Every interval ends with a checkpoint, an empty one too. Spec: CHUNK-LOOP-09
    fn interval(
        &mut self,
        mut tx: ChunkTransaction,
        step: &mut StepExecution,
        state: &mut StepState,
    ) -> Result<IntervalEnd, Interrupt> {
        let (mut reads, mut writes) = (0, 0);
        let begin = Instant::now();
        let end = loop {
            let limit = match self.chunk.interval {
                CheckpointInterval::Items(items) => items - reads,
                CheckpointInterval::Time(_) => 1,
            };
            let (read, end) = self.fill(limit)?;
            reads += read;
            let due = match self.chunk.interval {
                CheckpointInterval::Items(items) => reads >= items,
                CheckpointInterval::Time(time) => begin.elapsed() >= time,
            };
            match end {
                FillEnd::EndOfInput => break IntervalEnd::EndOfInput,
                FillEnd::Stop => break IntervalEnd::Stop,
                FillEnd::Limit | FillEnd::Full if due => break IntervalEnd::CheckpointDue,
                FillEnd::Limit => {}
                FillEnd::Full => writes += self.write(&mut tx)?,
            }
        };
        writes += self.write(&mut tx)?;
        let counters = StepCounters {
            reads: step.counters.reads + as_count(reads),
            writes: step.counters.writes + as_count(writes),
            filters: step.counters.filters + as_count(reads - writes),
            commits: step.counters.commits + 1,
            ..step.counters
        };
        self.checkpoint(tx, step, state, counters)?;
        Ok(end)
    }

    /// Reads and processes at most `limit` items, until the write batch is full. Spec: CHUNK-LOOP-03, CHUNK-LOOP-04
    fn fill(&mut self, limit: usize) -> Result<(usize, FillEnd), Failure> {
        let chunk = self.chunk;
        let mut fill = Fill::new(&mut self.sink, self.running.stop_flag(), limit, chunk.write_batch);
        // One guard for all items of the call: none per item.
        let result = call(|| Ok(self.reader.fill(&mut fill)));
        let reads = fill.reads();
        match result {
            Ok(Ok(end)) => Ok((reads, end)),
            Ok(Err(FillError::Read(error))) => Err(Failure::thrown(&chunk.reader, "read_item", error)),
            Ok(Err(FillError::Process(error))) => {
                Err(Failure::thrown(&chunk.processor, "process_item", error))
            }
            Err(panic) => Err(Failure::panicked(&chunk.reader, &chunk.processor, panic)),
        }
    }

    /// Hands the buffered items to the writer. Spec: CHUNK-LOOP-05
    fn write(&mut self, tx: &mut ChunkTransaction) -> Result<usize, Failure> {
        let count = self.sink.len();
        if count == 0 {
            return Ok(0);
        }
        let items = self.sink.items(0..count);
        call(|| self.writer.write(&items, tx))
            .map_err(|error| Failure::thrown(&self.chunk.writer, "write_items", error))?;
        self.sink.clear();
        Ok(count)
    }

    /// Collects the checkpoints and commits them with the data and the counters. Spec: CHUNK-LOOP-10 to CHUNK-LOOP-12
    fn checkpoint(
        &mut self,
        tx: ChunkTransaction,
        step: &mut StepExecution,
        state: &mut StepState,
        counters: StepCounters,
    ) -> Result<(), Interrupt> {
        let chunk = self.chunk;
        state.reader = Some(
            call(|| self.reader.checkpoint_info())
                .map_err(|error| Failure::thrown(&chunk.reader, "get_checkpoint_info", error))?,
        );
        state.writer = Some(
            call(|| self.writer.checkpoint_info())
                .map_err(|error| Failure::thrown(&chunk.writer, "get_checkpoint_info", error))?,
        );
        state.user_data = self.context.persistent_info();
        let asked = Instant::now();
        let renew = self.running.renewal_due().then_some(&self.running.lease);
        self.repository.commit_chunk(tx, step, counters, state, renew)?;
        if renew.is_some() {
            self.running.renewed(asked);
        }
        self.context.set_counters(counters);
        self.running.publish_counters(counters);
        Ok(())
    }
}

fn as_count(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}
