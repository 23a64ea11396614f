//! The job repository on a relational database, through diesel.

mod connection;
mod launch;
mod lease;
mod queries;
mod rows;
mod schema;
mod steps;
mod transaction;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use diesel::migration::MigrationSource;
use diesel::prelude::*;
use diesel::sqlite::Sqlite;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

pub(crate) use connection::Connector;
pub use connection::RepositoryConnection;
pub use transaction::ChunkTransaction;

use super::owner::Owner;
use crate::clock::Clock;
use crate::repository::RepositoryError;
use connection::{Database, Pool};

/// What the versions of our migrations begin with; those of the program's own begin with a year.
const OUR_VERSIONS: &str = "0000000000";
/// How long they are; diesel's own first migration is `00000000000000`.
const OUR_VERSION_LENGTH: usize = 13;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../migrations/sqlite");

/// A repository on SQLite, and this runtime as one of its owners.
pub(crate) struct DieselRepository {
    pool: Pool,
    owner: Owner,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
}

impl DieselRepository {
    /// Opens the database of `url` and brings its tables up to date.
    pub(crate) fn open(
        url: &str,
        clock: Arc<dyn Clock>,
        lease_time: Duration,
    ) -> Result<Self, RepositoryError> {
        let database = Database::from_url(url)?;
        let mut connection = database.connect_to_look()?;
        let complete = check_schema(&mut connection, &database)?;
        // Only now: what was refused is not ours to change.
        database.use_write_ahead_log(&mut connection)?;
        if !complete {
            migrate(&mut connection, &database)?;
        }
        // The database exists by now, which settles where its owners' locks are.
        let owner = Owner::new(database.owners_directory());
        let pool = Pool::new(database)?;
        pool.put_back(connection);
        Ok(Self {
            pool,
            owner,
            clock,
            lease_time,
        })
    }

    /// Whether there is a job repository at `url` already; opening it would make one.
    #[cfg(feature = "cli")]
    pub(crate) fn exists(url: &str) -> Result<bool, RepositoryError> {
        Database::from_url(url)?.holds_repository()
    }

    fn now(&self) -> i64 {
        self.clock.now().0
    }
}

#[derive(diesel::QueryableByName)]
struct Name {
    #[diesel(sql_type = diesel::sql_types::Text)]
    name: String,
}

fn unusable(database: &Database, problem: String) -> RepositoryError {
    RepositoryError::Schema {
        url: database.url().to_owned(),
        problem,
    }
}

/// Refuses tables of another make, without changing anything. Returns whether no migration is missing.
///
/// Spec: REPO-12
fn check_schema(connection: &mut RepositoryConnection, database: &Database) -> Result<bool, RepositoryError> {
    let refuse = |problem: String| unusable(database, problem);
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| refuse(error.to_string());
    let sqlite = connection.sqlite().map_err(|error| failed(error.into()))?;

    let names = |sqlite: &mut SqliteConnection, query: &str| -> QueryResult<Vec<String>> {
        let rows: Vec<Name> = diesel::sql_query(query).load(sqlite)?;
        Ok(rows.into_iter().map(|row| row.name).collect())
    };
    let tables = names(
        sqlite,
        "SELECT upper(name) AS name FROM sqlite_master WHERE type = 'table'",
    )
    .map_err(|error| failed(error.into()))?;
    let columns = names(
        sqlite,
        "SELECT upper(name) AS name FROM pragma_table_info('BATCH_JOB_EXECUTION_PARAMS')",
    )
    .map_err(|error| failed(error.into()))?;

    let has_table = |name: &str| tables.iter().any(|table| table == name);
    if columns.iter().any(|column| column == "PARAMETER_TYPE") {
        return Err(refuse(
            "its tables are those of Spring Batch 5 or later; this runtime keeps those of 4.3. Use another database".into(),
        ));
    }
    let known: Vec<String> = MigrationSource::<Sqlite>::migrations(&MIGRATIONS)
        .map_err(failed)?
        .iter()
        .map(|migration| migration.name().version().to_string())
        .collect();
    // The program's own diesel migrations may stand in the same table.
    let ours = |version: &String| version.starts_with(OUR_VERSIONS) && version.len() == OUR_VERSION_LENGTH;
    let applied: Vec<String> = if has_table("__DIESEL_SCHEMA_MIGRATIONS") {
        let applied = sqlite.applied_migrations().map_err(failed)?;
        applied.iter().map(ToString::to_string).filter(ours).collect()
    } else {
        Vec::new()
    };
    if has_table("BATCH_JOB_INSTANCE") && applied.is_empty() {
        return Err(refuse(
            "its BATCH_ tables were made by another program, and this version cannot adopt them. Use another database"
                .into(),
        ));
    }
    if let Some(newer) = applied.iter().find(|version| !known.contains(version)) {
        return Err(refuse(format!(
            "its schema has version {newer}, which this runtime does not know: it was made by a newer one. Update this \
             program"
        )));
    }
    Ok(known.iter().all(|version| applied.contains(version)))
}

/// Runs the migrations that are missing.
fn migrate(connection: &mut RepositoryConnection, database: &Database) -> Result<(), RepositoryError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| unusable(database, error.to_string());
    let sqlite = connection.sqlite().map_err(|error| failed(error.into()))?;
    // Two processes that open a new database at once: the second finds the migrations applied when it gets the lock.
    sqlite
        .immediate_transaction(|sqlite| {
            sqlite
                .run_pending_migrations(MIGRATIONS)
                .map(drop)
                .map_err(MigrationFailed)
        })
        .map_err(|MigrationFailed(error)| failed(error))
}

struct MigrationFailed(Box<dyn std::error::Error + Send + Sync>);

impl From<diesel::result::Error> for MigrationFailed {
    fn from(error: diesel::result::Error) -> Self {
        Self(error.into())
    }
}

#[cfg(test)]
mod tests;
