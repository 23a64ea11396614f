//! The databases beside the repository, as they are named.
// Spec: MARK-13

use std::str::FromStr;

use crate::connection_string::ConnectionString;
use crate::repository::{RepositoryError, RepositoryUrl};

/// A database that the table `[databases]` of `batch.toml` or the program names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedDatabase {
    /// One that diesel opens.
    Url(RepositoryUrl),
    /// One that another client opens.
    Other(ConnectionString),
}

impl FromStr for NamedDatabase {
    type Err = RepositoryError;

    fn from_str(text: &str) -> Result<Self, RepositoryError> {
        match text.parse() {
            Ok(other) => Ok(Self::Other(other)),
            Err(_) => Ok(Self::Url(text.parse()?)),
        }
    }
}
