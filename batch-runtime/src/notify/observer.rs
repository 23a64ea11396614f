//! The observer that queues the notifications of events which are not ends, and wakes the threads that deliver them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{NotificationDetail, NotificationEvent, NotificationRules, Senders};
use crate::execution::StepCounters;
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::observer::{JobEvent, JobEventKind, JobObserver, ObservedJob, ObservedStep};
use crate::repository::{JobRepository, NewNotification};

/// Observes the jobs of a runtime.
pub(crate) struct NotificationObserver {
    rules: NotificationRules,
    repository: Arc<dyn JobRepository>,
    senders: Arc<Senders>,
    skips: Mutex<HashMap<JobExecutionId, Skips>>,
}

/// The skips of a job execution, by step name and by step execution; a partitioned step has one step execution for each partition.
type Skips = HashMap<String, HashMap<StepExecutionId, i64>>;

impl JobObserver for NotificationObserver {
    fn on_event(&self, event: &JobEvent) {
        let job = &event.job;
        match (&event.kind, &event.step) {
            (JobEventKind::ChunkCommitted { counters, .. }, Some(step)) => {
                return self.count_skips(job, step, counters);
            }
            (JobEventKind::StepEnded(end), Some(step)) => return self.count_skips(job, step, &end.counters),
            (JobEventKind::HeartbeatMissed { step, cause }, _) => {
                let detail = NotificationDetail {
                    step: Some(step.clone()),
                    message: Some(cause.clone()),
                    ..NotificationDetail::default()
                };
                let targets = self.rules.targets(NotificationEvent::HeartbeatMissed, &job.job);
                self.queue(job, NotificationEvent::HeartbeatMissed, targets, &detail);
            }
            (JobEventKind::JobEnded(_) | JobEventKind::JobLost { .. }, _) => {
                self.skips().remove(&job.execution);
            }
            // The end of an execution that had the turn.
            (JobEventKind::TookOver { .. }, _) => {}
            _ => return,
        }
        self.senders.wake();
    }
}

impl NotificationObserver {
    /// Returns the observer, if there are targets.
    pub(crate) fn of(
        rules: NotificationRules,
        repository: &Arc<dyn JobRepository>,
        senders: &Arc<Senders>,
    ) -> Option<Arc<dyn JobObserver>> {
        if rules.are_none() {
            return None;
        }
        Some(Arc::new(Self {
            rules,
            repository: Arc::clone(repository),
            senders: Arc::clone(senders),
            skips: Mutex::default(),
        }))
    }

    fn count_skips(&self, job: &ObservedJob, step: &ObservedStep, counters: &StepCounters) {
        // A worker does not observe the ends of its jobs: it keeps only what is needed.
        if !self.rules.count_skips() || counters.skips() == 0 {
            return;
        }
        let mut skips = self.skips();
        let of_step = skips.entry(job.execution).or_default();
        let of_step = of_step.entry(step.step.clone()).or_default();
        let before: i64 = of_step.values().sum();
        of_step.insert(step.execution, counters.skips());
        let now: i64 = of_step.values().sum();
        drop(skips);
        if now > before {
            let detail = NotificationDetail {
                step: Some(step.step.clone()),
                skipped: Some(now),
                ..NotificationDetail::default()
            };
            let targets = self.rules.targets_of_skips(&job.job, before, now);
            self.queue(job, NotificationEvent::Skipped, targets, &detail);
        }
    }

    fn queue<'t>(
        &self,
        job: &ObservedJob,
        event: NotificationEvent,
        targets: impl Iterator<Item = &'t str>,
        detail: &NotificationDetail,
    ) {
        let new =
            |target: &str| NewNotification::now(target, event, &job.job, job.instance, job.execution, detail);
        let new: Vec<NewNotification> = targets.map(new).collect();
        if new.is_empty() {
            return;
        }
        match self.repository.queue_notifications(&new) {
            Ok(()) => self.senders.wake(),
            Err(error) => {
                tracing::error!(execution = %job.execution, %event, %error, "a notification is lost: it could not be stored");
            }
        }
    }

    fn skips(&self) -> MutexGuard<'_, HashMap<JobExecutionId, Skips>> {
        self.skips.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
