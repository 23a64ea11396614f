//! Partitions that this process runs for a coordinator in another one.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use md5::{Digest, Md5};
use thiserror::Error;

use super::definitions::{Wanted, rejecting};
use super::partition_jobs::PartitionJob;
use super::{Definitions, JobOperator, JobOperatorError, Shared};
use crate::dispatch::PartitionTicket;
use crate::engine::{RemotePartition, Running};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::observer::{JobEvents, JobTrace};
use crate::parameters::JobParameters;
use crate::repository::RepositoryError;
use crate::secret::Secrets;
use crate::status::BatchStatus;

/// The reason why a worker cannot claim a partition. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClaimPartitionError {
    /// The job execution or its job is unknown here, or the job cannot be resolved: another worker may be able to run it.
    #[error("cannot run a partition of job execution {execution}: {source}")]
    Job {
        /// The job execution.
        execution: JobExecutionId,
        /// The cause.
        source: Box<JobOperatorError>,
    },
    /// The job differs from the coordinator's job: another version of the Job XML, or other system properties.
    #[error(
        "cannot run a partition of job `{job}`: its definition here has the fingerprint {here}, and the coordinator's has \
         {}; run workers with the same Job XML and system properties", .ticket
    )]
    OtherVersion {
        /// The job.
        job: String,
        /// The fingerprint of the ticket.
        ticket: String,
        /// The fingerprint of the job as this runtime resolves it.
        here: String,
    },
    /// Another worker has claimed the partition, it has ended, or its job has.
    #[error("cannot claim partition {0}: it is claimed, or has ended")]
    Taken(StepExecutionId),
    /// The repository failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl JobOperator {
    /// Implements [`BatchRuntime::claim_partition`](crate::BatchRuntime::claim_partition).
    pub(crate) fn claim_partition(
        &self,
        ticket: &PartitionTicket,
    ) -> Result<PartitionRun, ClaimPartitionError> {
        let shared = Arc::clone(&self.shared);
        let execution = ticket.job_execution;
        let job = self.partition_job(ticket)?;
        if job.fingerprint != ticket.fingerprint {
            return Err(ClaimPartitionError::OtherVersion {
                job: job.bound.id.clone(),
                ticket: ticket.fingerprint.clone(),
                here: job.fingerprint,
            });
        }
        let asked = Instant::now();
        let repository = &shared.repository;
        let claimed =
            repository
                .worker_store()?
                .claim_partition(execution, ticket.step_execution, job.is_first)?;
        let claimed = claimed.ok_or(ClaimPartitionError::Taken(ticket.step_execution))?;
        let states = job.states_for(&**repository, &claimed);
        let trace = JobTrace {
            context: ticket.traceparent.clone().or(job.traceparent),
            previous: None,
        };
        let events = JobEvents::new(&shared.observers, &job.bound.id, &claimed.lease, trace, None);
        let lease_time = repository.lease_time();
        let running = Arc::new(Running::new(claimed.lease, lease_time, asked, events));
        shared.partitions().push(Arc::clone(&running));
        let mut run = PartitionRun {
            is_recorded: false,
            remote: None,
            ticket: ticket.clone(),
            running: Arc::clone(&running),
            shared: Arc::clone(&shared),
        };
        let remote = RemotePartition {
            job: job.bound,
            repository: Arc::clone(&shared.repository),
            running,
            claimed,
            // If it fails, the run is dropped, and releases the lease.
            states: states?,
            is_first: job.is_first,
            partition_threads: shared.limits.partition_threads,
            runtime: Shared::as_runtime(&shared),
        };
        if remote.can_hand_back() {
            run.running.allow_handing_back();
        }
        run.remote = Some(remote);
        Ok(run)
    }

    /// Returns the job of a partition, as kept or newly resolved.
    fn partition_job(&self, ticket: &PartitionTicket) -> Result<PartitionJob, ClaimPartitionError> {
        let (jobs, execution) = (&self.shared.partition_jobs, ticket.job_execution);
        if let Some(job) = jobs.get(execution) {
            return Ok(job);
        }
        let job = self.job_of_partitions(ticket).map_err(|error| match error {
            JobOperatorError::Repository(error) => error.into(),
            other => ClaimPartitionError::Job {
                execution,
                source: Box::new(other),
            },
        })?;
        let job = job.ok_or(ClaimPartitionError::Taken(ticket.step_execution))?;
        jobs.keep(execution, &job);
        Ok(job)
    }

    /// Resolves and binds the job of an execution that another process coordinates. Returns `None` if the execution has ended: its
    /// definition may have changed since, and does not matter.
    fn job_of_partitions(&self, ticket: &PartitionTicket) -> super::Result<Option<PartitionJob>> {
        let (shared, execution) = (&self.shared, ticket.job_execution);
        let found = shared.repository.job_execution(execution)?;
        let found = found.ok_or(JobOperatorError::NoSuchJobExecution(execution))?;
        if found.status.is_final() {
            return Ok(None);
        }
        let wanted = Wanted::of(&found);
        let parameters = shared.repository.parameters(execution)?.without_run_id();
        let fingerprint = fingerprint(&shared.definitions, wanted, &parameters)?;
        let reject = rejecting(&found.job_name);
        let secrets = Secrets::read(parameters.secrets());
        let secrets = secrets.map_err(|error| reject(super::StartError::Secret(error)))?;
        let bound = shared
            .definitions
            .bind(wanted, &parameters, &parameters, secrets, &reject)?
            .bound;
        let executions = shared.repository.job_executions(found.instance_id)?;
        let is_first = executions.len() == 1;
        let traceparent = match shared.observers.are_any() && ticket.traceparent.is_none() {
            true => shared.repository.traceparent(execution)?,
            false => None,
        };
        Ok(Some(PartitionJob::new(
            fingerprint,
            bound.job,
            is_first,
            traceparent,
        )))
    }
}

/// A partition that this process has claimed. Dropped before it has run, it releases its lease, and the coordinator submits the
/// partition again.
pub struct PartitionRun {
    remote: Option<RemotePartition>,
    ticket: PartitionTicket,
    running: Arc<Running>,
    /// True once the end is recorded, which releases the lease.
    is_recorded: bool,
    shared: Arc<Shared>,
}

impl PartitionRun {
    /// Returns the ticket.
    pub fn ticket(&self) -> &PartitionTicket {
        &self.ticket
    }

    /// Returns a handle that stops the partition, from any thread.
    pub fn stop_handle(&self) -> PartitionStop {
        PartitionStop {
            running: Arc::clone(&self.running),
        }
    }

    /// Runs the partition on the calling thread and returns how it ended, which is recorded by then, as are the payloads of its collector.
    ///
    /// # Errors
    /// If the end could not be recorded, because the repository failed or this worker is fenced: report the partition as lost.
    pub fn run(mut self) -> Result<BatchStatus, RepositoryError> {
        let Some(remote) = self.remote.take() else {
            return Err(RepositoryError::Fault);
        };
        let _entered = self.shared.async_runtime.enter();
        // A panic of the runtime itself must not keep the lease.
        let ended = catch_unwind(AssertUnwindSafe(|| remote.run()));
        let status = ended.unwrap_or(Err(RepositoryError::Fault))?;
        if !self.running.is_handing_back() {
            self.is_recorded = true;
            return Ok(status);
        }
        let ended = self.shared.repository.step(self.ticket.step_execution)?;
        ended.map(|(row, _)| row.status).ok_or(RepositoryError::Fault)
    }
}

impl Drop for PartitionRun {
    fn drop(&mut self) {
        let is_other = |other: &Arc<Running>| !Arc::ptr_eq(other, &self.running);
        self.shared.partitions().retain(is_other);
        self.running.announce_no_stop();
        let lease = self.running.release();
        if !self.is_recorded {
            self.shared.release_lease(lease);
        }
    }
}

impl fmt::Debug for PartitionRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionRun({:?})", self.ticket)
    }
}

/// Stops a partition that this process runs.
#[derive(Clone)]
pub struct PartitionStop {
    running: Arc<Running>,
}

impl PartitionStop {
    /// Requests the stop. Returns at once; the partition ends at its next item, after it has committed what it has.
    pub fn request_stop(&self) {
        self.running.request_stop();
    }

    /// Requests a chunk step to stop at its next item and to become STARTING again, so that another worker resumes it. Has no effect on
    /// batchlets and on partitions of flows, which run to their end. [`PartitionRun::run`] returns STARTING if it was handed back.
    pub fn hand_back(&self) {
        self.running.hand_back();
    }

    /// Returns for how long the partition has not obeyed a request to stop; `None` without one. Handing it back is no such request.
    pub(crate) fn stopping_for(&self) -> Option<Duration> {
        self.running.stopping_for()
    }
}

impl fmt::Debug for PartitionStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartitionStop")
    }
}

impl JobOperator {
    /// Returns the fingerprint of a job for its tickets.
    pub(super) fn fingerprint(
        &self,
        wanted: Wanted<'_>,
        parameters: &JobParameters,
    ) -> Result<String, JobOperatorError> {
        fingerprint(&self.shared.definitions, wanted, parameters)
    }
}

/// Returns a digest of the job as it is resolved with these parameters and the system properties.
fn fingerprint(
    definitions: &Definitions,
    wanted: Wanted<'_>,
    parameters: &JobParameters,
) -> Result<String, JobOperatorError> {
    let effective = definitions.resolve(wanted, parameters)?.0.job;
    let mut digest = Md5::new();
    digest.update(format!("{:?}\n", effective.dialect));
    digest.update(effective.to_xml());
    Ok(digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
