//! The health of a worker.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{State, Worker};

/// The health of a [`Worker`]; see [`Worker::health`].
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

impl Worker {
    /// Returns the health of the worker. It is stuck if, for a lease time, its thread has done nothing, or a partition that was requested to
    /// stop still runs. A batchlet may take as long as it needs, also while the worker drains.
    ///
    /// Spec: DISP-18
    pub fn health(&self) -> WorkerHealth {
        match (self.has_ended(), self.state.is_draining()) {
            (true, true) => WorkerHealth::Draining,
            (true, false) => stuck("its thread has panicked"),
            (false, _) => self.state.health(self.lease_time),
        }
    }
}

impl State {
    /// Notes that the worker's thread is alive.
    pub(super) fn beat(&self) {
        *self.last_beat() = Instant::now();
    }

    fn last_beat(&self) -> MutexGuard<'_, Instant> {
        self.beat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self, limit: Duration) -> WorkerHealth {
        let silent = self.last_beat().elapsed();
        if silent > limit {
            return stuck(format!("its thread has done nothing for {} s", silent.as_secs()));
        }
        let slots = self.slots();
        let stopping = slots
            .iter()
            .filter_map(|(id, slot)| Some((id, slot.stop.as_ref()?.stopping_for()?)));
        if let Some((id, time)) = stopping.max_by_key(|(_, time)| *time)
            && time > limit
        {
            return stuck(format!(
                "step execution {id} was requested to stop {} s ago, and still runs",
                time.as_secs()
            ));
        }
        match self.is_draining() {
            true => WorkerHealth::Draining,
            false => WorkerHealth::Ready,
        }
    }
}

fn stuck(reason: impl Into<String>) -> WorkerHealth {
    WorkerHealth::Stuck {
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: DISP-18
    #[test]
    fn a_silent_thread_is_stuck() {
        let state = State::new();
        let limit = Duration::from_secs(30);
        assert_eq!(state.health(limit), WorkerHealth::Ready);
        *state.last_beat() = Instant::now().checked_sub(2 * limit).unwrap();
        assert_eq!(state.health(limit), stuck("its thread has done nothing for 60 s"));
        state.beat();
        assert_eq!(state.health(limit), WorkerHealth::Ready);
    }
}
