//! The log of starts and ends. The threads of a job are in its span, see `engine/spans.rs`.

use super::{JobEvent, JobEventKind, JobObserver, StepBody};

pub(super) struct LogObserver;

impl JobObserver for LogObserver {
    fn on_event(&self, event: &JobEvent) {
        // A partition of a flow is no step.
        if event
            .step
            .as_ref()
            .is_some_and(|step| step.body == StepBody::Flow)
        {
            return;
        }
        match &event.kind {
            JobEventKind::JobStarted => tracing::info!("job started"),
            JobEventKind::WaitsForTurn { before } => {
                tracing::info!(%before, "waits for its turn: one execution of the job runs at a time");
            }
            JobEventKind::StepStarted { .. } => tracing::info!("step started"),
            JobEventKind::JobEnded(end) => {
                let (status, exit_status) = (end.status.as_str(), end.exit_status.as_str());
                tracing::info!(status, exit_status, "job ended");
            }
            JobEventKind::StepEnded(end) => tracing::info!(
                status = end.status.as_str(),
                exit_status = end.exit_status,
                read = end.counters.reads,
                filtered = end.counters.filters,
                written = end.counters.writes,
                commits = end.counters.commits,
                rollbacks = end.counters.rollbacks,
                "step ended"
            ),
            _ => {}
        }
    }
}
