//! Partitions whose workers have died: one of them may be the cause. A worker runs them one by one, so that a partition that kills its
//! worker does not take others to their crash limits.

use std::time::{Duration, Instant};

use crate::dispatch::PartitionTicket;
use crate::ids::StepExecutionId;

/// A partition that has run for this long is not suspected any more, so that other partitions whose workers have died need not wait longer:
/// after a machine has failed, most of them are innocent.
const SUSPECTED_FOR: Duration = Duration::from_secs(60);
/// The wait before a suspect is offered again, to this worker or another one.
pub(super) const LATER: Duration = Duration::from_secs(1);

/// The suspect that a worker runs.
#[derive(Default)]
pub(super) struct Suspects {
    running: Option<(StepExecutionId, Instant)>,
}

impl Suspects {
    /// Returns whether the worker may run the partition of a ticket now.
    pub(super) fn admit(&mut self, ticket: &PartitionTicket) -> bool {
        self.admit_at(ticket, Instant::now())
    }

    fn admit_at(&mut self, ticket: &PartitionTicket, now: Instant) -> bool {
        if ticket.attempt <= 1 {
            return true;
        }
        let is_free = self
            .running
            .is_none_or(|(_, since)| now.duration_since(since) >= SUSPECTED_FOR);
        if is_free {
            self.running = Some((ticket.step_execution, now));
        }
        is_free
    }

    /// Notes that a partition does not run any more.
    pub(super) fn ended(&mut self, id: StepExecutionId) {
        self.running.take_if(|(running, _)| *running == id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::JobExecutionId;

    fn ticket(id: i64, attempt: u32) -> PartitionTicket {
        PartitionTicket {
            job_execution: JobExecutionId(1),
            step_execution: StepExecutionId(id),
            attempt,
            fingerprint: String::new(),
            traceparent: None,
        }
    }

    // Spec: DISP-07
    #[test]
    fn one_suspect_runs_at_a_time() {
        let mut suspects = Suspects::default();
        let begin = Instant::now();
        assert!(suspects.admit_at(&ticket(1, 2), begin));
        assert!(!suspects.admit_at(&ticket(2, 2), begin));
        assert!(
            suspects.admit_at(&ticket(3, 1), begin),
            "no worker has died of it"
        );
        suspects.ended(StepExecutionId(3));
        assert!(!suspects.admit_at(&ticket(2, 3), begin));
        suspects.ended(StepExecutionId(1));
        assert!(suspects.admit_at(&ticket(2, 3), begin));
        let later = begin + SUSPECTED_FOR;
        assert!(!suspects.admit_at(&ticket(4, 2), later - Duration::from_secs(1)));
        assert!(suspects.admit_at(&ticket(4, 2), later), "2 has run for long");
        suspects.ended(StepExecutionId(2));
        assert!(!suspects.admit_at(&ticket(5, 2), later), "4 runs");
    }
}
