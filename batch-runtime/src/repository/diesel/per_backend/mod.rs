//! The stores on one database. This module is compiled once for each database, as a child of the module in its folder: the
//! same text becomes queries of each database, which the compiler checks, at no cost at run time.
//!
//! It uses two names of the enclosing module: `Db`, the implementation of [`Backend`], and `schema`, its tables.

mod archive_store;
mod claim;
mod closing;
pub(super) mod contexts;
pub(super) mod conversion;
mod conversion_plan;
mod executions;
mod job_store;
mod launch_store;
#[cfg(test)]
mod launch_tests;
mod lease;
#[cfg(test)]
mod notification_tests;
mod notifications;
mod operator_store;
mod overview_store;
mod parameters;
mod partition_rows;
#[cfg(test)]
mod partition_tests;
mod partitions;
mod payloads;
mod queue_store;
#[cfg(test)]
mod races;
mod rows;
pub(super) mod step_bounds;
pub(super) mod step_store;
#[cfg(test)]
pub(super) mod tests;
mod turns;

use super::{Db, schema};
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::migrations::{Catalog, Name};
use crate::repository::diesel::session::{RunQueryDsl, Session};
use crate::repository::diesel::transaction_error::TransactionError;
use crate::repository::{JobRepository, RepositoryError, Result, WorkerStore};

type Connection = Session<<Db as Backend>::Connection>;
type Repository = DieselRepository<Db>;

/// The result of work in a transaction.
type Work<T, E = RepositoryError> = Result<T, TransactionError<E>>;

impl JobRepository for Repository {
    fn worker_store(&self) -> Result<&dyn WorkerStore> {
        Ok(self)
    }
}

/// Reads which tables and columns exist, and which migrations are applied.
pub(super) fn catalog(connection: &mut Connection) -> diesel::QueryResult<Catalog> {
    let query = diesel::sql_query(Db::columns(&connection.settings().prefix));
    // The query names the prefix itself.
    let columns: Vec<Name> = diesel::RunQueryDsl::load(query, &mut **connection)?;
    let mut catalog = Catalog::new(columns, &connection.settings().prefix);
    if let Some(listed) = catalog.query_for_listed() {
        catalog.set_listed(diesel::sql_query(listed).load(connection)?);
    }
    Ok(catalog)
}

fn rejected<E: From<RepositoryError>>(error: RepositoryError) -> TransactionError<E> {
    TransactionError::Rejected(error.into())
}

/// Returns the rejection of a write because another runtime has taken the execution over.
// Spec: REPO-15
fn fenced<E: From<RepositoryError>>(action: &'static str) -> TransactionError<E> {
    rejected(RepositoryError::Fenced { action })
}

/// Fails if no row has the VERSION that this runner wrote last.
fn fenced_if_none(changed: usize, action: &'static str) -> Work<()> {
    match changed {
        1 => Ok(()),
        _ => Err(fenced(action)),
    }
}

fn corrupt<E: From<RepositoryError>>(
    row: String,
    problem: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> TransactionError<E> {
    rejected(RepositoryError::Corrupt {
        row,
        problem: problem.into(),
    })
}
