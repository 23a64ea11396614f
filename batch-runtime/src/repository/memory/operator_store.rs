//! Requests to running executions, and queries.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryRepository;
use super::tables::{Execution, Step};
use crate::execution::{JobExecution, JobInstance, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::parameters::JobParameters;
use crate::repository::rules::stored_message;
use crate::repository::{
    AbandonOutcome, AcceptOutcome, ClaimError, DeathOutcome, ExecutionFilter, HolderState, JobState,
    MAX_VARCHAR, OperatorStore, Result, StopOutcome, rules,
};
use crate::status::BatchStatus;

impl OperatorStore for MemoryRepository {
    fn holder_state(&self, execution: JobExecutionId) -> Result<Option<HolderState>> {
        let tables = self.shared();
        let found = tables.executions.get(&execution);
        let Some(found) = found.filter(|found| !found.row.status.is_final()) else {
            return Ok(None);
        };
        let lease = tables.lease_of(found.row.instance_id);
        // An imported execution holds no lease.
        let is_dead = lease.is_some_and(|lease| lease.execution == execution && !lease.is_held);
        Ok(Some(match is_dead {
            true => HolderState::Dead,
            false => HolderState::Alive,
        }))
    }

    fn waits_for(&self, execution: JobExecutionId) -> Result<Option<JobExecutionId>> {
        Ok(self.shared().waits_for(execution))
    }

    fn job_state(&self, id: JobExecutionId) -> Result<Option<JobState>> {
        self.shared().job_state_if_any(id)
    }

    fn request_stop(&self, id: JobExecutionId) -> Result<Option<StopOutcome>> {
        let mut tables = self.alone();
        let Some(Execution { row, .. }) = tables.executions.get_mut(&id) else {
            return Ok(None);
        };
        let Some(stopping) = row.status.after_stop_request() else {
            return Ok(Some(StopOutcome::NotRunning));
        };
        let now = self.now();
        if row.status != stopping {
            row.version += 1;
            row.status = stopping;
            row.last_updated = now;
        }
        let instance = row.instance_id;
        match tables.lease_of(instance) {
            Some(lease) if lease.execution == id && !lease.is_held => {
                let closed = tables.close_open_executions(instance, now, None);
                self.notify_of_closed(&mut tables, &closed);
                tables.void_lease(instance);
                Ok(Some(StopOutcome::Closed))
            }
            _ => Ok(Some(StopOutcome::Requested)),
        }
    }

    fn abandon(&self, id: JobExecutionId) -> Result<Option<AbandonOutcome>> {
        let mut tables = self.alone();
        let Some(execution) = tables.executions.get(&id) else {
            return Ok(None);
        };
        let (instance, status) = (execution.row.instance_id, execution.row.status);
        if let Some(ClaimError::Running { owner, .. }) = self.running_execution(&tables, instance) {
            return Ok(Some(AbandonOutcome::Running { owner }));
        }
        let now = self.now();
        let mut closed = tables.close_open_executions(instance, now, None);
        closed.retain(|closed| *closed != id);
        self.notify_of_closed(&mut tables, &closed);
        let is_complete = |one: &Execution| one.row.status == BatchStatus::Completed;
        let outcome = rules::abandoned(status, tables.executions_of(instance).any(is_complete));
        if outcome == AbandonOutcome::Abandoned
            && let Some(Execution { row, .. }) = tables.executions.get_mut(&id)
        {
            row.version += 1;
            row.status = BatchStatus::Abandoned;
            row.last_updated = now;
        }
        Ok(Some(outcome))
    }

    fn declare_dead(&self, id: JobExecutionId) -> Result<Option<DeathOutcome>> {
        let mut tables = self.alone();
        let Some(execution) = tables.executions.get(&id) else {
            return Ok(None);
        };
        let instance = execution.row.instance_id;
        if tables.held_for(instance).is_some() {
            let owner = self.owner.name().to_owned();
            return Ok(Some(DeathOutcome::Running { owner }));
        }
        let newest = tables.newest(instance).map(|newest| &newest.row);
        if newest.is_none_or(|newest| newest.id != id || newest.status.is_final()) {
            return Ok(Some(DeathOutcome::Ended));
        }
        let closed = tables.close_open_executions(instance, self.now(), None);
        self.notify_of_closed(&mut tables, &closed);
        Ok(Some(DeathOutcome::Closed))
    }

    fn accept_unknown(&self, id: JobExecutionId, reason: &str) -> Result<Option<AcceptOutcome>> {
        let mut tables = self.alone();
        let now = self.now();
        let accepted = |message: &str| stored_message(&rules::accepted_message(reason, message), MAX_VARCHAR);
        let Some(Execution { row, steps, .. }) = tables.executions.get_mut(&id) else {
            return Ok(None);
        };
        let mut outcome = AcceptOutcome::Known;
        if row.status == BatchStatus::Unknown {
            row.version += 1;
            row.status = BatchStatus::Failed;
            row.exit_message = accepted(&row.exit_message);
            row.ended = row.ended.or(Some(now));
            row.last_updated = now;
            outcome = AcceptOutcome::Accepted;
        }
        for step in steps.clone() {
            let step = tables.step_mut(step);
            let Some(Step { row, .. }) = step.filter(|step| step.row.status == BatchStatus::Unknown) else {
                continue;
            };
            row.version += 1;
            row.status = BatchStatus::Failed;
            row.exit_message = accepted(&row.exit_message);
            row.ended = row.ended.or(Some(now));
            row.last_updated = now;
            outcome = AcceptOutcome::Accepted;
        }
        Ok(Some(outcome))
    }

    fn find_executions(&self, filter: &ExecutionFilter) -> Result<Vec<JobExecution>> {
        let tables = self.shared();
        let matches = |row: &&JobExecution| {
            filter.job.as_ref().is_none_or(|job| *job == row.job_name)
                && (filter.statuses.is_empty() || filter.statuses.contains(&row.status))
                && filter.since.is_none_or(|since| row.created >= since)
                && filter.until.is_none_or(|until| row.created < until)
                && filter
                    .ended_since
                    .is_none_or(|since| row.ended.is_some_and(|ended| ended >= since))
                && filter.before.is_none_or(|before| row.id < before)
                && filter.after.is_none_or(|after| row.id > after)
        };
        let limit = filter.limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(usize::MAX);
        let rows = tables.executions.values().map(|execution| &execution.row);
        let mut found: Vec<JobExecution> = match filter.after {
            Some(_) => rows.filter(matches).take(limit).cloned().collect(),
            None => rows.rev().filter(matches).take(limit).cloned().collect(),
        };
        if filter.after.is_some() {
            found.reverse();
        }
        Ok(found)
    }

    fn find_instance(&self, job_name: &str, job_key: &str) -> Result<Option<JobInstance>> {
        let tables = self.shared();
        let id = tables.instance_with(job_name, job_key);
        Ok(id
            .and_then(|id| tables.instances.get(&id))
            .map(|found| found.row.clone()))
    }

    fn instance(&self, id: JobInstanceId) -> Result<Option<JobInstance>> {
        let tables = self.shared();
        Ok(tables.instances.get(&id).map(|found| found.row.clone()))
    }

    fn instances(&self, job_name: &str, start: i64, count: i64) -> Result<Vec<JobInstance>> {
        let tables = self.shared();
        let position = |number: i64| usize::try_from(number).unwrap_or(0);
        let newest_first = tables.instances.values().rev().map(|instance| &instance.row);
        let of_job = newest_first.filter(|row| row.job_name == job_name);
        let page = of_job.skip(position(start)).take(position(count));
        Ok(page.cloned().collect())
    }

    fn instance_count(&self, job_name: &str) -> Result<i64> {
        let count = self.shared().keys.get(job_name).map_or(0, |keys| keys.len());
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn job_names(&self) -> Result<BTreeSet<String>> {
        let tables = self.shared();
        let with_instances = tables.keys.iter().filter(|(_, keys)| !keys.is_empty());
        Ok(with_instances.map(|(job, _)| job.clone()).collect())
    }

    fn job_execution(&self, id: JobExecutionId) -> Result<Option<JobExecution>> {
        let tables = self.shared();
        Ok(tables.executions.get(&id).map(|found| found.row.clone()))
    }

    fn job_executions(&self, instance: JobInstanceId) -> Result<Vec<JobExecution>> {
        let tables = self.shared();
        let newest_first = tables.executions_of(instance).rev();
        Ok(newest_first.map(|execution| execution.row.clone()).collect())
    }

    fn parameters(&self, id: JobExecutionId) -> Result<JobParameters> {
        let tables = self.shared();
        let found = tables.executions.get(&id);
        Ok(found.map(|found| found.parameters.clone()).unwrap_or_default())
    }

    fn original_parameters(&self, instance: JobInstanceId) -> Result<JobParameters> {
        let tables = self.shared();
        let first = tables.executions_of(instance).next();
        Ok(first.map(|first| first.parameters.clone()).unwrap_or_default())
    }

    fn step_executions(&self, execution: JobExecutionId) -> Result<Vec<StepExecution>> {
        let tables = self.shared();
        let ids = tables.executions.get(&execution).map(|found| found.steps.iter());
        let steps = ids.into_iter().flatten().filter_map(|id| tables.step(*id));
        Ok(steps.map(|step| step.row.clone()).collect())
    }

    fn user_data(&self, execution: JobExecutionId) -> Result<BTreeMap<StepExecutionId, String>> {
        let tables = self.shared();
        let ids = tables.executions.get(&execution).map(|found| found.steps.iter());
        let data = ids.into_iter().flatten().filter_map(|id| {
            // A context that cannot be read is reported when the step is resumed.
            let state = tables.step_state(*id).ok()?;
            Some((*id, state.user_data?.as_json().to_owned()))
        });
        Ok(data.collect())
    }
}
