//! The allocation of ids.

use diesel::result::{Error as DieselError, QueryResult};

use super::backend::{Backend, Sequence};
use super::pool::Pool;
use super::session::Session;

/// A database with the sequences of the repository.
pub(super) trait Sequences: Backend {
    /// Allocates ids from a sequence, as Spring Batch does, in ascending order.
    // Spec: REPO-18 to REPO-22
    fn next_ids(
        pool: &Pool<Self>,
        connection: &mut Session<Self::Connection>,
        sequence: Sequence,
        count: usize,
    ) -> QueryResult<Vec<i64>>;

    /// Allocates an id.
    fn next_id(
        pool: &Pool<Self>,
        connection: &mut Session<Self::Connection>,
        sequence: Sequence,
    ) -> QueryResult<i64> {
        let ids = Self::next_ids(pool, connection, sequence, 1)?;
        ids.into_iter().next().ok_or(DieselError::NotFound)
    }
}
