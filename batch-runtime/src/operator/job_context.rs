//! The operator, as artifacts of a running job get it from their context.

use super::{JobOperator, Shared};
use crate::connection_string::ConnectionString;
use crate::context::JobContext;
use crate::error::ConfigurationError;
use crate::named_database::{NamedDatabase, unknown_database};
use crate::repository::RepositoryUrl;

impl JobContext {
    /// Returns the operator of the runtime that runs the job. A batchlet can use it to launch another job and wait for it. `None` in a test
    /// of an artifact alone, which has no runtime.
    ///
    /// A chunk that has written in its transaction holds locks until its commit, so do not launch a job there.
    // Spec: OP-37
    pub fn job_operator(&self) -> Option<JobOperator> {
        let shared = self.runtime().upgrade()?.downcast::<Shared>().ok()?;
        Some(JobOperator { shared })
    }

    /// Returns the URL of a database beside the repository: `database` is the name that
    /// [`BatchRuntimeBuilder::database`](crate::BatchRuntimeBuilder::database) or the table `[databases]` of `batch.toml` gives it, or a
    /// URL.
    ///
    /// # Errors
    /// If there is no such name, or the URL is not valid.
    // Spec: MARK-13
    pub fn database(&self, database: &str) -> Result<RepositoryUrl, ConfigurationError> {
        match self.named_database(database)? {
            NamedDatabase::Url(url) => Ok(url),
            NamedDatabase::Other(other) => Err(ConfigurationError::new(format!(
                "`{other}` is a connection string, not a URL; use the readers and writers of batch-odbc, such as `odbcRecordReader` and `recordOdbcTableWriter`"
            ))),
        }
    }

    /// Returns the connection string of a database beside the repository: `database` is its name, as for [`database`](Self::database), or the
    /// connection string.
    ///
    /// # Errors
    /// If there is no such name, or it names a URL.
    // Spec: MARK-13
    pub fn connection_string(&self, database: &str) -> Result<ConnectionString, ConfigurationError> {
        match self.named_database(database)? {
            NamedDatabase::Other(other) => Ok(other),
            NamedDatabase::Url(url) => Err(ConfigurationError::new(format!(
                "`{url}` is a URL; expected a connection string such as `odbc:DSN=erp`"
            ))),
        }
    }

    fn named_database(&self, database: &str) -> Result<NamedDatabase, ConfigurationError> {
        if database.contains(':') {
            return database.parse().map_err(ConfigurationError::new);
        }
        let operator = self.job_operator();
        let known = operator.as_ref().map(|operator| &operator.shared.databases);
        if let Some(found) = known.and_then(|known| known.get(database)) {
            return Ok(found.clone());
        }
        let names = known.into_iter().flatten().map(|(name, _)| name.as_str());
        Err(ConfigurationError::new(unknown_database(database, names)))
    }
}
