//! A repository on a server: opened, or only looked at.

use std::sync::Arc;
use std::time::Duration;

use super::super::database::{Database as _, Pool};
use super::super::migrations::{Layout, MigrationFailed};
use super::super::prefix::{Session, TablePrefix};
use super::super::url::shown;
use super::{Connection, Database, MIGRATIONS, Repository, layout, migrate};
use crate::clock::Clock;
use crate::repository::RepositoryError;
use crate::repository::owner::Owner;

/// Opens the database of `url` and brings its tables up to date.
pub(in crate::repository::diesel) fn open(
    url: &str,
    prefix: TablePrefix,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
) -> Result<Repository, RepositoryError> {
    let (database, mut connection, layout) = look(url, &prefix)?;
    let unusable = |problem: String| RepositoryError::Schema {
        url: shown(url),
        problem,
    };
    let applied = MIGRATIONS.are_applied(&mut connection, &layout);
    if !applied.map_err(|error| unusable(error.to_string()))? {
        migrate(&mut connection).map_err(|MigrationFailed(error)| unusable(error.to_string()))?;
    }
    let pool = Pool::new(database, prefix, lease_time)?;
    pool.put_back(connection);
    Ok(Repository {
        pool,
        // Whether a process lives cannot be seen beside a server; the lease tells.
        owner: Owner::new(None),
        clock,
        lease_time,
    })
}

/// The names of the migrations that opening it would run; `None` if there is no job repository yet.
pub(in crate::repository::diesel) fn missing_migrations(
    url: &str,
    prefix: TablePrefix,
) -> Result<Option<Vec<String>>, RepositoryError> {
    let (_, mut connection, layout) = look(url, &prefix)?;
    MIGRATIONS
        .names_of_missing(&mut connection, &layout)
        .map_err(|error| RepositoryError::Schema {
            url: shown(url),
            problem: error.to_string(),
        })
}

/// What is there; changes nothing.
fn look(url: &str, prefix: &TablePrefix) -> Result<(Database, Connection, Layout), RepositoryError> {
    let database = Database::from_url(url);
    let mut connection = Session::new(database.connect()?, prefix.clone());
    let layout = layout(&mut connection).map_err(|error| RepositoryError::Schema {
        url: shown(url),
        problem: error.to_string(),
    })?;
    Ok((database, connection, layout))
}
