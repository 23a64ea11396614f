//! The writer of tables.

use std::error::Error;
use std::marker::PhantomData;

use batch_runtime::ConfigurationError;
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use batch_runtime::repository::DatabaseConnection;
use diesel::result::QueryResult;
use serde::Serialize;

use super::error::TableError;
use super::fit::{Fit, Run, continues_after_errors, statement_error, with_savepoint};
use super::known;
use super::plan::{Plan, RowsAffected, Settings, TableColumns, WriteMode};
use crate::dataset::Datasets;
use crate::error::EncodeError;
use crate::rows::{Kind, Rows};

/// Writes items to a table in the database of the job repository, in the transaction of the chunk: exactly once.
///
/// An item is a struct with serde, or a [`Record`](crate::Record): each field goes to the column of its name. Lists and structs in
/// a field are written as JSON, enums as text. Texts are converted to the type of the column, such as a date; a text that is
/// not one is an error, also on SQLite.
///
/// | property | default | |
/// |---|---|---|
/// | `table` | required | the table, which may have a schema |
/// | `columns` | all | the fields that are written, separated by commas |
/// | `mode` | `insert` | `insert`, `upsert`, `update` or `delete` |
/// | `key` | none | the columns of the key, separated by commas, for all modes but `insert` |
/// | `rows.affected` | `check` | whether the number of inserted, updated or deleted rows must be that of the items; `ignore` accepts any |
///
/// Each chunk is written with as few statements as possible, which are prepared once: one with an array for each column on
/// PostgreSQL, or `COPY` for 3,000 rows and more in a call, and some with many rows on SQLite and MySQL. If items of a chunk have
/// the same key, the last one counts.
///
/// ```
/// use batch_items::TableItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Payment {
///     number: String,
///     cents: i64,
/// }
///
/// #[item_writer("PaymentWriter")]
/// type PaymentWriter = TableItemWriter<Payment>;
/// ```
///
/// ```xml
/// <chunk reader="PaymentReader" processor="Booking" writer="PaymentWriter">
///   <properties>
///     <property name="table" value="payment" target="writer"/>
///     <property name="mode" value="upsert" target="writer"/>
///     <property name="key" value="number" target="writer"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct TableItemWriter<T> {
    #[batch_property(name = "table")]
    table: TableName,
    #[batch_property(name = "columns")]
    columns: Vec<String>,
    #[batch_property(name = "mode", value = "insert")]
    mode: WriteMode,
    #[batch_property(name = "key")]
    key: Vec<String>,
    #[batch_property(name = "rows.affected", value = "check")]
    rows_affected: RowsAffected,
    #[batch_artifact]
    datasets: Datasets,
    plan: Option<Plan>,
    fit: Fit,
    rows: Rows,
    item: PhantomData<fn(T)>,
}

/// A table's name.
struct TableName(String);

impl std::str::FromStr for TableName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.split('.').any(str::is_empty) {
            return Err("expected the name of a table".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

#[item_writer]
impl<T: Serialize + Send + 'static> TableItemWriter<T> {
    /// Forgets what is known of the table.
    #[open]
    pub fn open(&mut self, _checkpoint: Option<()>) {
        self.plan = None;
        self.fit = Fit::default();
        self.rows = Rows::default();
    }

    /// Writes items.
    #[write_items]
    pub fn write(&mut self, items: &[T], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        self.write_each(items.iter(), tx)
    }

    pub(crate) fn write_each<'a>(
        &mut self,
        items: impl Iterator<Item = &'a T>,
        tx: &mut ChunkTransaction,
    ) -> Result<(), BatchError> {
        self.rows.clear();
        for (index, item) in items.enumerate() {
            self.rows
                .push(item)
                .map_err(|cause| self.bad_item(index, cause))?;
        }
        if self.plan.is_none() {
            let found = known::columns(&self.datasets, tx, &self.table.0);
            let found = found.map_err(|error| self.fail(error))?;
            let settings = Settings {
                table: &self.table.0,
                columns: &self.columns,
                key: &self.key,
                mode: self.mode,
            };
            let plan = Plan::new(&settings, self.rows.names(), &found.columns);
            self.plan = Some(plan.map_err(|cause| ConfigurationError::new(self.fail(cause)))?);
            let table = (found.schema.as_deref(), self.table.0.as_str());
            self.datasets
                .report_table(DatasetRole::Output, "", table, found.fields());
        }
        let Some(plan) = &self.plan else { return Ok(()) };
        if self.rows.len() == 0 {
            return Ok(());
        }
        let converted = plan.convert(&mut self.rows);
        let kinds = converted.map_err(|(index, cause)| self.bad_item(index, cause))?;
        let statement = (plan, kinds.as_slice(), &self.rows);
        let mut fit = std::mem::take(&mut self.fit);
        if fit.is_doubtful() {
            fit.explained(self.action(), execute(tx, statement, Run::Explain, false))?;
        }
        let savepoint = fit.needs_savepoint(self.rows.len(), tx)?;
        let changed = execute(tx, statement, Run::Write, savepoint);
        let mut fit = Fit::after(&changed);
        if fit.is_doubtful() && (savepoint || continues_after_errors(tx)?) {
            fit.explained(self.action(), execute(tx, statement, Run::Explain, false))?;
        }
        self.fit = fit;
        let changed = changed.map_err(|error| statement_error(self.action(), error, &plan.unwritten))?;
        self.check_rows(changed)
    }

    /// Returns nothing: the rows are committed together with the checkpoint.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) {}

    fn check_rows(&self, changed: usize) -> Result<(), BatchError> {
        let expected = self.rows.len();
        // MySQL counts an updated row of an upsert twice.
        let checked = self.rows_affected == RowsAffected::Check && self.mode != WriteMode::Upsert;
        if !checked || changed == expected {
            return Ok(());
        }
        let past = match self.mode {
            WriteMode::Insert | WriteMode::Upsert => "inserted",
            WriteMode::Update => "updated",
            WriteMode::Delete => "deleted",
        };
        Err(self
            .fail(format!(
                "{changed} rows were {past} for {expected} items; set `rows.affected` to `ignore` if that is not an error"
            ))
            .into())
    }

    fn bad_item(&self, index: usize, cause: String) -> BatchError {
        EncodeError::of_chunk(self.table.0.clone(), index as u64 + 1, cause).into()
    }

    fn fail(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> TableError {
        TableError::new(self.action(), cause)
    }

    fn action(&self) -> String {
        action(self.mode, self.rows.len(), &self.table.0)
    }
}

/// Returns what a statement does, for errors.
pub(super) fn action(mode: WriteMode, rows: usize, table: &str) -> String {
    let rows = match rows {
        1 => "1 row".to_owned(),
        several => format!("{several} rows"),
    };
    format!("{} {rows} in table `{table}`", mode.verb())
}

/// Returns the columns of a table; none if it does not exist.
pub(crate) fn table_columns(database: DatabaseConnection<'_>, table: &str) -> QueryResult<TableColumns> {
    match database {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(connection) => super::sqlite::columns(connection, table),
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(connection) => super::postgres::columns(connection, table),
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(connection) => super::mysql::columns(connection, table),
        #[allow(
            unreachable_patterns,
            reason = "batch-runtime may have more databases than this crate"
        )]
        _ => Err(unsupported()),
    }
}

/// Runs the statement for the rows, with a savepoint if asked for, and returns how many were changed.
fn execute(
    tx: &mut ChunkTransaction,
    (plan, kinds, rows): (&Plan, &[Kind], &Rows),
    run: Run,
    savepoint: bool,
) -> QueryResult<usize> {
    macro_rules! on {
        ($database:ident, $connection:ident) => {
            with_savepoint(savepoint, $connection, |connection| {
                super::$database::execute(connection, plan, kinds, rows, run)
            })
        };
    }
    match tx.any()? {
        #[cfg(feature = "sqlite")]
        DatabaseConnection::Sqlite(connection) => on!(sqlite, connection),
        #[cfg(feature = "postgres")]
        DatabaseConnection::Postgres(connection) => on!(postgres, connection),
        #[cfg(feature = "mysql")]
        DatabaseConnection::Mysql(connection) => on!(mysql, connection),
        #[allow(
            unreachable_patterns,
            reason = "batch-runtime may have more databases than this crate"
        )]
        _ => Err(unsupported()),
    }
}

fn unsupported() -> diesel::result::Error {
    diesel::result::Error::QueryBuilderError(
        "batch-items is compiled without this database; enable its feature `postgres` or `mysql`".into(),
    )
}
