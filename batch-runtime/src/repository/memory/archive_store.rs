//! Whole instances: their states, deletion, export and import.

use std::ops::Bound;

use super::MemoryRepository;
use super::tables::corrupt;
use super::tables::{Context, Execution, Step, Tables};
use crate::clock::Timestamp;
use crate::execution::{JobExecution, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::repository::{
    ArchiveStore, ArchivedExecution, ArchivedInstance, ArchivedStep, FORMAT, InstanceState, RepositoryFormat,
    RepositoryLayout, Result, StoredContext, rules,
};
use crate::status::BatchStatus;

impl ArchiveStore for MemoryRepository {
    fn instance_states(
        &self,
        job: Option<&str>,
        after: JobInstanceId,
        count: u32,
    ) -> Result<Vec<InstanceState>> {
        let tables = self.shared();
        let later = tables.instances.range((Bound::Excluded(after), Bound::Unbounded));
        let of_job = later.filter(|(_, found)| job.is_none_or(|job| found.row.job_name == job));
        let states = of_job
            .take(usize::try_from(count).unwrap_or(usize::MAX))
            .map(|(id, found)| {
                let (status, ended, last) = last_of(&tables, *id);
                InstanceState {
                    instance: found.row.clone(),
                    status,
                    ended,
                    last,
                }
            });
        Ok(states.collect())
    }

    fn delete_instances(&self, seen: &[InstanceState]) -> Result<u64> {
        let mut tables = self.alone();
        let mut deleted = 0;
        for state in seen {
            let id = state.instance.id;
            let is_held = tables.held_for(id).is_some();
            // The instance may have run again since it was read.
            let (status, _, last) = last_of(&tables, id);
            if !is_held && (status, last) == (state.status, state.last) && status.is_some() {
                delete(&mut tables, id);
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    fn export_instance(&self, instance: JobInstanceId) -> Result<Option<ArchivedInstance>> {
        archived_instance(&self.shared(), instance)
    }

    fn import_instance(&self, archived: &ArchivedInstance) -> Result<Option<JobInstanceId>> {
        let mut tables = self.alone();
        if tables.instance_with(&archived.job, &archived.job_key).is_some() {
            return Ok(None);
        }
        let id = tables.insert_instance(&archived.job, &archived.job_key);
        for execution in &archived.executions {
            import_execution(&mut tables, id, &archived.job, execution);
        }
        Ok(Some(id))
    }
}

fn last_of(
    tables: &Tables,
    instance: JobInstanceId,
) -> (Option<BatchStatus>, Option<Timestamp>, JobExecutionId) {
    let rows = tables.executions_of(instance).map(|execution| &execution.row);
    rules::last_of(rows.map(|row| (row.id, Some(row.status), row.ended)))
}

fn delete(tables: &mut Tables, id: JobInstanceId) {
    let Some(instance) = tables.instances.remove(&id) else {
        return;
    };
    if let Some(keys) = tables.keys.get_mut(&instance.row.job_name) {
        keys.remove(&instance.row.job_key);
    }
    tables.notifications.retain(|one| one.instance != id);
    for execution in instance.executions {
        tables.turns.remove(&execution);
        let steps = tables
            .executions
            .remove(&execution)
            .map(|execution| execution.steps);
        for step in steps.unwrap_or_default() {
            tables.steps.remove(&step);
        }
    }
}

fn archived_instance(tables: &Tables, id: JobInstanceId) -> Result<Option<ArchivedInstance>> {
    let Some(found) = tables.instances.get(&id) else {
        return Ok(None);
    };
    let executions = tables
        .executions_of(id)
        .map(|execution| archived_execution(tables, execution));
    Ok(Some(ArchivedInstance {
        format: FORMAT.to_owned(),
        instance: id.0,
        job: found.row.job_name.clone(),
        job_key: found.row.job_key.clone(),
        layout: RepositoryLayout::default(),
        executions: executions.collect::<Result<_, _>>()?,
    }))
}

fn archived_execution(tables: &Tables, execution: &Execution) -> Result<ArchivedExecution> {
    let context = match &execution.context {
        Some(Context::State(state)) => {
            let encoded = state.encode(&RepositoryFormat::default());
            let row = || format!("the context of job execution {}", execution.row.id);
            Some(encoded.map_err(|error| corrupt(row(), error))?)
        }
        Some(Context::Text(text)) => Some(text.clone()),
        None => None,
    };
    let steps = execution.steps.iter().filter_map(|id| tables.step(*id));
    let steps = steps.map(|step| ArchivedStep::of(step.row.clone(), archived_context(&step)));
    let (row, parameters) = (execution.row.clone(), &execution.parameters);
    Ok(ArchivedExecution::of(row, parameters, context, steps.collect()))
}

fn archived_context(step: &Step) -> Option<StoredContext> {
    step.context.as_ref().map(|context| match context {
        Context::State(state) => state.encode(&RepositoryFormat::default()),
        Context::Text(text) => text.clone(),
    })
}

fn import_execution(tables: &mut Tables, instance: JobInstanceId, job: &str, archived: &ArchivedExecution) {
    let row = JobExecution {
        id: JobExecutionId(0),
        instance_id: instance,
        job_name: job.to_owned(),
        created: archived.created,
        started: archived.started,
        ended: archived.ended,
        last_updated: archived.last_updated,
        status: archived.status,
        exit_status: archived.exit_status.clone(),
        exit_message: archived.exit_message.clone(),
        version: archived.version,
        configuration_location: archived.definition.clone(),
    };
    let context = archived.context.clone().map(Context::Text);
    let execution = tables.insert_execution(row, archived.job_parameters(), context);
    for step in &archived.steps {
        let row = StepExecution {
            id: StepExecutionId(0),
            job_execution_id: execution,
            step_name: step.step.clone(),
            started: step.started,
            ended: step.ended,
            last_updated: step.last_updated,
            status: step.status,
            exit_status: step.exit_status.clone(),
            exit_message: step.exit_message.clone(),
            counters: step.counters,
            user_data: None,
            version: step.version,
        };
        tables.insert_step(row, step.context.clone().map(Context::Text));
    }
}
