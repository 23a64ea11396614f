//! The databases beside the repository, as they are named.
// Spec: MARK-13

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Deref;
use std::str::FromStr;

use batch_xml::suggest::nearest;

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

/// The name, the URL or the connection string of another database, as the type of a `#[batch_property]`.
///
/// A check of the job rejects a name that is neither in `[databases]` of `batch.toml` nor in
/// [`BatchRuntimeBuilder::database`](crate::BatchRuntimeBuilder::database), and so does a launch by a process that names databases.
/// [`JobContext::database`](crate::context::JobContext::database) returns the URL, and
/// [`JobContext::connection_string`](crate::context::JobContext::connection_string) the connection string; both fail for an empty text.
///
/// ```
/// use batch_runtime::destination::DatabaseName;
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Compare {
///     #[batch_property]
///     database: DatabaseName,
///     #[batch_context]
///     job: JobContext,
/// }
///
/// #[batchlet("Compare")]
/// impl Compare {
///     #[process]
///     fn process(&self) -> Result<(), BatchError> {
///         let mut ledger = self.job.database(&self.database)?.connect()?;
///         // ..
///         # let _ = &mut ledger;
///         Ok(())
///     }
/// }
/// ```
// Spec: MARK-13
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseName(String);

impl FromStr for DatabaseName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl Deref for DatabaseName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Checks the text of a [`DatabaseName`], where the names are known.
///
/// # Errors
/// What is wrong.
pub(crate) fn check_database(text: &str, names: &BTreeSet<String>) -> Result<(), String> {
    if text.is_empty() || names.contains(text) {
        return Ok(());
    }
    // One that is not of a known form may contain a password.
    let is_odd = text.contains('=') && !text.contains("://") && text.parse::<ConnectionString>().is_err();
    match text.contains(':') && !is_odd {
        true => text
            .parse()
            .map(|_: NamedDatabase| ())
            .map_err(|error| error.to_string()),
        false => Err(unknown_database(text, names.iter().map(String::as_str))),
    }
}

/// Returns the message about a name that is not among the names of the databases.
pub(crate) fn unknown_database<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    if name.contains('=') {
        // It may contain a password.
        return "unknown database; expected a name, a URL, or a connection string that begins with `odbc:`"
            .to_owned();
    }
    let known: Vec<&str> = names.clone().collect();
    let help = match (nearest(name, names), known.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "name it in the table `[databases]` of batch.toml or by `BatchRuntimeBuilder::database`, or give its URL".to_owned(),
        (None, known) => format!("the databases are {}", known.join(", ")),
    };
    format!("unknown database `{}`; {help}", name.escape_debug())
}
