//! Rows that are locked until the end of the transaction, on databases where several write at the same time.
//!
//! Everybody locks in this order, so that nobody waits for somebody who waits for him: job instance, job executions, step
//! executions and their contexts, lease.

use diesel::prelude::*;

use super::schema::{batch_job_execution, batch_job_instance, batch_step_execution};
use super::{Connection, RunQueryDsl};

/// Of those who launch, restart or stop executions of an instance, lets one after the other in.
/// `false` when it has been deleted meanwhile.
pub(super) fn lock_instance(connection: &mut Connection, instance: i64) -> QueryResult<bool> {
    let found: Option<i64> = batch_job_instance::table
        .find(instance)
        .select(batch_job_instance::job_instance_id)
        .for_update()
        .first(connection)
        .optional()?;
    Ok(found.is_some())
}

/// Keeps the runners of an instance from beginning anything, and from ending.
pub(super) fn lock_executions(connection: &mut Connection, instance: i64) -> QueryResult<()> {
    let _: Vec<i64> = batch_job_execution::table
        .filter(batch_job_execution::job_instance_id.eq(instance))
        .select(batch_job_execution::job_execution_id)
        .order(batch_job_execution::job_execution_id.asc())
        .for_update()
        .load(connection)?;
    Ok(())
}

/// Waits for who is writing a step execution.
pub(super) fn lock_step(connection: &mut Connection, step: i64) -> QueryResult<()> {
    let _: Option<i64> = batch_step_execution::table
        .find(step)
        .select(batch_step_execution::step_execution_id)
        .for_update()
        .first(connection)
        .optional()?;
    Ok(())
}
