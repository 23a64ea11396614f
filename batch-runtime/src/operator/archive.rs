//! `purge`, `export` and `import`: deletes instances, writes them as text and reads them back.

use std::collections::BTreeMap;
use std::io::{self, Write};

use thiserror::Error;

use super::{JobOperator, Result};
use crate::artifact::linked::destination_clients;
use crate::clock::Timestamp;
use crate::execution::JobInstance;
use crate::ids::{JobExecutionId, JobInstanceId};
use crate::marker::forget_markers;
use crate::named_database::NamedDatabase;
use crate::repository::{
    ArchivedExecution, ArchivedInstance, DatabaseDestination, DatabaseKind, FORMAT, InstanceState,
};
use crate::status::BatchStatus;

/// The number of instances that are read together.
const PAGE: u32 = 1_000;
/// The number of instances that are deleted in one transaction, while other writers wait.
const BATCH: usize = 100;

/// Selects the instances that [`JobOperator::purge`] deletes.
///
/// It selects instances whose last execution is COMPLETED or ABANDONED, which cannot be resumed, and never an instance with an
/// execution that has not ended.
#[derive(Clone, Debug, Default)]
pub struct Purge {
    /// Only instances of this job; `None`: of all jobs.
    pub job: Option<String>,
    /// Only instances whose last execution ended before this time; `None`: at any time.
    pub before: Option<Timestamp>,
    /// The number of instances of each job to keep, the newest.
    pub keep: u32,
    /// Also instances that failed or were stopped, which could be resumed.
    pub force: bool,
}

impl Purge {
    fn statuses(&self) -> &'static [BatchStatus] {
        const WITH_FORCE: [BatchStatus; 5] = [
            BatchStatus::Completed,
            BatchStatus::Abandoned,
            BatchStatus::Failed,
            BatchStatus::Stopped,
            BatchStatus::Unknown,
        ];
        if self.force { &WITH_FORCE } else { &WITH_FORCE[..2] }
    }
}

impl JobOperator {
    /// Returns the instances that [`purge`](Self::purge) would delete, the oldest first.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn purgeable(&self, what: &Purge) -> Result<Vec<JobInstance>> {
        let states = self.purgeable_states(what)?;
        Ok(states.into_iter().map(|state| state.instance).collect())
    }

    fn purgeable_states(&self, what: &Purge) -> Result<Vec<InstanceState>> {
        let repository = &self.shared.repository;
        let jobs = match &what.job {
            Some(job) => [job.clone()].into(),
            None => repository.job_names()?,
        };
        let mut kept_from = BTreeMap::new();
        if let Some(last_kept) = what.keep.checked_sub(1) {
            for job in jobs {
                let last_kept = repository.instances(&job, last_kept.into(), 1)?;
                // A job with fewer instances keeps all of them.
                let from = last_kept
                    .first()
                    .map_or(JobInstanceId(i64::MIN), |instance| instance.id);
                kept_from.insert(job, from);
            }
        }
        let (mut found, mut after) = (Vec::new(), JobInstanceId(i64::MIN));
        loop {
            let page = repository.instance_states(what.job.as_deref(), after, PAGE)?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.instance.id;
            let wanted = page.into_iter().filter(|state| {
                let is_kept = kept_from
                    .get(&state.instance.job_name)
                    .is_some_and(|from| state.instance.id >= *from);
                let is_old = what
                    .before
                    .is_none_or(|before| state.ended.is_some_and(|ended| ended < before));
                let is_over = state
                    .status
                    .is_some_and(|status| what.statuses().contains(&status));
                !is_kept && is_old && is_over
            });
            found.extend(wanted);
        }
    }

    /// Deletes instances with all their executions, in batches, and returns their number. If `archive` is given, each instance
    /// is written to it first, as a line of JSON that [`import`](Self::import) reads, and the archive is flushed before the batch
    /// is deleted. A crash in between leaves instances that are archived and not deleted.
    ///
    /// # Errors
    /// `Archive` when the archive cannot be written; `Repository` when the repository fails. Batches that were deleted
    /// before stay deleted.
    pub fn purge(&self, what: &Purge, mut archive: Option<&mut dyn Write>) -> Result<u64> {
        let mut deleted = 0;
        for states in self.purgeable_states(what)?.chunks(BATCH) {
            if let Some(archive) = &mut archive {
                for state in states {
                    if let Some(mut line) = self.export(state.instance.id)? {
                        line.push('\n');
                        // In one write, because another process may append to the same file.
                        archive.write_all(line.as_bytes()).map_err(ArchiveError::Write)?;
                    }
                }
                archive.flush().map_err(ArchiveError::Write)?;
            }
            deleted += self.shared.repository.delete_instances(states)?;
            self.remove_markers(states)?;
        }
        Ok(deleted)
    }

    /// Removes the markers of instances that were deleted from the named databases. A marker that stays harms nothing, until a job of the
    /// same name and parameters meets it, and fails.
    // Spec: MARK-10
    fn remove_markers(&self, states: &[InstanceState]) -> Result<()> {
        if self.shared.databases.is_empty() || self.shared.url.database() == DatabaseKind::Memory {
            return Ok(());
        }
        let repository = &self.shared.repository;
        let mut gone = Vec::new();
        for InstanceState { instance, .. } in states {
            // One that was restarted meanwhile is not deleted.
            if repository.instance(instance.id)?.is_none() {
                gone.push(instance);
            }
        }
        for (name, database) in &self.shared.databases {
            let removed = match database {
                NamedDatabase::Url(url) => DatabaseDestination::at(url.clone()).and_then(|mut database| {
                    let mut gone = gone.iter();
                    gone.try_for_each(|instance| forget_markers(&mut database, instance))
                }),
                NamedDatabase::Other(other) => destination_clients().try_for_each(|client| {
                    let mut gone = gone.iter();
                    gone.try_for_each(|instance| (client.forget)(other, instance))
                }),
            };
            if let Err(error) = removed {
                let error = error.chain();
                tracing::warn!(
                    database = name,
                    error,
                    "cannot remove the markers of instances that were purged"
                );
            }
        }
        Ok(())
    }

    /// Returns an instance with all its executions and steps as a line of JSON; `None` if there is no such instance.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn export(&self, instance: JobInstanceId) -> Result<Option<String>> {
        let archived = self.shared.repository.export_instance(instance)?;
        let line = archived.map(|archived| serde_json::to_string(&archived));
        Ok(line.transpose().map_err(ArchiveError::Json)?)
    }

    /// Imports an instance that was exported from this repository or another, with new ids. It can be resumed as before the
    /// export. An instance that the repository contains unchanged is left alone: it was imported before, or the purge that
    /// archived it was interrupted before it deleted it.
    ///
    /// # Errors
    /// `Archive` in these cases: `export` did not write the line; it contains values that `start` would reject; an execution
    /// in it has not ended; its job has another instance with the same key; or the instance is not complete and has partitions or
    /// logical transactions, whose state refers to ids.
    pub fn import(&self, line: &str) -> Result<Imported> {
        let archived: ArchivedInstance = serde_json::from_str(line).map_err(ArchiveError::Json)?;
        if archived.format != FORMAT {
            return Err(ArchiveError::Format(archived.format).into());
        }
        let format = self.shared.repository.format();
        if let Some(problem) = archived.problem(format.layout) {
            return Err(ArchiveError::Invalid(problem).into());
        }
        if let Some(open) = archived.executions.iter().find(|one| !one.status.is_final()) {
            let (execution, status) = (JobExecutionId(open.execution), open.status);
            return Err(ArchiveError::NotEnded { execution, status }.into());
        }
        let archived = archived.converted_to(format);
        let repository = &self.shared.repository;
        let known = repository.find_instance(&archived.job, &archived.job_key)?;
        let known = known.map_or(Ok(None), |known| repository.export_instance(known.id))?;
        if let Some(known) = known {
            let id = JobInstanceId(known.instance);
            if known.without_ids() == archived.clone().without_ids() {
                return Ok(Imported::Unchanged(id));
            }
        }
        if !archived.is_over() && archived.executions.iter().any(ArchivedExecution::keeps_elements) {
            return Err(ArchiveError::Parallel.into());
        }
        let imported = self.shared.repository.import_instance(&archived)?;
        let ArchivedInstance { job, job_key, .. } = archived;
        Ok(Imported::New(
            imported.ok_or(ArchiveError::Exists { job, job_key })?,
        ))
    }
}

/// The result of [`JobOperator::import`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Imported {
    /// The id of the instance that was inserted.
    New(JobInstanceId),
    /// The id of the instance that the repository contains with the same content.
    Unchanged(JobInstanceId),
}

impl Imported {
    /// Returns the id of the instance in this repository.
    pub fn id(self) -> JobInstanceId {
        match self {
            Self::New(id) | Self::Unchanged(id) => id,
        }
    }
}

/// The reason why an instance cannot be archived, exported or imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The archive cannot be written.
    #[error("cannot write the archive: {0}")]
    Write(#[source] io::Error),
    /// The line is not the JSON of an instance.
    #[error("not an exported instance: {0}")]
    Json(#[source] serde_json::Error),
    /// The line was written by another version.
    #[error("unknown format `{0}`: this version reads `{FORMAT}`")]
    Format(String),
    /// The instance has an id, parameter or text that no job can have.
    #[error("invalid instance: {0}")]
    Invalid(String),
    /// An execution of the instance had not ended when it was exported.
    #[error("execution {execution} was {status} when it was exported; export it again after its end")]
    NotEnded {
        /// The id of the execution, where it was exported.
        execution: JobExecutionId,
        /// Its status.
        status: BatchStatus,
    },
    /// The instance is not complete and has partitions or logical transactions.
    #[error(
        "it is not complete, and has partitions or logical transactions, whose state refers to the ids of executions: it can \
         be resumed only where it was exported"
    )]
    Parallel,
    /// The job has another instance with the same JOB_KEY.
    #[error("job `{job}` already has another instance with the key {job_key}")]
    Exists {
        /// The job.
        job: String,
        /// The key.
        job_key: String,
    },
}
