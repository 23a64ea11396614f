//! The job repository on a relational database, through diesel.
//!
//! [`backend::Backend`] declares what a database must supply. `per_backend/` implements the stores; it is compiled once for
//! each database, as a module of its folder, so each query is checked against that database's types and costs nothing at run
//! time. `pool.rs` begins, commits, rolls back and repeats transactions.
#![allow(
    clippy::duplicate_mod,
    reason = "per_backend and per_server are compiled for each database"
)]

mod backend;
mod chunk_transaction;
mod connection;
mod db_timestamp;
mod destination;
mod error_class;
mod fixed_sql;
mod migrations;
#[cfg(feature = "mysql")]
mod mysql;
mod one_of;
mod pool;
#[cfg(feature = "postgres")]
mod postgres;
mod schema;
mod sequences;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
mod table_prefix;
mod transaction_error;
mod update;
mod url;

use std::convert::identity;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use chunk_transaction::ChunkTransaction;
pub use connection::{DatabaseConnection, RepositoryConnection};
pub use destination::DatabaseDestination;
pub use error_class::ErrorClass;
pub(super) use error_class::class_of;
pub(super) use migrations::current_in;
pub(crate) use pool::Connector;

use super::conversion::{Backup, LayoutConversion};
use super::owner::Owner;
use crate::clock::{Clock, Timestamp};
use crate::notify::NotificationRules;
use crate::repository::{
    DatabaseKind, JobRepository, Observations, RepositoryConfig, RepositoryError, RepositoryLayout, Result,
};
use crate::time_zone::TimeZone;
use backend::Backend;
use db_timestamp::DbTimestamp;
use pool::{Pool, Tx};
use session::{Session, SessionSettings};
use transaction_error::TransactionError;
use url::{database_of, own_options};

pub(crate) use url::shown as shown_url;

#[cfg(not(any(feature = "sqlite", feature = "postgres", feature = "mysql")))]
compile_error!("enable one of the features `sqlite`, `postgres` and `mysql`: a repository needs a database");

/// Calls a function of the module of a database, and converts its result.
macro_rules! on_database {
    ($database:expr, $function:ident $arguments:tt, $convert:expr) => {
        match $database {
            #[cfg(feature = "sqlite")]
            DatabaseKind::Sqlite => sqlite::$function $arguments.map($convert),
            #[cfg(feature = "postgres")]
            DatabaseKind::Postgresql => postgres::$function $arguments.map($convert),
            #[cfg(feature = "mysql")]
            DatabaseKind::Mysql => mysql::$function $arguments.map($convert),
            #[allow(
                unreachable_patterns,
                reason = "`database_of` rejects what this build does not support"
            )]
            _ => Err(RepositoryError::Fault),
        }
    };
}

/// A repository on a database, and this runtime as one of its owners.
struct DieselRepository<D: Backend> {
    pool: Pool<D>,
    owner: Owner,
    observations: Observations,
    /// The registrations of dead workers whose sessions were ended: name and expiry.
    ended_workers: Mutex<Vec<(String, i64)>>,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
    notifications: NotificationRules,
    settings: SessionSettings,
}

impl<D: Backend> DieselRepository<D> {
    /// Creates a repository with its first connection, which has adopted the layout of the tables.
    fn new(
        database: D,
        connection: Session<D::Connection>,
        owner: Owner,
        config: RepositoryConfig,
    ) -> Result<Self> {
        let settings = connection.settings().clone();
        let pool = Pool::new(database, settings.clone(), config.lease_time)?;
        pool.put_back(connection);
        Ok(Self {
            pool,
            owner,
            observations: Observations::new(config.lease_time),
            ended_workers: Mutex::default(),
            clock: config.clock,
            lease_time: config.lease_time,
            notifications: config.notifications,
            settings,
        })
    }

    /// Runs `work` on a connection of the pool: see [`Pool::run`].
    fn run<T, E: From<RepositoryError>>(
        &self,
        tx: Tx,
        work: impl FnMut(&mut Session<D::Connection>, bool) -> Result<T, TransactionError<E>>,
    ) -> Result<T, E> {
        self.pool.run(tx, work)
    }

    /// Returns the current time as a column stores it.
    fn now(&self) -> DbTimestamp {
        self.column(self.clock.now())
    }

    /// Returns the current time as it is read again from a column.
    fn now_as_read(&self) -> Timestamp {
        self.time(self.now())
    }

    fn column(&self, time: Timestamp) -> DbTimestamp {
        self.settings.to_column(time)
    }

    fn time(&self, column: DbTimestamp) -> Timestamp {
        self.settings.to_time(column)
    }
}

/// Opens the database of `url` and brings its tables up to date. Except on SQLite, its TIMESTAMP columns hold the wall-clock
/// time of `zone`.
// Spec: REPO-06
pub(crate) fn open_database(url: &str, config: RepositoryConfig) -> Result<Arc<dyn JobRepository>> {
    let database = database_of(url)?;
    let (url, settings) = settings(url, database, &config.zone)?;
    on_database!(database, open(&url, settings, config), |opened| Arc::new(opened)
        as Arc<dyn JobRepository>)
}

/// Opens a connection to the database of `url`, and does not check its contents.
pub(crate) fn connect(url: &str) -> Result<RepositoryConnection> {
    let database = database_of(url)?;
    let (url, _) = own_options(url)?;
    on_database!(database, connect_to(&url), RepositoryConnection::from)
}

/// Splits the settings from the URL that the database's library gets.
fn settings(url: &str, database: DatabaseKind, zone: &TimeZone) -> Result<(String, SessionSettings)> {
    let (url, own) = own_options(url)?;
    let mut settings = SessionSettings {
        prefix: own.prefix,
        wanted_layout: own.layout,
        ..SessionSettings::default()
    };
    if let Some(length) = own.max_varchar {
        settings.format.max_varchar = length;
    }
    // SQLite's columns hold points in time.
    if database != DatabaseKind::Sqlite {
        settings.zone = zone.clone();
    }
    settings.format.zone = zone.clone();
    Ok((url, settings))
}

/// Checks that `url` is valid, without connecting.
pub(crate) fn check_url(url: &str) -> Result<()> {
    match database_of(url)? {
        #[cfg(feature = "sqlite")]
        DatabaseKind::Sqlite => sqlite::check_url(&own_options(url)?.0),
        _ => own_options(url).map(drop),
    }
}

/// Returns statements that create tables, with the table prefix of `url`.
pub(crate) fn named_as_in(url: &str, statements: &str) -> Result<String> {
    Ok(own_options(url)?.1.prefix.rename_all(statements))
}

/// Converts the tables of `url` to another layout; without `backup`, only finds out what that does.
pub(crate) fn convert(
    url: &str,
    zone: &TimeZone,
    to: RepositoryLayout,
    backup: Option<Backup<'_>>,
) -> Result<LayoutConversion> {
    let database = database_of(url)?;
    let (url, settings) = settings(url, database, zone)?;
    if database == DatabaseKind::Memory {
        return Err(RepositoryError::InMemory { missing: "tables" });
    }
    on_database!(database, convert(&url, settings, to, backup), identity)
}

/// Returns the layout that a new repository at a URL gets. The URL was checked before.
pub(crate) fn layout_of(url: &str) -> RepositoryLayout {
    let own = own_options(url).map(|(_, own)| own.layout);
    own.ok().flatten().unwrap_or_default()
}

/// Returns the names of the migrations that opening `url` would run; `None` if there is no repository yet. Changes nothing.
pub(crate) fn missing_migrations(url: &str) -> Result<Option<(RepositoryLayout, Vec<String>)>> {
    let database = database_of(url)?;
    let (url, settings) = settings(url, database, &TimeZone::UTC)?;
    on_database!(database, missing_migrations(&url, settings), identity)
}
