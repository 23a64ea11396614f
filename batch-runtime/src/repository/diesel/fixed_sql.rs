//! SQL that diesel cannot express, as queries that it prepares once for each connection. diesel prepares queries of `diesel::dsl::sql` and
//! `diesel::sql_query` at each execution, because the compiler does not know their text; here a type determines the text.

use std::marker::PhantomData;

use diesel::backend::Backend;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, DieselNumericOps, HasSqlType};

/// The text of a [`FixedSql`].
pub(super) trait FixedText: 'static {
    const TEXT: &'static str;
}

/// An expression of type BIGINT without values.
#[derive(DieselNumericOps)]
pub(super) struct FixedSql<T>(PhantomData<T>);

/// Returns the expression with the text of `T`.
pub(super) fn fixed_sql<T: FixedText>() -> FixedSql<T> {
    FixedSql(PhantomData)
}

impl<T: 'static> QueryId for FixedSql<T> {
    type QueryId = Self;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<T> Expression for FixedSql<T> {
    type SqlType = BigInt;
}

impl<T, GB> ValidGrouping<GB> for FixedSql<T> {
    type IsAggregate = diesel::expression::is_aggregate::Never;
}

impl<T, QS> SelectableExpression<QS> for FixedSql<T> {}

impl<T, QS> AppearsOnTable<QS> for FixedSql<T> {}

impl<T: FixedText, DB: Backend> QueryFragment<DB> for FixedSql<T> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_sql(T::TEXT);
        Ok(())
    }
}

/// The text of a [`FixedQuery`], without its value.
#[allow(dead_code, reason = "SQLite needs none")]
pub(super) trait FixedQueryText: 'static {
    const BEFORE_VALUE: &'static str;
    const AFTER_VALUE: &'static str;
}

/// Declares types for the texts of queries, before and after the value.
#[cfg(any(feature = "postgres", feature = "mysql"))]
macro_rules! fixed_queries {
    ($($name:ident: $before:literal, $after:literal;)*) => {$(
        struct $name;

        impl $crate::repository::diesel::fixed_sql::FixedQueryText for $name {
            const BEFORE_VALUE: &'static str = $before;
            const AFTER_VALUE: &'static str = $after;
        }
    )*};
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) use fixed_queries;

/// A statement with one value of type BIGINT. If it returns rows, they have one column of that type.
pub(super) struct FixedQuery<T> {
    value: i64,
    text: PhantomData<T>,
}

/// Returns the statement with the text of `T`.
#[allow(dead_code, reason = "SQLite needs none")]
pub(super) fn fixed_query<T: FixedQueryText>(value: i64) -> FixedQuery<T> {
    FixedQuery {
        value,
        text: PhantomData,
    }
}

impl<T: 'static> QueryId for FixedQuery<T> {
    type QueryId = Self;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<T> Query for FixedQuery<T> {
    type SqlType = BigInt;
}

impl<T, DB> QueryFragment<DB> for FixedQuery<T>
where
    T: FixedQueryText,
    DB: Backend + HasSqlType<BigInt>,
    i64: diesel::serialize::ToSql<BigInt, DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_sql(T::BEFORE_VALUE);
        pass.push_bind_param::<BigInt, _>(&self.value)?;
        pass.push_sql(T::AFTER_VALUE);
        Ok(())
    }
}
