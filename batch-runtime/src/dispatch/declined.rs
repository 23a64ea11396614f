//! The fingerprints of the jobs that a worker leaves to others for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The fingerprints that a worker has declined, and until when it leaves them to others. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct DeclinedFingerprints(Arc<Mutex<BTreeMap<String, Instant>>>);

impl DeclinedFingerprints {
    /// Adds a fingerprint for a time.
    pub fn add(&self, fingerprint: &str, time: Duration) {
        let mut declined = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        declined.insert(fingerprint.to_owned(), Instant::now() + time);
    }

    /// Returns whether a fingerprint was added whose time has not passed.
    pub fn contains(&self, fingerprint: &str) -> bool {
        let declined = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        declined
            .get(fingerprint)
            .is_some_and(|until| *until > Instant::now())
    }

    /// Returns those whose time has not passed.
    pub fn current(&self) -> Vec<String> {
        let mut declined = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        declined.retain(|_, until| *until > now);
        declined.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_declined_for_its_time() {
        let declined = DeclinedFingerprints::default();
        declined.add("over", Duration::ZERO);
        declined.add("current", Duration::from_secs(3_600));
        assert!(!declined.contains("over"));
        assert!(declined.contains("current"));
        assert!(!declined.contains("never added"));
        assert_eq!(declined.current(), ["current"]);
    }
}
