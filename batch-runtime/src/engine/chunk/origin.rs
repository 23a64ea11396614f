//! Finds the origin of failed items, such as a file and line. Items do not contain it: once the interval is rolled back, another instance
//! of the reader reads them again.
// Spec: READ-11

use std::ops::{Range, RangeInclusive};

use super::super::call::{Failure, call, discard};
use super::ChunkRunner;
use super::faults::{FailedInputs, Faults};
use super::pass_through;
use crate::artifact::{Fill, FillError, ItemSink};
use crate::checkpoint::CheckpointInfo;
use crate::error::BatchError;
use crate::observer::ItemPhase;
use crate::role::ItemReader;

/// The most items that are in memory while they are read again.
const AT_ONCE: usize = 128;

impl ChunkRunner<'_> {
    /// Records that the results at these positions fail the step. `inputs` is the number of inputs of the interval.
    pub(super) fn results_failed(&mut self, error: &BatchError, results: Range<usize>, inputs: usize) {
        // If an input was filtered or skipped, results have other numbers than inputs.
        let all = self.lists.flushed + self.results.len() + self.lists.dropped.len();
        let failed = match self.lists.numbers(results)[..] {
            [first, .., last] if inputs == all => first + 1..=last + 1,
            [only] if inputs == all => only + 1..=only + 1,
            _ => 1..=inputs,
        };
        self.faults.inputs_failed(error, failed);
    }
}

impl Faults<'_> {
    /// Records that these inputs fail the step.
    pub(super) fn inputs_failed(&mut self, error: &BatchError, inputs: RangeInclusive<usize>) {
        let is_of_item = !error.fails_the_step() && !error.is_connection_lost();
        self.failed = (self.chunk.reader_has_origin && is_of_item).then(|| FailedInputs {
            inputs,
            skipped: self.budget.skipped(ItemPhase::Read),
        });
    }

    /// Adds the origin of the failed inputs to the failure of an interval, which begins at `checkpoint`.
    pub(super) fn with_origin(
        &self,
        failure: Failure,
        failed: Option<FailedInputs>,
        checkpoint: Option<&CheckpointInfo>,
    ) -> Failure {
        match failed.and_then(|failed| self.origin(checkpoint, failed)) {
            Some(origin) => failure.because(self.chunk.reader.properties.secrets.hidden(origin)),
            None => failure,
        }
    }

    /// Returns `None` if the items cannot be read again.
    fn origin(&self, checkpoint: Option<&CheckpointInfo>, failed: FailedInputs) -> Option<String> {
        let mut again = ReadAgain {
            reader: self.chunk.reader.item_reader(&self.contexts).ok()?,
            sink: pass_through(&self.chunk.reader).ok()?,
            inputs: 0,
            skipped: failed.skipped,
        };
        let origin = again.open_and_find(self, checkpoint, failed.inputs);
        discard(again);
        origin
    }
}

/// A reader that reads the items of a failure again.
struct ReadAgain {
    reader: Box<dyn ItemReader>,
    sink: ItemSink,
    /// The number of inputs that are read.
    inputs: usize,
    /// The number of inputs that may still be skipped.
    skipped: usize,
}

impl ReadAgain {
    fn open_and_find(
        &mut self,
        faults: &Faults<'_>,
        checkpoint: Option<&CheckpointInfo>,
        inputs: RangeInclusive<usize>,
    ) -> Option<String> {
        call(|| self.reader.open(checkpoint)).ok()?;
        let (first, last) = inputs.into_inner();
        let from = self.origin_of(faults, first);
        let to = if first < last {
            self.origin_of(faults, last)
        } else {
            None
        };
        // Errors have no effect: the step has failed.
        let _ = call(|| self.reader.close());
        Some(match (from?, to) {
            (from, Some(to)) => format!("read from {from} to {to}"),
            (from, None) => format!("read from {from}"),
        })
    }

    /// Reads up to this input, and returns its origin.
    fn origin_of(&mut self, faults: &Faults<'_>, input: usize) -> Option<String> {
        while self.inputs < input {
            let before = self.inputs;
            let stop = faults.env.worker.stop_flag();
            let mut fill = Fill::new(&mut self.sink, stop, input - before, AT_ONCE);
            let end = call(|| Ok(self.reader.fill(&mut fill))).ok()?;
            self.inputs += fill.reads();
            match end {
                Err(FillError::Read(_)) => {
                    self.skipped = self.skipped.checked_sub(1)?;
                    self.inputs += 1;
                }
                Ok(_) if self.inputs > before => {}
                Ok(_) | Err(_) => return None,
            }
            let clear = || {
                self.sink.clear();
                Ok(())
            };
            call(clear).ok()?;
        }
        call(|| self.reader.get_item_origin()).ok()?
    }
}
