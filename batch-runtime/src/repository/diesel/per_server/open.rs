//! Opening a repository on a server.

use std::time::{Duration, Instant};

use super::{Connection, Db, catalog, conversion};
use crate::repository::conversion::{Backup, LayoutConversion};
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::migrations::{Catalog, Failure, MigrationFailed};
use crate::repository::diesel::pool::Retries;
use crate::repository::diesel::session::{Session, SessionSettings};
use crate::repository::diesel::url::shown;
use crate::repository::owner::Owner;
use crate::repository::{RepositoryConfig, RepositoryError, RepositoryLayout, Result};

/// Opens the database of `url` and brings its tables up to date.
pub(in crate::repository::diesel) fn open(
    url: &str,
    settings: SessionSettings,
    config: RepositoryConfig,
) -> Result<DieselRepository<Db>> {
    // Whether the process of an owner is alive cannot be checked; only its lease counts.
    let owner = Owner::new(None, 0);
    let (database, mut connection, mut found) = connect(url, settings, &owner)?;
    let unusable = |problem: Failure| RepositoryError::Schema {
        url: shown(url),
        problem,
    };
    let are_applied = match Db::MIGRATIONS.are_applied(&mut connection, &found) {
        // Another process may be creating the tables, one after the other: `migrate` waits for it, and looks again.
        Err(_) if Db::COMMITS_SCHEMA_CHANGES && !found.is_between_layouts() => false,
        are_applied => are_applied.map_err(unusable)?,
    };
    if !are_applied {
        Db::migrate(&mut connection).map_err(|MigrationFailed(error)| unusable(error))?;
        found = catalog(&mut connection).map_err(|error| unusable(error.into()))?;
    }
    connection.adopt(&found);
    let repository = DieselRepository::new(database, connection, owner, config)?;
    repository.sweep_owners();
    Ok(repository)
}

/// Opens a connection, and does not check the contents of the database.
pub(in crate::repository::diesel) fn connect_to(url: &str) -> Result<<Db as Backend>::Connection> {
    Db::new(url, Owner::new(None, 0).nonce()).connect()
}

/// Returns the names of the migrations that opening the repository would run; `None` if there is no repository yet.
pub(in crate::repository::diesel) fn missing_migrations(
    url: &str,
    settings: SessionSettings,
) -> Result<Option<(RepositoryLayout, Vec<String>)>> {
    let (_, mut connection, found) = connect(url, settings, &Owner::new(None, 0))?;
    Db::MIGRATIONS
        .names_of_missing(&mut connection, &found)
        .map_err(|problem| RepositoryError::Schema {
            url: shown(url),
            problem,
        })
}

/// Converts the tables to another layout; without `backup`, only finds out what that does.
pub(in crate::repository::diesel) fn convert(
    url: &str,
    settings: SessionSettings,
    to: RepositoryLayout,
    backup: Option<Backup<'_>>,
) -> Result<LayoutConversion> {
    let failed = |problem| RepositoryError::Schema {
        url: shown(url),
        problem,
    };
    let (database, mut connection, found) = connect(url, settings, &Owner::new(None, 0))?;
    if found.layout().is_none() {
        return Err(failed("it has no tables".into()));
    }
    connection.accept_any_layout();
    let lock_out = match backup {
        Some(_) => database
            .lock_out_launches(connection.settings())
            .map_err(failed)?,
        None => None,
    };
    conversion::run(connection, to, backup, lock_out).map_err(failed)
}

/// Opens the first connection. Waits for a server that is starting, perhaps together with this program.
fn connect_first(database: &Db) -> Result<<Db as Backend>::Connection> {
    let begin = Instant::now();
    let mut retries = Retries::within(Duration::MAX);
    loop {
        let error = match database.connect() {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        if begin.elapsed() >= patience_with(&error.to_string()) || !retries.pause(&error) {
            return Err(error);
        }
    }
}

/// Returns how long to wait when a connection failed with this message. Not long for a server that does not answer, because
/// its address may be wrong.
fn patience_with(message: &str) -> Duration {
    // "is starting up", "is shutting down", "is not yet accepting connections" and others.
    const STARTING: &str = "the database system is ";
    const NO_ANSWER: [&str; 5] = [
        "Connection refused",
        "No such file or directory",
        "server closed the connection unexpectedly",
        "Can't connect to",
        "Lost connection to",
    ];
    if message.contains(STARTING) {
        Duration::from_secs(60)
    } else if NO_ANSWER.iter().any(|text| message.contains(text)) {
        Duration::from_secs(10)
    } else {
        Duration::ZERO
    }
}

/// Connects and reads which tables exist. Changes nothing.
fn connect(url: &str, settings: SessionSettings, owner: &Owner) -> Result<(Db, Connection, Catalog)> {
    let database = Db::new(url, owner.nonce());
    let mut connection = Session::new(connect_first(&database)?, settings);
    let found = catalog(&mut connection).map_err(|error| RepositoryError::Schema {
        url: shown(url),
        problem: error.into(),
    })?;
    Ok((database, connection, found))
}
