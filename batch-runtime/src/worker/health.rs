//! The health of a worker.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ids::StepExecutionId;

/// The health of a [`Worker`](super::Worker); see [`Worker::health`](super::Worker::health).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerHealth {
    /// It takes partitions and launches.
    Ready,
    /// It takes no more, and ends when what it runs has ended.
    Draining,
    /// It hangs, and only a new process helps: other workers resume its partitions when their leases have expired.
    Stuck {
        /// What hangs, for people.
        reason: String,
    },
}

impl WorkerHealth {
    pub(super) fn stuck(reason: impl Into<String>) -> Self {
        Self::Stuck {
            reason: reason.into(),
        }
    }

    /// Returns that it is stuck if, for longer than `limit`, its thread has done nothing or a partition has not obeyed a request to stop.
    pub(super) fn of(
        silent: Duration,
        stopping: Option<(StepExecutionId, Duration)>,
        is_draining: bool,
        limit: Duration,
    ) -> Self {
        if silent > limit {
            return Self::stuck(format!("its thread has done nothing for {} s", silent.as_secs()));
        }
        if let Some((id, time)) = stopping.filter(|(_, time)| *time > limit) {
            let seconds = time.as_secs();
            return Self::stuck(format!(
                "step execution {id} was requested to stop {seconds} s ago, and still runs"
            ));
        }
        match is_draining {
            true => Self::Draining,
            false => Self::Ready,
        }
    }
}

/// When a thread last did something.
pub(super) struct Heartbeat(Mutex<Instant>);

impl Heartbeat {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    pub(super) fn beat(&self) {
        *self.last() = Instant::now();
    }

    /// Returns for how long it has done nothing.
    pub(super) fn silent(&self) -> Duration {
        self.last().elapsed()
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: DISP-18
    #[test]
    fn a_silent_thread_is_stuck() {
        let limit = Duration::from_secs(30);
        let health = |silent: Duration| WorkerHealth::of(silent, None, false, limit);
        let heartbeat = Heartbeat::new();
        assert_eq!(health(heartbeat.silent()), WorkerHealth::Ready);
        *heartbeat.last() = Instant::now().checked_sub(2 * limit).unwrap();
        assert_eq!(
            health(heartbeat.silent()),
            WorkerHealth::stuck("its thread has done nothing for 60 s")
        );
        heartbeat.beat();
        assert_eq!(health(heartbeat.silent()), WorkerHealth::Ready);
    }
}
