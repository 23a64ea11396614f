//! The distinction between an item that the table does not take and a table that takes no item.
//!
//! An error of a statement does not tell which it is: databases have no kind for a missing table, a view or a missing index that diesel
//! passes on. So after such an error the database explains the statement, which fails if the table is the cause, whatever the values are.
//!
//! Spec: D-106

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;
use diesel::Connection;
use diesel::backend::Backend;
use diesel::query_builder::QueryFragment;
use diesel::result::{DatabaseErrorKind, Error as DieselError, QueryResult};

use super::error::TableError;

/// What is known of the statement of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// It has not run.
    #[default]
    Untried,
    /// It has run, or was explained.
    Proven,
    /// It has failed with an error whose cause may be the table.
    Doubtful,
}

impl Fit {
    /// Returns what is known after the statement has run.
    pub fn after(result: &QueryResult<usize>) -> Self {
        match result {
            Ok(_) => Self::Proven,
            Err(DieselError::DatabaseError(DatabaseErrorKind::Unknown, _)) => Self::Doubtful,
            // It was executed.
            Err(_) => Self::Proven,
        }
    }

    /// Returns whether the statement is explained before it writes so many rows: after a failure; and before a single row, which would be
    /// skipped after its failure, if nothing can be explained then.
    pub fn is_explained_before(self, rows: usize, tx: &mut ChunkTransaction) -> QueryResult<bool> {
        Ok(match self {
            Self::Doubtful => true,
            Self::Untried => rows == 1 && !continues_after_errors(tx)?,
            Self::Proven => false,
        })
    }

    /// Returns whether the failed statement is explained in the same transaction.
    pub fn is_explained_after(self, tx: &mut ChunkTransaction) -> QueryResult<bool> {
        Ok(self == Self::Doubtful && continues_after_errors(tx)?)
    }
}

/// Returns whether the transaction executes statements after one that has failed, as on SQLite and MySQL.
fn continues_after_errors(tx: &mut ChunkTransaction) -> QueryResult<bool> {
    Ok(match tx.any()? {
        #[cfg(feature = "sqlite")]
        batch_runtime::repository::DatabaseConnection::Sqlite(_) => true,
        #[cfg(feature = "mysql")]
        batch_runtime::repository::DatabaseConnection::Mysql(_) => true,
        _ => false,
    })
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
    Ok(1)
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

/// Returns the error of a statement that cannot be explained: the table is the cause, unless the database has another reason.
pub(super) fn cannot_explain(action: String, error: DieselError) -> BatchError {
    match error {
        DieselError::QueryBuilderError(_) | DieselError::DatabaseError(DatabaseErrorKind::Unknown, _) => {
            ConfigurationError::new(TableError::new(action, error)).into()
        }
        other => TableError::of_statement(action, other),
    }
}

/// Returns the error of a statement that was executed. `writes` says whether the writer writes a column of the table: if a column that it
/// does not write lacks a value, no item can be written.
pub(super) fn failed(
    action: String,
    table: &str,
    error: DieselError,
    writes: impl FnOnce(&str) -> bool,
) -> BatchError {
    match column_without_value(table, &error) {
        Some(column) if !writes(&column) => ConfigurationError::new(TableError::new(
            action,
            format!("the column `{column}` needs a value, and the items have no field `{column}`"),
        ))
        .into(),
        _ => TableError::of_statement(action, error),
    }
}

/// Returns the column of the table that must not be null, if that is the error.
fn column_without_value(table: &str, error: &DieselError) -> Option<String> {
    let DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, information) = error else {
        return None;
    };
    let name = table.rsplit('.').next().unwrap_or(table);
    // A trigger may have written to another table.
    let is_same = |other: &str| other.eq_ignore_ascii_case(name);
    if let Some(column) = information.column_name() {
        return information
            .table_name()
            .is_none_or(is_same)
            .then(|| column.to_owned());
    }
    let message = information.message();
    // SQLite: `NOT NULL constraint failed: payment.day`.
    if let Some((_, place)) = message.rsplit_once(": ")
        && let Some((other, column)) = place.rsplit_once('.')
    {
        return is_same(other).then(|| column.to_owned());
    }
    // MySQL: `Field 'day' doesn't have a default value`, `Column 'day' cannot be null`.
    message.split('\'').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

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
