//! Test doubles for a job's artifacts.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batch_runtime::prelude::*;

use crate::SimulatedFailure;

/// A reader of a list.
#[derive(BatchArtifact)]
pub(crate) struct ItemList<T> {
    items: Arc<[T]>,
    next: usize,
    fault: Option<Check<T>>,
}

/// Fails at some items.
pub(crate) type Check<T> = Arc<dyn Fn(&T) -> Result<(), SimulatedFailure> + Send + Sync>;

impl<T> ItemList<T> {
    pub(crate) fn new(items: impl IntoIterator<Item = T>) -> Self {
        Self {
            items: items.into_iter().collect(),
            next: 0,
            fault: None,
        }
    }

    pub(crate) fn failing(mut self, fault: Check<T>) -> Self {
        self.fault = Some(fault);
        self
    }
}

impl<T> Clone for ItemList<T> {
    fn clone(&self) -> Self {
        Self {
            items: Arc::clone(&self.items),
            next: self.next,
            fault: self.fault.clone(),
        }
    }
}

#[item_reader]
impl<T: Clone + Send + Sync + 'static> ItemList<T> {
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) {
        self.next = checkpoint.unwrap_or(0);
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<T>, SimulatedFailure> {
        let Some(item) = self.items.get(self.next) else {
            return Ok(None);
        };
        // As of a file with a bad record: the read after a failed one returns the next item.
        self.next += 1;
        if let Some(fault) = &self.fault {
            fault(item)?;
        }
        Ok(Some(item.clone()))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> usize {
        self.next
    }

    #[get_item_count]
    fn item_count(&self) -> Option<u64> {
        Some(self.items.len() as u64)
    }
}

/// The items that a step has written, for [`JobTest::writer`](crate::JobTest::writer). Clones share them. A new instance of the job
/// replaces them.
pub struct WrittenItems<T> {
    /// With the name of the step, or of its partition.
    shared: Arc<Mutex<Vec<(String, T)>>>,
}

impl<T> WrittenItems<T> {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self {
            shared: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, T)>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> WrittenItems<T> {
    /// Returns the items up to the last checkpoint, in the order of writing; items of partitions are mixed.
    pub fn items(&self) -> Vec<T> {
        self.lock().iter().map(|(_, item)| item.clone()).collect()
    }
}

impl<T> Default for WrittenItems<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for WrittenItems<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for WrittenItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.lock();
        f.debug_list()
            .entries(written.iter().map(|(_, item)| item))
            .finish()
    }
}

/// A writer that keeps the items.
#[derive(BatchArtifact)]
pub(crate) struct WriterDouble<T> {
    written: WrittenItems<T>,
    /// Fails after this number of items.
    fails_after: Option<Arc<AtomicUsize>>,
    fault: Option<Check<T>>,
    #[batch_context]
    step: Option<StepContext>,
    /// The items since the last checkpoint.
    pending: Vec<T>,
    /// The number of items before the last checkpoint.
    count: usize,
}

impl<T> WriterDouble<T> {
    pub(crate) fn new(written: WrittenItems<T>) -> Self {
        Self {
            written,
            fails_after: None,
            fault: None,
            step: None,
            pending: Vec::new(),
            count: 0,
        }
    }

    pub(crate) fn failing_after(mut self, count: Arc<AtomicUsize>) -> Self {
        self.fails_after = Some(count);
        self
    }

    pub(crate) fn failing(mut self, fault: Check<T>) -> Self {
        self.fault = Some(fault);
        self
    }

    fn name(&self) -> String {
        let name = self.step.as_ref().map(StepContext::execution_name);
        name.unwrap_or_default().to_owned()
    }
}

#[item_writer]
impl<T: Clone + Send + 'static> WriterDouble<T> {
    /// Removes the items of this step or partition after the checkpoint: they were not committed.
    #[open]
    fn open(&mut self, checkpoint: Option<usize>) {
        self.pending.clear();
        self.count = checkpoint.unwrap_or(0);
        let (name, mut own) = (self.name(), 0);
        self.written.lock().retain(|(of, _)| {
            own += usize::from(*of == name);
            *of != name || own <= self.count
        });
    }

    #[write_items]
    fn write(&mut self, items: &[T]) -> Result<(), BatchError> {
        let fails_after = self.fails_after.as_ref();
        if fails_after.is_some_and(|count| self.count >= count.load(Ordering::Relaxed)) {
            return Err(BatchError::msg("stopped by the test kit"));
        }
        if let Some(fault) = &self.fault {
            items.iter().try_for_each(|item| fault(item))?;
        }
        self.pending.extend_from_slice(items);
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> usize {
        self.count += self.pending.len();
        let name = self.name();
        let items = self.pending.drain(..).map(|item| (name.clone(), item));
        self.written.lock().extend(items);
        self.count
    }
}

type Process<I, O> = dyn Fn(&I) -> Result<Option<O>, BatchError> + Send + Sync;

/// A processor that calls a function.
#[derive(BatchArtifact)]
pub(crate) struct ProcessorDouble<I, O> {
    process: Option<Arc<Process<I, O>>>,
}

impl<I, O> ProcessorDouble<I, O> {
    pub(crate) fn new(process: impl Fn(&I) -> Result<Option<O>, BatchError> + Send + Sync + 'static) -> Self {
        Self {
            process: Some(Arc::new(process)),
        }
    }
}

impl<I, O> Clone for ProcessorDouble<I, O> {
    fn clone(&self) -> Self {
        Self {
            process: self.process.clone(),
        }
    }
}

#[item_processor]
impl<I: Send + 'static, O: Send + 'static> ProcessorDouble<I, O> {
    #[process_item]
    fn process(&mut self, item: &I) -> Result<Option<O>, BatchError> {
        match &self.process {
            Some(process) => process(item),
            None => Ok(None),
        }
    }
}

/// A batchlet that calls a function.
#[derive(Clone, BatchArtifact)]
pub(crate) struct BatchletDouble {
    process: Option<Arc<dyn Fn() -> Result<String, BatchError> + Send + Sync>>,
}

impl BatchletDouble {
    pub(crate) fn new(process: impl Fn() -> Result<String, BatchError> + Send + Sync + 'static) -> Self {
        Self {
            process: Some(Arc::new(process)),
        }
    }
}

#[batchlet]
impl BatchletDouble {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        match &self.process {
            Some(process) => process(),
            None => Ok(String::new()),
        }
    }

    #[cancel]
    fn cancel(&self) {}
}

/// The skips of a run, for [`JobTest::skipped`](crate::JobTest::skipped): items of type `T`, and errors. Clones share them.
///
/// A skip that is rolled back and happens again is there twice.
pub struct SkippedItems<T> {
    shared: Arc<Mutex<Skips<T>>>,
}

struct Skips<T> {
    items: Vec<T>,
    errors: Vec<String>,
}

impl<T> SkippedItems<T> {
    /// Creates an empty list.
    pub fn new() -> Self {
        let skips = Skips {
            items: Vec::new(),
            errors: Vec::new(),
        };
        Self {
            shared: Arc::new(Mutex::new(skips)),
        }
    }

    fn with<R>(&self, read: impl FnOnce(&mut Skips<T>) -> R) -> R {
        read(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the messages of the errors, with their causes, in the order of the skips.
    pub fn errors(&self) -> Vec<String> {
        self.with(|skips| skips.errors.clone())
    }
}

impl<T: Clone> SkippedItems<T> {
    /// Returns the items of type `T` that were skipped while processing or writing, in the order of the skips. A failed read
    /// has no item.
    pub fn items(&self) -> Vec<T> {
        self.with(|skips| skips.items.clone())
    }
}

impl<T> Default for SkippedItems<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for SkippedItems<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> fmt::Debug for SkippedItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|skips| f.debug_list().entries(&skips.errors).finish())
    }
}

/// A listener that collects skips.
#[derive(BatchArtifact)]
pub(crate) struct SkipCollector<T> {
    skipped: SkippedItems<T>,
}

impl<T> SkipCollector<T> {
    pub(crate) fn new(skipped: SkippedItems<T>) -> Self {
        Self { skipped }
    }
}

#[skip_listener]
impl<T: Clone + Send + 'static> SkipCollector<T> {
    #[on_skip_in_read]
    fn read(&mut self, error: &BatchError) {
        self.skipped.with(|skips| skips.errors.push(error.to_string()));
    }

    #[on_skip_in_process]
    fn process(&mut self, error: &BatchError, item: &dyn Any) {
        self.skip(error, item);
    }

    #[on_skip_in_write]
    fn write(&mut self, error: &BatchError, item: &dyn Any) {
        self.skip(error, item);
    }
}

impl<T: Clone + 'static> SkipCollector<T> {
    fn skip(&self, error: &BatchError, item: &dyn Any) {
        self.skipped.with(|skips| {
            skips.errors.push(error.to_string());
            skips.items.extend(item.downcast_ref::<T>().cloned());
        });
    }
}
