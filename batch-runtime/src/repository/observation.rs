//! The observation of leases whose holder cannot be checked otherwise.
//!
//! A wall clock may step, on this host or on the database server, so a time of expiry in the past does not prove that its
//! holder is dead. The holder renews its lease every third of the lease time; an observer that has seen no renewal for the whole
//! lease time, measured by its own monotonic clock, takes it for dead.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ids::{JobInstanceId, StepExecutionId};

/// A lease that can be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LeaseKey {
    /// That of the runner of an instance.
    Instance(JobInstanceId),
    /// That of the worker of a partition.
    Partition(StepExecutionId),
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
}

/// The leases that this runtime observes.
#[derive(Debug, Default)]
pub(crate) struct Observations(Mutex<HashMap<LeaseKey, Sighting>>);

impl Observations {
    /// Records a look at a lease. Returns how long it has been seen without a renewal.
    pub(crate) fn look(&self, key: LeaseKey, owner: &str, expires_at: i64) -> Duration {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match seen.get(&key) {
            Some(sighting) if sighting.owner == owner && sighting.expires_at == expires_at => {
                now - sighting.since
            }
            _ => {
                let owner = owner.to_owned();
                seen.insert(
                    key,
                    Sighting {
                        owner,
                        expires_at,
                        since: now,
                    },
                );
                Duration::ZERO
            }
        }
    }

    /// Forgets a lease, once it is released or taken over.
    pub(crate) fn forget(&self, key: LeaseKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}
