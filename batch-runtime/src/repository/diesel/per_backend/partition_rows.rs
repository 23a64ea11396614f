//! The rows of many partitions at once.

use std::collections::{BTreeMap, BTreeSet};

use diesel::prelude::*;

use super::contexts::{step_contexts, step_state_of};
use super::executions::execution_ids;
use super::rows::{StepRow, load_steps};
use super::schema::{step_context, step_execution};
use super::{Connection, Db, Repository, Work, rejected};
use crate::execution::StepExecution;
use crate::ids::{JobInstanceId, StepExecutionId};
use crate::repository::diesel::backend::{Backend, NewStep, Sequence};
use crate::repository::diesel::one_of::one_of_many;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::sequences::Sequences as _;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::rules;
use crate::repository::{Lease, Result, StepState, StoredContext};
use crate::status::BatchStatus;

impl Repository {
    /// Implements `StepStore::create_partitions`.
    pub(super) fn create_partition_rows(
        &self,
        lease: &Lease,
        names: &[String],
    ) -> Result<Vec<StepExecution>> {
        const ACTION: &str = "record partitions";
        let status = BatchStatus::Starting;
        let now = self.now();
        let context = StepState::default().encode(&self.settings.format);
        self.run(Tx::write(ACTION).relaxed(), |connection, in_doubt| {
            if in_doubt {
                // Waits for the end of the earlier attempt.
                Db::lock_executions(connection, lease.instance_id.0)?;
            }
            // Before the lock, because only the lease holder inserts steps.
            let inserted = inserted(connection, lease, names)?;
            if let Some(first) = inserted.first() {
                self.ensure_held(connection, lease, ACTION)?;
                return match in_doubt {
                    true => Ok(inserted),
                    false => Err(rejected(rules::known_step(first.id, &first.step_name))),
                };
            }
            // An insert has no VERSION to compare, so the lease itself is checked.
            Db::share_execution(connection, lease.execution_id.0)?;
            self.ensure_held(connection, lease, ACTION)?;
            let ids = Db::next_ids(&self.pool, connection, Sequence::Step, names.len())?;
            let steps: Vec<NewStep<'_>> = ids
                .iter()
                .zip(names)
                .map(|(id, name)| NewStep {
                    id: *id,
                    name,
                    job_execution: lease.execution_id.0,
                    status,
                    now,
                })
                .collect();
            Db::insert_steps(connection, &steps)?;
            insert_contexts(connection, &ids, &context)?;
            let row = |step: &NewStep<'_>| {
                rules::new_step(step.id, lease.execution_id, step.name, status, self.time(now))
            };
            Ok(steps.iter().map(row).collect())
        })
    }

    /// Implements `StepStore::names_with_history`.
    pub(super) fn names_of(&self, instance: JobInstanceId, names: &[String]) -> Result<BTreeSet<String>> {
        self.run(Tx::read("look for earlier partitions"), |connection, _| {
            let executions = execution_ids(connection, instance)?.into_iter().map(|id| id.0);
            let found: Vec<String> = step_execution::table
                .filter(one_of_many(step_execution::job_execution_id, executions))
                .filter(one_of_many(step_execution::step_name, names))
                .select(step_execution::step_name)
                .distinct()
                .load(connection)?;
            Ok(found.into_iter().collect())
        })
    }

    /// Implements `StepStore::steps`.
    pub(super) fn rows_of(&self, ids: &[StepExecutionId]) -> Result<Vec<(StepExecution, StepState)>> {
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        self.run(Tx::read("read step executions"), |connection, _| {
            let steps = rows(connection, &ids)?;
            let mut contexts: BTreeMap<i64, StoredContext> =
                step_contexts(connection, &ids)?.into_iter().collect();
            let with_state = |step: StepExecution| {
                let context = contexts.remove(&step.id.0);
                // Without a context row the step has no checkpoint. Spec: RESTART-17
                let state = context.map_or(Ok(StepState::default()), |context| {
                    step_state_of(connection, step.id, &context)
                });
                Ok((step, state?))
            };
            steps.into_iter().map(with_state).collect()
        })
    }
}

/// Returns the rows that this job execution has for these names.
fn inserted(connection: &mut Connection, lease: &Lease, names: &[String]) -> Work<Vec<StepExecution>> {
    let found: Vec<i64> = step_execution::table
        .filter(step_execution::job_execution_id.eq(lease.execution_id.0))
        .filter(one_of_many(step_execution::step_name, names))
        .select(step_execution::step_execution_id)
        .load(connection)?;
    match found.is_empty() {
        true => Ok(Vec::new()),
        false => rows(connection, &found),
    }
}

/// Gives new step executions the same context, by one statement.
fn insert_contexts(connection: &mut Connection, ids: &[i64], context: &StoredContext) -> QueryResult<()> {
    use diesel::sql_types::{Nullable, Text};
    step_execution::table
        .filter(one_of_many(step_execution::step_execution_id, ids))
        .select((
            step_execution::step_execution_id,
            context.short.as_str().into_sql::<Text>(),
            context.serialized.as_deref().into_sql::<Nullable<Text>>(),
        ))
        .insert_into(step_context::table)
        .into_columns((
            step_context::step_execution_id,
            step_context::short_context,
            step_context::serialized_context,
        ))
        .execute(connection)
        .map(drop)
}

/// Returns step executions, by id.
fn rows(connection: &mut Connection, ids: &[i64]) -> Work<Vec<StepExecution>> {
    let of_ids = step_execution::table.filter(one_of_many(step_execution::step_execution_id, ids));
    load_steps!(of_ids, connection)
}
