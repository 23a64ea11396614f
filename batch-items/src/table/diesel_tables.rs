//! The tables of the databases that diesel knows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use batch_runtime::JobExecutionId;
use batch_runtime::destination::{AnyDestination, DatabaseDestination, DatabaseName};
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use batch_runtime::repository::{DatabaseConnection, RepositoryConnection};
use batch_runtime::url::redact;
use diesel::QueryResult;
use diesel::result::Error as DieselError;

use super::catalogue::Table;
use super::database::TableDatabase;
use super::error::StatementError;
use super::plan::{Changed, Plan};
use crate::dataset::Datasets;
use crate::rows::{Kind, Rows};

/// Returns a table as its database describes it; without columns, if it does not exist.
pub(crate) fn describe(database: DatabaseConnection<'_>, table: &str) -> QueryResult<Table> {
    match database {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(connection) => super::sqlite::describe(connection, table),
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(connection) => super::postgres::describe(connection, table),
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(connection) => super::mysql::describe(connection, table),
        #[allow(
            unreachable_patterns,
            reason = "batch-runtime may have more databases than this crate"
        )]
        _ => Err(unsupported()),
    }
}

/// The catalogue, as a writer of a table asks it.
#[derive(BatchArtifact)]
pub struct Catalogue {
    /// The name or the URL of a database beside the repository; empty for the repository's.
    #[batch_property(name = "database", value = "")]
    database: DatabaseName,
    #[batch_context]
    job: JobContext,
    #[batch_artifact]
    datasets: Datasets,
    /// The description of the writer's table.
    known: Option<Arc<Table>>,
    /// A connection beside the transaction, once one was needed.
    #[cfg(feature = "postgres")]
    connection: Option<RepositoryConnection>,
}

/// The number of tables whose descriptions are kept.
const MOST_TABLES: usize = 16;

static KNOWN: Mutex<VecDeque<(Place, Arc<Table>)>> = Mutex::new(VecDeque::new());

/// A table, as one step of a job execution sees it: another step may have changed it. The partitions of a step, each with a writer of its
/// own, ask once.
#[derive(PartialEq, Eq)]
struct Place {
    database: String,
    execution: JobExecutionId,
    step: String,
    name: String,
}

impl Catalogue {
    /// Returns the database of the table, if it is not the repository's.
    pub(super) fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        if self.database.is_empty() {
            return Ok(None);
        }
        Ok(Some(
            DatabaseDestination::at(self.job.database(&self.database)?)?.into(),
        ))
    }

    /// Returns the connection that writes to the table, inside the transaction.
    pub(super) fn within<'a>(&self, tx: &'a mut ChunkTransaction) -> QueryResult<DatabaseConnection<'a>> {
        if self.database.is_empty() {
            return tx.any();
        }
        let connection = tx.destination::<RepositoryConnection>();
        let connection = connection.map_err(|error| DieselError::QueryBuilderError(error.chain().into()))?;
        Ok(connection.any())
    }

    /// Opens a connection beside the transaction.
    fn connect(&self) -> Result<RepositoryConnection, BatchError> {
        Ok(match self.database.is_empty() {
            true => self.job.connect()?,
            false => self.job.database(&self.database)?.connect()?,
        })
    }

    /// Reports the table as an output.
    pub(super) fn report(&self, table: &Table, name: &str) {
        let url = match self.database.is_empty() {
            true => String::new(),
            false => self
                .job
                .database(&self.database)
                .map_or_else(|_| String::new(), |url| url.to_string()),
        };
        let schema = table.schema.as_deref();
        self.datasets
            .report_table(DatasetRole::Output, &url, schema, name, table.fields());
    }

    /// Asks for a table when the writer opens.
    pub(super) fn open(&mut self, name: &str) -> Result<Arc<Table>, BatchError> {
        let place = self.place(name);
        let found = match place.as_ref().and_then(kept) {
            Some(found) => found,
            None => {
                let found = describe(self.connect()?.any(), name)?;
                let found = Arc::new(self.in_database(found));
                if let Some(place) = place {
                    keep(place, &found);
                }
                found
            }
        };
        self.known = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Asks again after an error, whose cause may be that the table has changed. Returns the table if it has.
    pub(super) fn changed(&mut self, name: &str, tx: &mut ChunkTransaction) -> Option<Table> {
        let known = self.known.clone()?;
        self.describe_again(name, tx).filter(|now| *now != *known)
    }

    fn describe_again(&mut self, name: &str, tx: &mut ChunkTransaction) -> Option<Table> {
        let now = match self.within(tx).ok()? {
            // PostgreSQL executes nothing after an error in a transaction.
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(_) => {
                if self.connection.is_none() {
                    self.connection = self.connect().ok();
                }
                let described = describe(self.connection.as_mut()?.any(), name);
                if described.is_err() {
                    self.connection = None;
                }
                described
            }
            database => describe(database, name),
        };
        now.ok().map(|table| self.in_database(table))
    }

    /// Adds the name of the database to the description of a table.
    fn in_database(&self, table: Table) -> Table {
        let named = (!self.database.is_empty()).then(|| redact(&self.database));
        Table {
            database: named,
            ..table
        }
    }

    /// Returns where the description is kept: asking SQLite takes no time, and its databases in memory have the same URL.
    fn place(&self, name: &str) -> Option<Place> {
        let (database, execution, step) = self.datasets.place()?;
        let database = match self.database.is_empty() {
            true => database,
            false => self.job.database(&self.database).ok()?.to_string(),
        };
        (!database.starts_with("sqlite:")).then(|| Place {
            database,
            execution,
            step,
            name: name.to_owned(),
        })
    }
}

impl TableDatabase for Catalogue {
    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        self.destination()
    }

    fn describe(&mut self, table: &str) -> Result<Arc<Table>, BatchError> {
        self.open(table)
    }

    fn describe_again(&mut self, table: &str, tx: &mut ChunkTransaction) -> Option<Table> {
        self.describe_again(table, tx)
    }

    fn report(&self, table: &Table, name: &str) {
        self.report(table, name);
    }

    fn execute(
        &mut self,
        tx: &mut ChunkTransaction,
        plan: &Plan,
        kinds: &[Kind],
        rows: &Rows,
    ) -> Result<Changed, StatementError> {
        let connection = self.within(tx)?;
        Ok(match connection {
            #[cfg(feature = "sqlite")]
            DatabaseConnection::Sqlite(connection) => super::sqlite::execute(connection, plan, kinds, rows),
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(connection) => {
                super::postgres::execute(connection, plan, kinds, rows)
            }
            #[cfg(feature = "mysql")]
            DatabaseConnection::Mysql(connection) => super::mysql::execute(connection, plan, kinds, rows),
            #[allow(
                unreachable_patterns,
                reason = "batch-runtime may have more databases than this crate"
            )]
            _ => Err(unsupported()),
        }?)
    }
}

fn kept(place: &Place) -> Option<Arc<Table>> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|(other, _)| other == place);
    found.map(|(_, table)| Arc::clone(table))
}

fn keep(place: Place, table: &Arc<Table>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.truncate(MOST_TABLES - 1);
    known.push_front((place, Arc::clone(table)));
}

fn unsupported() -> DieselError {
    DieselError::QueryBuilderError(
        "batch-items is compiled without this database; enable its feature `postgres` or `mysql`".into(),
    )
}
