//! Random numbers, from the keys that the standard library takes from the system for its hash tables.

use std::hash::{BuildHasher, RandomState};

/// Returns a random number.
pub(crate) fn random() -> u64 {
    // The keys belong to the thread, and a forked process has the same keys.
    RandomState::new().hash_one(std::process::id())
}

/// Returns a random id of 32 hexadecimal digits.
pub(crate) fn random_id() -> String {
    format!("{:016x}{:016x}", random(), random())
}
