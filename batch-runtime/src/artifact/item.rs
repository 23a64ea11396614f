//! Items between artifacts: typed in chunks, erased at the seams.
//!
//! The processor's sink receives the reader's items one by one through one dynamic call, and collects the results in a `Vec`. The writer
//! borrows one list of them at a time. Types are compared when the step is bound and once more per chunk here; only an item that the
//! processor fails at is boxed.

use std::any::{Any, TypeId};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::fill::{FillEnd, FillError, FillLimits, Halt, ItemObserver, StopFlags, again};
use super::parallel::{Parallel, ParallelSink, Processor, run_parallel};
use super::results::{ChunkItems, ResultBuffer, Results};
use crate::context_gate::ContextGate;
use crate::error::BatchError;

/// The type of the items of an artifact.
#[derive(Clone, Copy)]
pub struct ItemType {
    id: TypeId,
    name: &'static str,
    /// Creates the sink of a chunk without a processor.
    pass_through: Option<fn() -> ItemSink>,
}

impl ItemType {
    /// Returns the item type `T`.
    pub fn of<T: 'static>() -> Self {
        Self {
            id: TypeId::of::<T>(),
            name: std::any::type_name::<T>(),
            pass_through: None,
        }
    }

    /// Returns the item type `T` of a reader.
    pub fn of_reader<T: Send + 'static>() -> Self {
        Self {
            pass_through: Some(ItemSink::pass_through::<T>),
            ..Self::of::<T>()
        }
    }

    /// Returns a sink whose results are the items; `None` if this is not the type of a reader's items.
    pub(crate) fn pass_through(&self) -> Option<ItemSink> {
        self.pass_through.map(|make| make())
    }

    /// Returns the type's full path.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl PartialEq for ItemType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The destination of a reader's items: the processor, and then the results of a fill.
pub struct ItemSink(Box<dyn ErasedSink>);

impl ItemSink {
    /// Returns a sink without a processor: its results are the items.
    fn pass_through<I: Send + 'static>() -> Self {
        Self(Box::new(TypedSink::<I>::Sequential(Box::new(
            PassThrough::default(),
        ))))
    }

    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.0.results().len()
    }

    /// Returns whether there are no results.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the results of `range`. Reading a range outside the results fails.
    pub fn items(&self, range: Range<usize>) -> ChunkItems<'_> {
        ChunkItems {
            results: self.0.results(),
            range,
        }
    }

    /// Removes all results.
    pub(crate) fn clear(&mut self) {
        self.0.results_mut().clear();
    }

    /// Returns an empty buffer for the results.
    pub(crate) fn new_buffer(&self) -> ResultBuffer {
        ResultBuffer(self.0.results().new_empty())
    }

    /// Exchanges the results with those in `buffer`, which this sink has created.
    pub(crate) fn swap(&mut self, buffer: &mut ResultBuffer) {
        self.0.results_mut().swap(&mut *buffer.0);
    }

    /// Removes all results, and items that are read but not processed.
    pub(crate) fn discard(&mut self) {
        self.0.discard();
    }

    /// Returns the number of items that are read but have no result yet. Only parallel processors have such items.
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// Combines sinks of the same processor into one that runs each but the first on a separate thread. `gate` is between the processors
    /// and the contexts.
    ///
    /// # Errors
    /// If the sinks are of different types, or if a thread cannot be started.
    pub(crate) fn parallel(sinks: Vec<Self>, gate: &Arc<ContextGate>) -> io::Result<Self> {
        let mut sinks = sinks.into_iter().map(|sink| sink.0);
        let first = sinks.next().ok_or_else(different)?;
        Ok(Self(first.parallel(sinks.collect(), gate)?))
    }
}

/// Returns the sink of a processor: it applies `process` to each item and collects the results. `process_kept` does the same
/// for an item that is needed afterwards. Both return `None` to filter an item.
///
/// Called by generated code.
// Spec: PROC-02
pub fn processor_sink<P, I, O, F, G>(processor: Box<P>, process: F, process_kept: G) -> ItemSink
where
    P: Send + 'static,
    I: Send + 'static,
    O: Send + 'static,
    F: FnMut(&mut P, I) -> Result<Option<O>, BatchError> + Send + 'static,
    G: FnMut(&mut P, &I) -> Result<Option<O>, BatchError> + Send + 'static,
{
    let sink = ProcessorSink {
        processor: Processor {
            processor,
            process,
            process_kept,
        },
        results: Vec::new(),
    };
    ItemSink(Box::new(TypedSink::<I>::Sequential(Box::new(sink))))
}

/// An item that `#[process_item]` takes by value. It is cloned if a listener or the skip rules need it afterwards.
// Spec: PROC-02
#[diagnostic::on_unimplemented(
    message = "a `#[process_item]` method cannot take `{Self}` by value",
    label = "not `Clone`",
    note = "take `&{Self}`, or add `#[derive(Clone)]` to `{Self}`: listeners and the skip handling may still need the item"
)]
pub trait ItemClone: Sized {
    /// Clones the item.
    fn item_clone(&self) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Clone> ItemClone for T {
    fn item_clone(&self) -> Self {
        self.clone()
    }
}

/// Returns the function that clones an item. Called by generated code.
pub fn item_clone<I: ItemClone>() -> fn(&I) -> I {
    I::item_clone
}

/// The sink for items of type `I`; `Fill::run` downcasts to it.
enum TypedSink<I> {
    Sequential(Box<dyn Sink<I>>),
    Parallel(Box<dyn Parallel<I>>),
}

fn different() -> io::Error {
    io::Error::other("the instances of the processor have different types")
}

trait Sink<I>: Send {
    fn results(&self) -> &dyn Results;
    fn results_mut(&mut self) -> &mut dyn Results;
    /// Returns a sink with a thread for this processor and for each of the others.
    fn parallel(
        self: Box<Self>,
        others: Vec<Box<dyn Sink<I>>>,
        gate: &Arc<ContextGate>,
    ) -> io::Result<Box<dyn Parallel<I>>>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    /// Processes one item, and returns the number of results in the buffer.
    fn push(&mut self, item: I) -> Result<usize, BatchError>;
    /// Does the same, and shows the observer the item, and the result or the error.
    fn push_observed(&mut self, item: I, observer: &mut dyn ItemObserver) -> Result<usize, Halt>;
}

trait ErasedSink: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn results(&self) -> &dyn Results;
    fn results_mut(&mut self) -> &mut dyn Results;
    fn waiting(&self) -> usize;
    fn discard(&mut self);
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn parallel(
        self: Box<Self>,
        others: Vec<Box<dyn ErasedSink>>,
        gate: &Arc<ContextGate>,
    ) -> io::Result<Box<dyn ErasedSink>>;
}

impl<I: Send + 'static> ErasedSink for TypedSink<I> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
    fn results(&self) -> &dyn Results {
        match self {
            Self::Sequential(sink) => sink.results(),
            Self::Parallel(sink) => sink.results(),
        }
    }
    fn results_mut(&mut self) -> &mut dyn Results {
        match self {
            Self::Sequential(sink) => sink.results_mut(),
            Self::Parallel(sink) => sink.results_mut(),
        }
    }
    fn waiting(&self) -> usize {
        match self {
            Self::Sequential(_) => 0,
            Self::Parallel(sink) => sink.waiting(),
        }
    }
    fn discard(&mut self) {
        if let Self::Parallel(sink) = self {
            sink.discard();
        }
        self.results_mut().clear();
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
    fn parallel(
        self: Box<Self>,
        others: Vec<Box<dyn ErasedSink>>,
        gate: &Arc<ContextGate>,
    ) -> io::Result<Box<dyn ErasedSink>> {
        let sequential = |sink: Box<dyn Any>| match sink.downcast::<Self>().map(|sink| *sink) {
            Ok(Self::Sequential(sink)) => Ok(sink),
            Ok(Self::Parallel(_)) | Err(_) => Err(different()),
        };
        let first = sequential(self)?;
        let others = others.into_iter().map(|other| sequential(other.into_any()));
        let sink = first.parallel(others.collect::<io::Result<_>>()?, gate)?;
        Ok(Box::new(Self::Parallel(sink)))
    }
}

struct ProcessorSink<P, O, F, G> {
    processor: Processor<P, F, G>,
    results: Vec<O>,
}

impl<P, I, O, F, G> Sink<I> for ProcessorSink<P, O, F, G>
where
    P: Send + 'static,
    I: Send + 'static,
    O: Send + 'static,
    F: FnMut(&mut P, I) -> Result<Option<O>, BatchError> + Send + 'static,
    G: FnMut(&mut P, &I) -> Result<Option<O>, BatchError> + Send + 'static,
{
    fn results(&self) -> &dyn Results {
        &self.results
    }

    fn results_mut(&mut self) -> &mut dyn Results {
        &mut self.results
    }

    fn parallel(
        self: Box<Self>,
        others: Vec<Box<dyn Sink<I>>>,
        gate: &Arc<ContextGate>,
    ) -> io::Result<Box<dyn Parallel<I>>> {
        let others = others.into_iter().map(|other| {
            let other = other.into_any().downcast::<Self>().map_err(|_| different())?;
            Ok(other.processor)
        });
        let others = others.collect::<io::Result<_>>()?;
        Ok(Box::new(ParallelSink::<I, O>::start(
            self.processor,
            others,
            gate,
        )?))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    #[inline]
    fn push(&mut self, item: I) -> Result<usize, BatchError> {
        if let Some(result) = self.processor.process(item)? {
            self.results.push(result);
        }
        Ok(self.results.len())
    }

    fn push_observed(&mut self, item: I, observer: &mut dyn ItemObserver) -> Result<usize, Halt> {
        let mut next = Some(item);
        while let Some(item) = next.take() {
            observer.before_process(&item)?;
            match self.processor.process_kept(&item) {
                Ok(result) => {
                    observer.after_process(&item, result.as_ref().map(|result| result as &dyn Any))?;
                    self.results.extend(result);
                }
                Err(error) => next = again(observer.process_failed(error, Box::new(item), 0)?),
            }
        }
        Ok(self.results.len())
    }
}

/// The sink of a chunk without a processor.
struct PassThrough<I> {
    items: Vec<I>,
}

impl<I> Default for PassThrough<I> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<I: Send + 'static> Sink<I> for PassThrough<I> {
    fn results(&self) -> &dyn Results {
        &self.items
    }

    fn results_mut(&mut self) -> &mut dyn Results {
        &mut self.items
    }

    fn parallel(
        self: Box<Self>,
        _others: Vec<Box<dyn Sink<I>>>,
        _gate: &Arc<ContextGate>,
    ) -> io::Result<Box<dyn Parallel<I>>> {
        Err(io::Error::other(
            "there is no processor to run on several threads",
        ))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    #[inline]
    fn push(&mut self, item: I) -> Result<usize, BatchError> {
        self.items.push(item);
        Ok(self.items.len())
    }

    /// Listeners of processing are not called: nothing is processed.
    fn push_observed(&mut self, item: I, _observer: &mut dyn ItemObserver) -> Result<usize, Halt> {
        self.items.push(item);
        Ok(self.items.len())
    }
}

/// One request to a reader: read items into the processor until the write batch is full, the checkpoint is due, the
/// input ends or a stop is requested.
pub struct Fill<'a> {
    sink: &'a mut ItemSink,
    limits: FillLimits<'a>,
    reads: usize,
    observer: Option<&'a mut dyn ItemObserver>,
}

impl<'a> Fill<'a> {
    /// Requests at most `max_reads` items, or until `sink` holds `full_at` results. Checks `stop` before each item.
    pub fn new(sink: &'a mut ItemSink, stop: &'a AtomicBool, max_reads: usize, full_at: usize) -> Self {
        Self {
            sink,
            limits: FillLimits {
                stop: StopFlags(stop, None),
                max_reads,
                full_at,
            },
            reads: 0,
            observer: None,
        }
    }

    /// Adds another flag that ends the fill.
    #[must_use]
    pub(crate) fn or_stop(mut self, flag: &'a AtomicBool) -> Self {
        self.limits.stop.1 = Some(flag);
        self
    }

    /// Adds an observer.
    #[must_use]
    pub(crate) fn observed(mut self, observer: &'a mut dyn ItemObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns the number of items read so far by this request.
    pub fn reads(&self) -> usize {
        self.reads
    }

    /// Runs the loop. Called by generated code with the reader's typed read method.
    ///
    /// # Errors
    /// The first error of reader or processor.
    // Spec: CHUNK-LOOP-03
    #[inline]
    pub fn run<I: Send + 'static>(
        &mut self,
        mut read: impl FnMut() -> Result<Option<I>, BatchError>,
    ) -> Result<FillEnd, FillError> {
        let Some(sink) = self.sink.0.as_any().downcast_mut::<TypedSink<I>>() else {
            return Err(FillError::Mismatch(BatchError::msg(format!(
                "the processor does not take items of type `{}`",
                std::any::type_name::<I>()
            ))));
        };
        let mut reads = 0;
        let sink = match sink {
            TypedSink::Sequential(sink) => sink,
            TypedSink::Parallel(sink) => {
                let observer = self.observer.as_deref_mut();
                let end = run_parallel(sink.as_mut(), observer, self.limits, &mut reads, read);
                self.reads += reads;
                return end;
            }
        };
        if let Some(observer) = &mut self.observer {
            let end = run_observed(sink.as_mut(), &mut **observer, self.limits, &mut reads, read);
            self.reads += reads;
            return end;
        }
        let end = loop {
            if reads == self.limits.max_reads {
                break Ok(FillEnd::Limit);
            }
            if self.limits.stop.is_any_set() {
                break Ok(FillEnd::Stop);
            }
            let item = match read() {
                Ok(Some(item)) => item,
                Ok(None) => break Ok(FillEnd::EndOfInput),
                Err(error) => break Err(FillError::Read(error)),
            };
            reads += 1;
            match sink.push(item) {
                Ok(results) if results >= self.limits.full_at => break Ok(FillEnd::Full),
                Ok(_) => {}
                Err(error) => break Err(FillError::Process(error)),
            }
        };
        self.reads += reads;
        end
    }
}

/// Runs the loop of an observed fill: the same order, with the observer between the calls.
// Spec: Appendix B.2
fn run_observed<I: Send + 'static>(
    sink: &mut dyn Sink<I>,
    observer: &mut dyn ItemObserver,
    limits: FillLimits<'_>,
    reads: &mut usize,
    mut read: impl FnMut() -> Result<Option<I>, BatchError>,
) -> Result<FillEnd, FillError> {
    loop {
        if *reads == limits.max_reads {
            return Ok(FillEnd::Limit);
        }
        if limits.stop.is_any_set() {
            return Ok(FillEnd::Stop);
        }
        observer.before_read()?;
        let Some(item) = read().map_err(FillError::Read)? else {
            return Ok(FillEnd::EndOfInput);
        };
        *reads += 1;
        observer.after_read(&item)?;
        if sink.push_observed(item, observer)? >= limits.full_at {
            return Ok(FillEnd::Full);
        }
    }
}

#[cfg(test)]
mod tests;
