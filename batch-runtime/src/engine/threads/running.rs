//! The state of a running execution, shared by its runner, the operator and the lease keeper.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::worker::{Exceeded, lock};
use super::workers::Workers;
use crate::context_gate;
use crate::engine::call::Failure;
use crate::engine::outputs::ClaimedOutputs;
use crate::observer::{JobEventKind, JobEvents};
use crate::repository::{JobRepository, Lease, RepositoryError};

/// The shared state of one execution.
pub(crate) struct Running {
    pub(crate) lease: Lease,
    lease_time: Duration,
    pub(crate) workers: Workers,
    /// The deadline of the execution.
    deadline: Mutex<Option<Instant>>,
    overdue: AtomicBool,
    /// True once its runner is about to release the lease.
    releasing: AtomicBool,
    /// True if it is a partition that another worker can resume at its last checkpoint.
    can_hand_back: AtomicBool,
    /// True if a partition is handed back to other workers when it has stopped.
    handing_back: AtomicBool,
    /// Why the lease may have been lost.
    distrusted: OnceLock<String>,
    /// True once partitions were sent to other processes.
    dispatched: AtomicBool,
    renewed: Mutex<Instant>,
    pub(crate) events: JobEvents,
    pub(in crate::engine) outputs: ClaimedOutputs,
    /// True once the request to stop was emitted.
    stop_announced: Mutex<bool>,
    thread: OnceLock<ThreadId>,
    ended: Mutex<Option<Result<(), String>>>,
    end: Condvar,
}

impl Running {
    /// `claimed` is the time before the claim: the lease lasts at least from then.
    pub(crate) fn new(lease: Lease, lease_time: Duration, claimed: Instant, events: JobEvents) -> Self {
        Self {
            lease,
            lease_time,
            workers: Workers::default(),
            deadline: Mutex::default(),
            overdue: AtomicBool::new(false),
            releasing: AtomicBool::new(false),
            can_hand_back: AtomicBool::new(false),
            handing_back: AtomicBool::new(false),
            distrusted: OnceLock::new(),
            dispatched: AtomicBool::new(false),
            renewed: Mutex::new(claimed),
            events,
            outputs: ClaimedOutputs::default(),
            stop_announced: Mutex::default(),
            thread: OnceLock::new(),
            ended: Mutex::new(None),
            end: Condvar::new(),
        }
    }

    /// Notes that partitions are sent to other processes.
    pub(crate) fn dispatches(&self) {
        self.dispatched.store(true, Ordering::Relaxed);
    }

    /// Returns whether partitions were sent to other processes.
    pub(crate) fn has_dispatched(&self) -> bool {
        self.dispatched.load(Ordering::Relaxed)
    }

    /// Requests all threads to stop at their next items: for an operator, or because the lease may be lost.
    pub(crate) fn request_stop(&self) {
        self.request_stop_because(self.distrusted.get().cloned());
    }

    fn request_stop_because(&self, cause: Option<String>) {
        {
            // Emitted under the lock that `announce_no_stop` takes, so that no event follows the end.
            // Released before `#[cancel]` is called, which may request a stop itself.
            let mut announced = lock(&self.stop_announced);
            if !std::mem::replace(&mut *announced, true) {
                self.events.emit(JobEventKind::StopRequested { cause });
            }
        }
        self.workers.request_stop();
    }

    /// Prevents that a request to stop is emitted after the end.
    pub(crate) fn announce_no_stop(&self) {
        *lock(&self.stop_announced) = true;
    }

    /// Sets the timeout. When it expires, the execution is stopped and fails.
    pub(crate) fn set_deadline(&self, limit: Duration) {
        *lock(&self.deadline) = Instant::now().checked_add(limit);
    }

    /// Lets other workers resume the partition.
    pub(crate) fn allow_handing_back(&self) {
        self.can_hand_back.store(true, Ordering::Relaxed);
    }

    /// Requests a partition to stop at its next item, for another worker to resume it. Has no effect if none could.
    pub(crate) fn hand_back(&self) {
        if self.can_hand_back.load(Ordering::Relaxed) && !self.handing_back.swap(true, Ordering::Relaxed) {
            self.workers.request_stop();
        }
    }

    /// Notes that the lease may be lost: a partition is handed back, and anything else fails with this cause once it has stopped.
    pub(crate) fn distrust(&self, error: &RepositoryError) {
        let cause = format!(
            "the lease could not be renewed in {:?}, so that another process may run this: {error}",
            self.lease_time
        );
        if self.distrusted.set(cause.clone()).is_ok() {
            self.events.emit(JobEventKind::LeaseLost { cause });
        }
        self.hand_back();
    }

    /// Returns why it has to fail, if its lease may have been lost.
    pub(crate) fn distrusted(&self) -> Option<Failure> {
        let cause = self.distrusted.get().filter(|_| !self.is_handing_back())?;
        Some(Failure::new(cause.clone()))
    }

    /// Returns for how long it has not obeyed a request to stop, or `None` without one.
    pub(crate) fn stopping_for(&self) -> Option<Duration> {
        let requested = self
            .workers
            .stop_requested_at()
            .filter(|_| !self.is_handing_back());
        requested.map(|requested| requested.elapsed())
    }

    /// Returns whether a partition that has stopped is left to another worker.
    pub(crate) fn is_handing_back(&self) -> bool {
        self.handing_back.load(Ordering::Relaxed)
    }

    /// Returns whether its deadline has passed.
    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed)
    }

    /// Returns whether the execution has passed its deadline, or a step exceeds a limit.
    pub(crate) fn has_overdue(&self) -> bool {
        let over = lock(&self.deadline).is_some_and(|deadline| deadline <= Instant::now());
        over || self.workers.active().iter().any(|worker| worker.is_overdue())
    }

    /// Stops what has passed its deadline or exceeds a limit.
    pub(crate) fn enforce_limits(&self) {
        if lock(&self.deadline)
            .take_if(|deadline| *deadline <= Instant::now())
            .is_some()
        {
            self.overdue.store(true, Ordering::Relaxed);
            let cause = "the job exceeded its timeout";
            tracing::warn!(execution = %self.lease.execution_id, "{cause}; stopping it");
            self.request_stop_because(Some(cause.to_owned()));
        }
        for worker in self.workers.active() {
            worker.enforce_limits(|Exceeded { message, silent_step }| {
                tracing::warn!(execution = %self.lease.execution_id, "{message}; stopping it");
                if let Some(step) = silent_step {
                    self.events.emit(JobEventKind::HeartbeatMissed {
                        step: step.clone(),
                        cause: message.clone(),
                    });
                }
            });
        }
    }

    /// Returns whether to renew the lease, because a third of it has passed.
    pub(crate) fn renewal_due(&self) -> bool {
        lock(&self.renewed).elapsed() > self.lease_time / 3
    }

    /// Records a renewal that was requested at `asked`.
    pub(crate) fn renewed(&self, asked: Instant) {
        let mut renewed = lock(&self.renewed);
        // Keeper and step may renew at the same time: the older request must not set the time back.
        *renewed = asked.max(*renewed);
    }

    /// Returns whether the lease may have expired, because it could not be renewed.
    pub(crate) fn is_untrusted(&self) -> bool {
        lock(&self.renewed).elapsed() + self.margin() >= self.lease_time
    }

    /// Returns the part of the lease time that is reserved for the request to the database.
    fn margin(&self) -> Duration {
        self.lease_time / 6
    }

    /// Returns whether the runner has ended. An execution whose end could not be recorded remains known.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.ended).is_some()
    }

    /// Ensures, before new work starts, that the lease is held. Reads the clock, and queries the database only if the
    /// keeper has not renewed the lease for most of its time.
    pub(crate) fn ensure_owned(&self, repository: &dyn JobRepository) -> Result<(), RepositoryError> {
        if self.is_untrusted() {
            self.renew(repository)
        } else {
            Ok(())
        }
    }

    /// Returns the lease to release it. The keeper does not consider it lost from now on.
    pub(crate) fn release(&self) -> &Lease {
        self.releasing.store(true, Ordering::Release);
        &self.lease
    }

    /// Renews the lease, unless its runner has released it.
    ///
    /// # Errors
    /// `Fenced` if it is lost.
    pub(crate) fn renew(&self, repository: &dyn JobRepository) -> Result<(), RepositoryError> {
        let asked = Instant::now();
        if repository.renew_lease(&self.lease)? {
            self.renewed(asked);
            Ok(())
        } else if self.releasing.load(Ordering::Acquire) {
            // The runner sets the flag before it releases the lease, so the lease is not lost.
            Ok(())
        } else {
            Err(RepositoryError::Fenced {
                action: "renew the lease",
            })
        }
    }

    /// Registers the calling thread as the runner's.
    pub(crate) fn runs_here(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// Returns whether the caller is a thread of the execution, which must not wait for itself.
    // Spec: D-60
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&context_gate::step_thread())
            || self.workers.active().iter().any(|worker| worker.is_this_thread())
    }

    /// Records that the runner has ended; an error is the reason why the end could not be recorded.
    pub(crate) fn set_ended(&self, result: Result<(), String>) {
        *lock(&self.ended) = Some(result);
        self.end.notify_all();
    }

    /// Returns a guard for the runner's thread: even a panic of the thread ends the waits for it.
    pub(crate) fn end_guard(self: &Arc<Self>) -> EndGuard {
        EndGuard(Arc::clone(self))
    }

    /// Waits at most `limit` for the end of the runner; `None` on timeout.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Option<Result<(), String>> {
        let ended = lock(&self.ended);
        let ended = match limit {
            None => self
                .end
                .wait_while(ended, |ended| ended.is_none())
                .unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.end.wait_timeout_while(ended, limit, |ended| ended.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        ended.clone()
    }
}

/// Ends the waits for a runner when its thread ends, also by a panic.
pub(crate) struct EndGuard(Arc<Running>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        if !self.0.has_ended() {
            let cause = "the thread of the execution has ended without a result, by a panic of the runtime, an observer or the logger; \
                         run the same `launch`, or `recover`, to resume from the last checkpoint";
            self.0.set_ended(Err(cause.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Worker;
    use super::*;
    use crate::clock::SystemClock;
    use crate::observer::{JobEvent, JobObserver, JobTrace, Observers};
    use crate::repository::{ClaimRequest, JobRepository, RepositoryConfig, open};

    const LEASE: Duration = Duration::from_secs(3_600);

    fn running(lease: Lease, lease_time: Duration, claimed: Instant) -> Running {
        Running::new(lease, lease_time, claimed, JobEvents::unobserved(&lease))
    }

    fn claimed(repository: &dyn JobRepository) -> Lease {
        let request = ClaimRequest {
            crash_limit: Some(0),
            ..ClaimRequest::of_new_instance()
        };
        repository.claim(&request).unwrap().lease
    }

    /// A lease that was not renewed for most of its time is renewed before new work starts, and work does not start
    /// if it is lost. Before that, the repository is not queried.
    // Spec: OP-35, REPO-15
    #[test]
    fn a_lease_is_ensured_before_new_work_starts() {
        let repository = open("sqlite://:memory:", RepositoryConfig::with_lease(LEASE)).unwrap();
        let lease = claimed(&*repository);
        let lost = Lease {
            fence: lease.fence + 1,
            ..lease
        };
        let now = Instant::now();
        let fresh = running(lost, LEASE, now);
        assert!(!fresh.is_untrusted() && fresh.ensure_owned(&*repository).is_ok());
        let stale = running(lost, Duration::ZERO, now);
        assert!(stale.is_untrusted());
        let refused = stale.ensure_owned(&*repository);
        assert!(
            matches!(refused, Err(RepositoryError::Fenced { .. })),
            "{refused:?}"
        );

        let held = running(lease, Duration::ZERO, now);
        held.ensure_owned(&*repository).unwrap();
        assert!(*lock(&held.renewed) > now, "it was renewed");
    }

    /// Whoever waits for an execution is answered, however its thread ends.
    // Spec: LOSS-15
    #[test]
    fn a_wait_ends_with_the_thread_of_the_execution() {
        let repository = open("memory:", RepositoryConfig::with_lease(LEASE)).unwrap();
        let running = Arc::new(running(claimed(&*repository), LEASE, Instant::now()));
        let runner = Arc::clone(&running);
        let thread = std::thread::spawn(move || {
            let _guard = runner.end_guard();
            panic!("outside of the engine");
        });
        let ended = running.wait(None).unwrap();
        assert!(thread.join().is_err());
        assert!(ended.unwrap_err().contains("has ended without a result"));
    }

    /// The keeper, which renews all leases, asks each worker for exceeded limits, also while a `#[cancel]` blocks.
    // Spec: OP-35, BLET-06
    #[test]
    fn a_blocked_cancel_does_not_block_the_keeper() {
        let worker = Worker::default();
        worker.add_limit(|| Some(Exceeded::new("too slow")));
        assert!(worker.is_overdue());
        std::thread::scope(|scope| {
            // Reports and cancels under one lock.
            worker.enforce_limits(|_| {
                let (sender, answer) = std::sync::mpsc::channel();
                let worker = &worker;
                scope.spawn(move || sender.send(worker.is_overdue()));
                assert_eq!(answer.recv_timeout(Duration::from_secs(20)), Ok(false));
            });
        });
    }

    /// The request to the database takes time too: a lease is trusted until a sixth of its time is left, not until its end.
    // Spec: OP-35
    #[test]
    fn a_lease_is_untrusted_before_it_expires() {
        let repository = open("sqlite://:memory:", RepositoryConfig::with_lease(LEASE)).unwrap();
        let lease = claimed(&*repository);
        let aged = |age: Duration| running(lease, LEASE, Instant::now().checked_sub(age).unwrap());
        let minute = Duration::from_secs(60);
        assert!(!aged(LEASE * 5 / 6 - minute).is_untrusted());
        assert!(aged(LEASE * 5 / 6 + minute).is_untrusted());
    }

    // Spec: OBS-02
    #[test]
    fn no_stop_is_emitted_after_the_end() {
        let repository = open("memory:", RepositoryConfig::with_lease(LEASE)).unwrap();
        let lease = claimed(&*repository);
        let stops = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&stops);
        let observer = move |event: &JobEvent| {
            *lock(&seen) += u32::from(matches!(event.kind, JobEventKind::StopRequested { .. }));
        };
        let observers = Observers::start(
            Arc::new(SystemClock),
            [Arc::new(observer) as Arc<dyn JobObserver>],
        );
        let observers = Arc::new(observers.unwrap());
        let running = || {
            Running::new(
                lease,
                LEASE,
                Instant::now(),
                JobEvents::new(&observers, "job", &lease, JobTrace::default(), None),
            )
        };
        let (stopped, ended) = (running(), running());
        ended.announce_no_stop();
        for _ in 0..2 {
            stopped.request_stop();
            ended.request_stop();
        }
        observers.drain();
        assert_eq!(*lock(&stops), 1);
    }

    /// The keeper may try to renew a lease while the runner releases it, which does not count as a loss.
    // Spec: OP-35
    #[test]
    fn a_released_lease_is_not_lost() {
        let repository = open("sqlite://:memory:", RepositoryConfig::with_lease(LEASE)).unwrap();
        let releasing = running(claimed(&*repository), LEASE, Instant::now());
        let lease = releasing.release();
        releasing.renew(&*repository).unwrap();
        repository.release_lease(lease).unwrap();
        releasing.renew(&*repository).unwrap();
        let not_announced = running(releasing.lease, LEASE, Instant::now());
        let lost = not_announced.renew(&*repository);
        assert!(matches!(lost, Err(RepositoryError::Fenced { .. })), "{lost:?}");
    }
}
