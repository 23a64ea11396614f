//! Row locks until the end of the transaction, on databases with several writers at a time.

use diesel::prelude::*;

use super::schema::{job_execution, job_instance, partition_ticket, step_execution};
use super::{Connection, Db};
use crate::repository::diesel::backend::{Backend, TicketRow, WantedTickets};
use crate::repository::diesel::one_of::none_of;
use crate::repository::diesel::session::RunQueryDsl;

/// Implements `Backend::lock_instance`.
pub(in crate::repository::diesel) fn lock_instance(
    connection: &mut Connection,
    instance: i64,
) -> QueryResult<bool> {
    let found: Option<i64> = job_instance::table
        .find(instance)
        .select(job_instance::job_instance_id)
        .for_update()
        .first(connection)
        .optional()?;
    Ok(found.is_some())
}

/// Implements `Backend::lock_executions`.
pub(in crate::repository::diesel) fn lock_executions(
    connection: &mut Connection,
    instance: i64,
) -> QueryResult<()> {
    let _: Vec<i64> = job_execution::table
        .filter(job_execution::job_instance_id.eq(instance))
        .select(job_execution::job_execution_id)
        // Always in this order, so that two transactions do not wait for each other.
        .order(job_execution::job_execution_id.asc())
        .for_update()
        .load(connection)?;
    Ok(())
}

/// Implements `Backend::lock_step`.
pub(in crate::repository::diesel) fn lock_step(connection: &mut Connection, step: i64) -> QueryResult<()> {
    let _: Option<i64> = step_execution::table
        .find(step)
        .select(step_execution::step_execution_id)
        .for_update()
        .first(connection)
        .optional()?;
    Ok(())
}

/// Implements `Backend::lock_tickets`.
pub(in crate::repository::diesel) fn lock_tickets(
    connection: &mut Connection,
    wanted: &WantedTickets<'_>,
) -> QueryResult<Vec<TicketRow>> {
    partition_ticket::table
        .filter(partition_ticket::queue_name.eq(wanted.queue))
        .filter(partition_ticket::available_at.le(Db::now()))
        .filter(none_of(partition_ticket::fingerprint, wanted.except))
        .order(partition_ticket::step_execution_id.asc())
        .limit(wanted.count)
        .select((
            partition_ticket::step_execution_id,
            partition_ticket::job_execution_id,
            partition_ticket::attempt,
            partition_ticket::fingerprint,
        ))
        .for_update()
        .skip_locked()
        .load(connection)
}
