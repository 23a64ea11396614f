//! Conditions that compare a column with a list, in statements that diesel prepares once for each connection and each of a few lengths. A
//! condition of `eq_any` is prepared at each execution, except on PostgreSQL, because its text has a placeholder for each value.

use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Bool, HasSqlType, Text};

/// The longest list whose statement is kept. It is padded to a power of two.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
const MAX_PADDED: usize = 1_024;

/// A value of a list.
pub(super) trait Value {
    type SqlType: 'static;
}

impl Value for i64 {
    type SqlType = BigInt;
}

impl Value for str {
    type SqlType = Text;
}

impl Value for String {
    type SqlType = Text;
}

impl<T: Value + ?Sized> Value for &T {
    type SqlType = T::SqlType;
}

/// Returns the condition that `column` has one of `values`, which are few or belong to a table whose size hardly changes.
pub(super) fn one_of<C, I>(column: C, values: impl IntoIterator<Item = I>) -> OneOf<C, I> {
    OneOf {
        column,
        values: values.into_iter().collect(),
        is_negated: false,
        is_planned_anew: false,
    }
}

/// As `one_of`, but PostgreSQL plans the statement each time. It would keep the plan of a prepared statement; a plan for many values made
/// while the table is small reads the whole table, until the next `ANALYZE`. A single value is found by an index.
pub(super) fn one_of_many<C, I>(column: C, values: impl IntoIterator<Item = I>) -> OneOf<C, I> {
    OneOf {
        is_planned_anew: true,
        ..one_of(column, values)
    }
}

/// Returns the condition that `column` has none of `values`.
pub(super) fn none_of<C, I>(column: C, values: impl IntoIterator<Item = I>) -> OneOf<C, I> {
    OneOf {
        is_negated: true,
        ..one_of(column, values)
    }
}

/// A comparison of a column with a list.
pub(super) struct OneOf<C, I> {
    column: C,
    values: Vec<I>,
    is_negated: bool,
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "other databases keep no plans of tables that grow")
    )]
    is_planned_anew: bool,
}

impl<C, I> Expression for OneOf<C, I> {
    type SqlType = Bool;
}

impl<C: ValidGrouping<GB>, I, GB> ValidGrouping<GB> for OneOf<C, I> {
    type IsAggregate = C::IsAggregate;
}

impl<C: SelectableExpression<QS>, I, QS> SelectableExpression<QS> for OneOf<C, I> {}

impl<C: AppearsOnTable<QS>, I, QS> AppearsOnTable<QS> for OneOf<C, I> {}

/// The text depends on the values.
impl<C, I> QueryId for OneOf<C, I> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

#[cfg(feature = "postgres")]
impl<C, I> QueryFragment<diesel::pg::Pg> for OneOf<C, I>
where
    C: QueryFragment<diesel::pg::Pg>,
    I: Value + ToSql<I::SqlType, diesel::pg::Pg>,
    Vec<I>: ToSql<diesel::sql_types::Array<I::SqlType>, diesel::pg::Pg>,
    diesel::pg::Pg: HasSqlType<I::SqlType>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, diesel::pg::Pg>) -> QueryResult<()> {
        self.column.walk_ast(pass.reborrow())?;
        pass.push_sql(if self.is_negated { " <> ALL(" } else { " = ANY(" });
        if let [value] = self.values.as_slice() {
            pass.push_sql("ARRAY[");
            pass.push_bind_param::<I::SqlType, I>(value)?;
            pass.push_sql("]");
        } else {
            if self.is_planned_anew {
                pass.unsafe_to_cache_prepared();
            }
            pass.push_bind_param::<diesel::sql_types::Array<I::SqlType>, Vec<I>>(&self.values)?;
        }
        pass.push_sql(")");
        Ok(())
    }
}

/// Implements a list of placeholders. The last value fills the placeholders that pad the list.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
macro_rules! padded {
    ($database:ty) => {
        impl<C, I> QueryFragment<$database> for OneOf<C, I>
        where
            C: QueryFragment<$database>,
            I: Value + ToSql<I::SqlType, $database>,
            $database: HasSqlType<I::SqlType>,
        {
            fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, $database>) -> QueryResult<()> {
                let Some(last) = self.values.last() else {
                    pass.push_sql(if self.is_negated { "1 = 1" } else { "1 = 0" });
                    return Ok(());
                };
                let mut length = self.values.len();
                if length > MAX_PADDED {
                    pass.unsafe_to_cache_prepared();
                } else {
                    length = length.next_power_of_two();
                }
                self.column.walk_ast(pass.reborrow())?;
                pass.push_sql(if self.is_negated {
                    " NOT IN ("
                } else {
                    " IN ("
                });
                for index in 0..length {
                    if index > 0 {
                        pass.push_sql(", ");
                    }
                    pass.push_bind_param::<I::SqlType, I>(self.values.get(index).unwrap_or(last))?;
                }
                pass.push_sql(")");
                Ok(())
            }
        }
    };
}

#[cfg(feature = "sqlite")]
padded!(diesel::sqlite::Sqlite);
#[cfg(feature = "mysql")]
padded!(diesel::mysql::Mysql);

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use diesel::connection::{InstrumentationEvent, SimpleConnection};
    use diesel::prelude::{Connection, QueryDsl, SqliteConnection};

    use super::{none_of, one_of};
    use crate::repository::diesel::session::{RunQueryDsl, Session, SessionSettings};

    diesel::table! { line (id) { id -> BigInt, } }

    /// Lists select what they contain; lists of 0 to 8 values have five texts, each prepared once.
    #[test]
    fn lists_are_prepared_once_for_each_power_of_two() {
        let mut connection = SqliteConnection::establish(":memory:").unwrap();
        connection
            .batch_execute(
                "CREATE TABLE line (id); INSERT INTO line VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
            )
            .unwrap();
        let prepared = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&prepared);
        connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut session = Session::new(connection, SessionSettings::default());
        for length in [0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0] {
            let lines = line::table.order(line::id).select(line::id);
            let of: Vec<i64> = lines
                .filter(one_of(line::id, 1..=length))
                .load(&mut session)
                .unwrap();
            assert_eq!(of, (1..=length).collect::<Vec<_>>());
            let others: Vec<i64> = lines
                .filter(none_of(line::id, 1..=length))
                .load(&mut session)
                .unwrap();
            assert_eq!(others, (length + 1..=9).collect::<Vec<_>>());
        }
        assert_eq!(prepared.load(Ordering::Relaxed), 2 * 5);
    }
}
