//! Reading ahead: the items of the next interval are read and processed on a thread of their own, while the step's thread writes
//! and commits this one.
//!
//! What is read ahead belongs to no transaction, and nothing of it is committed before its own interval begins. If the step ends
//! or resumes from a checkpoint instead, it is discarded. An error is kept until its interval begins, and then handled like any
//! other.
//!
//! Spec: D-100

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crossbeam::channel::{Receiver, Sender, bounded};

use super::super::call::{Failure, call};
use super::super::threads::Worker;
use crate::artifact::{Fill, FillEnd, FillError, Halt, ItemObserver, ItemSink};
use crate::context_gate::ContextGate;
use crate::error::BatchError;
use crate::role::ItemReader;

/// Reader and processor. The thread that reads ahead holds the lock while it does so.
pub(super) struct Input {
    pub(super) reader: Box<dyn ItemReader>,
    pub(super) sink: ItemSink,
}

/// Returns the input. A panic of an artifact does not leave it inconsistent: the step fails.
pub(super) fn lock(input: &Mutex<Input>) -> MutexGuard<'_, Input> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fill to run ahead.
pub(super) struct Order {
    pub(super) max_reads: usize,
    pub(super) full_at: usize,
    /// Of the policy `time`: `max_reads` items are read again until then.
    pub(super) due_at: Option<Instant>,
    /// True if the item that the processor fails at is needed.
    pub(super) kept: bool,
    /// The number of the commit that ends the interval.
    pub(super) commit: i64,
}

/// The result of a fill. The error of the outer `Result` is a panic.
pub(super) struct Filled {
    pub(super) end: Result<Result<FillEnd, FillError>, BatchError>,
    pub(super) reads: usize,
    /// The item that the processor failed at, if it is needed.
    pub(super) failed: Option<FailedItem>,
}

/// An item that the processor failed at, and the number of items read after it.
pub(super) struct FailedItem {
    pub(super) error: BatchError,
    pub(super) item: Box<dyn Any + Send>,
    pub(super) behind: usize,
}

/// The thread that reads ahead.
pub(super) struct ReadAhead {
    input: Arc<Mutex<Input>>,
    worker: Arc<Worker>,
    gate: Arc<ContextGate>,
    /// Ends a fill whose result is not needed.
    discarded: Arc<AtomicBool>,
    /// The span of the step.
    span: tracing::Span,
    thread: Option<Thread>,
    /// The fill under way, and when its interval is due.
    pending: Option<Option<Instant>>,
}

struct Thread {
    orders: Sender<Order>,
    filled: Receiver<Filled>,
    handle: JoinHandle<()>,
}

impl ReadAhead {
    pub(super) fn new(input: &Arc<Mutex<Input>>, worker: &Arc<Worker>, gate: Arc<ContextGate>) -> Self {
        Self {
            input: Arc::clone(input),
            worker: Arc::clone(worker),
            gate,
            discarded: Arc::default(),
            span: tracing::Span::current(),
            thread: None,
            pending: None,
        }
    }

    /// Returns whether a fill is under way, or done and not taken.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns when the interval of the pending fill is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.pending.flatten()
    }

    /// Starts a fill. None is pending.
    pub(super) fn start(&mut self, order: Order) -> Result<(), Failure> {
        let due_at = order.due_at;
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => self.spawn().map_err(|error| {
                Failure::new(format!("cannot start the thread that reads ahead: {error}"))
            })?,
        };
        self.discarded.store(false, Ordering::Relaxed);
        self.gate.close();
        // A thread that has ended is noticed when the result is taken.
        let _ = thread.orders.send(order);
        self.thread = Some(thread);
        self.pending = Some(due_at);
        Ok(())
    }

    /// Waits for the pending fill, if there is one.
    pub(super) fn take(&mut self) -> Option<Filled> {
        self.pending.take()?;
        self.gate.open();
        let filled = self.thread.as_ref()?.filled.recv();
        Some(filled.unwrap_or_else(|_| {
            let ended = BatchError::msg("the thread that reads ahead has ended");
            Filled {
                end: Ok(Err(FillError::Mismatch(ended))),
                reads: 0,
                failed: None,
            }
        }))
    }

    /// Ends the pending fill after the current item, and forgets what it has read.
    pub(super) fn discard(&mut self) {
        self.discarded.store(true, Ordering::Relaxed);
        if self.take().is_some() {
            lock(&self.input).sink.discard();
        }
    }

    fn spawn(&self) -> std::io::Result<Thread> {
        let (orders, to_fill) = bounded::<Order>(1);
        let (done, filled) = bounded(1);
        let (input, gate, span) = (Arc::clone(&self.input), Arc::clone(&self.gate), self.span.clone());
        let (worker, discarded) = (Arc::clone(&self.worker), Arc::clone(&self.discarded));
        let thread = thread::Builder::new().name("batch-reader".into());
        let handle = thread.spawn(move || {
            let _span = span.entered();
            gate.guard_this_thread();
            for order in to_fill {
                let _span = tracing::debug_span!("chunk", commit = order.commit).entered();
                if done.send(order.run(&input, &worker, &discarded)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Thread {
            orders,
            filled,
            handle,
        })
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.discard();
        if let Some(Thread {
            orders,
            filled,
            handle,
        }) = self.thread.take()
        {
            drop((orders, filled));
            let _ = handle.join();
        }
    }
}

impl Order {
    fn run(&self, input: &Mutex<Input>, worker: &Worker, discarded: &AtomicBool) -> Filled {
        let mut input = lock(input);
        let Input { reader, sink } = &mut *input;
        // The results of an earlier interval: memory is cheaper to free on the thread that has allocated it.
        sink.clear();
        let mut keeper = FailureKeeper::default();
        let mut reads = 0;
        let end = loop {
            let fill = Fill::new(sink, worker.stop_flag(), self.max_reads, self.full_at).or_stop(discarded);
            let mut fill = if self.kept {
                fill.observed(&mut keeper)
            } else {
                fill
            };
            let end = call(|| Ok(reader.fill(&mut fill)));
            reads += fill.reads();
            let is_early = || self.due_at.is_some_and(|due_at| Instant::now() < due_at);
            if !(matches!(end, Ok(Ok(FillEnd::Limit))) && is_early()) {
                break end;
            }
        };
        Filled {
            end,
            reads,
            failed: keeper.0,
        }
    }
}

/// Keeps the item that the processor fails at, and ends the fill there.
#[derive(Default)]
struct FailureKeeper(Option<FailedItem>);

impl ItemObserver for FailureKeeper {
    fn before_read(&mut self) -> Result<(), Halt> {
        Ok(())
    }
    fn after_read(&mut self, _: &dyn Any) -> Result<(), Halt> {
        Ok(())
    }
    fn before_process(&mut self, _: &dyn Any) -> Result<(), Halt> {
        Ok(())
    }
    fn after_process(&mut self, _: &dyn Any, _: Option<&dyn Any>) -> Result<(), Halt> {
        Ok(())
    }
    fn process_failed(
        &mut self,
        error: BatchError,
        item: Box<dyn Any + Send>,
        behind: usize,
    ) -> Result<(), Halt> {
        self.0 = Some(FailedItem { error, item, behind });
        Err(Halt)
    }
}
