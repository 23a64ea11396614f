//! The launches that a worker runs: whole jobs, whose coordinator it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::dispatch::DeclinedFingerprints;
use crate::ids::{JobExecutionId, LaunchId};
use crate::operator::LaunchStart;
use crate::outage::Outage;
use crate::repository::{LaunchPhase, RepositoryError, TakenLaunch};
use crate::runtime::BatchRuntime;
use crate::status::BatchStatus;
use crate::thread;

/// The interval of the polls for launches.
const INTERVAL: Duration = Duration::from_secs(1);
/// The wait before a launch whose instance runs elsewhere is tried again.
const LATER: Duration = Duration::from_secs(5);
/// How long launches that this worker has declined are left to others.
const DECLINED_FOR: Duration = Duration::from_secs(10);

/// The launches of a worker.
pub(super) struct Launches {
    runtime: BatchRuntime,
    queue: String,
    /// How many run at the same time.
    most: u32,
    state: Arc<State>,
    looked: Option<Instant>,
    outage: Outage,
}

/// The running launches, and the declined fingerprints. Shared with the threads of the launches.
#[derive(Default)]
pub(super) struct State {
    running: Mutex<BTreeMap<LaunchId, RunningLaunch>>,
    declined: DeclinedFingerprints,
    /// Set when the worker drains: it does not wait for a repository that is away.
    is_draining: AtomicBool,
}

#[derive(Clone, Copy, Default)]
struct RunningLaunch {
    execution: Option<JobExecutionId>,
    is_handed_over: bool,
}

impl State {
    fn running(&self) -> MutexGuard<'_, BTreeMap<LaunchId, RunningLaunch>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the job executions that run.
    pub(super) fn executions(&self) -> Vec<JobExecutionId> {
        self.running()
            .values()
            .filter_map(|running_launch| running_launch.execution)
            .collect()
    }
}

impl Launches {
    pub(super) fn new(runtime: BatchRuntime, queue: String, most: u32, state: Arc<State>) -> Self {
        Self {
            runtime,
            queue,
            most,
            state,
            looked: None,
            outage: Outage::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state.running().is_empty()
    }

    /// Takes launches, once in a while.
    pub(super) fn take(&mut self) {
        let running = u32::try_from(self.state.running().len()).unwrap_or(u32::MAX);
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= INTERVAL);
        if running >= self.most || !is_due {
            return;
        }
        self.looked = Some(Instant::now());
        let repository = &self.runtime.shared().repository;
        let except = self.state.declined.current();
        let taken = repository
            .worker_store()
            .and_then(|store| store.take_launches(&self.queue, self.most - running, &except));
        let taken = self.outage.observe("take launches", taken);
        taken
            .unwrap_or_default()
            .into_iter()
            .for_each(|taken| self.begin(taken));
    }

    fn begin(&self, taken: TakenLaunch) {
        let id = taken.id;
        self.state.running().insert(id, RunningLaunch::default());
        let (runtime, state) = (self.runtime.clone(), Arc::clone(&self.state));
        let spawned = thread::start(format!("batch-launch-{id}"), move || {
            run(&runtime, &state, &taken);
            state.running().remove(&id);
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread for a launch");
            self.state.running().remove(&id);
            let left = LaunchResult::Queued(LATER, format!("cannot start a thread: {error}"), None);
            if let Err(error) = record(&self.runtime, id, &left) {
                tracing::warn!(%error, "cannot queue a launch again; it waits until the registration of this worker expires");
            }
        }
    }

    /// Hands the launches of a draining worker over: others resume them at their last checkpoints.
    pub(super) fn hand_over(&self) {
        self.state.is_draining.store(true, Ordering::Relaxed);
        let running = self.state.running().clone();
        let repository = &self.runtime.shared().repository;
        for (id, running_launch) in running {
            let Some(execution) = running_launch
                .execution
                .filter(|_| !running_launch.is_handed_over)
            else {
                continue;
            };
            // Before the stop: if this process dies in between, another worker resumes the job all the same.
            let queued = repository
                .worker_store()
                .and_then(|store| store.requeue_launch(id, Duration::ZERO, "its worker was drained", true));
            match queued {
                Ok(_) => {
                    if let Some(running_launch) = self.state.running().get_mut(&id) {
                        running_launch.is_handed_over = true;
                    }
                    self.runtime.job_operator().request_stop(execution);
                }
                Err(error) => {
                    tracing::warn!(launch = %id, %error, "cannot hand the launch over; trying again")
                }
            }
        }
    }
}

/// The result of a launch for its row.
enum LaunchResult {
    /// With the job execution that this worker has run.
    Queued(Duration, String, Option<JobExecutionId>),
    Ended(LaunchPhase, Option<JobExecutionId>, String),
    TakenOver,
}

/// Runs a launch to the end of its job, and records what becomes of it.
fn run(runtime: &BatchRuntime, state: &State, taken: &TakenLaunch) {
    let left = run_job(runtime, state, taken);
    // No other worker takes the launch while this one is alive.
    let mut is_reported = false;
    while let Err(error) = record(runtime, taken.id, &left) {
        if !is_reported {
            tracing::warn!(launch = %taken.id, %error, "cannot record what becomes of the launch; trying again");
        }
        is_reported = true;
        if state.is_draining.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(INTERVAL);
    }
}

fn record(runtime: &BatchRuntime, id: LaunchId, left: &LaunchResult) -> Result<(), RepositoryError> {
    let store = runtime.shared().repository.worker_store()?;
    match left {
        LaunchResult::Queued(wait, reason, None) => store.requeue_launch(id, *wait, reason, false).map(drop),
        LaunchResult::Queued(wait, reason, Some(execution)) => {
            match store.requeue_launch(id, *wait, reason, true)? {
                true => Ok(()),
                // It was requested to stop, and ends with that.
                false => store.end_launch(id, LaunchPhase::Ended, Some(*execution), reason),
            }
        }
        LaunchResult::Ended(phase, execution, reason) => store.end_launch(id, *phase, *execution, reason),
        LaunchResult::TakenOver => Ok(()),
    }
}

fn run_job(runtime: &BatchRuntime, state: &State, taken: &TakenLaunch) -> LaunchResult {
    let operator = runtime.job_operator();
    let id = taken.id;
    let execution = match operator.start_launch(taken) {
        LaunchStart::Running(execution) => execution,
        LaunchStart::Declined(reason) => {
            state.declined.add(&taken.fingerprint, DECLINED_FOR);
            let worker = runtime.shared().repository.owner_name();
            return LaunchResult::Queued(Duration::ZERO, format!("{worker}: {reason}"), None);
        }
        LaunchStart::Later(reason) => return LaunchResult::Queued(LATER, reason, None),
        LaunchStart::Complete(execution) => {
            return LaunchResult::Ended(LaunchPhase::Ended, Some(execution), String::new());
        }
        LaunchStart::Rejected(reason) => {
            tracing::warn!(launch = %id, reason, "cannot run a launch");
            return LaunchResult::Ended(LaunchPhase::Rejected, None, reason);
        }
        LaunchStart::TakenOver => return LaunchResult::TakenOver,
    };
    if let Some(running_launch) = state.running().get_mut(&id) {
        running_launch.execution = Some(execution);
    }
    let running = runtime.shared().running().get(&execution).cloned();
    let is_lost = || running.is_some_and(|running| running.distrusted().is_some());
    match operator.wait(execution) {
        // The database was away for longer than the lease. No scheduler repeats the launch.
        Ok(ended) if ended.status == BatchStatus::Failed && is_lost() => {
            tracing::warn!(launch = %id, %execution, job = taken.job, message = ended.exit_message, "queueing the launch again");
            LaunchResult::Queued(Duration::ZERO, ended.exit_message, None)
        }
        Ok(ended) => {
            if ended.status == BatchStatus::Failed {
                tracing::error!(launch = %id, %execution, job = taken.job, message = ended.exit_message, "the job has failed");
            }
            let message = match ended.status {
                BatchStatus::Failed => ended.exit_message,
                _ => String::new(),
            };
            LaunchResult::Ended(LaunchPhase::Ended, Some(execution), message)
        }
        Err(error) => LaunchResult::Queued(LATER, error.to_string(), Some(execution)),
    }
}
