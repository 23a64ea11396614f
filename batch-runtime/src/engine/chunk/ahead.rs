//! Reading ahead: the first list of the next interval is read and processed on the reading thread, while the step's thread writes
//! and commits this interval.
//!
//! Items that are read ahead belong to no transaction, and are committed with their own interval. If the step fails or resumes
//! from a checkpoint, they are discarded. An error is kept until its interval begins, and then handled like any other.
// Spec: D-100

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam::channel::{Receiver, Sender, bounded};

use super::super::call::{Failure, call};
use super::super::threads::Worker;
use super::interval_state::RolledBack;
use crate::artifact::{Fill, FillEnd, FillError, Halt, ItemObserver, ItemSink};
use crate::context_gate::ContextGate;
use crate::error::{BatchError, Panic};
use crate::polling::Waiter;
use crate::role::ItemReader;
use crate::thread::{self, ThreadEnv};

/// Reader and processor. The reading thread holds the lock during a fill.
pub(super) struct Input {
    pub(super) reader: Box<dyn ItemReader>,
    pub(super) sink: ItemSink,
}

/// Locks the input, also after a panic of its holder: the step fails then.
pub(super) fn lock(input: &Mutex<Input>) -> MutexGuard<'_, Input> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fill to run ahead.
pub(super) struct FillRequest {
    pub(super) max_reads: usize,
    pub(super) full_at: usize,
    /// For the policy `time`: the fill is repeated, `max_reads` items at a time, until then.
    pub(super) due_at: Option<Instant>,
    /// True if a listener needs the item that the processor fails at.
    pub(super) keeps_failed_item: bool,
    /// The number of the commit that ends the interval.
    pub(super) commit: i64,
}

/// The result of a fill.
pub(super) struct FillResult {
    /// The error of the outer `Result` is a panic.
    pub(super) end: Result<Result<FillEnd, FillError>, BatchError>,
    pub(super) reads: usize,
    /// The reason if the observer has ended the fill.
    pub(super) halted: Option<Halted>,
}

/// The reason why an observer ends a fill.
pub(super) enum Halted {
    RolledBack(RolledBack),
    /// The processor failed at an item that a listener needs.
    Failed(FailedInput),
}

/// An item that the processor failed at, and the number of items read after it.
pub(super) struct FailedInput {
    pub(super) error: BatchError,
    pub(super) item: Box<dyn Any + Send>,
    pub(super) behind: usize,
}

/// The reading thread, and the fill that it runs.
pub(super) struct ReadAhead {
    input: Arc<Mutex<Input>>,
    worker: Arc<Worker>,
    gate: Arc<ContextGate>,
    /// Ends a fill whose result is not needed.
    discarded: Arc<AtomicBool>,
    env: ThreadEnv,
    thread: Option<Thread>,
    /// Waits for the results of the thread.
    waiter: Waiter,
    pending: Option<Pending>,
}

/// A fill under way, or done and not taken.
struct Pending {
    /// When its interval is due.
    due_at: Option<Instant>,
}

/// A fill, or its panic outside of the artifacts' methods.
type Filled = Result<FillResult, Panic>;

struct Thread {
    requests: Sender<FillRequest>,
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
            env: ThreadEnv::of_this_thread(),
            thread: None,
            waiter: Waiter::new(),
            pending: None,
        }
    }

    /// Returns whether a fill is under way, or done and not taken.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns when the interval of the pending fill is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.pending.as_ref()?.due_at
    }

    /// Starts a fill. Must not be called while a fill is pending.
    pub(super) fn start(&mut self, request: FillRequest) -> Result<(), Failure> {
        let due_at = request.due_at;
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => self
                .spawn()
                .map_err(|error| Failure::new(format!("cannot start the reading thread: {error}")))?,
        };
        // Before the request, so that the new fill does not see an earlier discard.
        self.discarded.store(false, Ordering::Relaxed);
        // Before the request: what the fill sets in a context would be committed with the interval before it.
        self.gate.close();
        // A thread that has ended is noticed when the result is taken.
        let _ = thread.requests.send(request);
        self.thread = Some(thread);
        self.pending = Some(Pending { due_at });
        Ok(())
    }

    /// Waits for the pending fill, if there is one. A panic continues here.
    pub(super) fn take(&mut self) -> Option<FillResult> {
        self.pending.as_ref()?;
        // The fill may wait at the gate, and this thread waits for the fill.
        self.gate.open();
        let filled = self.receive()?;
        Some(filled.unwrap_or_else(|panic| panic.resume()))
    }

    /// Waits until the pending fill is done, for a planted fault.
    #[cfg(debug_assertions)]
    pub(super) fn wait_until_filled(&self) {
        let is_filled = || self.thread.as_ref().is_none_or(|thread| thread.filled.is_full());
        while !is_filled() {
            std::thread::yield_now();
        }
    }

    /// Ends the pending fill after the current item, and discards what it has read.
    pub(super) fn discard(&mut self) {
        if self.pending.is_none() {
            return;
        }
        self.discarded.store(true, Ordering::Relaxed);
        // A fill that waits at the gate has to end, without an effect on contexts.
        self.gate.discard();
        // The items belong to no interval yet, so an error or panic of theirs does not count.
        let _ = self.receive();
        // Other threads may still process items.
        lock(&self.input).sink.discard();
        // Not earlier: a processor that still runs must not change a context.
        self.gate.open();
    }

    fn receive(&mut self) -> Option<Filled> {
        self.pending = None;
        let filled = self.waiter.receive(&self.thread.as_ref()?.filled);
        Some(filled.unwrap_or_else(|| Err(Panic::of("the reading thread has ended"))))
    }

    fn spawn(&self) -> std::io::Result<Thread> {
        let (requests, to_fill) = bounded::<FillRequest>(1);
        let (done, filled) = bounded(1);
        let input = Arc::clone(&self.input);
        let (worker, discarded) = (Arc::clone(&self.worker), Arc::clone(&self.discarded));
        let env = self.env.clone();
        let handle = thread::start_for_step("batch-reader", env, &self.gate, move || {
            let mut waiter = Waiter::new();
            while let Some(request) = waiter.receive(&to_fill) {
                let _span = tracing::debug_span!("chunk", commit = request.commit).entered();
                let run = || request.run(&input, &worker, &discarded);
                if done.send(Panic::catch(run)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Thread {
            requests,
            filled,
            handle,
        })
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.discard();
        if let Some(Thread {
            requests,
            filled,
            handle,
        }) = self.thread.take()
        {
            // Ends the loop of the thread, which `join` waits for.
            drop((requests, filled));
            let _ = handle.join();
        }
    }
}

impl FillRequest {
    fn run(&self, input: &Mutex<Input>, worker: &Worker, discarded: &AtomicBool) -> FillResult {
        let mut input = lock(input);
        let Input { reader, sink } = &mut *input;
        // The results of an earlier interval: memory is cheaper to free on the thread that has allocated it.
        sink.clear();
        let mut keeper = FailureKeeper::default();
        let mut reads = 0;
        let end = loop {
            let fill = Fill::new(sink, worker.stop_flag(), self.max_reads, self.full_at).or_stop(discarded);
            let mut fill = if self.keeps_failed_item {
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
        FillResult {
            end,
            reads,
            halted: keeper.0.map(Halted::Failed),
        }
    }
}

/// Keeps the item that the processor fails at, and ends the fill there.
#[derive(Default)]
struct FailureKeeper(Option<FailedInput>);

impl ItemObserver for FailureKeeper {
    fn process_failed(
        &mut self,
        error: BatchError,
        item: Box<dyn Any + Send>,
        behind: usize,
    ) -> Result<Option<Box<dyn Any + Send>>, Halt> {
        self.0 = Some(FailedInput { error, item, behind });
        Err(Halt)
    }
}
