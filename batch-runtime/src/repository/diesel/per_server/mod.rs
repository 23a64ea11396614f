//! The common code of PostgreSQL and MySQL, compiled once for each of them, like `per_backend`.

#[cfg(test)]
pub(super) mod fixture;
pub(super) mod new_rows;
mod open;
pub(super) mod row_locks;
#[cfg(test)]
mod tests;

use super::per_backend::conversion;
use super::{Db, catalog, schema};
use crate::repository::RepositoryError;
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::session::Session;
use crate::repository::diesel::url::shown;

pub(in crate::repository::diesel) use open::open;
pub(in crate::repository::diesel) use open::{connect_to, convert, missing_migrations};

type Connection = Session<<Db as Backend>::Connection>;

/// Returns the error for a server that cannot be reached.
pub(super) fn unusable(
    url: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> RepositoryError {
    RepositoryError::Connect {
        url: shown(url),
        source: source.into(),
        hint: "",
    }
}

/// The name of the sessions of an owner, which other owners find them by.
pub(super) fn session_name(nonce: &str) -> String {
    format!("batch-runtime/{nonce}")
}
