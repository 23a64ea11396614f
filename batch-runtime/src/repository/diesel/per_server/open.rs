//! Opening a repository on a server.

use std::sync::Arc;
use std::time::Duration;

use super::{Connection, Db, layout};
use crate::clock::Clock;
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::migrations::{Failure, Layout, MigrationFailed};
use crate::repository::diesel::pool::Pool;
use crate::repository::diesel::session::{Session, SessionSettings};
use crate::repository::diesel::url::shown;
use crate::repository::owner::Owner;
use crate::repository::{Observations, RepositoryError};

/// Opens the database of `url` and brings its tables up to date.
pub(in crate::repository::diesel) fn open(
    url: &str,
    settings: SessionSettings,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
) -> Result<DieselRepository<Db>, RepositoryError> {
    let (database, mut connection, layout) = connect(url, &settings)?;
    let unusable = |problem: Failure| RepositoryError::Schema {
        url: shown(url),
        problem,
    };
    let applied = Db::MIGRATIONS.are_applied(&mut connection, &layout);
    if !applied.map_err(unusable)? {
        Db::migrate(&mut connection).map_err(|MigrationFailed(error)| unusable(error))?;
    }
    let pool = Pool::new(database, settings.clone(), lease_time)?;
    pool.put_back(connection);
    let repository = DieselRepository {
        pool,
        // Whether the process of an owner is alive cannot be checked; only its lease counts.
        owner: Owner::new(None, 0),
        observations: Observations::new(lease_time),
        clock,
        lease_time,
        settings,
    };
    repository.sweep_owners();
    Ok(repository)
}

/// Returns the names of the migrations that opening the repository would run; `None` if there is no repository yet.
pub(in crate::repository::diesel) fn missing_migrations(
    url: &str,
    settings: SessionSettings,
) -> Result<Option<Vec<String>>, RepositoryError> {
    let (_, mut connection, layout) = connect(url, &settings)?;
    Db::MIGRATIONS
        .names_of_missing(&mut connection, &layout)
        .map_err(|problem| RepositoryError::Schema {
            url: shown(url),
            problem,
        })
}

/// Connects and reads the layout. Changes nothing.
fn connect(url: &str, settings: &SessionSettings) -> Result<(Db, Connection, Layout), RepositoryError> {
    let database = Db::from_url(url);
    let mut connection = Session::new(database.connect()?, settings.clone());
    let layout = layout(&mut connection).map_err(|error| RepositoryError::Schema {
        url: shown(url),
        problem: error.into(),
    })?;
    Ok((database, connection, layout))
}
