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

/// The attempts to run a partition that have ended without a recorded end.
#[derive(Default)]
pub(super) struct Deaths {
    /// The workers that died since the last progress, for the failure of the partition.
    workers: Vec<String>,
    /// The commits of the partition at the last death.
    commits: i64,
    /// The number of attempts that made progress, or came before one that did.
    forgiven: i64,
}

impl Deaths {
    /// Notes the end of an attempt, with the worker and the commits of the partition if the worker has died. Progress since the death
    /// before starts the count again.
    fn note(&mut self, attempts: i64, died: Option<(String, i64)>) {
        let Some((worker, commits)) = died else { return };
        if commits > self.commits {
            self.commits = commits;
            self.workers.clear();
            self.forgiven = attempts - 1;
        }
        self.workers.push(format!("{worker} after {commits} commits"));
    }

    /// Returns the failure of the partition if it had as many attempts without progress as `limit`, unless that is 0.
    fn failure(&self, attempts: i64, limit: i64) -> Option<String> {
        let attempts = attempts - self.forgiven;
        if limit == 0 || attempts < limit {
            return None;
        }
        let list = self.workers.join(", ");
        let why = match self.workers.len() {
            0 => format!(
                "{attempts} attempts to run the partition could not record their end; see the logs of the workers"
            ),
            dead if i64::try_from(dead) == Ok(attempts) => {
                format!("{attempts} workers died while they ran the partition: {list}")
            }
            _ => format!(
                "{attempts} attempts to run the partition ended without a record; see the logs of the workers, of which died: {list}"
            ),
        };
        Some(format!("{why} (`crash-limit` is {limit})"))
    }
}

#[cfg(test)]
mod tests {
    use super::Deaths;

    fn died(commits: i64) -> Option<(String, i64)> {
        Some(("a".to_owned(), commits))
    }

    // Spec: DISP-07
    #[test]
    fn a_partition_fails_after_deaths_without_progress() {
        let mut deaths = Deaths::default();
        for attempt in 1..=9 {
            deaths.note(attempt, died(attempt * 10));
            assert_eq!(deaths.failure(attempt, 3), None, "each made progress");
        }
        deaths.note(10, died(90));
        assert_eq!(deaths.failure(10, 3), None);
        deaths.note(11, died(90));
        assert_eq!(
            deaths.failure(11, 3).unwrap(),
            "3 workers died while they ran the partition: a after 90 commits, a after 90 commits, a after 90 commits \
             (`crash-limit` is 3)"
        );
        assert_eq!(deaths.failure(11, 0), None, "no limit");
    }

    // Spec: DISP-07
    #[test]
    fn only_dead_workers_are_said_to_have_died() {
        let mut deaths = Deaths::default();
        (1..=2).for_each(|attempt| deaths.note(attempt, None));
        assert!(!deaths.failure(2, 2).unwrap().contains("died"));
        deaths.note(3, died(0));
        assert!(
            deaths
                .failure(3, 2)
                .unwrap()
                .contains("of which died: a after 0 commits")
        );
    }
}
