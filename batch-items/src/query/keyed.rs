//! A query that is asked for single rows.

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;
use batch_runtime::repository::RepositoryConnection;

use super::database::{connect, key_syntax, load};
use super::error::{QueryError, failed_query};
use super::page::{KeySyntax, Statement};
use super::parameters::{Parameters, Query};
use super::position::{Key, not_unique};
use super::reader::statement;
use crate::record::{Record, Value};

/// A query that is asked for the row with a key, on a connection of its own.
pub(crate) struct KeyedQuery {
    connection: RepositoryConnection,
    query: Statement,
    syntax: KeySyntax,
}

impl KeyedQuery {
    /// Connects to the database.
    ///
    /// # Errors
    /// If the database cannot be reached. A query that the database rejects is an error that no step skips.
    pub(crate) fn open(
        job: &JobContext,
        database: &str,
        query: &Query,
        parameters: &Parameters,
        key: &[String],
    ) -> Result<Self, BatchError> {
        let connection = connect(job, database);
        let mut connection =
            connection.map_err(|cause| QueryError::new("open the database of the look-up", cause))?;
        let query = statement(&mut connection, query, parameters).map_err(ConfigurationError::new)?;
        let checked = key_syntax(&mut connection, &query, key).and_then(|syntax| {
            let _: Vec<Record> = load(&mut connection, query.no_rows(key, &syntax))?;
            Ok(syntax)
        });
        match checked {
            Ok(syntax) => Ok(Self {
                connection,
                query,
                syntax,
            }),
            Err(error) if connection.is_lost() => Err(failed_query(&mut connection, error).into()),
            Err(error) => Err(ConfigurationError::new(QueryError::new("run the query", error)).into()),
        }
    }

    /// Returns the row with a key.
    ///
    /// # Errors
    /// If the query fails, or two rows have the key.
    pub(crate) fn find(&mut self, key: &[String], of: &Value) -> Result<Option<Record>, QueryError> {
        let of = vec![Key::from(of.clone())];
        let rows = self.query.rows_of(key, &of, &self.syntax);
        let mut rows: Vec<Record> =
            load(&mut self.connection, rows).map_err(|error| failed_query(&mut self.connection, error))?;
        match rows.len() {
            0 | 1 => Ok(rows.pop()),
            _ => Err(not_unique(key, &[&of])),
        }
    }
}
