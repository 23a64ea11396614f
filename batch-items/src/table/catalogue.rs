//! Tables as the catalogues of their databases describe them, and the rules for the items that a table takes.
//!
//! A writer asks once, when it opens: what it cannot write is an error of its settings. Afterwards only items can be at fault, unless the
//! table has changed since: after an error whose cause may be that, the catalogue is asked again.
// Spec: ITEM-TABLE-01, D-106

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use batch_runtime::JobExecutionId;
use batch_runtime::destination::{AnyDestination, DatabaseDestination};
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use batch_runtime::repository::DatabaseConnection;
use batch_runtime::xml::suggest::did_you_mean;
use diesel::QueryResult;
use diesel::result::Error as DieselError;

use super::settings::{Settings, WriteMode};
use crate::dataset::Datasets;
use crate::rows::{Kind, Limit};

/// A table, as its database describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// The schema of an unqualified name, on PostgreSQL.
    pub(crate) schema: Option<String>,
    /// None, if the table does not exist.
    pub(crate) columns: Vec<TableColumn>,
    /// Whether the table takes each statement: a view may not, and the user may lack the right.
    pub(super) inserts: bool,
    pub(super) updates: bool,
    pub(super) deletes: bool,
    /// The columns of each unique index of all rows and values: `upsert` can use it, and at most one row has a key.
    pub(super) unique: Vec<Vec<String>>,
    /// Whether there is a unique index of an expression, or of the beginning of a text, which `unique` cannot name.
    pub(super) has_unnamed_unique: bool,
    /// Whether a column of floats holds `NaN`.
    pub(super) holds_nan: bool,
    /// The storage engine, if it has no transactions.
    pub(super) engine_without_transactions: Option<String>,
}

/// A column of the table, as its database describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableColumn {
    pub(super) name: String,
    /// The type, in SQL.
    pub(super) sql_type: String,
    /// The type of its values; `None` for any.
    pub(super) kind: Option<Kind>,
    /// What it holds of these values.
    pub(super) limit: Limit,
    /// True if a row must have a value for it: it is not null, without a default, and nothing computes it.
    pub(super) needs_value: bool,
    /// True if the database computes it, so that nothing can be written.
    pub(super) is_computed: bool,
    /// True if a row without a value for it has one that no other row has, or null.
    pub(super) is_distinct: bool,
}

impl Table {
    /// Returns the names of the columns with their types.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (String, Option<String>)> {
        let columns = self.columns.iter();
        columns.map(|column| (column.name.clone(), Some(column.sql_type.clone())))
    }

    /// Returns a column by its name, which databases do not tell apart from one in another case.
    pub(super) fn column(&self, name: &str) -> Result<&TableColumn, String> {
        let same = |column: &&TableColumn| column.name.eq_ignore_ascii_case(name);
        self.columns.iter().find(same).ok_or_else(|| {
            let hint = did_you_mean(name, self.columns.iter().map(|column| column.name.as_str()));
            format!("it has no column `{name}`{hint}")
        })
    }

    /// Checks the settings without an item. Fails with the cause.
    pub(super) fn check(&self, settings: &Settings<'_>) -> Result<(), String> {
        let Settings { key, mode, .. } = settings;
        if self.columns.is_empty() {
            return Err(
                "the table does not exist; create it by `schema_sql`, or by a step with the batchlet `sqlScript`"
                    .to_owned(),
            );
        }
        if let Some(engine) = &self.engine_without_transactions {
            return Err(format!(
                "its engine {engine} has no transactions: after a crash, rows of the last chunk would be there twice; change it by \
                 `ALTER TABLE {} ENGINE = InnoDB`",
                settings.table
            ));
        }
        let takes = match mode {
            WriteMode::Insert => self.inserts,
            WriteMode::Upsert => self.inserts && self.updates,
            WriteMode::Update => self.updates,
            WriteMode::Delete => self.deletes,
        };
        if !takes {
            return Err(format!(
                "it takes no {}; it may be a view, or the user of the database lacks the right",
                mode.verb()
            ));
        }
        if *mode != WriteMode::Insert && key.is_empty() {
            return Err(format!("set the property `key` to {} rows", mode.verb()));
        }
        for (index, name) in key.iter().enumerate() {
            self.column(name)?;
            if key[..index].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(format!("`key` has the column `{name}` twice"));
            }
        }
        if *mode == WriteMode::Upsert && !self.unique.iter().any(|index| is_same(index, key)) {
            return Err(self.without_unique_index(key));
        }
        Ok(())
    }

    fn without_unique_index(&self, key: &[String]) -> String {
        let indexes: Vec<_> = self
            .unique
            .iter()
            .map(|index| format!("`{}`", index.join(",")))
            .collect();
        let there = match indexes.len() {
            0 => "it has none".to_owned(),
            _ => format!("the indexes of the table have {}", indexes.join(", ")),
        };
        format!(
            "`upsert` needs a unique index of exactly the columns of `key`, `{}`, but {there}",
            key.join(",")
        )
    }

    /// Checks the columns that are written. Fails with the cause.
    pub(super) fn check_written(&self, settings: &Settings<'_>, written: &[&str]) -> Result<(), String> {
        let Settings { key, mode, .. } = settings;
        let is_key = |name: &str| key.iter().any(|key| key.eq_ignore_ascii_case(name));
        for (index, name) in written.iter().enumerate() {
            let column = self.column(name)?;
            let is_set = match mode {
                WriteMode::Insert | WriteMode::Upsert => true,
                WriteMode::Update => !is_key(name),
                WriteMode::Delete => false,
            };
            if is_set && column.is_computed {
                return Err(format!(
                    "the database computes the column `{}`; leave it out by the property `columns`",
                    column.name
                ));
            }
            if let Some(other) = written[..index]
                .iter()
                .find(|other| other.eq_ignore_ascii_case(name))
            {
                return Err(format!(
                    "the items have two fields for the column `{}`, `{other}` and `{name}`; select one by the property `columns`",
                    column.name
                ));
            }
        }
        let is_written = |name: &str| written.iter().any(|written| written.eq_ignore_ascii_case(name));
        if let Some(name) = key.iter().find(|name| !is_written(name)) {
            let hint = did_you_mean(name, written.iter().copied());
            return Err(format!("the items have no field `{name}` of the key{hint}"));
        }
        if *mode == WriteMode::Update && written.iter().all(|name| is_key(name)) {
            return Err("all columns are part of the key; there is nothing to update".to_owned());
        }
        if matches!(mode, WriteMode::Insert | WriteMode::Upsert) {
            self.check_unwritten(is_written)?;
        }
        Ok(())
    }

    /// Checks that a row has all values that it needs. Fails with the cause.
    pub(super) fn check_unwritten(&self, is_written: impl Fn(&str) -> bool) -> Result<(), String> {
        let missing = |column: &&TableColumn| column.needs_value && !is_written(&column.name);
        match self.columns.iter().find(missing) {
            Some(column) => Err(format!(
                "the column `{}` needs a value, and the writer does not write it; write it, or give it a default",
                column.name
            )),
            None => Ok(()),
        }
    }
}

/// Returns whether two lists have the same columns, in any order.
pub(super) fn is_same(index: &[String], key: &[String]) -> bool {
    let is_in = |name: &String| key.iter().any(|key| key.eq_ignore_ascii_case(name));
    index.len() == key.len() && index.iter().all(is_in)
}

/// Returns the columns of each index, from pairs of index and column that are ordered by index; `None` is an expression, which no column is.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(super) fn grouped(pairs: impl Iterator<Item = (String, Option<String>)>) -> Vec<Vec<String>> {
    let mut indexes: Vec<(String, Option<Vec<String>>)> = Vec::new();
    for (index, column) in pairs {
        if indexes.last().is_none_or(|(last, _)| *last != index) {
            indexes.push((index, Some(Vec::new())));
        }
        if let Some((_, columns)) = indexes.last_mut() {
            *columns = columns.take().zip(column).map(|(mut columns, column)| {
                columns.push(column);
                columns
            });
        }
    }
    indexes.into_iter().filter_map(|(_, columns)| columns).collect()
}

/// Returns a table as its database describes it; without columns, if it does not exist.
pub(crate) fn describe(database: DatabaseConnection<'_>, table: &str) -> QueryResult<Table> {
    match database {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(connection) => super::sqlite::describe(connection, table),
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(connection) => super::postgres::describe(connection, table),
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(connection) => super::mysql::describe(connection, table),
        #[allow(
            unreachable_patterns,
            reason = "batch-runtime may have more databases than this crate"
        )]
        _ => Err(super::writer::unsupported()),
    }
}

/// The catalogue, as a writer of a table asks it.
#[derive(BatchArtifact)]
pub(super) struct Catalogue {
    /// The name or the URL of a database beside the repository; empty for the repository's.
    #[batch_property(name = "database", value = "")]
    database: String,
    #[batch_context]
    job: JobContext,
    #[batch_artifact]
    datasets: Datasets,
    /// The description of the writer's table.
    known: Option<Arc<Table>>,
    /// A connection beside the transaction, once one was needed.
    #[cfg(feature = "postgres")]
    connection: Option<RepositoryConnection>,
}

/// The number of tables whose descriptions are kept.
const MOST_TABLES: usize = 16;

static KNOWN: Mutex<VecDeque<(Place, Arc<Table>)>> = Mutex::new(VecDeque::new());

/// A table, as one step of a job execution sees it: another step may have changed it. The partitions of a step, each with a writer of its
/// own, ask once.
#[derive(PartialEq, Eq)]
struct Place {
    database: String,
    execution: JobExecutionId,
    step: String,
    name: String,
}

impl Catalogue {
    /// Returns the database of the table, if it is not the repository's.
    pub(super) fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        if self.database.is_empty() {
            return Ok(None);
        }
        Ok(Some(
            DatabaseDestination::at(self.job.database(&self.database)?)?.into(),
        ))
    }

    /// Returns the connection that writes to the table, inside the transaction.
    pub(super) fn within<'a>(&self, tx: &'a mut ChunkTransaction) -> QueryResult<DatabaseConnection<'a>> {
        if self.database.is_empty() {
            return tx.any();
        }
        let connection = tx.destination::<RepositoryConnection>();
        let connection = connection.map_err(|error| DieselError::QueryBuilderError(error.chain().into()))?;
        Ok(connection.any())
    }

    /// Opens a connection beside the transaction.
    fn connect(&self) -> Result<RepositoryConnection, BatchError> {
        Ok(match self.database.is_empty() {
            true => self.job.connect()?,
            false => self.job.database(&self.database)?.connect()?,
        })
    }

    /// Reports the table as an output.
    pub(super) fn report(&self, table: &Table, name: &str) {
        let url = match self.database.is_empty() {
            true => String::new(),
            false => self
                .job
                .database(&self.database)
                .map_or_else(|_| String::new(), |url| url.to_string()),
        };
        let schema = table.schema.as_deref();
        self.datasets
            .report_table(DatasetRole::Output, &url, schema, name, table.fields());
    }

    /// Asks for a table when the writer opens.
    pub(super) fn open(&mut self, name: &str) -> Result<Arc<Table>, BatchError> {
        let place = self.place(name);
        let found = match place.as_ref().and_then(kept) {
            Some(found) => found,
            None => {
                let found = Arc::new(describe(self.connect()?.any(), name)?);
                if let Some(place) = place {
                    keep(place, &found);
                }
                found
            }
        };
        self.known = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Returns the table; `None` before the writer is open.
    pub(super) fn table(&self) -> Option<Arc<Table>> {
        self.known.clone()
    }

    /// Asks again after an error, whose cause may be that the table has changed. Returns the table if it has.
    pub(super) fn changed(&mut self, name: &str, tx: &mut ChunkTransaction) -> Option<Table> {
        let known = self.known.as_ref()?;
        let now = match self.within(tx).ok()? {
            // PostgreSQL executes nothing after an error in a transaction.
            #[cfg(feature = "postgres")]
            DatabaseConnection::Postgres(_) => {
                if self.connection.is_none() {
                    self.connection = self.connect().ok();
                }
                let described = describe(self.connection.as_mut()?.any(), name);
                if described.is_err() {
                    self.connection = None;
                }
                described
            }
            database => describe(database, name),
        };
        now.ok().filter(|now| *now != **known)
    }

    /// Returns where the description is kept: asking SQLite takes no time, and its databases in memory have the same URL.
    fn place(&self, name: &str) -> Option<Place> {
        let (database, execution, step) = self.datasets.place()?;
        let database = match self.database.is_empty() {
            true => database,
            false => self.job.database(&self.database).ok()?.to_string(),
        };
        (!database.starts_with("sqlite:")).then(|| Place {
            database,
            execution,
            step,
            name: name.to_owned(),
        })
    }
}

fn kept(place: &Place) -> Option<Arc<Table>> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|(other, _)| other == place);
    found.map(|(_, table)| Arc::clone(table))
}

fn keep(place: Place, table: &Arc<Table>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.truncate(MOST_TABLES - 1);
    known.push_front((place, Arc::clone(table)));
}
