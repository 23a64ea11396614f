//! The reasons for a rollback, and which of them are worth another try.

use diesel::result::{DatabaseErrorKind, Error as DieselError};

use crate::repository::RepositoryError;

/// The reason why a transaction is rolled back.
#[derive(Debug)]
pub(super) enum TransactionError<E> {
    /// A statement failed.
    Database(DieselError),
    /// The work itself returned an error.
    Rejected(E),
    /// Another transaction has changed what this one read, so it is run again. The error is reported when that has not
    /// helped.
    Conflict(DieselError),
}

impl<E> TransactionError<E> {
    /// Returns whether the same transaction may succeed when it is run again.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Conflict(_) => true,
            Self::Rejected(_) => false,
            Self::Database(DieselError::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) => true,
            // diesel has no kind for PostgreSQL's deadlocks.
            Self::Database(DieselError::DatabaseError(DatabaseErrorKind::Unknown, about)) => {
                about.message() == "deadlock detected"
            }
            Self::Database(_) => false,
        }
    }
}

impl TransactionError<RepositoryError> {
    /// Converts it for work that returns another type of error.
    pub(super) fn into_other<E: From<RepositoryError>>(self) -> TransactionError<E> {
        match self {
            Self::Database(error) => TransactionError::Database(error),
            Self::Rejected(error) => TransactionError::Rejected(error.into()),
            Self::Conflict(error) => TransactionError::Conflict(error),
        }
    }

    /// Converts it to an error of the repository.
    pub(super) fn into_error(self, action: &'static str) -> RepositoryError {
        match self {
            Self::Rejected(error) => error,
            Self::Database(source) | Self::Conflict(source) => database_error(action, source),
        }
    }
}

impl<E> From<DieselError> for TransactionError<E> {
    fn from(error: DieselError) -> Self {
        Self::Database(error)
    }
}

/// Makes a violated unique key a conflict: the transaction that is run again finds the row of the other one.
pub(super) fn on_unique_violation<E>(error: DieselError) -> TransactionError<E> {
    match error {
        DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, _) => {
            TransactionError::Conflict(error)
        }
        error => TransactionError::Database(error),
    }
}

/// Returns the conflict for a row that has changed since it was read.
pub(super) fn concurrent_change<E>() -> TransactionError<E> {
    let reason = "other runtimes keep changing the same row".to_owned();
    let kind = DatabaseErrorKind::SerializationFailure;
    TransactionError::Conflict(DieselError::DatabaseError(kind, Box::new(reason)))
}

pub(super) fn database_error<E: From<RepositoryError>>(action: &'static str, source: DieselError) -> E {
    E::from(RepositoryError::Database {
        action,
        source: Box::new(source),
    })
}
