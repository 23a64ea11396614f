//! The errors of writers of tables.

use std::error::Error;
use std::fmt;

use batch_runtime::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

use super::plan::Column;

/// A statement of a [`TableItemWriter`](crate::TableItemWriter), or of an [`insertable_writer!`](crate::insertable_writer), that failed.
#[derive(Debug, BatchException)]
#[batch_exception(class = "batch_items::TableError")]
pub struct TableError {
    action: String,
    cause: Box<dyn Error + Send + Sync>,
    /// The key that a unique or foreign key constraint rejects, if the database reports it beside its message.
    key: Option<String>,
}

/// A statement that a constraint of the table has rejected: a unique or foreign key, `NOT NULL` or `CHECK`. It is a [`TableError`] too, so
/// a list that includes `TableError` includes it.
#[derive(Debug, BatchException)]
#[batch_exception(
    class = "batch_items::ConstraintViolation",
    extends = "batch_items::TableError"
)]
pub struct ConstraintViolation(TableError);

impl TableError {
    /// Creates an error of an action, such as ``insert 10 rows in table `payment` ``.
    pub fn new(action: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            action: action.into(),
            cause: cause.into(),
            key: None,
        }
    }

    /// Creates the error of an item without a value for a column that needs one.
    pub(super) fn null_column(action: String, column: &Column) -> BatchError {
        let name = &column.name;
        let cause = match column.is_key {
            true => format!("the column `{name}` of the key is null; no row can have it"),
            false => format!("the column `{name}` of `add` is null; it needs a number, such as 0"),
        };
        ConstraintViolation(Self::new(action, cause)).into()
    }

    /// Creates the error of a statement: a [`ConstraintViolation`], if that is what the database says.
    pub(crate) fn of_statement(action: String, error: impl Into<StatementError>) -> BatchError {
        let StatementError {
            cause,
            is_violation,
            key,
            ..
        } = error.into();
        let failed = Self {
            key,
            ..Self::new(action, cause)
        };
        match failed {
            violation if is_violation => ConstraintViolation(violation).into(),
            other => other.into(),
        }
    }
}

/// A statement that a database has rejected.
#[derive(Debug)]
pub struct StatementError {
    /// The error of the client.
    pub cause: Box<dyn Error + Send + Sync>,
    /// Whether a constraint of the table is the cause.
    pub is_violation: bool,
    /// Whether the cause may be a change of the table while the step runs.
    pub may_be_of_table: bool,
    /// The key that a unique or foreign key constraint rejects, if the database reports it beside its message.
    pub key: Option<String>,
}

impl From<DieselError> for StatementError {
    fn from(error: DieselError) -> Self {
        Self {
            is_violation: is_violation(&error),
            may_be_of_table: may_be_of_table(&error),
            key: rejected_key(&error),
            cause: error.into(),
        }
    }
}

/// Returns whether the cause of an error may be the table.
pub(super) fn may_be_of_table(error: &DieselError) -> bool {
    matches!(
        error,
        DieselError::DatabaseError(
            DatabaseErrorKind::Unknown | DatabaseErrorKind::NotNullViolation,
            _
        )
    )
}

/// Returns whether a constraint of a table is the cause.
fn is_violation(error: &DieselError) -> bool {
    matches!(
        error,
        DieselError::DatabaseError(
            DatabaseErrorKind::UniqueViolation
                | DatabaseErrorKind::ForeignKeyViolation
                | DatabaseErrorKind::NotNullViolation
                | DatabaseErrorKind::CheckViolation
                | DatabaseErrorKind::RestrictViolation
                | DatabaseErrorKind::ExclusionViolation,
            _
        )
    )
}

/// Returns the key in the details of an error. Details of other constraints contain the whole row, which may be confidential.
fn rejected_key(error: &DieselError) -> Option<String> {
    let DieselError::DatabaseError(
        DatabaseErrorKind::UniqueViolation | DatabaseErrorKind::ForeignKeyViolation,
        information,
    ) = error
    else {
        return None;
    };
    information.details().map(str::to_owned)
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.action, self.cause)?;
        match &self.key {
            Some(key) => write!(f, ": {key}"),
            None => Ok(()),
        }
    }
}

impl Error for TableError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

impl fmt::Display for ConstraintViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ConstraintViolation {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
