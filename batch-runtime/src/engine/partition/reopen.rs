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
        let state = match shared.repository.reopen_partition(lease, id, inner) {
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
        let Some(ticket) = self.out.remove(&id) else {
            return;
        };
        match state {
            PartitionState::Reopened { claims, died } => {
                let deaths = self.deaths.entry(id).or_default();
                deaths.extend(died.map(|(worker, commits)| format!("{worker} after {commits} commits")));
                self.submit_again(ticket, claims);
            }
            PartitionState::Settled | PartitionState::Held => {
                let problem = "its worker has died, and no other worker has claimed the partition".to_owned();
                self.fail(id, problem);
            }
        }
    }

    fn submit_again(&mut self, ticket: PartitionTicket, claims: i64) {
        let dispatch = self.element.walk.shared.dispatch;
        let limit = dispatch.map_or(0, |dispatch| dispatch.crash_limit);
        let attempts = claims.max(i64::from(ticket.attempt));
        if limit > 0 && attempts >= i64::from(limit) {
            let died = self.deaths.remove(&ticket.step_execution).unwrap_or_default();
            return self.fail(ticket.step_execution, failure(attempts, &died));
        }
        if self.has_to_stop() {
            let ending = Ending::of(BatchStatus::Stopped, String::new());
            let id = ticket.step_execution;
            return self.note(id, self.element.end(id, &ending));
        }
        tracing::warn!(step_execution = %ticket.step_execution, "the worker of a partition is dead; submitting it again");
        self.submit(vec![PartitionTicket {
            attempt: ticket.attempt + 1,
            ..ticket
        }]);
    }
}

/// Returns the failure of a partition whose attempts have ended without a recorded end: the workers that died, and those that could not
/// record it.
fn failure(attempts: i64, died: &[String]) -> String {
    let list = died.join(", ");
    match died.len() {
        0 => format!(
            "{attempts} attempts to run the partition could not record their end; see the logs of the workers"
        ),
        dead if i64::try_from(dead) == Ok(attempts) => {
            format!("{attempts} workers died while they ran the partition: {list}")
        }
        _ => format!(
            "{attempts} attempts to run the partition ended without a record; see the logs of the workers, of which died: {list}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::failure;

    /// Spec: DISP-07
    #[test]
    fn only_dead_workers_are_said_to_have_died() {
        let died = ["a after 2 commits".to_owned(), "b after 2 commits".to_owned()];
        assert_eq!(
            failure(2, &died),
            "2 workers died while they ran the partition: a after 2 commits, b after 2 commits"
        );
        assert!(failure(3, &died).ends_with("of which died: a after 2 commits, b after 2 commits"));
        assert!(!failure(3, &[]).contains("died"));
    }
}
