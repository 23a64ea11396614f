//! The observation of leases whose holder cannot be checked otherwise.
//!
//! A wall clock may step, on this host or on the database server, so a time of expiry in the past does not prove that its
//! holder is dead. The holder renews its lease every third of the lease time; an observer that has seen no renewal for the whole
//! lease time, measured by its own monotonic clock, considers it dead. A holder may have a longer lease time than the observer:
//! it is considered dead only after the rest of its lease, too.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ids::{JobInstanceId, StepExecutionId};

/// A lease that can be observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LeaseKey {
    /// The lease of an instance's runner.
    Instance(JobInstanceId),
    /// The lease of a partition's worker.
    Partition(StepExecutionId),
    /// The registration of the worker with this name.
    Worker(String),
}

/// The state of a lease holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HolderState {
    /// It is alive, as far as is known.
    Alive,
    /// Its lease has expired by the clock of the database, but it has not been observed for long enough to be certain.
    Silent {
        /// The time until it counts as dead.
        remaining: Duration,
    },
    /// It is dead, or the lease was released.
    Dead,
}

/// A lease as it was first seen with this holder and expiry.
#[derive(Debug)]
struct Sighting {
    owner: String,
    expires_at: i64,
    since: Instant,
    /// The holder counts as dead after this time without a renewal.
    patience: Duration,
    /// Whether another state of the lease was seen before, so that its holder has been alive since.
    is_renewal: bool,
}

/// The leases that this runtime observes.
#[derive(Debug)]
pub(crate) struct Observations {
    /// No holder counts as dead before this time without a renewal.
    patience: Duration,
    seen: Mutex<HashMap<LeaseKey, Sighting>>,
}

impl Observations {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            patience,
            seen: Mutex::default(),
        }
    }

    /// Records a look at a lease whose holder cannot be checked otherwise, at the time `now` of the clock of the database, in
    /// milliseconds as `expires_at`. Returns the state of its holder.
    pub(crate) fn look(&self, key: LeaseKey, owner: &str, expires_at: i64, now: i64) -> HolderState {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        let rest = u64::try_from(expires_at.saturating_sub(now)).unwrap_or(0);
        let sighting = |is_renewal| Sighting {
            owner: owner.to_owned(),
            expires_at,
            since,
            patience: self.patience.max(Duration::from_millis(rest)),
            is_renewal,
        };
        let seen = seen.entry(key).or_insert_with(|| sighting(false));
        if seen.owner != owner || seen.expires_at != expires_at {
            *seen = sighting(true);
        }
        // By the monotonic clock alone: the clock of the database may have been set since the first look.
        let remaining = seen.patience.saturating_sub(since - seen.since);
        match expires_at <= now && !seen.is_renewal {
            _ if remaining.is_zero() => HolderState::Dead,
            true => HolderState::Silent { remaining },
            false => HolderState::Alive,
        }
    }

    /// Forgets a lease, once it is released or taken over.
    pub(crate) fn forget(&self, key: LeaseKey) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: OP-35
    #[test]
    fn a_holder_is_dead_when_it_was_not_seen_alive_for_a_lease_time() {
        let key = || LeaseKey::Instance(JobInstanceId(1));
        let patient = Observations::new(Duration::from_secs(3_600));
        assert_eq!(patient.look(key(), "one", 5, 4), HolderState::Alive);
        let silent = patient.look(key(), "one", 5, 9);
        assert!(
            matches!(silent, HolderState::Silent { remaining } if !remaining.is_zero()),
            "{silent:?}"
        );
        assert_eq!(
            patient.look(key(), "one", 6, 9),
            HolderState::Alive,
            "it was renewed"
        );
        assert_eq!(patient.look(key(), "one", 6, 9), HolderState::Alive);
        let impatient = Observations::new(Duration::ZERO);
        assert_eq!(impatient.look(key(), "one", 5, 9), HolderState::Dead);
        let longer = impatient.look(key(), "one", 3_600_000, 9);
        assert_eq!(
            longer,
            HolderState::Alive,
            "its lease is longer than the observer's"
        );
    }
}
