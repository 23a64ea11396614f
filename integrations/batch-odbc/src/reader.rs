//! The reader of a query.
// Spec: ODBC-01, ODBC-02

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use batch_items::at_most::AtMost;
use batch_items::query::{
    Key, Parameters, Passing, Query, QueryError, QueryOrder, QueryPosition, mark_of, not_unique,
    warn_without_order, without_key,
};
use batch_items::record::Value;
use batch_runtime::destination::DatabaseName;
use batch_runtime::prelude::*;
use batch_runtime::xml::suggest::did_you_mean;
use batch_runtime::{BatchError, ConfigurationError};
use odbc_api::{ConnectionTransitions, Cursor, DataType, SharedConnection};
use serde::de::DeserializeOwned;

use crate::columns::{Column, columns_of};
use crate::connection::{OdbcConnection, text_of};
use crate::dialect::Declared;
use crate::error::OdbcError;
use crate::result::{Block, ResultRows};
use crate::row::item_of;
use crate::selects::{Selects, Statement};

/// Reads the rows of a query as items of type `T`: a type with serde's `Deserialize`, or a [`Record`](batch_items::Record).
///
/// | property | default | |
/// |---|---|---|
/// | `database` | required | a connection string such as `odbc:DSN=erp;UID=batch;PWD=secret`, or the name of one in `[databases]` |
/// | `query` | required | a SELECT that changes nothing; `:name` is a parameter |
/// | `parameters` | none | the values of the parameters, separated by `;`: `region=EU; since='2026-01-01'` |
/// | `key` | none | the columns of a unique key, separated by commas, as the result names them |
/// | `page.size` | `1000` | the number of rows that are fetched at once, at most 100,000 |
///
/// **With a `key`** the rows are read in pages, in the order of the key: each page is a query for the rows after the last key. The
/// checkpoint is the key, so a restart reads no row twice. The key must be unique and not null; both are checked. An index on
/// it keeps each page fast.
///
/// **Without a `key`** the rows are read by one query. The checkpoint is the number of rows that were read; a restart runs the query again
/// and skips as many. So the query needs an ORDER BY that ends with a unique column, and its rows must not change in between. Some drivers
/// keep the whole result in memory: MariaDB's driver always, PostgreSQL's driver without `UseDeclareFetch=1`.
///
/// Texts keep their characters, decimals their digits. The driver of PostgreSQL changes dates before Christ and at infinity, UUIDs and others:
/// with a `key` these columns are read as text; without one the step fails, with the cast that the query needs. A SQLite file is not read:
/// its driver changes too much.
///
/// The reader has its own connection: it does not see what the chunk has not committed.
///
/// ```
/// use batch_odbc::OdbcItemReader;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Deserialize)]
/// struct Account {
///     id: i64,
///     owner: Option<String>,
/// }
///
/// #[item_reader("AccountReader")]
/// type AccountReader = OdbcItemReader<Account>;
/// ```
#[derive(BatchArtifact)]
pub struct OdbcItemReader<T> {
    #[batch_property(name = "database")]
    database: DatabaseName,
    #[batch_property(name = "query")]
    query: Query,
    #[batch_property(name = "parameters", value = "")]
    parameters: Parameters,
    #[batch_property(name = "key", value = "")]
    key: Vec<String>,
    #[batch_property(name = "page.size", value = "1000")]
    page_size: AtMost<100_000>,
    #[batch_context]
    job: JobContext,
    state: Option<State>,
    position: QueryPosition,
    /// Whether a value did not fit into a block.
    one_by_one: bool,
    /// True after the first check: a rollback opens the reader again.
    order_is_checked: bool,
    item: PhantomData<fn() -> T>,
}

/// How often a page is read if its rows change meanwhile.
const PAGE_ATTEMPTS: usize = 5;

/// What is open.
struct State {
    connection: SharedConnection<'static>,
    selects: Selects,
    /// The names of the values.
    names: Arc<Vec<String>>,
    /// The result that is open; `None` with a key.
    fetched: Option<ResultRows>,
    rows: VecDeque<Vec<Value>>,
    /// The key of the last row that was fetched.
    last: Option<Vec<Key>>,
    passing: Passing,
    has_ended: bool,
}

#[item_reader(rewindable = true)]
impl<T: DeserializeOwned + Send + 'static> OdbcItemReader<T> {
    /// Connects to the database, and positions at the checkpoint.
    ///
    /// # Errors
    /// If the database cannot be reached, or the query does not fit to the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<QueryPosition>) -> Result<(), BatchError> {
        self.state = None;
        self.position = checkpoint.unwrap_or_default();
        self.position.check(QueryOrder::new(&self.key, &self.query))?;
        let string = self.job.connection_string(&self.database)?;
        let connection = OdbcConnection::open(&string);
        let connection =
            connection.map_err(|error| QueryError::new("open the database of the query", error.or_lost()))?;
        self.state = Some(self.opened(connection)?);
        Ok(())
    }

    /// Reads the next row.
    ///
    /// # Errors
    /// The errors of the database, and of a row that is no item.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<T>, BatchError> {
        let Some(mut row) = self.next_row()? else {
            return Ok(None);
        };
        let Some(state) = &self.state else {
            return Ok(None);
        };
        match state.selects.key.is_empty() {
            true => self.position.last = row.first().map(mark_of),
            false => self.position.key = Some(state.take_key(&mut row)),
        }
        self.position.rows += 1;
        let item = item_of(&state.names, row);
        let place = |cause| {
            QueryError::new(
                "read a row of the query",
                format!("row {}: {cause}", self.position.rows),
            )
        };
        Ok(Some(item.map_err(place)?))
    }

    /// Returns the position after the last row that was read.
    #[get_checkpoint_info]
    pub fn checkpoint(&self) -> QueryPosition {
        self.position.clone()
    }
}

impl<T> OdbcItemReader<T> {
    /// Returns the next row; `None` after the last one.
    fn next_row(&mut self) -> Result<Option<Vec<Value>>, QueryError> {
        let size = self.size();
        loop {
            let Some(state) = &mut self.state else {
                return Ok(None);
            };
            if let Some(row) = state.rows.pop_front() {
                return Ok(Some(row));
            }
            if state.has_ended {
                return Ok(None);
            }
            if !state.fetch(&self.key, size, self.one_by_one)? {
                // The rows of the block are lost: they are fetched again, from the last row that was read.
                self.one_by_one = true;
                state.rewind(&self.position, size)?;
            }
        }
    }

    fn opened(&mut self, connection: OdbcConnection) -> Result<State, BatchError> {
        let dialect = connection.dialect();
        if let Some(reason) = dialect.unreadable {
            return Err(ConfigurationError::new(QueryError::new("read the query", reason)).into());
        }
        check_booleans(&connection)?;
        let bound = self.query.bind(&self.parameters, dialect.syntax);
        let (texts, values) = bound.map_err(|cause| QueryError::new("read the query", cause))?;
        let statement = Statement {
            text: texts.join("?"),
            values,
            keys: Vec::new(),
        };
        if self.key.is_empty() && !std::mem::replace(&mut self.order_is_checked, true) {
            warn_without_order(&statement.text, dialect.syntax);
        }
        let found = connection
            .odbc()
            .prepare(&statement.text)
            .map_err(OdbcError::from);
        let columns = found
            .and_then(|mut prepared| columns_of(&mut prepared, dialect))
            .map_err(of_query)?;
        let quote = connection.odbc().identifier_quote_char().map_err(OdbcError::from);
        let mut state = State {
            connection: Arc::new(Mutex::new(connection.into_odbc())),
            names: Arc::new(columns.iter().map(|column| column.name.clone()).collect()),
            selects: Selects {
                dialect,
                quote: quote.map_err(of_query)?.unwrap_or('"'),
                query: statement,
                key: key_of(&self.key, &columns)?,
                columns,
            },
            fetched: None,
            rows: VecDeque::new(),
            last: self.position.key.clone(),
            passing: Passing::to(&self.position),
            has_ended: false,
        };
        if self.key.is_empty() {
            state.selects.check_lossy()?;
            let fetched = state.run(self.size(), self.one_by_one);
            state.fetched = Some(fetched.map_err(of_query)?);
        } else {
            let without = state.count(&state.selects.without_key()).map_err(of_query)?;
            if without > 0 {
                return Err(without_key(&self.key, without).into());
            }
        }
        Ok(state)
    }

    fn size(&self) -> usize {
        self.page_size.get().get() as usize
    }
}

/// Checks that the driver of PostgreSQL returns booleans as such.
fn check_booleans(connection: &OdbcConnection) -> Result<(), BatchError> {
    let dialect = connection.dialect();
    if dialect.declared != Some(Declared::Postgres) {
        return Ok(());
    }
    let found = connection
        .odbc()
        .prepare("SELECT TRUE AS b")
        .map_err(OdbcError::from);
    let columns = found.and_then(|mut prepared| columns_of(&mut prepared, dialect));
    match columns.map_err(of_query)?.first() {
        Some(column) if column.data_type == DataType::Bit => Ok(()),
        _ => {
            let cause = "the driver returns booleans as texts; add `BoolsAsChar=0` to the connection string";
            Err(ConfigurationError::new(QueryError::new("read the query", cause)).into())
        }
    }
}

fn of_query(error: OdbcError) -> QueryError {
    QueryError::new("run the query", error.or_lost())
}

/// Returns the columns of a key.
fn key_of(names: &[String], columns: &[Column]) -> Result<Vec<Column>, QueryError> {
    let found = names.iter().map(|name| {
        let column = columns.iter().find(|column| column.name == *name);
        column.cloned().ok_or_else(|| {
            let hint = did_you_mean(name, columns.iter().map(|column| column.name.as_str()));
            QueryError::new(
                "read the query",
                format!("its result has no column `{name}` of the key{hint}"),
            )
        })
    });
    found.collect()
}

impl State {
    /// Fetches rows: a page, or a block of them. Returns false if a value was cut, and the rows are lost.
    fn fetch(&mut self, key: &[String], size: usize, one_by_one: bool) -> Result<bool, QueryError> {
        match key {
            [] => self.fetch_block(size),
            key => self.fetch_page(key, size, one_by_one),
        }
    }

    fn fetch_block(&mut self, size: usize) -> Result<bool, QueryError> {
        let Some(fetched) = &mut self.fetched else {
            return Ok(true);
        };
        match fetched.fetch(size).map_err(of_query)? {
            Block::Cut => return Ok(false),
            Block::Rows(rows) if rows.is_empty() => {
                self.passing.end()?;
                self.has_ended = true;
            }
            Block::Rows(rows) => self.pass(rows)?,
        }
        Ok(true)
    }

    /// Fetches a page whole: an open result could hold locks that a commit of the step waits for.
    fn fetch_page(&mut self, key: &[String], size: usize, one_by_one: bool) -> Result<bool, QueryError> {
        self.check_last(key)?;
        let after = self.last.clone();
        // Rows that other programs write between the page and its check change their numbers, but not each time.
        for _ in 0..PAGE_ATTEMPTS {
            self.rows.clear();
            self.last.clone_from(&after);
            let mut page = self.run(size, one_by_one).map_err(of_query)?;
            loop {
                match page.fetch(size).map_err(of_query)? {
                    Block::Cut => return Ok(false),
                    Block::Rows(rows) if rows.is_empty() => break,
                    Block::Rows(rows) => self.take_page(key, rows)?,
                }
            }
            drop(page);
            if self.is_in_order(after.as_deref()).map_err(of_query)? {
                self.has_ended = self.rows.len() < size;
                return Ok(true);
            }
        }
        let cause = format!(
            "cannot read pages by the key `{}`: {PAGE_ATTEMPTS} times a page had other rows than the database counts. Either the database orders the \
             key in another way than it compares it, as MariaDB does with an ENUM: cast the column in the query, or take another key. Or other \
             programs change these rows all the time: run the step when they do not",
            key.join(", ")
        );
        Err(QueryError::new("read the query", cause))
    }

    /// Returns whether as many rows have keys after one, up to the last one of the page, as the page has.
    fn is_in_order(&self, after: Option<&[Key]>) -> Result<bool, OdbcError> {
        let Some(last) = self.last.as_deref().filter(|_| !self.rows.is_empty()) else {
            return Ok(true);
        };
        let counted = self.count(&self.selects.count_in_page(after, last))?;
        Ok(usize::try_from(counted).is_ok_and(|counted| counted == self.rows.len()))
    }

    /// Prepares to fetch the rows after a position one by one.
    fn rewind(&mut self, position: &QueryPosition, size: usize) -> Result<(), QueryError> {
        self.rows.clear();
        self.last.clone_from(&position.key);
        self.passing = Passing::to(position);
        self.fetched = None;
        if self.selects.key.is_empty() {
            self.fetched = Some(self.run(size, true).map_err(of_query)?);
        }
        Ok(())
    }

    /// Takes rows, without those that a restart passes over.
    fn pass(&mut self, rows: Vec<Vec<Value>>) -> Result<(), QueryError> {
        for row in rows {
            match self.passing.is_left() {
                true => self.passing.pass(row.first().map(mark_of))?,
                false => self.rows.push_back(row),
            }
        }
        Ok(())
    }

    /// Takes rows of a page, whose keys must differ.
    fn take_page(&mut self, key: &[String], rows: Vec<Vec<Value>>) -> Result<(), QueryError> {
        for row in rows {
            let found = self.key_in(&row);
            if self.last.as_ref() == Some(&found) {
                return Err(not_unique(key, &[&found]));
            }
            self.last = Some(found);
            self.rows.push_back(row);
        }
        Ok(())
    }

    fn key_in(&self, row: &[Value]) -> Vec<Key> {
        let values = row.iter().skip(self.names.len());
        values.cloned().map(key_of_value).collect()
    }

    /// Takes the key from the end of a row.
    fn take_key(&self, row: &mut Vec<Value>) -> Vec<Key> {
        let key = self.key_in(row);
        row.truncate(self.names.len());
        key
    }

    /// Checks that no other row has the last key, as the database compares it: the next page, whose keys are greater, would not have it.
    fn check_last(&mut self, key: &[String]) -> Result<(), QueryError> {
        let Some(last) = self.last.clone() else {
            return Ok(());
        };
        match self.count(&self.selects.equal(&last)).map_err(of_query)? {
            // None, if the row was deleted meanwhile.
            0 | 1 => Ok(()),
            _ => Err(not_unique(key, &[&last])),
        }
    }

    /// Runs the query; with a key, for the first page after the last one.
    fn run(&self, size: usize, one_by_one: bool) -> Result<ResultRows, OdbcError> {
        let Selects {
            dialect, query, key, ..
        } = &self.selects;
        let statement = match key.is_empty() {
            true => query.clone(),
            false => self.selects.page(self.last.as_deref(), size),
        };
        let parameters = statement.parameters(dialect);
        let connection = Arc::clone(&self.connection);
        let cursor = connection.into_cursor(&statement.text, parameters.as_slice(), None);
        let cursor = cursor.map_err(|failed| OdbcError::from(failed.error))?;
        let mut cursor = cursor.ok_or_else(|| OdbcError::new("the query returns no result"))?;
        let result = columns_of(&mut cursor, dialect)?;
        ResultRows::new(cursor, result, size, dialect.texts, one_by_one)
    }

    /// Returns the number that a statement counts.
    fn count(&self, statement: &Statement) -> Result<i64, OdbcError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let parameters = statement.parameters(self.selects.dialect);
        let cursor = connection.execute(&statement.text, parameters.as_slice(), None)?;
        let mut cursor = cursor.ok_or_else(|| OdbcError::new("the query returns no result"))?;
        let mut row = cursor
            .next_row()?
            .ok_or_else(|| OdbcError::new("the query counts nothing"))?;
        let count = text_of(&mut row, 1, self.selects.dialect.texts)?;
        let count = count.and_then(|count| count.trim().parse().ok());
        count.ok_or_else(|| OdbcError::new("the query returns no number"))
    }
}

/// Returns a value as one of a key.
fn key_of_value(value: Value) -> Key {
    match value {
        Value::Decimal(digits) => Key::Decimal(digits),
        other => other.into(),
    }
}
