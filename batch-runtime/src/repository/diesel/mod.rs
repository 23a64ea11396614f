//! The job repository on a relational database, through diesel.
//!
//! The files in `common/` are compiled once for each database, as modules of `sqlite`, `postgres` and `mysql`: the same
//! queries, on that one's connection and tables, at no cost. What they take from the module around them is what the
//! databases do differently.
#![allow(
    clippy::duplicate_mod,
    reason = "the files in common/ are compiled for each database"
)]

mod connection;
mod database;
mod migrations;
mod moment;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod prefix;
mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
mod transaction;
mod url;

use std::sync::Arc;
use std::time::Duration;

pub use connection::RepositoryConnection;
pub(crate) use database::Connector;
pub use transaction::ChunkTransaction;

use super::owner::Owner;
use crate::clock::Clock;
use crate::repository::{JobRepository, RepositoryError, zoned};
use crate::time_zone::TimeZone;
use database::{Database, Pool};
use url::{Scheme, table_prefix};

pub(crate) use url::shown as shown_url;

#[cfg(not(any(feature = "sqlite", feature = "postgres", feature = "mysql")))]
compile_error!("enable one of the features `sqlite`, `postgres` and `mysql`: a repository needs a database");

/// A repository on a database, and this runtime as one of its owners.
struct DieselRepository<D: Database> {
    pool: Pool<D>,
    owner: Owner,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
}

impl<D: Database> DieselRepository<D> {
    fn now(&self) -> i64 {
        self.clock.now().0
    }
}

/// Opens the database of `url` and brings its tables up to date. Its TIMESTAMP columns hold the wall-clock time of `zone`,
/// but for SQLite's.
///
/// Spec: REPO-06
pub(crate) fn open(
    url: &str,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
    zone: &TimeZone,
) -> Result<Arc<dyn JobRepository>, RepositoryError> {
    let scheme = Scheme::of(url)?;
    if scheme.is_zoned() && *zone != TimeZone::UTC {
        return zoned::open(zone, clock, |clock| open(url, clock, lease_time, &TimeZone::UTC));
    }
    let (url, prefix) = table_prefix(url)?;
    Ok(match scheme {
        #[cfg(feature = "sqlite")]
        Scheme::Sqlite => Arc::new(sqlite::open(&url, prefix.in_upper_case(), clock, lease_time)?),
        #[cfg(feature = "postgres")]
        Scheme::Postgres => Arc::new(postgres::open(&url, prefix.in_lower_case(), clock, lease_time)?),
        #[cfg(feature = "mysql")]
        Scheme::Mysql => Arc::new(mysql::open(&url, prefix, clock, lease_time)?),
    })
}

/// Whether `url` can mean a repository, without a look at it.
pub(crate) fn check_url(url: &str) -> Result<(), RepositoryError> {
    Scheme::of(url)?;
    table_prefix(url)?;
    #[cfg(feature = "sqlite")]
    if Scheme::of(url)? == Scheme::Sqlite {
        return sqlite::check_url(&table_prefix(url)?.0);
    }
    Ok(())
}

/// Statements that make tables, with the names that the tables of `url` have.
pub(crate) fn named_as_in(url: &str, statements: &str) -> Result<String, RepositoryError> {
    let (_, prefix) = table_prefix(url)?;
    Ok(prefix.rename_all(statements))
}

/// The names of the migrations that opening `url` would run; `None` if there is no job repository yet. Changes nothing.
pub(crate) fn missing_migrations(url: &str) -> Result<Option<Vec<String>>, RepositoryError> {
    let scheme = Scheme::of(url)?;
    let (url, prefix) = table_prefix(url)?;
    match scheme {
        #[cfg(feature = "sqlite")]
        Scheme::Sqlite => sqlite::missing_migrations(&url, prefix.in_upper_case()),
        #[cfg(feature = "postgres")]
        Scheme::Postgres => postgres::missing_migrations(&url, prefix.in_lower_case()),
        #[cfg(feature = "mysql")]
        Scheme::Mysql => mysql::missing_migrations(&url, prefix),
    }
}
