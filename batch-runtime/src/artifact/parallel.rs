//! Processing on several threads. The results keep the order of reading.
//!
//! The thread that reads puts pieces of items into a queue. Other threads, each with a processor, take them; instead of waiting, the
//! thread that reads processes a piece itself. It takes the outcomes in the order of reading, so skips, retries and listeners see
//! the same as on one thread. The number of pieces under way is limited, so that a stop request takes effect soon.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, unbounded};

use super::fill::{FillEnd, FillError, FillLimits, ItemObserver, again};
use super::results::Results;
use crate::context_gate::ContextGate;
use crate::error::{BatchError, Panic};
use crate::polling::Waiter;
use crate::thread::{self, ThreadEnv};

/// The maximum number of items in a piece.
const MOST_ITEMS: usize = 128;
/// Pieces that take less time are made longer; those that take more than 8 times as long, shorter.
const SHORT: Duration = Duration::from_micros(500);
/// The number of pieces for each processor: one in work, one waiting.
const PIECES: usize = 2;

/// The processors of a step, for items of type `I`.
pub(super) trait Parallel<I>: Send {
    fn results(&self) -> &dyn Results;
    fn results_mut(&mut self) -> &mut dyn Results;

    /// Returns the number of items without a result.
    fn waiting(&self) -> usize;

    /// Removes the items without a result.
    fn discard(&mut self);

    /// Sends an item to a processor. If `kept`, the outcome contains the item.
    fn send(&mut self, item: I, kept: bool);

    /// Takes outcomes in the order of reading until there are `full_at` results. With `all`, waits for every item that was sent;
    /// otherwise only until another piece may be sent.
    fn take(
        &mut self,
        all: bool,
        full_at: usize,
        observer: Option<&mut (dyn ItemObserver + '_)>,
    ) -> Result<(), FillError>;

    /// Returns the end of reading, which is reported after the outcomes of all items before it.
    fn end(&mut self) -> &mut Option<Result<FillEnd, BatchError>>;
}

/// Runs the loop of a fill.
pub(super) fn run_parallel<I: Send + 'static>(
    sink: &mut dyn Parallel<I>,
    mut observer: Option<&mut (dyn ItemObserver + '_)>,
    limits: FillLimits<'_>,
    reads: &mut usize,
    mut read: impl FnMut() -> Result<Option<I>, BatchError>,
) -> Result<FillEnd, FillError> {
    loop {
        let is_limit = *reads == limits.max_reads;
        let all = is_limit || sink.end().is_some();
        sink.take(all, limits.full_at, observer.as_deref_mut())?;
        if sink.results().len() >= limits.full_at {
            return Ok(FillEnd::Full);
        }
        if all {
            match sink.end().take() {
                Some(end) => return end.map_err(FillError::Read),
                None if is_limit => return Ok(FillEnd::Limit),
                None => {}
            }
        }
        if limits.stop.is_any_set() {
            *sink.end() = Some(Ok(FillEnd::Stop));
            continue;
        }
        if let Some(observer) = &mut observer {
            observer.before_read()?;
        }
        match read() {
            Ok(Some(item)) => {
                *reads += 1;
                if let Some(observer) = &mut observer {
                    observer.after_read(&item)?;
                    observer.before_process(&item)?;
                }
                sink.send(item, observer.is_some());
            }
            Ok(None) => *sink.end() = Some(Ok(FillEnd::EndOfInput)),
            Err(error) => *sink.end() = Some(Err(error)),
        }
    }
}

/// A processor with its two functions, see [`processor_sink`](super::item::processor_sink).
pub(super) struct Processor<P, F, G> {
    pub(super) processor: Box<P>,
    pub(super) process: F,
    pub(super) process_kept: G,
}

/// Items that one thread processes.
struct Piece<I> {
    index: usize,
    items: Vec<I>,
    kept: bool,
}

/// A processed piece.
struct Done<I, O> {
    index: usize,
    outcomes: Outcomes<I, O>,
    time: Duration,
}

/// The results and failures of a piece.
enum Outcomes<I, O> {
    /// No observer sees single items.
    Results(PieceResults<O>),
    Each(std::vec::IntoIter<Outcome<I, O>>),
}

/// The results of a piece, without the items.
struct PieceResults<O> {
    results: std::vec::IntoIter<O>,
    /// The failures, in the order of the items.
    failures: VecDeque<PieceFailure>,
    /// The number of results that are taken, and of items up to the last failure that is taken.
    taken: usize,
    items_taken: usize,
    items: usize,
}

/// An item that the processor failed at.
struct PieceFailure {
    error: Result<BatchError, Panic>,
    /// The number of results before it.
    results: usize,
    /// The number of items up to it.
    items: usize,
}

/// An item with what its processor returned.
struct Outcome<I, O> {
    item: I,
    result: Result<Result<Option<O>, BatchError>, Panic>,
}

/// The threads of the processors, and the buffer of results.
pub(super) struct ParallelSink<I, O> {
    /// `None` while the sink is dropped.
    pieces: Option<Sender<Piece<I>>>,
    queue: Receiver<Piece<I>>,
    done: Receiver<Done<I, O>>,
    /// The processor of the thread that reads.
    own: Box<dyn FnMut(Piece<I>) -> Done<I, O> + Send>,
    waiter: Waiter,
    threads: Vec<JoinHandle<()>>,
    /// The piece that is being filled. It is sent when it has `size` items.
    piece: Vec<I>,
    kept: bool,
    size: usize,
    /// The pieces that were sent, in their order, with their outcomes as soon as they are there. `first` is the index of the
    /// first.
    sent: VecDeque<Option<Outcomes<I, O>>>,
    first: usize,
    under_way: usize,
    /// The outcomes of the current piece.
    outcomes: Outcomes<I, O>,
    /// The number of items without a result.
    waiting: usize,
    end: Option<Result<FillEnd, BatchError>>,
    results: Vec<O>,
}

impl<I: Send + 'static, O: Send + 'static> ParallelSink<I, O> {
    /// Starts a thread for each processor after the first, with `gate` between it and the contexts.
    pub(super) fn start<P, F, G>(
        mut first: Processor<P, F, G>,
        others: Vec<Processor<P, F, G>>,
        gate: &Arc<ContextGate>,
    ) -> std::io::Result<Self>
    where
        P: Send + 'static,
        F: FnMut(&mut P, I) -> Result<Option<O>, BatchError> + Send + 'static,
        G: FnMut(&mut P, &I) -> Result<Option<O>, BatchError> + Send + 'static,
    {
        let (pieces, queue) = unbounded::<Piece<I>>();
        let (processed, done) = unbounded();
        let mut sink = Self {
            pieces: Some(pieces),
            queue,
            done,
            own: Box::new(move |piece| first.run(piece)),
            waiter: Waiter::new(),
            threads: Vec::new(),
            piece: Vec::new(),
            kept: false,
            size: 1,
            sent: VecDeque::new(),
            first: 0,
            under_way: 0,
            outcomes: Outcomes::none(),
            waiting: 0,
            end: None,
            results: Vec::new(),
        };
        for (number, mut processor) in (2..).zip(others) {
            let (queue, processed) = (sink.queue.clone(), processed.clone());
            let (name, env) = (format!("batch-processor-{number}"), ThreadEnv::of_this_thread());
            let thread = thread::start_for_step(name, env, gate, move || {
                let mut waiter = Waiter::new();
                while let Some(piece) = waiter.receive(&queue) {
                    if processed.send(processor.run(piece)).is_err() {
                        break;
                    }
                }
            });
            sink.threads.push(thread?);
        }
        Ok(sink)
    }

    fn send_piece(&mut self) {
        if self.piece.is_empty() {
            return;
        }
        let piece = Piece {
            index: self.first + self.sent.len(),
            items: std::mem::take(&mut self.piece),
            kept: self.kept,
        };
        self.sent.push_back(None);
        self.under_way += 1;
        if let Some(pieces) = &self.pieces {
            // Cannot fail: the threads receive until the sink is dropped.
            let _ = pieces.send(piece);
        }
    }

    /// Takes a processed piece, processes one that no thread has taken, or waits. Returns `false` if the threads have ended.
    fn receive(&mut self) -> bool {
        let done = match self.done.try_recv() {
            Ok(done) => done,
            Err(_) => match self.queue.try_recv() {
                Ok(piece) => (self.own)(piece),
                Err(_) => match self.waiter.receive(&self.done) {
                    Some(done) => done,
                    None => return false,
                },
            },
        };
        self.under_way -= 1;
        if done.time < SHORT {
            self.size = (self.size * 2).min(MOST_ITEMS);
        } else if done.time > SHORT * 8 {
            self.size = (self.size / 2).max(1);
        }
        if let Some(outcomes) = self.sent.get_mut(done.index - self.first) {
            *outcomes = Some(done.outcomes);
        }
        true
    }

    /// Accepts the outcomes that are there, in the order of reading, until there are `full_at` results.
    fn accept(
        &mut self,
        full_at: usize,
        mut observer: Option<&mut (dyn ItemObserver + '_)>,
    ) -> Result<(), FillError> {
        while self.results.len() < full_at {
            match &mut self.outcomes {
                Outcomes::Results(piece) => {
                    let (items, failure) = piece.take_into(&mut self.results, full_at);
                    self.waiting -= items;
                    match failure {
                        Some(Ok(error)) => return Err(FillError::Process(error)),
                        Some(Err(panic)) => panic.resume(),
                        None if self.results.len() >= full_at => return Ok(()),
                        None => {}
                    }
                }
                Outcomes::Each(outcomes) => {
                    if let Some(outcome) = outcomes.next() {
                        self.waiting -= 1;
                        self.accept_one(outcome, observer.as_deref_mut())?;
                        continue;
                    }
                }
            }
            match self.sent.front_mut().and_then(Option::take) {
                Some(outcomes) => self.outcomes = outcomes,
                None => return Ok(()),
            }
            self.sent.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    fn accept_one(
        &mut self,
        Outcome { item, result }: Outcome<I, O>,
        observer: Option<&mut (dyn ItemObserver + '_)>,
    ) -> Result<(), FillError> {
        let result = result.unwrap_or_else(|panic| panic.resume());
        let Some(observer) = observer else {
            self.results.extend(result.map_err(FillError::Process)?);
            return Ok(());
        };
        let mut next = Some(Outcome {
            item,
            result: Ok(result),
        });
        while let Some(Outcome { item, result }) = next.take() {
            match result.unwrap_or_else(|panic| panic.resume()) {
                Ok(result) => {
                    observer.after_process(&item, result.as_ref().map(|result| result as &dyn Any))?;
                    self.results.extend(result);
                }
                Err(error) => {
                    let failed = observer.process_failed(error, Box::new(item), self.waiting)?;
                    if let Some(item) = again(failed) {
                        observer.before_process(&item)?;
                        next = self.process_here(item);
                    }
                }
            }
        }
        Ok(())
    }

    /// Processes an item again, on the thread that reads.
    fn process_here(&mut self, item: I) -> Option<Outcome<I, O>> {
        let piece = Piece {
            index: 0,
            items: vec![item],
            kept: true,
        };
        match (self.own)(piece).outcomes {
            Outcomes::Each(mut outcomes) => outcomes.next(),
            Outcomes::Results(_) => None,
        }
    }
}

impl<O> PieceResults<O> {
    /// Moves results until there are `full_at`, or a failure comes next. Returns it, with the number of items that have been
    /// dealt with: those up to the failure, or the remaining ones once all results are taken.
    fn take_into(
        &mut self,
        results: &mut Vec<O>,
        full_at: usize,
    ) -> (usize, Option<Result<BatchError, Panic>>) {
        let before = self
            .failures
            .front()
            .map_or(usize::MAX, |failure| failure.results);
        let count = (full_at - results.len())
            .min(before - self.taken)
            .min(self.results.len());
        results.extend(self.results.by_ref().take(count));
        self.taken += count;
        let is_full = results.len() >= full_at;
        let is_next = |failure: &PieceFailure| !is_full && failure.results == self.taken;
        let failure = match self.failures.front().is_some_and(is_next) {
            true => self.failures.pop_front(),
            false => None,
        };
        let items = match &failure {
            Some(failure) => failure.items,
            None if self.results.len() == 0 && self.failures.is_empty() => self.items,
            None => self.items_taken,
        };
        let items = items - std::mem::replace(&mut self.items_taken, items);
        (items, failure.map(|failure| failure.error))
    }
}

impl<I, O> Outcomes<I, O> {
    fn none() -> Self {
        Self::Each(Vec::new().into_iter())
    }
}

impl<P, F, G> Processor<P, F, G> {
    #[inline]
    pub(super) fn process<I, O>(&mut self, item: I) -> Result<Option<O>, BatchError>
    where
        F: FnMut(&mut P, I) -> Result<Option<O>, BatchError>,
    {
        (self.process)(&mut self.processor, item)
    }

    #[inline]
    pub(super) fn process_kept<I, O>(&mut self, item: &I) -> Result<Option<O>, BatchError>
    where
        G: FnMut(&mut P, &I) -> Result<Option<O>, BatchError>,
    {
        (self.process_kept)(&mut self.processor, item)
    }

    fn run<I, O>(&mut self, piece: Piece<I>) -> Done<I, O>
    where
        F: FnMut(&mut P, I) -> Result<Option<O>, BatchError>,
        G: FnMut(&mut P, &I) -> Result<Option<O>, BatchError>,
    {
        let begin = Instant::now();
        let outcomes = if piece.kept {
            let outcomes = piece.items.into_iter().map(|item| {
                let result = Panic::catch(|| self.process_kept(&item));
                Outcome { item, result }
            });
            Outcomes::Each(outcomes.collect::<Vec<_>>().into_iter())
        } else {
            self.process_all(piece.items)
        };
        Done {
            index: piece.index,
            outcomes,
            time: begin.elapsed(),
        }
    }

    fn process_all<I, O>(&mut self, items: Vec<I>) -> Outcomes<I, O>
    where
        F: FnMut(&mut P, I) -> Result<Option<O>, BatchError>,
    {
        let (count, mut taken) = (items.len(), 0);
        let (mut results, mut failures) = (Vec::with_capacity(count), VecDeque::new());
        // After a panic nothing else is processed: the step fails.
        let ended = Panic::catch(|| {
            for item in items {
                taken += 1;
                match self.process(item) {
                    Ok(result) => results.extend(result),
                    Err(error) => failures.push_back(PieceFailure {
                        error: Ok(error),
                        results: results.len(),
                        items: taken,
                    }),
                }
            }
        });
        if let Err(panic) = ended {
            failures.push_back(PieceFailure {
                error: Err(panic),
                results: results.len(),
                items: taken,
            });
        }
        Outcomes::Results(PieceResults {
            results: results.into_iter(),
            failures,
            taken: 0,
            items_taken: 0,
            items: count,
        })
    }
}

impl<I: Send + 'static, O: Send + 'static> Parallel<I> for ParallelSink<I, O> {
    fn send(&mut self, item: I, kept: bool) {
        self.kept = kept;
        self.waiting += 1;
        self.piece.push(item);
        if self.piece.len() >= self.size {
            self.send_piece();
        }
    }

    fn take(
        &mut self,
        all: bool,
        full_at: usize,
        mut observer: Option<&mut (dyn ItemObserver + '_)>,
    ) -> Result<(), FillError> {
        loop {
            self.accept(full_at, observer.as_deref_mut())?;
            let is_enough = !all && self.under_way < PIECES * (self.threads.len() + 1);
            if self.results.len() >= full_at || self.waiting == 0 || is_enough {
                return Ok(());
            }
            if all {
                self.send_piece();
            }
            if !self.receive() {
                let ended = BatchError::msg("the threads of the processors have ended");
                return Err(FillError::Mismatch(ended));
            }
        }
    }

    fn end(&mut self) -> &mut Option<Result<FillEnd, BatchError>> {
        &mut self.end
    }

    fn results(&self) -> &dyn Results {
        &self.results
    }

    fn results_mut(&mut self) -> &mut dyn Results {
        &mut self.results
    }

    fn waiting(&self) -> usize {
        self.waiting
    }

    /// Waits for the pieces in work, so that no item is processed twice at the same time.
    fn discard(&mut self) {
        self.piece.clear();
        self.under_way -= self.queue.try_iter().count();
        while self.under_way > 0 && self.receive() {}
        self.under_way = 0;
        self.sent.clear();
        self.outcomes = Outcomes::none();
        self.waiting = 0;
        self.end = None;
    }
}

impl<I, O> Drop for ParallelSink<I, O> {
    fn drop(&mut self) {
        self.pieces = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
