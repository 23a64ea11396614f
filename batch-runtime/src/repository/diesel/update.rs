//! UPDATE statements that diesel prepares once for each connection. Statements of `diesel::update` are prepared at each execution, because
//! a changeset may leave out columns; here the type determines the columns.

use diesel::backend::Backend;
use diesel::prelude::*;
use diesel::query_builder::{AsChangeset, AstPass, IntoUpdateTarget, QueryFragment, QueryId, UpdateTarget};

/// Begins the statement that updates the rows of `target`; replaces diesel's function of the same name.
pub(super) fn update<T: IntoUpdateTarget>(target: T) -> Target<T::Table, T::WhereClause> {
    let UpdateTarget { table, where_clause } = target.into_update_target();
    Target { table, where_clause }
}

/// The rows that an UPDATE statement is for.
#[must_use = "nothing is updated without `set`"]
pub(super) struct Target<T, W> {
    table: T,
    where_clause: W,
}

impl<T: Table, W> Target<T, W> {
    /// Returns the statement. Every element of `values` must be an assignment, not an `Option` of one: the text must not depend on
    /// the values.
    pub(super) fn set<S: AsChangeset<Target = T>>(self, values: S) -> Update<T, W, S> {
        Update {
            table: self.table,
            where_clause: self.where_clause,
            values: values.as_changeset(),
        }
    }
}

/// An UPDATE statement.
#[must_use = "nothing is updated without `execute`"]
pub(super) struct Update<T, W, S: AsChangeset> {
    table: T,
    where_clause: W,
    values: S::Changeset,
}

impl<T, W, S> QueryId for Update<T, W, S>
where
    T: QueryId,
    W: QueryId,
    S: AsChangeset + QueryId,
{
    type QueryId = (Target<T::QueryId, W::QueryId>, S::QueryId);

    const HAS_STATIC_QUERY_ID: bool =
        T::HAS_STATIC_QUERY_ID && W::HAS_STATIC_QUERY_ID && S::HAS_STATIC_QUERY_ID;
}

impl<T, W, S, DB> QueryFragment<DB> for Update<T, W, S>
where
    DB: Backend,
    T: QueryFragment<DB>,
    W: QueryFragment<DB>,
    S: AsChangeset,
    S::Changeset: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_sql("UPDATE ");
        self.table.walk_ast(pass.reborrow())?;
        pass.push_sql(" SET ");
        self.values.walk_ast(pass.reborrow())?;
        self.where_clause.walk_ast(pass)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use diesel::connection::{InstrumentationEvent, SimpleConnection};

    use super::update;
    use crate::repository::diesel::session::{RunQueryDsl, Session, SessionSettings};
    use diesel::prelude::{Connection, ExpressionMethods, QueryDsl, SqliteConnection};

    diesel::table! { line (id) { id -> BigInt, text -> Nullable<Text>, } }

    /// A statement is prepared once for all values.
    #[test]
    fn a_statement_is_prepared_once() {
        let mut connection = SqliteConnection::establish(":memory:").unwrap();
        connection
            .batch_execute("CREATE TABLE line (id, text); INSERT INTO line VALUES (1, 'a'), (2, 'b')")
            .unwrap();
        let prepared = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&prepared);
        connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut session = Session::new(connection, SessionSettings::default());
        for (id, text, changed) in [(1, Some("c"), 1), (2, None, 1), (3, Some("d"), 0)] {
            let statement = update(line::table.find(id)).set(line::text.eq(text));
            assert_eq!(statement.execute(&mut session).unwrap(), changed);
        }
        assert_eq!(prepared.load(Ordering::Relaxed), 1);
    }
}
