//! The end of a partition and the begin of the next one, by one statement: it commits by itself, and is one round trip to the server.

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Text, Timestamp};

use super::chunk_rows::counts_of;
use super::{Connection, RunQueryDsl};
use crate::repository::diesel::backend::{EndedStep, StartedStep};

/// Implements `Backend::END_AND_BEGIN`.
pub(super) fn write(
    connection: &mut Connection,
    ended: &EndedStep<'_>,
    started: &StartedStep,
) -> QueryResult<usize> {
    let statement = EndAndBegin {
        ended,
        started,
        counts: counts_of(ended.counters),
        versions: (ended.version + 1, started.version + 1),
    };
    let (changed_end, changed_start) = statement.get_result::<(i64, i64)>(connection)?;
    Ok(usize::from(changed_end > 0 && changed_start > 0))
}

/// Updates both rows if both have their VERSION.
struct EndAndBegin<'a> {
    ended: &'a EndedStep<'a>,
    started: &'a StartedStep,
    counts: [(&'static str, i64); 8],
    versions: (i64, i64),
}

/// The text is always the same, so diesel finds the prepared statement by the type.
impl QueryId for EndAndBegin<'_> {
    type QueryId = EndAndBegin<'static>;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for EndAndBegin<'_> {
    type SqlType = (BigInt, BigInt);
}

impl QueryFragment<Pg> for EndAndBegin<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let Self { ended, started, .. } = self;
        out.push_sql("WITH ended AS (UPDATE batch_step_execution SET version = ");
        out.push_bind_param::<BigInt, _>(&self.versions.0)?;
        for (column, count) in &self.counts {
            out.push_sql(", ");
            out.push_sql(column);
            out.push_sql(" = ");
            out.push_bind_param::<BigInt, _>(count)?;
        }
        out.push_sql(", status = ");
        out.push_bind_param::<Text, _>(ended.status)?;
        out.push_sql(", exit_code = ");
        out.push_bind_param::<Text, _>(ended.exit_code)?;
        out.push_sql(", exit_message = ");
        out.push_bind_param::<Text, _>(&ended.exit_message)?;
        out.push_sql(", end_time = ");
        out.push_bind_param::<Timestamp, _>(&ended.now)?;
        out.push_sql(", last_updated = ");
        out.push_bind_param::<Timestamp, _>(&ended.now)?;
        out.push_sql(" WHERE step_execution_id = ");
        out.push_bind_param::<BigInt, _>(&ended.id)?;
        out.push_sql(" AND version = ");
        out.push_bind_param::<BigInt, _>(&ended.version)?;
        // Compared before the first row changes: the statement commits by itself, and there is no rollback.
        out.push_sql(" AND EXISTS (SELECT 1 FROM batch_step_execution WHERE step_execution_id = ");
        out.push_bind_param::<BigInt, _>(&started.id)?;
        out.push_sql(" AND version = ");
        out.push_bind_param::<BigInt, _>(&started.version)?;
        out.push_sql(") RETURNING 1), started AS (UPDATE batch_step_execution SET version = ");
        out.push_bind_param::<BigInt, _>(&self.versions.1)?;
        out.push_sql(", status = 'STARTED', start_time = ");
        out.push_bind_param::<Timestamp, _>(&started.now)?;
        out.push_sql(", last_updated = ");
        out.push_bind_param::<Timestamp, _>(&started.now)?;
        out.push_sql(" WHERE step_execution_id = ");
        out.push_bind_param::<BigInt, _>(&started.id)?;
        out.push_sql(" AND version = ");
        out.push_bind_param::<BigInt, _>(&started.version)?;
        out.push_sql(
            " AND EXISTS (SELECT 1 FROM ended) RETURNING 1) \
             SELECT (SELECT COUNT(*) FROM ended), (SELECT COUNT(*) FROM started)",
        );
        Ok(())
    }
}
