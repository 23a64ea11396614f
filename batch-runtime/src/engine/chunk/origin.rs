//! Where the items of a failure come from, such as a file and line. Items do not know it: once they have failed, another instance of the
//! reader reads them again.
// Spec: READ-11

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

use super::super::call::{Failure, call};
use super::faults::Faults;
use super::pass_through;
use crate::artifact::{Fill, FillError, ItemSink};
use crate::checkpoint::CheckpointInfo;
use crate::role::ItemReader;

/// The flag of a fill that nothing stops.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Faults<'_> {
    /// Adds to a failure where these inputs of an interval come from, which `checkpoint` begins. Inputs are numbered from 1; skipped ones count.
    pub(super) fn with_origin(
        &self,
        failure: Failure,
        checkpoint: Option<&CheckpointInfo>,
        inputs: RangeInclusive<usize>,
    ) -> Failure {
        let origin = self
            .chunk
            .reader_has_origin
            .then(|| self.origin(checkpoint, inputs));
        match origin.flatten() {
            Some(origin) => failure.because(self.chunk.reader.properties.secrets.hidden(origin)),
            None => failure,
        }
    }

    /// Returns `None` if the items cannot be read again.
    fn origin(&self, checkpoint: Option<&CheckpointInfo>, inputs: RangeInclusive<usize>) -> Option<String> {
        let mut source = ReadAgain {
            reader: self.chunk.reader.item_reader(&self.contexts).ok()?,
            sink: pass_through(&self.chunk.reader).ok()?,
            inputs: 0,
        };
        call(|| source.reader.open(checkpoint)).ok()?;
        let (first, last) = inputs.into_inner();
        let from = source.origin_of(first);
        let to = if first < last {
            source.origin_of(last)
        } else {
            None
        };
        // Errors have no effect: the step has failed.
        let _ = call(|| source.reader.close());
        Some(match (from?, to) {
            (from, Some(to)) => format!("read from {from} to {to}"),
            (from, None) => format!("read from {from}"),
        })
    }
}

/// A reader that reads the items of a failure again.
struct ReadAgain {
    reader: Box<dyn ItemReader>,
    sink: ItemSink,
    /// The number of inputs that are read.
    inputs: usize,
}

impl ReadAgain {
    /// Reads up to this input, and returns where it comes from.
    fn origin_of(&mut self, input: usize) -> Option<String> {
        while self.inputs < input {
            let before = self.inputs;
            let mut fill = Fill::new(&mut self.sink, &NEVER, input - before, usize::MAX);
            let end = call(|| Ok(self.reader.fill(&mut fill))).ok()?;
            self.inputs += fill.reads();
            match end {
                // An input that was skipped.
                Err(FillError::Read(_)) => self.inputs += 1,
                Ok(_) if self.inputs > before => {}
                Ok(_) | Err(_) => return None,
            }
            self.sink.clear();
        }
        call(|| self.reader.get_item_origin()).ok()?
    }
}
