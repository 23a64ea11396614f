//! The reader of a query.

use std::collections::VecDeque;

use batch_runtime::destination::DatabaseName;
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use batch_runtime::repository::RepositoryConnection;

use super::cursor::Cursor;
use super::database::{begin_snapshot, connect, count, key_syntax, load, syntax};
use super::error::{QueryError, failed_query};
use super::order::warn_without_order;
use super::page::{KeySyntax, Statement};
use super::parameters::{Parameters, Query};
use super::position::{Key, QueryOrder, QueryPosition, not_unique, without_key};
use super::row::{FromRow, Keyed};
use crate::at_most::AtMost;
use crate::dataset::Datasets;
use crate::record::Record;
use crate::table::describe;

/// Reads the rows of a query as items of type `T`: a type with diesel's `QueryableByName`, or a [`Record`](crate::Record).
///
/// | property | default | |
/// |---|---|---|
/// | `query` | required | a SELECT that changes nothing; `:name` is a parameter. On SQLite, other variables such as `@id` are rejected: they would be null |
/// | `parameters` | none | the values of the parameters, separated by `;`: `region=EU; since='2026-01-01'`. An unquoted number is a number, and an unquoted `true` is a boolean; a text in single quotes may contain `;` |
/// | `key` | none | the columns of a unique key, separated by commas |
/// | `page.size` | `1000` | the number of rows that are fetched at once, at most 1,000,000 |
/// | `snapshot` | `false` | with a `key`: whether all pages show the state of the database at the moment when the reader was opened |
/// | `database` | the repository | the name or the URL of another database |
/// | `tables` | none | the tables that the query reads, separated by commas, for [observers](batch_runtime::observer) such as batch-lineage; the query is not parsed for them |
///
/// **With a `key`** the rows are read in pages, in the order of the key: each page is a query for the rows after the last key. The
/// checkpoint is the key, so a restart reads no row twice, and rows that other programs insert meanwhile are read if their key
/// comes later. The key must be unique and not null; both are checked. The database decides which keys are equal: with a collation that ignores case, `a` and `A` are. An
/// index on it keeps each page fast.
///
/// Each page shows what was committed before it, so a row whose key another program changes meanwhile may be read twice, or not at all. With
/// `snapshot` = `true` the reader keeps one transaction open until the step ends, and all pages show the state at the moment when it was opened. Each
/// partition, a restart, and a rollback that reads items again open a reader again, which shows a later state. Meanwhile PostgreSQL
/// cannot vacuum old rows, and its `idle_in_transaction_session_timeout` must exceed the time for one page; the undo log of MySQL grows (only tables
/// of InnoDB have a snapshot); SQLite needs the journal mode WAL, and the file of the log grows.
///
/// **Without a `key`** the rows are read by one query, as they arrive. The checkpoint is the number of rows that were read; a restart runs the query
/// again and skips as many. So the query needs an ORDER BY that ends with a unique column, and its rows must not change
/// in between: the step fails if the query returns fewer rows, or if the last row passed over has another value in its first column. The
/// reader logs a warning when the step starts if the query has no ORDER BY.
///
/// A restart with another `key`, or another text of the query, fails: the checkpoint is a position in other rows. Parameters may have other
/// values.
///
/// The reader has its own connection: it does not see what the chunk has not committed.
///
/// ```
/// use batch_items::QueryItemReader;
/// use batch_runtime::prelude::*;
/// use diesel::prelude::*;
/// use diesel::sql_types::{BigInt, Text};
///
/// #[derive(QueryableByName)]
/// struct Account {
///     #[diesel(sql_type = BigInt)]
///     id: i64,
///     #[diesel(sql_type = Text)]
///     owner: String,
/// }
///
/// #[item_reader("AccountReader")]
/// type AccountReader = QueryItemReader<Account>;
/// ```
///
/// ```xml
/// <chunk reader="AccountReader" processor="Statement" writer="StatementWriter">
///   <properties>
///     <property name="query" value="SELECT id, owner FROM account WHERE region = :region" target="reader"/>
///     <property name="parameters" value="region=EU" target="reader"/>
///     <property name="key" value="id" target="reader"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct QueryItemReader<T> {
    #[batch_property(name = "query")]
    query: Query,
    #[batch_property(name = "parameters", value = "")]
    parameters: Parameters,
    #[batch_property(name = "key")]
    key: Vec<String>,
    #[batch_property(name = "page.size", value = "1000")]
    page_size: AtMost<1_000_000>,
    #[batch_property(name = "snapshot", value = "false")]
    snapshot: bool,
    #[batch_property(name = "database", value = "")]
    database: DatabaseName,
    #[batch_property(name = "tables")]
    tables: Vec<String>,
    #[batch_context]
    job: JobContext,
    #[batch_artifact]
    datasets: Datasets,
    /// True after the first check: a rollback opens the reader again.
    order_is_checked: bool,
    state: Option<State<T>>,
    position: QueryPosition,
}

enum State<T> {
    Pages(Box<Pages<T>>),
    Cursor(Cursor<T>),
}

/// The rows of a page that are not read yet, and what the next page needs.
struct Pages<T> {
    connection: RepositoryConnection,
    query: Statement,
    syntax: KeySyntax,
    rows: VecDeque<Keyed<T>>,
    /// The key of the last row of the page.
    last: Option<Vec<Key>>,
    ended: bool,
}

impl<T: FromRow> QueryItemReader<T> {
    /// Closes the connection. A step drops the reader instead: a reader with `#[close]` would cost each partition a commit.
    pub fn close(&mut self) {
        self.state = None;
    }
}

#[item_reader(rewindable = true)]
impl<T: FromRow> QueryItemReader<T> {
    /// Connects to the database, and positions at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<QueryPosition>) -> Result<(), QueryError> {
        self.close();
        self.position = checkpoint.unwrap_or_default();
        self.position.check(QueryOrder::new(&self.key, &self.query))?;
        let connection = connect(&self.job, &self.database);
        let mut connection =
            connection.map_err(|cause| QueryError::new("open the database of the query", cause))?;
        if self.snapshot && !self.key.is_empty() {
            begin_snapshot(&mut connection)
                .map_err(|cause| QueryError::new("begin the snapshot of the database", cause))?;
        }
        let query = statement(&mut connection, &self.query, &self.parameters)?;
        self.report_tables(&mut connection)?;
        self.state = Some(if self.key.is_empty() {
            self.check_order(&mut connection);
            State::Cursor(Cursor::new(
                connection,
                query,
                self.page_size.get(),
                &self.position,
            )?)
        } else {
            State::Pages(Box::new(self.first_page(connection, query)?))
        });
        Ok(())
    }

    /// Reads the next row.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<T>, QueryError> {
        let item = match &mut self.state {
            None => None,
            Some(State::Cursor(cursor)) => cursor.next()?.map(|row| {
                self.position.last = row.mark;
                row.item
            }),
            Some(State::Pages(pages)) => {
                if pages.rows.is_empty() && !pages.ended {
                    pages.load(&self.key, self.page_size.get().get())?;
                }
                pages.rows.pop_front().map(|row| {
                    self.position.key = Some(row.key);
                    row.item
                })
            }
        };
        self.position.rows += u64::from(item.is_some());
        Ok(item)
    }

    /// Returns the position after the last row that was read.
    #[get_checkpoint_info]
    pub fn checkpoint(&self) -> QueryPosition {
        self.position.clone()
    }

    /// Reports the tables that the property names.
    fn report_tables(&self, connection: &mut RepositoryConnection) -> Result<(), QueryError> {
        for table in &self.tables {
            let found = describe(connection.any(), table);
            let found = found.map_err(|error| failed_query(connection, error))?;
            if found.columns.is_empty() {
                tracing::warn!(
                    table,
                    "a table of the property `tables` does not exist; it is not reported"
                );
                continue;
            }
            let named = (!self.database.is_empty()).then(|| self.job.database(&self.database));
            let url = named
                .and_then(Result::ok)
                .map_or_else(String::new, |url| url.to_string());
            let schema = found.schema.as_deref();
            self.datasets
                .report_table(DatasetRole::Input, &url, schema, table, found.fields());
        }
        Ok(())
    }

    /// Warns if a restart cannot pass over the rows that were read.
    fn check_order(&mut self, connection: &mut RepositoryConnection) {
        if std::mem::replace(&mut self.order_is_checked, true) {
            return;
        }
        if let Some(syntax) = syntax(connection) {
            warn_without_order(&self.query.to_string(), syntax);
        }
    }

    fn first_page(
        &self,
        mut connection: RepositoryConnection,
        query: Statement,
    ) -> Result<Pages<T>, QueryError> {
        let fail = |error| QueryError::new("run the query", error);
        let syntax = key_syntax(&mut connection, &query, &self.key).map_err(fail)?;
        let without = count(&mut connection, &query.without_key(&self.key, syntax.quote)).map_err(fail)?;
        if without > 0 {
            return Err(without_key(&self.key, without));
        }
        Ok(Pages {
            connection,
            query,
            syntax,
            rows: VecDeque::new(),
            last: self.position.key.clone(),
            ended: false,
        })
    }
}

impl<T: FromRow> Pages<T> {
    /// Reads the next page.
    fn load(&mut self, key: &[String], size: u32) -> Result<(), QueryError> {
        self.check_last(key)?;
        let statement = self.query.page(key, self.last.as_deref(), size, &self.syntax);
        let rows: Vec<Keyed<T>> = load(&mut self.connection, statement)
            .map_err(|error| failed_query(&mut self.connection, error))?;
        self.ended = rows.len() < size as usize;
        let same = rows.windows(2).find(|rows| rows[0].key == rows[1].key);
        if let Some([row, _]) = same {
            return Err(not_unique(key, &[&row.key]));
        }
        self.last = rows.last().map(|row| row.key.clone()).or(self.last.take());
        self.rows = rows.into();
        Ok(())
    }

    /// Checks that no other row has the last key: the next page, whose keys are greater, would not have it. Only the database knows which keys are
    /// equal, such as texts that differ in case.
    fn check_last(&mut self, key: &[String]) -> Result<(), QueryError> {
        let Some(last) = &self.last else { return Ok(()) };
        let equal = self.query.equal(key, last, &self.syntax);
        let equal: Vec<Keyed<Record>> =
            load(&mut self.connection, equal).map_err(|error| failed_query(&mut self.connection, error))?;
        match equal.as_slice() {
            [one, other] => Err(not_unique(key, &[&one.key, &other.key])),
            [other] if other.key != *last => Err(not_unique(key, &[last, &other.key])),
            // Nothing, if the row was deleted meanwhile.
            _ => Ok(()),
        }
    }
}

/// Returns the query with its values.
pub(super) fn statement(
    connection: &mut RepositoryConnection,
    query: &Query,
    parameters: &Parameters,
) -> Result<Statement, QueryError> {
    let syntax =
        syntax(connection).ok_or_else(|| QueryError::new("read the query", "the database is unknown"))?;
    let bound = query.bind(parameters, syntax);
    bound
        .map(|(texts, values)| Statement::new(texts, values))
        .map_err(|cause| QueryError::new("read the query", cause))
}

/// Returns the rows of a query.
pub(crate) fn load_records(
    job: &JobContext,
    database: &str,
    query: &Query,
    parameters: &Parameters,
) -> Result<Vec<Record>, QueryError> {
    let connection = connect(job, database);
    let mut connection =
        connection.map_err(|cause| QueryError::new("open the database of the query", cause))?;
    let statement = statement(&mut connection, query, parameters)?;
    load(&mut connection, statement).map_err(|error| QueryError::new("run the query", error))
}
