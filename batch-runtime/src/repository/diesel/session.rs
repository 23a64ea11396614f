//! A connection with the settings of its repository, and diesel's queries on it.
//!
//! diesel fixes the names of tables at compile time. A session with another table prefix renames them in the text of each
//! statement; with the default prefix it passes queries through.

use std::ops::{Deref, DerefMut};

use diesel::backend::Backend;
use diesel::connection::{Connection, DefaultLoadingMode, LoadConnection, SimpleConnection};
use diesel::query_builder::{AsQuery, AstPass, Query, QueryBuilder, QueryFragment, QueryId};
use diesel::query_dsl::methods::{ExecuteDsl, LimitDsl, LoadQuery};
use diesel::result::QueryResult;

use super::db_timestamp::DbTimestamp;
use super::table_prefix::TablePrefix;
use crate::clock::Timestamp;
use crate::repository::{RepositoryFormat, RepositoryLayout};
use crate::time_zone::TimeZone;

/// The settings of a repository's tables, from the URL, the builder and the tables themselves.
#[derive(Clone, Default)]
pub(super) struct SessionSettings {
    pub(super) prefix: TablePrefix,
    /// The zone of the wall-clock times in TIMESTAMP columns.
    pub(super) zone: TimeZone,
    /// The layout that the URL names.
    pub(super) wanted_layout: Option<RepositoryLayout>,
    /// With the layout of the tables, once they are known.
    pub(super) format: RepositoryFormat,
    /// True if ids are from sequences; false if from tables, on a database that may have either.
    pub(super) has_sequences: bool,
}

impl SessionSettings {
    /// Converts a point in time to the value of a column.
    pub(super) fn to_column(&self, time: Timestamp) -> DbTimestamp {
        DbTimestamp(self.zone.wall(time).0)
    }

    /// Converts the value of a column to a point in time.
    pub(super) fn to_time(&self, column: DbTimestamp) -> Timestamp {
        self.zone.instant(Timestamp(column.0))
    }
}

/// A connection and the settings of its repository. Dereferences to the connection for statements without table names.
pub(super) struct Session<C> {
    connection: C,
    pub(super) settings: SessionSettings,
}

impl<C> Session<C> {
    pub(super) fn new(connection: C, settings: SessionSettings) -> Self {
        Self { connection, settings }
    }

    pub(super) fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    pub(super) fn layout(&self) -> RepositoryLayout {
        self.settings.format.layout
    }

    /// Runs `work` on the tables that a conversion fills, which have another layout. diesel caches prepared statements
    /// by type, so `work` must not use a statement that was used on the other tables.
    pub(super) fn on_converted_tables<T>(
        &mut self,
        layout: RepositoryLayout,
        in_lower_case: bool,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.settings.clone();
        self.settings.prefix = before.prefix.of_converted(in_lower_case);
        self.settings.format.layout = layout;
        let done = work(self);
        self.settings = before;
        done
    }

    /// Runs statements that name the tables with the prefix `BATCH_`.
    pub(super) fn run_script(&mut self, statements: &str) -> QueryResult<()>
    where
        C: SimpleConnection,
    {
        let statements = self.settings.prefix.rename_all(statements);
        self.connection.batch_execute(&statements)
    }

    /// Forgets the layout that the URL names.
    pub(super) fn accept_any_layout(&mut self) {
        self.settings.wanted_layout = None;
    }
}

impl<C> Deref for Session<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C> DerefMut for Session<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.connection
    }
}

/// Runs diesel's queries on a [`Session`]; replaces diesel's trait of the same name.
pub(super) trait RunQueryDsl<C>: Sized {
    fn execute(self, session: &mut Session<C>) -> QueryResult<usize>
    where
        C: Connection,
        Renamed<Self>: ExecuteDsl<C>,
    {
        let query = Renamed::new(self, session);
        ExecuteDsl::execute(query, &mut session.connection)
    }

    fn load<'query, U>(self, session: &mut Session<C>) -> QueryResult<Vec<U>>
    where
        Self: AsQuery,
        C: LoadConnection<DefaultLoadingMode>,
        Renamed<Self::Query>: LoadQuery<'query, C, U>,
    {
        let query = Renamed::new(self.as_query(), session);
        diesel::RunQueryDsl::load(query, &mut session.connection)
    }

    fn get_result<'query, U>(self, session: &mut Session<C>) -> QueryResult<U>
    where
        Self: AsQuery,
        C: LoadConnection<DefaultLoadingMode>,
        Renamed<Self::Query>: LoadQuery<'query, C, U>,
    {
        let query = Renamed::new(self.as_query(), session);
        diesel::RunQueryDsl::get_result(query, &mut session.connection)
    }

    fn first<'query, U>(self, session: &mut Session<C>) -> QueryResult<U>
    where
        Self: LimitDsl,
        Self::Output: AsQuery,
        C: LoadConnection<DefaultLoadingMode>,
        Renamed<<Self::Output as AsQuery>::Query>: LoadQuery<'query, C, U>,
    {
        let query = Renamed::new(self.limit(1).as_query(), session);
        diesel::RunQueryDsl::get_result(query, &mut session.connection)
    }
}

impl<Q: QueryId, C> RunQueryDsl<C> for Q {}

/// A query whose tables have the prefix of the session.
///
/// With the prefix `MY_`, `SELECT version FROM BATCH_X WHERE id = ?` is sent as `SELECT version FROM MY_X WHERE id = ? /*
/// SELECT version FROM BATCH_X WHERE id = ? */`. The original stays as a comment because diesel walks a query several
/// times, for its text, its values and more, without saying which: the walk through the original supplies the values. (An implementation of
/// `to_sql` instead would not be called: diesel passes queries by reference, and a reference has another `to_sql`.) A connection has one
/// prefix, so its cache of prepared statements can use the key of the original.
pub(super) struct Renamed<Q> {
    query: Q,
    prefix: TablePrefix,
}

impl<Q> Renamed<Q> {
    fn new<C>(query: Q, session: &Session<C>) -> Self {
        Self {
            query,
            prefix: session.settings.prefix.clone(),
        }
    }
}

impl<Q, DB> QueryFragment<DB> for Renamed<Q>
where
    DB: Backend,
    DB::QueryBuilder: Default,
    Q: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if self.prefix.is_default() {
            return self.query.walk_ast(pass);
        }
        let mut original = DB::QueryBuilder::default();
        self.query.to_sql(&mut original, pass.backend())?;
        pass.push_sql(&self.prefix.rename(&original.finish()));
        pass.push_sql(" /* ");
        self.query.walk_ast(pass.reborrow())?;
        pass.push_sql(" */");
        Ok(())
    }
}

impl<Q: QueryId> QueryId for Renamed<Q> {
    type QueryId = Q::QueryId;

    const HAS_STATIC_QUERY_ID: bool = Q::HAS_STATIC_QUERY_ID;
}

impl<Q: Query> Query for Renamed<Q> {
    type SqlType = Q::SqlType;
}

impl<Q, C> diesel::RunQueryDsl<C> for Renamed<Q> {}
