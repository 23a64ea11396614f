//! The operations of the queue between coordinators and workers, for the dispatcher that needs no other transport.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::Result;
use crate::repository::records::{PartitionFinding, PartitionReport, PayloadKey, QueuedPartition, WorkerRow};

/// What a listener is woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Tickets in a queue.
    Tickets,
    /// Reports to the coordinator of a job execution.
    Reports,
}

/// Is woken by other processes.
pub(crate) trait Listener: Send {
    /// Returns whether there was a call since the last look. Does not wait, and does not ask the database.
    ///
    /// # Errors
    /// If the connection is lost.
    fn is_woken(&mut self) -> Result<bool>;
}

/// The queue of partitions, the reports of workers, and the list of workers.
pub(crate) trait QueueStore: Send + Sync {
    /// Queues partitions, or replaces their tickets. A crash before it leaves partitions that the next launch runs again.
    fn submit_partitions(&self, queue: &str, partitions: &[QueuedPartition]) -> Result<()>;

    /// Takes at most `count` partitions from a queue, the oldest first, but none of the fingerprints in `except`; no other worker gets
    /// them. A crash afterwards loses their tickets, which the coordinator submits again.
    fn take_partitions(&self, queue: &str, count: u32, except: &[String]) -> Result<Vec<QueuedPartition>>;

    /// Puts a partition back, for any worker after `wait`, unless its coordinator has queued it again meanwhile.
    fn defer_partition(&self, queue: &str, partition: &QueuedPartition, wait: Duration) -> Result<()>;

    /// Removes the tickets of partitions that no worker has taken.
    fn withdraw_partitions(&self, partitions: &[StepExecutionId]) -> Result<()>;

    /// Removes the tickets and reports of a job execution that has ended.
    fn forget_partitions(&self, execution: JobExecutionId) -> Result<()>;

    /// Stores a report for the coordinator, unless its job has ended. Storing it again has no effect. With `wakes`, wakes the coordinator
    /// if it listens.
    fn report_partition(&self, report: &PartitionReport, wakes: bool) -> Result<()>;

    /// Takes the reports on these partitions, in the order of each partition. Payloads are not among them.
    fn take_reports(&self, partitions: &[StepExecutionId]) -> Result<Vec<PartitionReport>>;

    /// Returns the payloads of partitions that follow those with these keys, in the order of each partition, and removes them. An error of
    /// the removal is not reported: the keys identify what was returned.
    fn take_payloads(&self, after: &BTreeMap<StepExecutionId, PayloadKey>) -> Result<Vec<PartitionReport>>;

    /// Returns how submitted partitions look to their coordinator: those that are not being run by a worker that is alive.
    fn unattended_partitions(&self, partitions: &[StepExecutionId]) -> Result<Vec<PartitionFinding>>;

    /// Returns a listener; `None` if the database notifies no process.
    fn listen(&self, channel: Channel, about: &str) -> Result<Option<Box<dyn Listener>>>;

    /// Returns how far the clock of this host is ahead of the database's clock, in milliseconds.
    fn clock_ahead(&self) -> Result<i64>;

    /// Returns whether processes of other hosts can use the database.
    fn is_on_server(&self) -> bool;

    /// Registers this process as a worker, or renews its registration for a lease time.
    fn register_worker(&self, worker: &WorkerRow) -> Result<()>;

    /// Removes the registration of this process.
    fn deregister_worker(&self) -> Result<()>;

    /// Returns the registered workers, with the partitions that they run.
    fn workers(&self) -> Result<Vec<WorkerRow>>;

    /// Returns the owners of job executions whose leases have not expired.
    fn owners(&self) -> Result<Vec<String>>;
}
