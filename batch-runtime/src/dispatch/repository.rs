//! The transport that needs nothing but the repository: workers take tickets from a table, and report in another one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::poller::{BUSY_FOR, QueuePoller};
use super::{
    DeclinedFingerprints, DeclinedPartition, DispatchError, PartitionChannel, PartitionDelivery,
    PartitionDispatcher, PartitionEvent, PartitionSource, PartitionTicket, PartitionTransport,
};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::outage::Outage;
use crate::repository::{Channel, JobRepository, PartitionReport, QueuedPartition, RepositoryError};

/// The transport `repository`.
pub(crate) struct RepositoryTransport(pub(crate) Arc<dyn JobRepository>);

impl PartitionDispatcher for RepositoryTransport {
    fn open(&self, job: JobExecutionId, queue: &str) -> Result<Box<dyn PartitionChannel>, DispatchError> {
        Ok(Box::new(RepositoryChannel {
            repository: Arc::clone(&self.0),
            queue: queue.to_owned(),
            out: BTreeSet::new(),
            events: Vec::new(),
            poller: QueuePoller::new(&self.0, Channel::Reports, &job.to_string()),
            outage: Outage::default(),
        }))
    }
}

impl PartitionTransport for RepositoryTransport {
    fn connect_worker(&self, queue: &str) -> Result<Box<dyn PartitionSource>, DispatchError> {
        Ok(Box::new(RepositorySource {
            repository: Arc::clone(&self.0),
            queue: queue.to_owned(),
            declined: DeclinedFingerprints::default(),
            poller: QueuePoller::new(&self.0, Channel::Tickets, queue),
            woken: Arc::default(),
        }))
    }
}

/// The content of a report.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    Declined(DeclinedPartition),
    Ended,
}

struct RepositoryChannel {
    repository: Arc<dyn JobRepository>,
    queue: String,
    /// The submitted partitions that have not ended.
    out: BTreeSet<StepExecutionId>,
    /// Events that are to be returned, the next one last.
    events: Vec<PartitionEvent>,
    poller: QueuePoller,
    outage: Outage,
}

impl PartitionChannel for RepositoryChannel {
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        let partitions: Vec<QueuedPartition> = tickets.iter().map(queued).collect();
        let submitted = self
            .repository
            .worker_store()
            .and_then(|store| store.submit_partitions(&self.queue, &partitions));
        submitted.map_err(|error| DispatchError::new("cannot queue partitions").caused_by(error))?;
        self.out
            .extend(tickets.iter().map(|ticket| ticket.step_execution));
        self.poller.polled(true);
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(event) = self.events.pop() {
                if let PartitionEvent::Ended(id) = &event {
                    self.out.remove(id);
                }
                return Ok(Some(event));
            }
            if wait.is_zero() {
                return Ok(None);
            }
            // Without the database nothing else works either: the job's own lease decides.
            let reports = self
                .repository
                .worker_store()
                .and_then(|store| store.take_reports(&self.waiting()));
            let reports = self.outage.observe("read the reports of workers", reports);
            let reports = reports.unwrap_or_default().into_iter();
            self.events = reports.rev().filter_map(event).collect();
            self.poller.polled(!self.events.is_empty());
            if self.events.is_empty() && !self.poller.wait(until) {
                return Ok(None);
            }
        }
    }

    fn stop(&mut self) {
        if let Err(error) = self
            .repository
            .worker_store()
            .and_then(|store| store.withdraw_partitions(&self.waiting()))
        {
            tracing::warn!(%error, "cannot withdraw the tickets of partitions");
        }
    }
}

impl RepositoryChannel {
    fn waiting(&self) -> Vec<StepExecutionId> {
        self.out.iter().copied().collect()
    }
}

fn event(report: PartitionReport) -> Option<PartitionEvent> {
    match serde_json::from_str(&report.report) {
        Ok(Report::Declined(declined)) => Some(PartitionEvent::Declined(report.step_execution, declined)),
        Ok(Report::Ended) => Some(PartitionEvent::Ended(report.step_execution)),
        Err(error) => {
            tracing::warn!(step_execution = %report.step_execution, %error, "a report of a worker cannot be read");
            None
        }
    }
}

struct RepositorySource {
    repository: Arc<dyn JobRepository>,
    queue: String,
    declined: DeclinedFingerprints,
    poller: QueuePoller,
    woken: Woken,
}

/// When a delivery of this worker has last woken a coordinator.
type Woken = Arc<Mutex<Option<Instant>>>;

impl PartitionSource for RepositorySource {
    fn take(&mut self, count: u32, wait: Duration) -> Result<Vec<Box<dyn PartitionDelivery>>, DispatchError> {
        let until = Instant::now() + wait;
        loop {
            let except = self.declined.current();
            let taken = self
                .repository
                .worker_store()
                .and_then(|store| store.take_partitions(&self.queue, count, &except));
            let taken =
                taken.map_err(|error| DispatchError::new("cannot take partitions").caused_by(error))?;
            self.poller.polled(!taken.is_empty());
            if !taken.is_empty() {
                let delivery = |partition: QueuedPartition| -> Box<dyn PartitionDelivery> {
                    Box::new(RepositoryDelivery {
                        repository: Arc::clone(&self.repository),
                        queue: self.queue.clone(),
                        declined: self.declined.clone(),
                        woken: Arc::clone(&self.woken),
                        ticket: ticket(partition),
                    })
                };
                return Ok(taken.into_iter().map(delivery).collect());
            }
            if !self.poller.wait(until) {
                return Ok(Vec::new());
            }
        }
    }
}

struct RepositoryDelivery {
    repository: Arc<dyn JobRepository>,
    queue: String,
    declined: DeclinedFingerprints,
    woken: Woken,
    ticket: PartitionTicket,
}

impl RepositoryDelivery {
    /// Returns whether to wake the coordinator: not with each of many reports, because it looks often while reports arrive, and PostgreSQL
    /// commits transactions that wake one after the other.
    fn wakes(&self) -> bool {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = woken.is_none_or(|woken| woken.elapsed() > BUSY_FOR);
        if is_due {
            *woken = Some(Instant::now());
        }
        is_due
    }

    fn report(&self, number: u64, report: &Report) -> Result<(), DispatchError> {
        let cannot = || DispatchError::new("cannot report to the coordinator");
        let text = serde_json::to_string(report).map_err(|error| cannot().caused_by(error))?;
        let report = PartitionReport {
            step_execution: self.ticket.step_execution,
            job_execution: self.ticket.job_execution,
            claim: 0,
            number,
            report: text,
        };
        let reported = self
            .repository
            .worker_store()
            .and_then(|store| store.report_partition(&report, self.wakes()));
        reported.map_err(|error: RepositoryError| cannot().caused_by(error))
    }
}

impl PartitionDelivery for RepositoryDelivery {
    fn ticket(&self) -> &PartitionTicket {
        &self.ticket
    }

    fn ended(&self) -> Result<(), DispatchError> {
        self.report(PartitionReport::END, &Report::Ended)
    }

    fn decline(&self, reason: &DeclinedPartition, wait: Duration) -> Result<(), DispatchError> {
        self.declined.add(&self.ticket.fingerprint, wait);
        self.report(PartitionReport::DECLINED, &Report::Declined(reason.clone()))?;
        self.hand_back(Duration::ZERO)
    }

    fn hand_back(&self, wait: Duration) -> Result<(), DispatchError> {
        let queued = self
            .repository
            .worker_store()
            .and_then(|store| store.defer_partition(&self.queue, &queued(&self.ticket), wait));
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
        // The repository has it, which the worker reads anyway.
        traceparent: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{ClaimRequest, InsertStep, RepositoryConfig, StepState, open};

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Returns a transport, and the ticket of a partition.
    fn prepared() -> (RepositoryTransport, PartitionTicket) {
        let repository = open("sqlite://:memory:", RepositoryConfig::with_lease(HOUR)).unwrap();
        let claim = repository.claim(&ClaimRequest::of_new_instance());
        let lease = claim.unwrap().lease;
        let row = repository
            .create_step(&lease, "one:1", &StepState::default())
            .unwrap();
        let ticket = PartitionTicket {
            job_execution: row.job_execution_id,
            step_execution: row.id,
            attempt: 1,
            fingerprint: "f".into(),
            traceparent: None,
        };
        (RepositoryTransport(repository), ticket)
    }

    fn take(source: &mut dyn PartitionSource) -> Vec<Box<dyn PartitionDelivery>> {
        source.take(5, Duration::ZERO).unwrap()
    }

    // Spec: DISP-05
    #[test]
    fn a_ticket_that_is_submitted_again_replaces_the_first() {
        let (transport, ticket) = prepared();
        let mut channel = transport.open(ticket.job_execution, "queue").unwrap();
        let again = PartitionTicket {
            attempt: 2,
            ..ticket.clone()
        };
        channel.submit(&[ticket]).unwrap();
        channel.submit(std::slice::from_ref(&again)).unwrap();
        let mut source = transport.connect_worker("queue").unwrap();
        let taken = take(&mut *source);
        assert_eq!(taken.iter().map(|one| one.ticket()).collect::<Vec<_>>(), [&again]);
        assert!(take(&mut *source).is_empty());
    }

    // Spec: DISP-10
    #[test]
    fn a_worker_leaves_what_it_declined_to_others() {
        let (transport, ticket) = prepared();
        let mut channel = transport.open(ticket.job_execution, "queue").unwrap();
        channel.submit(&[ticket]).unwrap();
        let mut source = transport.connect_worker("queue").unwrap();
        let reason = DeclinedPartition {
            worker: "worker".into(),
            fingerprint: None,
            reason: "it has another version of the job".into(),
        };
        take(&mut *source)[0].decline(&reason, HOUR).unwrap();
        assert!(take(&mut *source).is_empty());
        let mut other = transport.connect_worker("queue").unwrap();
        assert_eq!(take(&mut *other).len(), 1);
    }
}
