//! Where notifications go.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use batch_xml::{Dialect, Pattern};

use super::{NotificationChannel, NotificationEvent};

/// Where notifications of some events of some jobs go.
#[derive(Clone)]
pub struct NotificationTarget {
    pub(super) name: String,
    /// `None` if other processes deliver.
    pub(super) channel: Option<Arc<dyn NotificationChannel>>,
    pub(super) events: BTreeSet<NotificationEvent>,
    pub(super) jobs: Vec<String>,
    pub(super) most_skips: Option<i64>,
}

impl fmt::Debug for NotificationTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotificationTarget")
            .field("name", &self.name)
            .field("events", &self.events)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}

impl NotificationTarget {
    /// Creates a target of no events yet. `name`, of at most 100 characters, identifies it in the repository: a process delivers what
    /// earlier ones have left for a target of the same name.
    pub fn new(name: impl Into<String>, channel: impl NotificationChannel + 'static) -> Self {
        Self {
            channel: Some(Arc::new(channel)),
            ..Self::queued(name)
        }
    }

    /// Creates a target whose notifications this process stores only, for processes that deliver them.
    pub fn queued(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            channel: None,
            events: BTreeSet::new(),
            jobs: Vec::new(),
            most_skips: None,
        }
    }

    /// Adds events.
    #[must_use]
    pub fn on(mut self, events: impl IntoIterator<Item = NotificationEvent>) -> Self {
        self.events.extend(events);
        self
    }

    /// Adds jobs, by their ids or by patterns: `*` is any number of characters and `?` is one. Default: all jobs.
    #[must_use]
    pub fn jobs<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.jobs.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds the event [`Skipped`](NotificationEvent::Skipped), once for each execution of a step that skips more than `items`. The
    /// partitions of a step that run in one process count together.
    #[must_use]
    pub fn skipped_more_than(mut self, items: u64) -> Self {
        self.most_skips = Some(i64::try_from(items).unwrap_or(i64::MAX));
        self.on([NotificationEvent::Skipped])
    }

    /// Returns the ids and patterns of its [jobs](Self::jobs) that match none of these ids, such as the
    /// [jobs](crate::operator::JobPathReport::jobs) of the job path.
    // Spec: NOTIFY-09
    pub fn jobs_without_match<'k>(&self, known: impl IntoIterator<Item = &'k str> + Clone) -> Vec<&str> {
        let matches_none = |name: &&String| {
            let pattern = pattern(name);
            !known.clone().into_iter().any(|job| pattern.matches(job))
        };
        self.jobs
            .iter()
            .filter(matches_none)
            .map(String::as_str)
            .collect()
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the pattern of jobs. In this dialect `*` matches no character too.
pub(super) fn pattern(jobs: &str) -> Pattern {
    Dialect::Jakarta.pattern(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: NOTIFY-01
    #[test]
    fn each_call_adds_events_and_jobs() {
        let target = NotificationTarget::queued("operations")
            .on([NotificationEvent::Failed])
            .jobs(["billing"])
            .on([NotificationEvent::Stopped])
            .jobs(["load-*"]);
        assert_eq!(
            target.events,
            BTreeSet::from([NotificationEvent::Failed, NotificationEvent::Stopped])
        );
        assert_eq!(target.jobs, ["billing", "load-*"]);
    }
}
