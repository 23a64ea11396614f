//! A query that failed.

use std::error::Error;
use std::fmt;

use batch_runtime::ConnectionLost;
use batch_runtime::prelude::*;
use batch_runtime::repository::RepositoryConnection;

/// A query that failed.
#[derive(Debug, BatchException)]
pub struct QueryError {
    action: &'static str,
    cause: Box<dyn Error + Send + Sync>,
}

impl QueryError {
    /// Creates an error of an action, such as `run the query`.
    pub fn new(action: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            action,
            cause: cause.into(),
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.action, self.cause)
    }
}

impl Error for QueryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

/// Returns the error of a query that has failed on a connection.
pub(super) fn failed_query(
    connection: &mut RepositoryConnection,
    error: diesel::result::Error,
) -> QueryError {
    match connection.is_lost() {
        true => QueryError::new("run the query", ConnectionLost::new(error)),
        false => QueryError::new("run the query", error),
    }
}
