//! Which notifications an event needs: what the stores must know.

use std::collections::BTreeSet;
use std::sync::Arc;

use batch_xml::Pattern;

use super::target::pattern;
use super::{NotificationEvent, NotificationTarget};
use crate::status::BatchStatus;

/// The targets, without their channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotificationRules(Arc<[Rule]>);

#[derive(Debug)]
struct Rule {
    target: String,
    events: BTreeSet<NotificationEvent>,
    /// Empty: all jobs.
    jobs: Vec<Pattern>,
    most_skips: Option<i64>,
}

impl NotificationRules {
    pub(crate) fn new(targets: &[NotificationTarget]) -> Self {
        let rule = |target: &NotificationTarget| Rule {
            target: target.name.clone(),
            events: target.events.clone(),
            jobs: target.jobs.iter().map(|jobs| pattern(jobs)).collect(),
            most_skips: target.most_skips,
        };
        Self(targets.iter().map(rule).collect())
    }

    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the targets of an event.
    pub(crate) fn targets(&self, event: NotificationEvent, job: &str) -> impl Iterator<Item = &str> {
        let matching = self.matching(job);
        let interested = matching.filter(move |rule| rule.events.contains(&event));
        interested.map(|rule| rule.target.as_str())
    }

    pub(super) fn count_skips(&self) -> bool {
        self.0.iter().any(|rule| rule.most_skips.is_some())
    }

    /// Returns the targets that a step concerns when its skips grow from `before` to `now`.
    pub(super) fn targets_of_skips(&self, job: &str, before: i64, now: i64) -> impl Iterator<Item = &str> {
        let passes = move |rule: &&Rule| rule.most_skips.is_some_and(|most| before <= most && most < now);
        self.matching(job).filter(passes).map(|rule| rule.target.as_str())
    }

    fn matching(&self, job: &str) -> impl Iterator<Item = &Rule> {
        let names =
            move |rule: &&Rule| rule.jobs.is_empty() || rule.jobs.iter().any(|name| name.matches(job));
        self.0.iter().filter(names)
    }
}

/// Returns the event of an end with this status.
pub(crate) fn event_of_end(status: BatchStatus) -> Option<NotificationEvent> {
    match status {
        BatchStatus::Completed => Some(NotificationEvent::Completed),
        BatchStatus::Stopped => Some(NotificationEvent::Stopped),
        BatchStatus::Failed => Some(NotificationEvent::Failed),
        _ => None,
    }
}
