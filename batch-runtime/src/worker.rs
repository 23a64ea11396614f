//! Workers: processes that run the partitions of jobs whose coordinators are other processes.
//!
//! They also run whole jobs: the launches that were queued for workers.
//!
//! One thread takes tickets, renews the registration and watches the slots; each slot is a thread that runs partitions. The
//! repository decides who runs a partition, so nothing here is lost with the process: a partition whose worker dies is
//! submitted again by its coordinator.

mod builder;
mod health;
mod launches;
mod partition;
mod suspects;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, unbounded};

use crate::dispatch::{PartitionDelivery, PartitionSource, PartitionTicket};
use crate::error::error_chain;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::operator::PartitionStop;
use crate::outage::Outage;
use crate::repository::WorkerRow;
use crate::runtime::BatchRuntime;
use crate::thread;
pub use crate::worker::builder::{WorkerBuilder, WorkerError};
use crate::worker::health::Heartbeat;
pub use crate::worker::health::WorkerHealth;
use crate::worker::launches::Launches;
use crate::worker::partition::{SharedDelivery, decline, done, run};
use crate::worker::suspects::{LATER, Suspects};

/// The longest wait for a ticket; then the worker looks after the slots and the registration.
const WAIT: Duration = Duration::from_millis(250);
/// The interval between reports to the transport that partitions still run.
const EXTEND: Duration = Duration::from_secs(5);
/// Partitions that end within this time are quick: a ticket for each slot is taken ahead.
const QUICK: Duration = Duration::from_millis(100);
/// Taking a ticket costs about as much as partitions that end within this time: several are taken together.
const TINY: Duration = Duration::from_millis(10);
/// What fails if the transport does.
const TAKE: &str = "take partitions";
/// The wait after an error of the transport.
const PAUSE: Duration = Duration::from_secs(1);

/// A worker that takes partitions. Dropping it does not stop the worker.
pub struct Worker {
    state: Arc<State>,
    thread: JoinHandle<()>,
    lease_time: Duration,
}

impl Worker {
    /// Requests the worker to end: it takes no more partitions, chunk steps stop at their next checkpoint, and other workers resume them
    /// there. Batchlets, and partitions of flows, run to their end. Launches are stopped, and other workers resume them. Returns at once.
    pub fn drain(&self) {
        self.state.draining.store(true, Ordering::Relaxed);
    }

    /// Returns the health of the worker. It is stuck if, for a lease time, its thread has done nothing, or a partition that was requested to
    /// stop still runs. A batchlet may take as long as it needs, also while the worker drains.
    // Spec: DISP-18
    pub fn health(&self) -> WorkerHealth {
        let state = &self.state;
        match (self.has_ended(), state.is_draining()) {
            (true, true) => WorkerHealth::Draining,
            (true, false) => WorkerHealth::stuck("its thread has panicked"),
            (false, is_draining) => WorkerHealth::of(
                state.heartbeat.silent(),
                state.stopping(),
                is_draining,
                self.lease_time,
            ),
        }
    }

    /// Returns the tickets of the partitions that run.
    pub fn partitions(&self) -> Vec<PartitionTicket> {
        let slots = self.state.slots();
        slots
            .values()
            .map(|slot| slot.delivery.ticket().clone())
            .collect()
    }

    /// Returns the job executions that run.
    pub fn executions(&self) -> Vec<JobExecutionId> {
        self.state.launches.executions()
    }

    /// Returns whether the worker has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the worker has ended, which it does after [`drain`](Self::drain).
    ///
    /// # Errors
    /// `Panicked`, if it has ended otherwise.
    pub fn wait(self) -> Result<(), WorkerError> {
        self.thread.join().map_err(|_| WorkerError::Panicked)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worker")
    }
}

/// The part of a worker that its handle shares.
struct State {
    heartbeat: Heartbeat,
    draining: AtomicBool,
    /// The number of tickets that are taken for each slot beside those that run, by the time of the last partition.
    ahead: AtomicU32,
    slots: Mutex<BTreeMap<StepExecutionId, Slot>>,
    launches: Arc<launches::State>,
}

impl State {
    fn new() -> Self {
        Self {
            heartbeat: Heartbeat::new(),
            draining: AtomicBool::new(false),
            ahead: AtomicU32::new(0),
            slots: Mutex::default(),
            launches: Arc::default(),
        }
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<StepExecutionId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the partition that has not obeyed a request to stop for longest.
    fn stopping(&self) -> Option<(StepExecutionId, Duration)> {
        let slots = self.slots();
        let stopping = slots
            .iter()
            .filter_map(|(id, slot)| Some((*id, slot.stop.as_ref()?.stopping_for()?)));
        stopping.max_by_key(|(_, time)| *time)
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// A partition that is being claimed or runs.
struct Slot {
    delivery: SharedDelivery,
    /// Once it is claimed.
    stop: Option<PartitionStop>,
}

/// The thread of a worker.
struct Running {
    runtime: BatchRuntime,
    row: WorkerRow,
    state: Arc<State>,
    launches: Launches,
    source: Box<dyn PartitionSource>,
    /// The tickets for the threads of the slots, which take them themselves.
    waiting: (Sender<SharedDelivery>, Receiver<SharedDelivery>),
    threads: u32,
    ended: Sender<StepExecutionId>,
    ends: Receiver<StepExecutionId>,
    /// When the last partition has ended, or the first was taken.
    progressed: Instant,
    registered: Option<Instant>,
    extended: Instant,
    suspects: Suspects,
    takes: Outage,
    registrations: Outage,
}

impl Running {
    fn new(
        runtime: BatchRuntime,
        row: WorkerRow,
        state: Arc<State>,
        launches: Launches,
        source: Box<dyn PartitionSource>,
    ) -> Self {
        let (ended, ends) = unbounded();
        Self {
            runtime,
            row,
            state,
            launches,
            source,
            waiting: unbounded(),
            threads: 0,
            ended,
            ends,
            progressed: Instant::now(),
            registered: None,
            extended: Instant::now(),
            suspects: Suspects::default(),
            takes: Outage::default(),
            registrations: Outage::default(),
        }
    }

    fn run(mut self) {
        loop {
            for look_after in [
                Self::register,
                Self::extend,
                Self::hand_back,
                Self::stop_requested,
                Self::note_ends,
                Self::hand_back_waiting,
            ] {
                self.state.heartbeat.beat();
                look_after(&mut self);
            }
            let running = self.state.slots().len();
            if self.state.is_draining() && running == 0 && self.launches.is_empty() {
                break;
            }
            if !self.state.is_draining() {
                self.launches.take();
            }
            self.state.heartbeat.beat();
            let running = u32::try_from(running).unwrap_or(u32::MAX);
            let free = self.tickets().saturating_sub(running);
            // Not one ticket for each partition that ends, if they end quickly.
            if running > self.row.slots || free == 0 || self.state.is_draining() {
                if let Ok(ended) = self.ends.recv_timeout(WAIT) {
                    self.note_end(ended);
                }
                continue;
            }
            match self.source.take(free, WAIT) {
                Ok(deliveries) => {
                    self.takes.ended(TAKE);
                    deliveries.into_iter().for_each(|delivery| self.begin(delivery));
                }
                Err(error) => {
                    self.takes.failed(TAKE, &error_chain(&error));
                    std::thread::sleep(PAUSE);
                }
            }
        }
        let store = self.runtime.shared().repository.worker_store();
        if let Err(error) = store.and_then(|store| store.deregister_worker()) {
            tracing::warn!(%error, "cannot deregister the worker; its registration expires");
        }
    }

    /// Returns how many tickets the worker holds at most: one for each slot, unless partitions end so quickly that each would have to wait
    /// for its ticket.
    fn tickets(&self) -> u32 {
        let ahead = self.state.ahead.load(Ordering::Relaxed);
        self.row.slots.saturating_mul(1 + ahead)
    }

    fn note_ends(&mut self) {
        while let Ok(ended) = self.ends.try_recv() {
            self.note_end(ended);
        }
    }

    fn note_end(&mut self, ended: StepExecutionId) {
        self.progressed = Instant::now();
        self.state.slots().remove(&ended);
        self.suspects.ended(ended);
    }

    /// Leaves the tickets that wait for a slot to other workers, if the partitions take longer than the last ones, or the worker drains.
    fn hand_back_waiting(&mut self) {
        if self.progressed.elapsed() < QUICK && !self.state.is_draining() {
            return;
        }
        while let Ok(waiting) = self.waiting.1.try_recv() {
            let id = waiting.ticket().step_execution;
            self.state.slots().remove(&id);
            self.suspects.ended(id);
            done(waiting.hand_back(Duration::ZERO), "hand a ticket back");
        }
    }

    /// Renews the registration after a third of the lease time, and when the status changes.
    fn register(&mut self) {
        let repository = &self.runtime.shared().repository;
        let is_due = self
            .registered
            .is_none_or(|registered| registered.elapsed() > repository.lease_time() / 3);
        if !is_due && self.row.is_draining == self.state.is_draining() {
            return;
        }
        self.row.is_draining = self.state.is_draining();
        let registered = repository
            .worker_store()
            .and_then(|store| store.register_worker(&self.row));
        let action = "renew the registration of the worker";
        if self.registrations.observe(action, registered).is_some() {
            self.registered = Some(Instant::now());
        }
    }

    /// Reports to the transport that the partitions still run.
    fn extend(&mut self) {
        if self.extended.elapsed() < EXTEND {
            return;
        }
        self.extended = Instant::now();
        let deliveries: Vec<_> = self
            .state
            .slots()
            .values()
            .map(|slot| Arc::clone(&slot.delivery))
            .collect();
        for delivery in deliveries {
            if let Err(error) = delivery.extend() {
                tracing::warn!(
                    error = error_chain(&error),
                    "the transport does not know that a partition still runs"
                );
            }
        }
    }

    /// Requests the partitions and jobs of a draining worker to stop at their next checkpoint.
    fn hand_back(&mut self) {
        if self.state.is_draining() {
            self.launches.hand_over();
            let slots = self.state.slots();
            slots
                .values()
                .filter_map(|slot| slot.stop.as_ref())
                .for_each(PartitionStop::hand_back);
        }
    }

    /// Stops the partitions that their coordinators want to stop.
    fn stop_requested(&mut self) {
        for id in self.source.stop_requests() {
            let slots = self.state.slots();
            if let Some(stop) = slots.get(&id).and_then(|slot| slot.stop.as_ref()) {
                stop.request_stop();
            }
        }
    }

    fn begin(&mut self, delivery: Box<dyn PartitionDelivery>) {
        let delivery: SharedDelivery = Arc::from(delivery);
        let id = delivery.ticket().step_execution;
        self.note_ends();
        let running = self
            .state
            .slots()
            .get(&id)
            .map(|slot| slot.delivery.ticket().attempt);
        match running {
            None => {}
            // The coordinator has submitted the partition again, while it still ends here.
            Some(attempt) if attempt < delivery.ticket().attempt => {
                return done(delivery.hand_back(LATER), "hand a ticket back");
            }
            Some(_) if self.state.is_draining() => {
                return done(delivery.hand_back(LATER), "hand a ticket back");
            }
            // A ticket that was delivered twice.
            Some(_) => return done(delivery.discard(), "discard a repeated ticket"),
        }
        if !self.suspects.admit(delivery.ticket()) {
            return done(delivery.hand_back(LATER), "leave a partition to another worker");
        }
        let slot = Slot {
            delivery: Arc::clone(&delivery),
            stop: None,
        };
        self.state.slots().insert(id, slot);
        if self.threads < self.row.slots
            && let Err(error) = self.start_thread()
        {
            tracing::error!(%error, "cannot start a thread for partitions");
            if self.threads == 0 {
                self.state.slots().remove(&id);
                self.suspects.ended(id);
                let reason = format!("cannot start a thread: {error}");
                return decline(&*delivery, &self.row.name, None, reason);
            }
        }
        self.progressed = Instant::now();
        // Its receiver lives as long as the worker.
        let _ = self.waiting.0.send(delivery);
    }

    /// Starts the thread of a slot. It ends with the worker.
    fn start_thread(&mut self) -> std::io::Result<()> {
        let (runtime, state) = (self.runtime.clone(), Arc::clone(&self.state));
        let (waiting, ended) = (self.waiting.1.clone(), self.ended.clone());
        let name = self.row.name.clone();
        self.threads += 1;
        let started = thread::start(format!("batch-partition-{}", self.threads), move || {
            for delivery in waiting {
                let begin = Instant::now();
                let id = delivery.ticket().step_execution;
                run(&runtime, &delivery, &name, |stop| {
                    if let Some(slot) = state.slots().get_mut(&id) {
                        slot.stop = Some(stop);
                    }
                });
                state.ahead.store(ahead(begin.elapsed()), Ordering::Relaxed);
                let _ = ended.send(id);
            }
        });
        started.map(drop).inspect_err(|_| self.threads -= 1)
    }
}

/// Returns how many tickets to take ahead for each slot, if partitions take this long.
fn ahead(time: Duration) -> u32 {
    match time {
        time if time < TINY => 3,
        time if time < QUICK => 1,
        _ => 0,
    }
}
