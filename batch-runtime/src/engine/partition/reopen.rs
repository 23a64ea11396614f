//! Submitted partitions that were lost: their worker has died, or could not record their end.

use std::time::{Duration, Instant};

use super::supervisor::Supervisor;
use crate::dispatch::PartitionTicket;
use crate::ids::StepExecutionId;
use crate::repository::{Ending, PartitionState};
use crate::status::BatchStatus;

/// The pause before a partition is looked at again whose worker may still be alive.
const PAUSE: Duration = Duration::from_secs(1);

impl Supervisor<'_, '_> {
    /// Notes that the worker of a partition may be dead.
    pub(super) fn is_lost(&mut self, id: StepExecutionId) {
        // Repeated reports must not postpone the check.
        self.lost.entry(id).or_insert_with(Instant::now);
    }

    /// Reopens the lost partitions whose worker is dead, and submits them again.
    pub(super) fn reopen_lost(&mut self) {
        let now = Instant::now();
        let due = self.lost.iter().filter(|(_, at)| **at <= now);
        for id in due.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.reopen(id);
        }
    }

    fn reopen(&mut self, id: StepExecutionId) {
        let shared = self.element.walk.shared;
        let (lease, inner) = (&shared.running.lease, self.element.bound.inner);
        let store = shared.repository.worker_store();
        let state = match store.and_then(|store| store.reopen_partition(lease, id, inner)) {
            Ok(PartitionState::Held) => {
                self.lost.insert(id, Instant::now() + PAUSE);
                return;
            }
            Ok(state) => state,
            Err(error) => {
                self.outcomes.broken.get_or_insert(error);
                PartitionState::Settled
            }
        };
        self.lost.remove(&id);
        let Some(ticket) = self.submitted.remove(&id) else {
            return;
        };
        match state {
            PartitionState::Reopened { claims, died } => {
                let attempts = claims.max(i64::from(ticket.attempt));
                self.deaths.entry(id).or_default().note(attempts, died);
                self.submit_again(ticket, attempts);
            }
            PartitionState::Settled | PartitionState::Held => {
                let problem = "its worker has died, and no other worker has claimed the partition".to_owned();
                self.fail(id, problem);
            }
        }
    }

    fn submit_again(&mut self, ticket: PartitionTicket, attempts: i64) {
        let dispatch = self.element.walk.shared.dispatch;
        let limit = dispatch.map_or(0, |dispatch| dispatch.crash_limit);
        let deaths = self.deaths.get(&ticket.step_execution);
        if let Some(problem) = deaths.and_then(|deaths| deaths.failure(attempts, limit.into())) {
            return self.fail(ticket.step_execution, problem);
        }
        // The row is STARTING again, and no worker will end it.
        if self.has_to_stop() {
            return self.end(
                ticket.step_execution,
                &Ending::of(BatchStatus::Stopped, String::new()),
            );
        }
        tracing::warn!(step_execution = %ticket.step_execution, "the worker of a partition is dead; submitting it again");
        self.submit(vec![PartitionTicket {
            attempt: ticket.attempt + 1,
            ..ticket
        }]);
    }
}
