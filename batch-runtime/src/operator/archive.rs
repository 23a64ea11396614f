//! `purge`, `export` and `import`: deletes instances, writes them as text and reads them back.

use std::collections::BTreeMap;
use std::io::Write;

use super::{JobOperator, JobOperatorError, Result};
use crate::clock::Timestamp;
use crate::execution::JobInstance;
use crate::ids::JobInstanceId;
use crate::repository::{ArchivedExecution, ArchivedInstance, FORMAT, InstanceState};
use crate::status::BatchStatus;

/// The number of instances that are read together.
const PAGE: u32 = 1_000;
/// The number of instances that are deleted in one transaction, for which other writers wait.
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
        let repository = &self.inner.repository;
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
    /// `Archive` when the archive cannot be written; when the repository fails. Batches that were deleted before stay deleted.
    pub fn purge(&self, what: &Purge, mut archive: Option<&mut dyn Write>) -> Result<u64> {
        let mut deleted = 0;
        for states in self.purgeable_states(what)?.chunks(BATCH) {
            if let Some(archive) = &mut archive {
                for state in states {
                    if let Some(mut line) = self.export(state.instance.id)? {
                        line.push('\n');
                        // In one write, because another process may append to the same file.
                        archive.write_all(line.as_bytes()).map_err(unwritten)?;
                    }
                }
                archive.flush().map_err(unwritten)?;
            }
            deleted += self.inner.repository.delete_instances(states)?;
        }
        Ok(deleted)
    }

    /// Returns an instance with all its executions and steps as a line of JSON; `None` if there is no such instance.
    ///
    /// # Errors
    /// When the repository fails.
    pub fn export(&self, instance: JobInstanceId) -> Result<Option<String>> {
        let archived = self.inner.repository.archived(instance)?;
        let line = archived.map(|archived| serde_json::to_string(&archived));
        line.transpose().map_err(|error| {
            JobOperatorError::Archive(format!("instance {instance} cannot be written: {error}"))
        })
    }

    /// Imports an instance that was exported from this repository or another, with new ids, and returns its id. It can be
    /// resumed as before the export.
    ///
    /// # Errors
    /// `Archive` when `export` did not write the line, when an execution in it has not ended, when its job has an instance with
    /// the same key, or when the instance is not complete and has partitions or logical transactions, whose state refers to ids.
    pub fn import(&self, line: &str) -> Result<JobInstanceId> {
        let wrong = |problem: String| JobOperatorError::Archive(problem);
        let archived: ArchivedInstance =
            serde_json::from_str(line).map_err(|error| wrong(format!("no instance: {error}")))?;
        if archived.format != FORMAT {
            let problem = format!("format {:?}, and this version reads {FORMAT:?}", archived.format);
            return Err(wrong(problem));
        }
        if let Some(open) = archived.executions.iter().find(|one| !one.status.is_final()) {
            let (execution, status) = (open.execution, open.status);
            return Err(wrong(format!(
                "execution {execution} was {status} when it was exported"
            )));
        }
        if !archived.is_over() && archived.executions.iter().any(ArchivedExecution::keeps_elements) {
            let problem =
                "it is not complete, and has partitions or logical transactions, which count by the ids of \
                           executions: it can only go on where it was"
                    .to_owned();
            return Err(wrong(problem));
        }
        let restored = self.inner.repository.restore(&archived)?;
        restored.ok_or_else(|| {
            wrong(format!(
                "job `{}` has an instance with the key {} already",
                archived.job, archived.job_key
            ))
        })
    }
}

fn unwritten(error: std::io::Error) -> JobOperatorError {
    JobOperatorError::Archive(format!("the archive cannot be written: {error}"))
}
