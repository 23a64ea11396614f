//! UPDATE statements that diesel prepares once for each connection. Those of `diesel::update` are prepared at each execution, because
//! a changeset may leave out columns; here the columns are fixed by the type.

use diesel::backend::Backend;
use diesel::prelude::*;
use diesel::query_builder::{AsChangeset, AstPass, QueryFragment, QueryId};

/// Returns the statement that sets columns of the rows for which `condition` is true. Every element of `values` must be an
/// assignment, not an `Option` of one: the text must not depend on the values.
pub(super) fn prepared_update<T, C, S>(table: T, condition: C, values: S) -> PreparedUpdate<T, C, S>
where
    T: Table,
    S: AsChangeset<Target = T>,
{
    PreparedUpdate {
        table,
        condition,
        values: values.as_changeset(),
    }
}

/// An UPDATE statement.
pub(super) struct PreparedUpdate<T, C, S: AsChangeset> {
    table: T,
    condition: C,
    values: S::Changeset,
}

impl<T, C, S> QueryId for PreparedUpdate<T, C, S>
where
    T: QueryId,
    C: QueryId,
    S: AsChangeset + QueryId,
{
    type QueryId = (T::QueryId, C::QueryId, S::QueryId);

    const HAS_STATIC_QUERY_ID: bool =
        T::HAS_STATIC_QUERY_ID && C::HAS_STATIC_QUERY_ID && S::HAS_STATIC_QUERY_ID;
}

impl<T, C, S, DB> QueryFragment<DB> for PreparedUpdate<T, C, S>
where
    DB: Backend,
    T: QueryFragment<DB>,
    C: QueryFragment<DB>,
    S: AsChangeset,
    S::Changeset: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_sql("UPDATE ");
        self.table.walk_ast(pass.reborrow())?;
        pass.push_sql(" SET ");
        self.values.walk_ast(pass.reborrow())?;
        pass.push_sql(" WHERE ");
        self.condition.walk_ast(pass)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use diesel::connection::{InstrumentationEvent, SimpleConnection};

    use super::prepared_update;
    use crate::repository::diesel::session::{RunQueryDsl, Session, SessionSettings};
    use diesel::prelude::{Connection, ExpressionMethods, SqliteConnection};

    diesel::table! { line (id) { id -> BigInt, text -> Nullable<Text>, } }

    /// A statement is prepared once, whatever its values.
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
            let statement = prepared_update(line::table, line::id.eq(id), line::text.eq(text));
            assert_eq!(statement.execute(&mut session).unwrap(), changed);
        }
        assert_eq!(prepared.load(Ordering::Relaxed), 1);
    }
}
