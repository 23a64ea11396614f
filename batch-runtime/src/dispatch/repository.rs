//! The transport that needs nothing but the repository: workers take tickets from a table, and report in another one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{
    CollectedPayload, DeclinedPartition, DispatchError, PartitionChannel, PartitionDelivery,
    PartitionDispatcher, PartitionEvent, PartitionSource, PartitionTicket, PartitionTransport,
};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::{JobRepository, PartitionReport, QueuedPartition, RepositoryError};

/// The pauses between two looks at the tables: short after a success, and longer while there is nothing to do.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The transport `repository`.
pub(crate) struct RepositoryTransport(pub(crate) Arc<dyn JobRepository>);

impl PartitionDispatcher for RepositoryTransport {
    fn open(&self, _: JobExecutionId, queue: &str) -> Result<Box<dyn PartitionChannel>, DispatchError> {
        Ok(Box::new(RepositoryChannel {
            repository: Arc::clone(&self.0),
            queue: queue.to_owned(),
            out: Vec::new(),
            events: Vec::new(),
            pause: SHORTEST_PAUSE,
        }))
    }
}

impl PartitionTransport for RepositoryTransport {
    fn connect_worker(&self, queue: &str) -> Result<Box<dyn PartitionSource>, DispatchError> {
        Ok(Box::new(RepositorySource {
            repository: Arc::clone(&self.0),
            queue: queue.to_owned(),
            declined: Arc::default(),
            pause: SHORTEST_PAUSE,
        }))
    }
}

/// The content of a report.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    Collected(CollectedPayload),
    Declined(DeclinedPartition),
    Ended,
}

/// The numbers of reports that are no payload: those of payloads count from 1.
const ENDED: u64 = i64::MAX as u64;
const DECLINED: u64 = 0;

struct RepositoryChannel {
    repository: Arc<dyn JobRepository>,
    queue: String,
    /// The submitted partitions that have not ended.
    out: Vec<StepExecutionId>,
    /// Events that are to be returned, the next one last.
    events: Vec<PartitionEvent>,
    pause: Duration,
}

impl PartitionChannel for RepositoryChannel {
    fn submit(&mut self, ticket: &PartitionTicket) -> Result<(), DispatchError> {
        let submitted = self.repository.submit_partition(&self.queue, &queued(ticket));
        submitted.map_err(|error| DispatchError::new("cannot queue the partition").caused_by(error))?;
        if !self.out.contains(&ticket.step_execution) {
            self.out.push(ticket.step_execution);
        }
        self.pause = SHORTEST_PAUSE;
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(event) = self.events.pop() {
                if let PartitionEvent::Ended(id) = &event {
                    self.out.retain(|other| other != id);
                }
                return Ok(Some(event));
            }
            // Without the database nothing else works either: the job's own lease decides.
            match self.repository.take_reports(&self.out) {
                Ok(reports) => self.events = reports.into_iter().rev().filter_map(event).collect(),
                Err(error) => tracing::warn!(%error, "cannot read the reports of workers; trying again"),
            }
            if self.events.is_empty() && !pause(&mut self.pause, until) {
                return Ok(None);
            }
            if !self.events.is_empty() {
                self.pause = SHORTEST_PAUSE;
            }
        }
    }

    fn stop(&mut self) {
        if let Err(error) = self.repository.withdraw_partitions(&self.out) {
            tracing::warn!(%error, "cannot withdraw the tickets of partitions");
        }
    }
}

fn event(report: PartitionReport) -> Option<PartitionEvent> {
    match serde_json::from_str(&report.report) {
        Ok(Report::Collected(payload)) => Some(PartitionEvent::Collected(payload)),
        Ok(Report::Declined(declined)) => Some(PartitionEvent::Declined(report.step_execution, declined)),
        Ok(Report::Ended) => Some(PartitionEvent::Ended(report.step_execution)),
        Err(error) => {
            tracing::warn!(step_execution = %report.step_execution, %error, "a report of a worker cannot be read");
            None
        }
    }
}

/// The fingerprints that this worker has declined, and until when it leaves them to others.
type Declined = Arc<Mutex<BTreeMap<String, Instant>>>;

struct RepositorySource {
    repository: Arc<dyn JobRepository>,
    queue: String,
    declined: Declined,
    pause: Duration,
}

impl PartitionSource for RepositorySource {
    fn take(&mut self, count: u32, wait: Duration) -> Result<Vec<Box<dyn PartitionDelivery>>, DispatchError> {
        let until = Instant::now() + wait;
        loop {
            let except = self.left_to_others();
            let taken = self.repository.take_partitions(&self.queue, count, &except);
            let taken =
                taken.map_err(|error| DispatchError::new("cannot take partitions").caused_by(error))?;
            if !taken.is_empty() {
                self.pause = SHORTEST_PAUSE;
                let delivery = |partition: QueuedPartition| -> Box<dyn PartitionDelivery> {
                    Box::new(RepositoryDelivery {
                        repository: Arc::clone(&self.repository),
                        queue: self.queue.clone(),
                        declined: Arc::clone(&self.declined),
                        ticket: ticket(partition),
                    })
                };
                return Ok(taken.into_iter().map(delivery).collect());
            }
            if !pause(&mut self.pause, until) {
                return Ok(Vec::new());
            }
        }
    }
}

impl RepositorySource {
    fn left_to_others(&self) -> Vec<String> {
        let mut declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        declined.retain(|_, until| *until > now);
        declined.keys().cloned().collect()
    }
}

/// Waits for the next look, each time longer. Returns `false` if `until` has passed.
fn pause(pause: &mut Duration, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    thread::sleep((*pause).min(left));
    *pause = (*pause * 2).min(LONGEST_PAUSE);
    true
}

struct RepositoryDelivery {
    repository: Arc<dyn JobRepository>,
    queue: String,
    declined: Declined,
    ticket: PartitionTicket,
}

impl RepositoryDelivery {
    fn report(&self, number: u64, report: &Report) -> Result<(), DispatchError> {
        let cannot = || DispatchError::new("cannot report to the coordinator");
        let text = serde_json::to_string(report).map_err(|error| cannot().caused_by(error))?;
        let report = PartitionReport {
            step_execution: self.ticket.step_execution,
            job_execution: self.ticket.job_execution,
            attempt: self.ticket.attempt,
            number,
            report: text,
        };
        let reported = self.repository.report_partition(&report);
        reported.map_err(|error: RepositoryError| cannot().caused_by(error))
    }
}

impl PartitionDelivery for RepositoryDelivery {
    fn ticket(&self) -> &PartitionTicket {
        &self.ticket
    }

    fn collected(&self, payload: &CollectedPayload) -> Result<(), DispatchError> {
        self.report(payload.sequence, &Report::Collected(payload.clone()))
    }

    fn ended(&self) -> Result<(), DispatchError> {
        self.report(ENDED, &Report::Ended)
    }

    fn decline(&self, reason: &DeclinedPartition, wait: Duration) -> Result<(), DispatchError> {
        let mut declined = self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        declined.insert(self.ticket.fingerprint.clone(), Instant::now() + wait);
        drop(declined);
        self.report(DECLINED, &Report::Declined(reason.clone()))?;
        self.hand_back()
    }

    fn hand_back(&self) -> Result<(), DispatchError> {
        let queued = self
            .repository
            .defer_partition(&self.queue, &queued(&self.ticket), Duration::ZERO);
        queued.map_err(|error| DispatchError::new("cannot put the partition back").caused_by(error))
    }

    /// The ticket was deleted when it was taken.
    fn discard(&self) -> Result<(), DispatchError> {
        Ok(())
    }
}

fn queued(ticket: &PartitionTicket) -> QueuedPartition {
    QueuedPartition {
        step_execution: ticket.step_execution,
        job_execution: ticket.job_execution,
        attempt: ticket.attempt,
        fingerprint: ticket.fingerprint.clone(),
    }
}

fn ticket(partition: QueuedPartition) -> PartitionTicket {
    PartitionTicket {
        step_execution: partition.step_execution,
        job_execution: partition.job_execution,
        attempt: partition.attempt,
        fingerprint: partition.fingerprint,
    }
}
