//! The class of an error: whether the same call may succeed later.
//!
//! `diesel` distinguishes few errors of a server, and shows no SQLSTATE, so texts decide about the others. The texts belong to errors that
//! stay until someone corrects them. All others count as temporary: a server in another language is asked again.
// Spec: CLI-02

use std::error::Error;
use std::io::{self, ErrorKind};

use diesel::ConnectionError;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

/// The class of an error of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The database cannot be reached, or the connection was lost.
    Connection,
    /// Something is used up or taken: a disk, memory, connections, a lock.
    Resource,
    /// The user may not do it.
    Permission,
    /// A database, table, column or file is missing or another one.
    Definition,
    /// A value cannot be stored or read.
    Data,
}

impl ErrorClass {
    /// Returns whether the same call may succeed later without a change.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::Connection | Self::Resource)
    }
}

/// Texts of errors, in lower case. A server that is read-only is the wrong one, also if it is so for the time of a failover only.
const TEXTS: [(ErrorClass, &[&str]); 3] = [
    (
        ErrorClass::Permission,
        &[
            "permission denied",
            "must be owner",
            "access denied",
            "command denied",
            "read-only",
            "readonly",
            "authentication failed",
            "no pg_hba.conf entry",
            "not permitted to log in",
            "is not allowed to connect",
        ],
    ),
    (
        ErrorClass::Definition,
        &[
            "does not exist",
            "doesn't exist",
            "unknown database",
            "unknown column",
            "no such table",
            "no such column",
            "syntax error",
            "not a database",
        ],
    ),
    (
        ErrorClass::Data,
        &[
            "has no equivalent in encoding",
            "invalid byte sequence",
            "incorrect string value",
            "out of range",
            "too long",
            "malformed",
        ],
    ),
];

fn class_of_text(text: &str) -> Option<ErrorClass> {
    let text = text.to_lowercase();
    let found = TEXTS
        .iter()
        .find(|(_, texts)| texts.iter().any(|known| text.contains(known)));
    found.map(|(class, _)| *class)
}

/// Returns the class of the first error in a chain that has one.
pub(in crate::repository) fn class_of(error: &(dyn Error + 'static)) -> Option<ErrorClass> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(class) = class_of_one(error) {
            return Some(class);
        }
        next = error.source();
    }
    None
}

fn class_of_one(error: &(dyn Error + 'static)) -> Option<ErrorClass> {
    if let Some(error) = error.downcast_ref::<DieselError>() {
        return class_of_statement(error);
    }
    if let Some(ConnectionError::BadConnection(text)) = error.downcast_ref::<ConnectionError>() {
        return Some(class_of_text(text).unwrap_or(ErrorClass::Connection));
    }
    let error = error.downcast_ref::<io::Error>()?;
    Some(match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ErrorClass::Permission,
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown => ErrorClass::Connection,
        ErrorKind::StorageFull
        | ErrorKind::QuotaExceeded
        | ErrorKind::OutOfMemory
        | ErrorKind::ResourceBusy
        | ErrorKind::TimedOut
        | ErrorKind::WouldBlock
        | ErrorKind::Interrupted => ErrorClass::Resource,
        _ => ErrorClass::Definition,
    })
}

fn class_of_statement(error: &DieselError) -> Option<ErrorClass> {
    Some(match error {
        DieselError::DatabaseError(kind, about) => match kind {
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
                ErrorClass::Connection
            }
            DatabaseErrorKind::SerializationFailure => ErrorClass::Resource,
            DatabaseErrorKind::ReadOnlyTransaction => ErrorClass::Permission,
            DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation => ErrorClass::Data,
            _ => class_of_text(about.message()).unwrap_or(ErrorClass::Resource),
        },
        DieselError::RollbackErrorOnCommit { .. } | DieselError::BrokenTransactionManager => {
            ErrorClass::Connection
        }
        DieselError::DeserializationError(_) | DieselError::SerializationError(_) => ErrorClass::Data,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::RepositoryError;

    fn connect(url: &str, text: &str) -> RepositoryError {
        RepositoryError::Connect {
            url: url.into(),
            source: Box::new(ConnectionError::BadConnection(text.into())),
            hint: "",
        }
    }

    fn statement(kind: DatabaseErrorKind, text: &str) -> DieselError {
        DieselError::DatabaseError(kind, Box::new(text.to_owned()))
    }

    // Spec: CLI-02
    #[test]
    fn the_class_of_an_error_does_not_depend_on_the_phase() {
        use DatabaseErrorKind::{ClosedConnection, Unknown};
        use ErrorClass::{Connection, Data, Definition, Permission, Resource};
        let server = "postgres://host/db";
        for (error, class) in [
            (connect(server, "Connection refused"), Connection),
            (
                connect(server, "FATAL:  sorry, too many clients already"),
                Connection,
            ),
            (
                connect(server, "FATAL:  database \"x\" does not exist"),
                Definition,
            ),
            (
                connect(server, "FATAL:  password authentication failed for user \"x\""),
                Permission,
            ),
            (connect("mysql://host/db", "Unknown database 'x'"), Definition),
            (
                connect("sqlite://x.db", "unable to open database file"),
                Definition,
            ),
            (connect("sqlite://x.db", "database or disk is full"), Resource),
            (connect("sqlite://x.db", "database is locked"), Resource),
        ] {
            assert_eq!(error.class(), class, "{error}");
        }
        let lost = "server closed the connection unexpectedly";
        for (error, class) in [
            (statement(ClosedConnection, lost), Connection),
            (statement(Unknown, lost), Resource),
            (
                statement(Unknown, "could not extend file: No space left on device"),
                Resource,
            ),
            (
                statement(Unknown, "permission denied for table batch_job_execution"),
                Permission,
            ),
            (
                statement(
                    Unknown,
                    "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"",
                ),
                Data,
            ),
            (statement(Unknown, "Fehler beim Schreiben"), Resource),
        ] {
            let text = error.to_string();
            let while_it_runs = RepositoryError::Database {
                action: "insert",
                source: Box::new(error),
            };
            assert_eq!(while_it_runs.class(), class, "{text}");
        }
        let at_start = |problem: Box<dyn Error + Send + Sync>| RepositoryError::Schema {
            url: server.into(),
            problem,
        };
        assert_eq!(
            at_start(Box::new(statement(ClosedConnection, lost))).class(),
            Connection
        );
        assert_eq!(
            at_start("its tables are of another version".into()).class(),
            Definition
        );
    }
}
