//! Finds the submitted partitions that need their coordinator: whose worker has died, whose ticket or report was lost, or which no worker
//! can run. The transport's events are hints; the repository decides.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::dispatch::{DeclinedPartition, PartitionTicket};
use crate::ids::StepExecutionId;
use crate::outage::Outage;
use crate::repository::{JobRepository, PartitionFinding, WorkerRow};

/// The interval of the polls of the repository.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest wait before a ticket is submitted again.
const RESUBMIT_AT_MOST_AFTER: Duration = Duration::from_secs(600);

pub(super) struct PartitionMonitor {
    next: Instant,
    /// The wait before the ticket of a partition that no worker has claimed is submitted again, because it may be lost. Doubles each time.
    resubmit_after: Duration,
    /// After this time without any claim, a warning with the reason is logged.
    warn_after: Duration,
    /// When the ticket of an unclaimed partition is submitted again, and the wait after that.
    resubmit: BTreeMap<StepExecutionId, (Instant, Duration)>,
    /// The last claim or end, or the first submission.
    last_progress: Instant,
    /// The last reason of each worker that has declined a partition.
    declined: BTreeMap<String, DeclinedPartition>,
    outage: Outage,
}

impl PartitionMonitor {
    /// Creates a monitor. The waits before a ticket is submitted again and before a warning are fractions of `lease_time`.
    pub(super) fn new(lease_time: Duration) -> Self {
        let now = Instant::now();
        Self {
            next: now + INTERVAL,
            resubmit_after: (lease_time / 2).min(RESUBMIT_AT_MOST_AFTER),
            warn_after: (lease_time * 2 / 3).min(RESUBMIT_AT_MOST_AFTER),
            resubmit: BTreeMap::new(),
            last_progress: now,
            declined: BTreeMap::new(),
            outage: Outage::default(),
        }
    }

    /// Returns the submitted partitions that no living worker runs, once in a while; else nothing.
    pub(super) fn poll(
        &mut self,
        repository: &dyn JobRepository,
        submitted: &BTreeMap<StepExecutionId, PartitionTicket>,
    ) -> Vec<PartitionFinding> {
        let now = Instant::now();
        if now < self.next || submitted.is_empty() {
            return Vec::new();
        }
        self.next = now + INTERVAL;
        let ids: Vec<StepExecutionId> = submitted.keys().copied().collect();
        let found = repository
            .worker_store()
            .and_then(|store| store.unattended_partitions(&ids));
        let found = self.outage.observe("poll the partitions", found);
        let Some(found) = found else {
            return Vec::new();
        };
        let is_unclaimed = |finding: &&PartitionFinding| matches!(finding, PartitionFinding::Unclaimed(_));
        if found.iter().filter(is_unclaimed).count() < ids.len() {
            self.last_progress = now;
            self.declined.clear();
        }
        // A partition that is reopened later begins with the first wait again.
        self.resubmit
            .retain(|id, _| found.contains(&PartitionFinding::Unclaimed(*id)));
        found
    }

    /// Returns whether to submit the ticket of an unclaimed partition again.
    pub(super) fn is_ticket_lost(&mut self, id: StepExecutionId) -> bool {
        let now = Instant::now();
        let (at, wait) = self
            .resubmit
            .entry(id)
            .or_insert((now + self.resubmit_after, self.resubmit_after));
        if now < *at {
            return false;
        }
        *wait = (*wait * 2).min(RESUBMIT_AT_MOST_AFTER);
        *at = now + *wait;
        true
    }

    /// Makes the next poll happen at once.
    pub(super) fn poll_now(&mut self) {
        self.next = Instant::now();
    }

    pub(super) fn declined(&mut self, reason: DeclinedPartition) {
        self.declined.insert(reason.worker.clone(), reason);
    }

    /// Returns a warning, once in a while, if no worker runs any of the partitions.
    pub(super) fn warning(
        &mut self,
        element: &str,
        queue: &str,
        fingerprint: &str,
        repository: &dyn JobRepository,
    ) -> Option<String> {
        if self.last_progress.elapsed() < self.warn_after {
            return None;
        }
        self.last_progress = Instant::now();
        let seconds = self.warn_after.as_secs_f64().ceil();
        if self.declined.is_empty() {
            // Without an answer nothing is known about them.
            let workers = repository.worker_store().ok()?.workers().ok()?;
            return Some(format!(
                "no worker has claimed a partition of `{element}` for {seconds} s; {}",
                remedy(queue, &workers)
            ));
        }
        let reasons = self
            .declined
            .values()
            .map(|declined| match &declined.fingerprint {
                Some(other) => format!("{} has the fingerprint {other}", declined.worker),
                None => format!("{}: {}", declined.worker, declined.reason),
            });
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        let is_other = self
            .declined
            .values()
            .any(|declined| declined.fingerprint.is_some());
        let (here, remedy) = match is_other {
            true => (
                format!(": its job has the fingerprint {fingerprint}"),
                "; start workers with the same Job XML and system properties",
            ),
            false => (String::new(), ""),
        };
        Some(format!(
            "no worker has claimed a partition of `{element}` for {seconds} s{here}; {reasons}{remedy}"
        ))
    }
}

/// Returns what to do if no worker has declined a partition in a queue.
fn remedy(queue: &str, workers: &[WorkerRow]) -> String {
    let mut alive = workers
        .iter()
        .filter(|worker| worker.is_alive && !worker.is_draining);
    if alive.clone().any(|worker| worker.queue == queue) {
        return format!(
            "the workers of its queue `{queue}` have no free slot, or another `dispatch` than this process; start more workers"
        );
    }
    let start = format!("start workers of this job for its queue: `worker --queue {queue}`");
    match alive.next() {
        None => format!("no worker is registered; {start}"),
        Some(worker) => {
            let queues: BTreeSet<&str> = alive
                .map(|worker| worker.queue.as_str())
                .chain([worker.queue.as_str()])
                .collect();
            let queues: Vec<&str> = queues.into_iter().collect();
            format!(
                "all workers take from other queues: {}; {start}",
                queues.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: DISP-05, DISP-10
    #[test]
    fn the_waits_are_fractions_of_the_lease_time() {
        let waits = |lease: u64| {
            let monitor = PartitionMonitor::new(Duration::from_secs(lease));
            (monitor.resubmit_after.as_secs(), monitor.warn_after.as_secs())
        };
        assert_eq!(waits(30), (15, 20));
        assert_eq!(waits(86_400), (600, 600));
    }

    // Spec: DISP-16
    #[test]
    fn the_warning_knows_the_workers_of_other_queues() {
        let worker = |queue: &str, is_alive| WorkerRow {
            name: "host/1/a/locked".into(),
            queue: queue.into(),
            slots: 1,
            version: String::new(),
            is_draining: false,
            started: 0,
            expires: 0,
            is_alive,
            partitions: Vec::new(),
        };
        let dead = worker("nightly", false);
        assert!(
            remedy("nightly", std::slice::from_ref(&dead))
                .starts_with("no worker is registered; start workers")
        );
        let others = [
            worker("print", true),
            worker("eu", true),
            worker("print", true),
            dead,
        ];
        let expected = "all workers take from other queues: eu, print; start workers of this job for its queue: `worker --queue nightly`";
        assert_eq!(remedy("nightly", &others), expected);
        assert!(remedy("print", &others).contains("no free slot"));
    }
}
