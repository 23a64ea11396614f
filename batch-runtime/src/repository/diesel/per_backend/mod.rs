//! The stores on one database. This module is compiled once for each database, as a child of the module in its folder: the
//! same text becomes queries of each database, which the compiler checks, at no cost at run time.
//!
//! It uses two names of the enclosing module: `Db`, the implementation of [`Backend`], and `schema`, its tables.

mod archive_store;
mod claim;
mod closing;
mod contexts;
mod executions;
mod job_store;
mod lease;
mod operator_store;
mod partitions;
#[cfg(test)]
mod races;
mod rows;
pub(super) mod step_store;
#[cfg(test)]
pub(super) mod tests;

use super::{Db, schema};
use crate::repository::RepositoryError;
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::session::Session;
use crate::repository::diesel::transaction_error::TransactionError;

type Connection = Session<<Db as Backend>::Connection>;
type Repository = DieselRepository<Db>;

/// The result of work in a transaction.
type Work<T, E = RepositoryError> = Result<T, TransactionError<E>>;

fn rejected<E: From<RepositoryError>>(error: RepositoryError) -> TransactionError<E> {
    TransactionError::Rejected(error.into())
}
