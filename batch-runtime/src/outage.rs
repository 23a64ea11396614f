//! Log lines about an error that is tried again: the first one, one at intervals while it lasts, and one when it is over.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The interval of the lines while the error lasts.
const INTERVAL: Duration = Duration::from_secs(30);

/// An action that may fail for a while.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    since: Option<Instant>,
    logged: Option<Instant>,
}

impl Outage {
    /// Logs that `action` has failed, unless it did so a short time ago.
    pub(crate) fn failed(&mut self, action: &str, error: &dyn Display) {
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.logged.is_some_and(|logged| logged.elapsed() < INTERVAL) {
            return;
        }
        match self.logged.replace(Instant::now()) {
            None => tracing::warn!(%error, "cannot {action}; trying again"),
            Some(_) => {
                let seconds = since.elapsed().as_secs();
                tracing::warn!(%error, "cannot {action} for {seconds} s; trying again");
            }
        }
    }

    /// Logs that `action` is possible again, if it was not.
    pub(crate) fn ended(&mut self, action: &str) {
        if let Some(since) = self.since.take() {
            self.logged = None;
            tracing::warn!("can {action} again, after {:.1} s", since.elapsed().as_secs_f64());
        }
    }

    /// Logs the result of `action` as [`failed`](Self::failed) and [`ended`](Self::ended) do, and returns its value.
    pub(crate) fn observe<T, E: Display>(&mut self, action: &str, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                self.ended(action);
                Some(value)
            }
            Err(error) => {
                self.failed(action, &error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_has_few_lines() {
        let mut outage = Outage::default();
        outage.ended("poll");
        assert!(outage.since.is_none());
        outage.failed("poll", &"away");
        let first = outage.logged;
        outage.failed("poll", &"away");
        assert_eq!(outage.logged, first, "logged once");
        assert_eq!(outage.observe::<_, String>("poll", Ok(1)), Some(1));
        assert!(outage.since.is_none() && outage.logged.is_none());
    }
}
