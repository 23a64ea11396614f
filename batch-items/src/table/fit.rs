//! The distinction between an item that the table does not take and a table that takes no item.
//!
//! An error of a statement does not show which it is: databases have no kind for a missing table, a view or a missing index that diesel
//! passes on. So after such an error the database explains the statement without its values. If that fails with the same error, the table
//! is the cause.
//!
//! Spec: D-106

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;
use diesel::Connection;
use diesel::backend::Backend;
use diesel::query_builder::QueryFragment;
use diesel::result::{DatabaseErrorKind, Error as DieselError, QueryResult};

use super::error::{TableError, is_violation};
use super::plan::TableColumn;

/// The knowledge about the statement of a writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// It has not run.
    #[default]
    Untried,
    /// It has run, or was explained.
    Proven,
    /// It has failed with this message, and the table may be the cause.
    Doubtful(String),
}

impl Fit {
    /// Returns the knowledge after a run of the statement.
    pub fn after(result: &QueryResult<usize>) -> Self {
        match result {
            Ok(_) => Self::Proven,
            Err(DieselError::DatabaseError(DatabaseErrorKind::Unknown, about)) => {
                Self::Doubtful(about.message().to_owned())
            }
            Err(error) if is_violation(error) => Self::Proven,
            Err(_) => Self::Untried,
        }
    }

    /// Returns whether the statement is explained now.
    pub fn is_doubtful(&self) -> bool {
        matches!(self, Self::Doubtful(_))
    }

    /// Returns whether the first statement gets a savepoint: on PostgreSQL, so that it can be explained after its failure, before its only
    /// row is skipped. Longer lists are written again in parts, which are explained before.
    pub fn needs_savepoint(&self, rows: usize, tx: &mut ChunkTransaction) -> QueryResult<bool> {
        Ok(*self == Self::Untried && rows == 1 && !continues_after_errors(tx)?)
    }

    /// Takes the result of the explanation.
    ///
    /// # Errors
    /// If it failed with the error of the statement: the table is the cause, whatever the values are.
    pub fn explained(&mut self, action: String, result: QueryResult<usize>) -> Result<(), BatchError> {
        let Self::Doubtful(failure) = std::mem::replace(self, Self::Proven) else {
            return Ok(());
        };
        match result {
            Err(error @ DieselError::DatabaseError(DatabaseErrorKind::Unknown, _))
                if error.to_string() == failure && !is_transient(&failure) =>
            {
                Err(ConfigurationError::new(TableError::new(action, error)).into())
            }
            _ => Ok(()),
        }
    }
}

/// The use of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// It is executed.
    Write,
    /// The database explains it for the first row.
    Explain,
}

/// Returns whether the error is one of concurrency, which an explanation may meet too.
fn is_transient(message: &str) -> bool {
    [
        "canceling statement",
        "deadlock",
        "Deadlock",
        "Lock wait timeout",
        "Query execution was interrupted",
        "database is locked",
        "database table is locked",
        "current transaction is aborted",
    ]
    .iter()
    .any(|start| message.starts_with(start))
}

/// Returns whether the transaction executes statements after one that has failed, as on SQLite and MySQL.
pub fn continues_after_errors(tx: &mut ChunkTransaction) -> QueryResult<bool> {
    Ok(match tx.any()? {
        #[cfg(feature = "sqlite")]
        batch_runtime::repository::DatabaseConnection::Sqlite(_) => true,
        #[cfg(feature = "mysql")]
        batch_runtime::repository::DatabaseConnection::Mysql(_) => true,
        _ => false,
    })
}

/// Runs a statement, with a savepoint if the transaction has to continue after its failure.
pub fn with_savepoint<C: Connection>(
    savepoint: bool,
    connection: &mut C,
    statement: impl FnOnce(&mut C) -> QueryResult<usize>,
) -> QueryResult<usize> {
    match savepoint {
        true => connection.transaction(statement),
        false => statement(connection),
    }
}

/// Has the database explain a statement with nulls for its values: PostgreSQL would convert them to the types of their columns, and fail
/// at those of a bad item.
pub fn explain<C>(connection: &mut C, statement: &impl QueryFragment<C::Backend>) -> QueryResult<usize>
where
    C: Connection<Backend: Backend<QueryBuilder: Default> + Default>,
{
    let shown = diesel::debug_query::<C::Backend, _>(statement).to_string();
    // The values follow.
    let text = shown.split(" -- binds: ").next().unwrap_or_default();
    connection.batch_execute(&format!("EXPLAIN {}", with_nulls(text)))?;
    Ok(0)
}

/// Replaces the placeholders, which are `?` or `$1`, by nulls.
fn with_nulls(statement: &str) -> String {
    let (mut text, mut quote) = (String::with_capacity(statement.len()), None);
    let mut characters = statement.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '?') => text.push_str("NULL"),
            (None, '$') => {
                while characters.next_if(char::is_ascii_digit).is_some() {}
                text.push_str("NULL");
            }
            (None, '"' | '`' | '\'') => {
                quote = Some(character);
                text.push(character);
            }
            (open, _) => {
                // A doubled quote within a name begins another part of it.
                quote = open.filter(|quote| *quote != character);
                text.push(character);
            }
        }
    }
    text
}

/// Returns the error of a statement that was executed. No item can be written if one of the columns that the writer does not write lacks a
/// value that it needs.
pub(super) fn statement_error(action: String, error: DieselError, unwritten: &[TableColumn]) -> BatchError {
    let is_cause = |name: String| {
        unwritten
            .iter()
            .find(|column| column.needs_value && column.name == name)
    };
    match column_without_value(&error).and_then(is_cause) {
        Some(column) => ConfigurationError::new(TableError::new(
            action,
            format!(
                "the column `{}` needs a value, and the writer does not write it; write it, or give it a default",
                column.name
            ),
        ))
        .into(),
        _ => TableError::of_statement(action, error),
    }
}

/// Returns the column that must not be null, if that is the error.
fn column_without_value(error: &DieselError) -> Option<String> {
    let DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, about) = error else {
        return None;
    };
    if let Some(column) = about.column_name() {
        return Some(column.to_owned());
    }
    let message = about.message();
    match message.split_once("NOT NULL constraint failed: ") {
        // Of SQLite.
        Some((_, place)) => place.rsplit('.').next().map(str::to_owned),
        // Of MySQL: `Field 'day' doesn't have a default value`. A column that is written, or computed, `cannot be null`.
        None if message.contains("default value") => message.split('\'').nth(1).map(str::to_owned),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str) -> QueryResult<usize> {
        let about = Box::new(message.to_owned());
        Err(DieselError::DatabaseError(DatabaseErrorKind::Unknown, about))
    }

    /// Another error of the explanation proves nothing, and neither does one of concurrency.
    ///
    /// Spec: D-106
    #[test]
    fn the_table_is_the_cause_if_the_explanation_fails_alike() {
        let conclude = |statement: &str, explanation: QueryResult<usize>| {
            let mut fit = Fit::after(&failure(statement));
            assert!(fit.is_doubtful());
            let concluded = fit.explained("insert 1 row".into(), explanation);
            concluded.map_err(|error| error.is_configuration_error())
        };
        let missing = "no such table: payment";
        assert_eq!(conclude(missing, failure(missing)), Err(true));
        assert_eq!(conclude("value too long", Ok(0)), Ok(()));
        assert_eq!(
            conclude("value too long", failure("operator is not unique")),
            Ok(())
        );
        let locked = "canceling statement due to lock timeout";
        assert_eq!(conclude(locked, failure(locked)), Ok(()));
    }

    #[test]
    fn placeholders_outside_of_names_are_nulls() {
        assert_eq!(
            with_nulls(r#"INSERT INTO "a$1?" ("b""?") VALUES ($1, $12, DEFAULT)"#),
            r#"INSERT INTO "a$1?" ("b""?") VALUES (NULL, NULL, DEFAULT)"#
        );
        assert_eq!(
            with_nulls("UPDATE `a``?` SET b = ? WHERE c = CAST(? AS DECIMAL(65, 2))"),
            "UPDATE `a``?` SET b = NULL WHERE c = CAST(NULL AS DECIMAL(65, 2))"
        );
    }
}
