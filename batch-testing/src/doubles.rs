//! Artifacts that stand in for those of a job.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use batch_runtime::prelude::*;

/// A reader of a list.
#[derive(BatchArtifact)]
pub(crate) struct ItemList<T> {
    items: Arc<[T]>,
    next: usize,
}

impl<T> ItemList<T> {
    pub(crate) fn new(items: impl IntoIterator<Item = T>) -> Self {
        Self {
            items: items.into_iter().collect(),
            next: 0,
        }
    }
}

impl<T> Clone for ItemList<T> {
    fn clone(&self) -> Self {
        Self {
            items: Arc::clone(&self.items),
            next: self.next,
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
    fn read(&mut self) -> Option<T> {
        let item = self.items.get(self.next)?;
        self.next += 1;
        Some(item.clone())
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

/// The items that a step has written, for [`JobTest::writer`](crate::JobTest::writer). Clones share them.
pub struct WrittenItems<T> {
    shared: Arc<Mutex<Written<T>>>,
}

struct Written<T> {
    items: Vec<T>,
    /// The number of items before the last checkpoint.
    committed: usize,
}

impl<T> WrittenItems<T> {
    /// Creates an empty list.
    pub fn new() -> Self {
        let written = Written {
            items: Vec::new(),
            committed: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(written)),
        }
    }

    fn with<R>(&self, read: impl FnOnce(&mut Written<T>) -> R) -> R {
        read(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Clone> WrittenItems<T> {
    /// Returns the items of all committed chunks, in the order of writing; those of partitions are mixed.
    pub fn items(&self) -> Vec<T> {
        self.with(|written| written.items[..written.committed].to_vec())
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
        self.with(|written| {
            f.debug_list()
                .entries(&written.items[..written.committed])
                .finish()
        })
    }
}

/// A writer that keeps the items.
#[derive(BatchArtifact)]
pub(crate) struct WriterDouble<T> {
    written: WrittenItems<T>,
}

impl<T> WriterDouble<T> {
    pub(crate) fn new(written: WrittenItems<T>) -> Self {
        Self { written }
    }
}

#[item_writer]
impl<T: Clone + Send + 'static> WriterDouble<T> {
    /// Removes what a rollback has undone. The writers of partitions share a list, so nothing is removed that others have added.
    #[open]
    fn open(&mut self, _checkpoint: Option<usize>) {
        self.written
            .with(|written| written.items.truncate(written.committed));
    }

    #[write_items]
    fn write(&mut self, items: &[T]) {
        self.written
            .with(|written| written.items.extend_from_slice(items));
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> usize {
        self.written.with(|written| {
            written.committed = written.items.len();
            written.committed
        })
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
