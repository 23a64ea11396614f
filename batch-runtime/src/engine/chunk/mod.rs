//! Chunk steps: read, process, write, checkpoint.
//!
//! Spec: Appendix B.2 of the catalogue

mod faults;
mod interval;
mod reading;
mod watch;
mod writing;

use super::call::{Failure, Interrupt, call};
use super::elements::{BoundChunk, CheckpointInterval};
use super::observe::ObservedItems;
use super::running::{Running, StepPlace};
use super::step::BodyEnd;
use super::subjobs::Collecting;
use super::worker::Worker;
use crate::artifact::{CheckpointAlgorithm, ContextScope, ItemReader, ItemSink, ItemWriter};
use crate::checkpoint::CheckpointInfo;
use crate::context::{JobContext, StepContext};
use crate::execution::StepExecution;
use crate::repository::{JobRepository, StepState};

pub(crate) use self::faults::FaultRules;
pub(crate) use self::watch::Listening;

use self::faults::Budget;
use self::interval::{Broken, Interval, IntervalEnd, Mode};

/// What a step execution works with.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) repository: &'a dyn JobRepository,
    pub(crate) running: &'a Running,
    pub(crate) worker: &'a Worker,
    pub(crate) context: &'a StepContext,
    /// Where its progress is published.
    pub(crate) place: StepPlace,
    /// The collector of the subjob, and the contexts of the step.
    pub(crate) collecting: Option<(&'a Collecting, &'a ContextScope)>,
}

/// Runs one chunk.
pub(crate) struct ChunkRunner<'a> {
    chunk: &'a BoundChunk,
    around: Surroundings<'a>,
    reader: Box<dyn ItemReader>,
    /// Whether it is to be closed: once for each time that it was opened. Spec: D-80
    reader_is_open: bool,
    sink: ItemSink,
    writer: Box<dyn ItemWriter>,
    /// With checkpoint policy `custom`.
    algorithm: Option<Box<dyn CheckpointAlgorithm>>,
    budget: Budget,
    stuck: Stuck,
    observed: ObservedItems,
}

/// A reader that fails again and again without coming on.
#[derive(Default)]
struct Stuck {
    /// Reads skipped one after the other.
    skips: u32,
    /// Where the reader was at one of them.
    position: Option<CheckpointInfo>,
}

impl<'a> ChunkRunner<'a> {
    pub(crate) fn make(
        chunk: &'a BoundChunk,
        contexts: &ContextScope,
        around: Surroundings<'a>,
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
        let algorithm = match &chunk.interval {
            CheckpointInterval::Custom(bound) => Some(
                bound
                    .checkpoint_algorithm(contexts)
                    .map_err(|e| Failure::not_made(bound, &e))?,
            ),
            CheckpointInterval::Items(_) | CheckpointInterval::Time(_) => None,
        };
        Ok(Self {
            chunk,
            around,
            reader,
            reader_is_open: false,
            sink: processor.into_sink(),
            writer,
            algorithm,
            budget: Budget::default(),
            stuck: Stuck::default(),
            observed: ObservedItems::of(
                contexts.job.as_ref().map_or("", JobContext::id),
                around.context.id(),
            ),
        })
    }

    /// Opens, runs interval after interval, closes. `state` holds the checkpoints of the last committed interval, of
    /// this execution or an earlier one. Spec: CHUNK-LOOP-01, CHUNK-LOOP-02
    pub(crate) fn run(
        &mut self,
        step: &mut StepExecution,
        mut state: StepState,
        listening: &mut Listening<'_>,
    ) -> Result<BodyEnd, Interrupt> {
        let chunk = self.chunk;
        self.open_reader(&state)?;
        self.publish_item_count();
        if let Err(error) = call(|| self.writer.open(state.writer.as_ref())) {
            self.close_reader();
            return Err(Failure::thrown(&chunk.writer, "open", error).into());
        }
        let result = self.intervals(step, &mut state, listening);
        // Also after a failure; an error here does not hide the first one. Spec: CHUNK-LOOP-14, D-80
        if let Err(error) = call(|| self.writer.close()) {
            tracing::error!(
                writer = chunk.writer.name,
                error = chunk.writer.properties.secrets.hidden(error.chain()),
                "#[close] failed"
            );
        }
        self.close_reader();
        result
    }

    fn open_reader(&mut self, state: &StepState) -> Result<(), Failure> {
        call(|| self.reader.open(state.reader.as_ref()))
            .map_err(|e| Failure::thrown(&self.chunk.reader, "open", e))?;
        self.reader_is_open = true;
        Ok(())
    }

    /// A number that only people see fails no step.
    fn publish_item_count(&mut self) {
        match call(|| self.reader.get_item_count()) {
            Ok(None) => {}
            Ok(Some(count)) => self.around.running.publish_item_count(self.around.place, count),
            Err(error) => tracing::warn!(
                reader = self.chunk.reader.name,
                error = self.chunk.reader.properties.secrets.hidden(error.chain()),
                "#[get_item_count] failed"
            ),
        }
    }

    fn close_reader(&mut self) {
        if std::mem::take(&mut self.reader_is_open)
            && let Err(error) = call(|| self.reader.close())
        {
            tracing::error!(
                reader = self.chunk.reader.name,
                error = self.chunk.reader.properties.secrets.hidden(error.chain()),
                "#[close] failed"
            );
        }
    }

    fn intervals(
        &mut self,
        step: &mut StepExecution,
        state: &mut StepState,
        listening: &mut Listening<'_>,
    ) -> Result<BodyEnd, Interrupt> {
        // What an interval that is read again has to know of the one before. Spec: D-12
        let mut mode = Mode::Plain;
        loop {
            let _span = tracing::debug_span!("chunk", commit = step.counters.commits + 1).entered();
            self.around.running.ensure_owned(self.around.repository)?;
            let tx = self.around.repository.begin_chunk();
            let interval = Interval::new(tx, std::mem::replace(&mut mode, Mode::Plain));
            match self.interval(interval, step, state, listening) {
                Ok(end) => {
                    listening.after_checkpoint()?;
                    if let Some((collecting, contexts)) = self.around.collecting {
                        collecting.collect(contexts)?;
                    }
                    match end {
                        IntervalEnd::CheckpointDue => {}
                        IntervalEnd::EndOfInput if self.around.worker.stop_requested() => {
                            return Ok(BodyEnd::stopped());
                        }
                        IntervalEnd::EndOfInput => return Ok(BodyEnd::Completed { exit_status: None }),
                        IntervalEnd::Stop => return Ok(BodyEnd::stopped()),
                    }
                }
                // The transaction has been dropped, which rolled it back. Spec: CHUNK-LOOP-13, REPO-60
                Err(broken) => {
                    step.counters.rollbacks += i64::from(!matches!(broken, Broken::Stopped { open: false }));
                    self.sink.clear();
                    match broken {
                        Broken::Failed(interrupt) => return Err(interrupt),
                        // Between two retries; what was not written comes again on restart. Spec: CHUNK-RETRY-16
                        Broken::Stopped { .. } => return Ok(BodyEnd::stopped()),
                        Broken::ReadAgain(_) if !self.pause_before_retry() => return Ok(BodyEnd::stopped()),
                        Broken::ReadAgain(with) => {
                            mode = with;
                            // Nobody else tells the reader of the rollback: without this it would go on after items that
                            // were not written. Spec: JSL-CHUNK-17
                            self.close_reader();
                            self.open_reader(state)?;
                        }
                    }
                }
            }
        }
    }
}
