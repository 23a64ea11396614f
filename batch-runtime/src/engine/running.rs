//! A running execution as its runner, the operator and the lease keeper share it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use super::call::call;
use crate::artifact::Batchlet;
use crate::context::{JobContext, StepContext};
use crate::execution::StepCounters;
use crate::repository::{JobRepository, Lease, RepositoryError};

/// What a watcher sees of a running execution; as of the last commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The steps that this execution has begun; the last one runs, or ran last.
    pub steps: Vec<String>,
    /// The counters of the last one.
    pub counters: StepCounters,
}

/// The shared state of one execution.
pub(crate) struct Running {
    pub(crate) lease: Lease,
    lease_time: Duration,
    stop: AtomicBool,
    /// The batchlet that a stop request has to cancel.
    batchlet: Mutex<Option<Arc<dyn Batchlet>>>,
    /// Whether `#[cancel]` has been called.
    cancelled: AtomicBool,
    contexts: Mutex<Contexts>,
    renewed: Mutex<Instant>,
    progress: Mutex<Progress>,
    thread: OnceLock<ThreadId>,
    ended: Mutex<Option<Result<(), String>>>,
    end: Condvar,
}

/// The contexts in which artifacts see that a stop was requested.
#[derive(Default)]
struct Contexts {
    job: Option<JobContext>,
    step: Option<StepContext>,
}

impl Contexts {
    fn show_stop(&self) {
        if let Some(job) = &self.job {
            job.show_stop();
        }
        if let Some(step) = &self.step {
            step.show_stop();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing of the user's runs under these locks but `#[cancel]`, whose panics are caught.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    /// `claimed` is when the claim was asked for: the lease lasts at least from then.
    pub(crate) fn new(lease: Lease, lease_time: Duration, claimed: Instant) -> Self {
        Self {
            lease,
            lease_time,
            stop: AtomicBool::new(false),
            batchlet: Mutex::default(),
            cancelled: AtomicBool::new(false),
            contexts: Mutex::default(),
            renewed: Mutex::new(claimed),
            progress: Mutex::default(),
            thread: OnceLock::new(),
            ended: Mutex::new(None),
            end: Condvar::new(),
        }
    }

    /// The flag that chunks look at before each item.
    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks the runner to stop, and cancels the batchlet that is running, on this thread. Spec: BLET-06, D-87
    pub(crate) fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        lock(&self.contexts).show_stop();
        // Once is enough, and `#[cancel]` itself may ask for a stop.
        if self.cancelled.load(Ordering::Relaxed) {
            return;
        }
        // The lock is held while `#[cancel]` runs, so that it never runs after `#[process]` has returned.
        let running = lock(&self.batchlet);
        let Some(batchlet) = running
            .as_ref()
            .filter(|_| !self.cancelled.swap(true, Ordering::Relaxed))
        else {
            return;
        };
        if let Err(error) = call(|| batchlet.cancel()) {
            tracing::error!(error = error.chain(), "the batchlet's #[cancel] failed");
        }
    }

    /// From now on `job` shows a stop request as STOPPING. Spec: CTX-16, STATUS-10
    pub(crate) fn show_stop_in_job(&self, job: &JobContext) {
        let mut contexts = lock(&self.contexts);
        contexts.job = Some(job.clone());
        self.show_earlier_stop(&contexts);
    }

    /// From now on `step` shows a stop request as STOPPING. Spec: CTX-26, STATUS-10
    pub(crate) fn show_stop_in_step(&self, step: &StepContext) {
        let mut contexts = lock(&self.contexts);
        contexts.step = Some(step.clone());
        self.show_earlier_stop(&contexts);
    }

    /// The step has ended: its context, and what the user keeps in it, is let go.
    pub(crate) fn forget_step(&self) {
        lock(&self.contexts).step = None;
    }

    fn show_earlier_stop(&self, contexts: &Contexts) {
        // Under the lock: either this sees the request, or the request sees the context.
        if self.stop_requested() {
            contexts.show_stop();
        }
    }

    /// Says that `#[process]` of `batchlet` is about to be called. `false` when a stop was requested: then it is not.
    pub(crate) fn enter_batchlet(&self, batchlet: &Arc<dyn Batchlet>) -> bool {
        let mut slot = lock(&self.batchlet);
        // Under the lock: either this sees the request, or the request sees the batchlet.
        if self.stop_requested() {
            return false;
        }
        *slot = Some(Arc::clone(batchlet));
        true
    }

    /// Says that `#[process]` has returned. Spec: BLET-08
    pub(crate) fn leave_batchlet(&self) {
        *lock(&self.batchlet) = None;
    }

    /// Whether it is time to renew the lease: a third of it has passed.
    pub(crate) fn renewal_due(&self) -> bool {
        lock(&self.renewed).elapsed() > self.lease_time / 3
    }

    /// Says that the lease was renewed by a request made at `asked`.
    pub(crate) fn renewed(&self, asked: Instant) {
        let mut renewed = lock(&self.renewed);
        *renewed = asked.max(*renewed);
    }

    /// Whether the lease may have expired: it could not be renewed for so long.
    pub(crate) fn is_untrusted(&self) -> bool {
        lock(&self.renewed).elapsed() + self.margin() >= self.lease_time
    }

    /// What is kept of the lease's time for the way to the database.
    fn margin(&self) -> Duration {
        self.lease_time / 6
    }

    /// Whether the runner has ended; one whose end could not be recorded is still known.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.ended).is_some()
    }

    /// Makes sure, before new work begins, that the lease is still held. Costs a look at the clock, and a statement only
    /// when the keeper has not come to renew it for most of its time.
    pub(crate) fn ensure_owned(&self, repository: &dyn JobRepository) -> Result<(), RepositoryError> {
        if self.is_untrusted() {
            self.renew(repository)
        } else {
            Ok(())
        }
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// `Fenced` when it is lost.
    pub(crate) fn renew(&self, repository: &dyn JobRepository) -> Result<(), RepositoryError> {
        let asked = Instant::now();
        if !repository.renew(&self.lease)? {
            return Err(RepositoryError::Fenced {
                action: "renew the lease",
            });
        }
        self.renewed(asked);
        Ok(())
    }

    pub(crate) fn publish_step(&self, step: &str) {
        let mut progress = lock(&self.progress);
        progress.steps.push(step.to_owned());
        progress.counters = StepCounters::default();
    }

    pub(crate) fn publish_counters(&self, counters: StepCounters) {
        lock(&self.progress).counters = counters;
    }

    pub(crate) fn progress(&self) -> Progress {
        lock(&self.progress).clone()
    }

    /// Called by the runner's thread first of all.
    pub(crate) fn runs_here(&self) {
        let _ = self.thread.set(std::thread::current().id());
    }

    /// Whether the caller is the runner's own thread, which must not wait for itself.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&std::thread::current().id())
    }

    /// Called when nothing more will happen; an error says why the end could not be recorded.
    pub(crate) fn set_ended(&self, result: Result<(), String>) {
        *lock(&self.ended) = Some(result);
        self.end.notify_all();
    }

    /// Waits until the runner has ended, at most `limit`; `None` when it has not by then.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::parameters::JobParameters;
    use crate::repository::{ClaimRequest, DieselRepository, Target};

    const LEASE: Duration = Duration::from_secs(3_600);

    fn claimed(repository: &DieselRepository) -> Lease {
        let request = ClaimRequest {
            job_name: "job",
            target: Target::New,
            parameters: JobParameters::new(),
            restartable: true,
            location: "job.xml",
        };
        repository.claim(&request).unwrap().lease
    }

    /// A lease that nobody has renewed for most of its time is renewed before new work begins, and work does not begin when
    /// it is lost. Earlier nobody asks the repository.
    ///
    /// Spec: OP-35, REPO-15
    #[test]
    fn a_lease_is_made_sure_of_before_new_work_begins() {
        let repository = DieselRepository::open("sqlite://:memory:", Arc::new(SystemClock), LEASE).unwrap();
        let lease = claimed(&repository);
        let lost = Lease {
            fence: lease.fence + 1,
            ..lease
        };
        let now = Instant::now();
        let fresh = Running::new(lost, LEASE, now);
        assert!(!fresh.is_untrusted() && fresh.ensure_owned(&repository).is_ok());
        let stale = Running::new(lost, Duration::ZERO, now);
        assert!(stale.is_untrusted());
        let refused = stale.ensure_owned(&repository);
        assert!(
            matches!(refused, Err(RepositoryError::Fenced { .. })),
            "{refused:?}"
        );

        let held = Running::new(lease, Duration::ZERO, now);
        held.ensure_owned(&repository).unwrap();
        assert!(*lock(&held.renewed) > now, "it was renewed");
    }
}
