//! The writer of tables.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use batch_runtime::ConfigurationError;
use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::catalogue::Table;
use super::database::TableDatabase;
use super::diesel_tables::Catalogue;
use super::error::{StatementError, TableError};
use super::plan::{Changed, Plan};
use super::settings::{RowsAffected, Settings, WriteMode};
use crate::error::EncodeError;
use crate::rows::Rows;

/// Writes items to a table, exactly once: in the database of the job repository by the transaction of the chunk, and in another one by
/// a [marker](batch_runtime::destination::Destination).
///
/// An item is a struct with serde, or a [`Record`](crate::Record): each field goes to the column of its name. Lists and structs in
/// a field are written as JSON, enums as text. Texts are converted to the type of the column: numbers, `true` and `false`, dates and
/// timestamps in the form of ISO 8601 such as `2026-11-26 10:00:00`, and `\xDEAD` for bytes. A text that is not one is an error of its
/// item, also on SQLite, and so is a value that the database would round or cut: SQLite holds 15 digits in a column of decimals, and a column
/// such as `NUMERIC(9, 2)`, `TIMESTAMP(0)` or `REAL` holds no more than it declares.
///
/// Without `columns`, the first item of the step sets the fields, also for its restarts; later items may have them in another order, or lack
/// some, which are null.
///
/// | property | default | |
/// |---|---|---|
/// | `table` | required | the table, which may have a schema |
/// | `database` | the repository | the name or the URL of another database |
/// | `columns` | all | the fields that are written, by name, separated by commas; `note?` is a field that items may lack |
/// | `mode` | `insert` | `insert`, `upsert`, `update` or `delete` |
/// | `key` | none | the columns of the key, separated by commas, for all modes but `insert`; `upsert` needs a unique index of exactly these columns |
/// | `add` | none | the columns of `upsert` and `update` whose values are added to the values of the table, where null counts as 0 |
/// | `rows.affected` | `check` | whether each item must insert, update or delete exactly one row; `ignore` accepts any number |
///
/// Each chunk is written with as few statements as possible, which are prepared once: one with an array for each column on
/// PostgreSQL, or `COPY` for 3,000 rows and more in a call, and some with many rows on SQLite and MySQL. Updates and deletes by a key that
/// contains no unique index are one statement for each row, whose count is checked. If items have the same key, the
/// last one counts, wherever a chunk ends; in a column of `add` all are added. A row that collides with a unique index other than the key's, and null in a column of the
/// key, are a [`ConstraintViolation`](crate::ConstraintViolation), on every database.
///
/// When the writer opens, it asks the catalogue of the database: a table that does not exist, takes no row, lacks a column, or needs
/// another one, fails the step before an item is read, whatever it skips.
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
pub struct TableItemWriter<T, D = Catalogue> {
    #[batch_property(name = "table")]
    table: TableName,
    #[batch_property(name = "columns")]
    columns: Vec<String>,
    #[batch_property(name = "mode", value = "insert")]
    mode: WriteMode,
    #[batch_property(name = "key")]
    key: Vec<String>,
    #[batch_property(name = "add")]
    add: Vec<String>,
    #[batch_property(name = "rows.affected", value = "check")]
    rows_affected: RowsAffected,
    #[batch_artifact]
    database: D,
    /// The description of the table; `None` before the writer is open.
    known: Option<Arc<Table>>,
    plan: Option<Plan>,
    /// The table that the step has written to, in this execution or an earlier one.
    written: Option<String>,
    /// Whether the table is in another database than the repository's.
    elsewhere: bool,
    rows: Rows,
    item: PhantomData<fn(T)>,
}

/// The checkpoint of a writer of tables.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum TablePosition {
    /// The current form.
    Table {
        /// The table that the step has written to.
        table: Option<String>,
        /// The fields of the first record, which a later one may lack; `None` for other items.
        fields: Option<Vec<String>>,
        /// Whether the table is in another database than the repository's; `None` in a checkpoint of an earlier version.
        #[serde(default)]
        elsewhere: Option<bool>,
    },
    /// The form of an earlier version.
    Fields(Option<Vec<String>>),
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
impl<T: Serialize + Send + 'static, D: TableDatabase> TableItemWriter<T, D> {
    /// Returns the database of the table, if it is not the repository's.
    ///
    /// # Errors
    /// If `database` is no name or URL of one.
    #[destination]
    pub fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        self.database.destination()
    }

    /// Asks for the table.
    ///
    /// # Errors
    /// If the table does not take what the properties describe.
    #[open]
    pub fn open(&mut self, checkpoint: Option<TablePosition>) -> Result<(), BatchError> {
        self.plan = None;
        self.rows = Rows::default();
        self.rows.select(self.columns.iter().map(String::as_str));
        let (written, fields, elsewhere) = match checkpoint {
            Some(TablePosition::Table {
                table,
                fields,
                elsewhere,
            }) => (table, fields, elsewhere),
            Some(TablePosition::Fields(fields)) => (None, fields, None),
            None => (None, None, None),
        };
        self.written = written;
        self.elsewhere = self.database.destination()?.is_some();
        if self.written.is_some() && elsewhere.is_some_and(|before| before != self.elsewhere) {
            let cause = "the step has written to another database before the restart; restore the property `database`, or run `abandon` for \
                         this execution and `start` the job again";
            return Err(self.wrong(cause.to_owned()).into());
        }
        if let Some(written) = &self.written
            && *written != self.table.0
        {
            let cause = format!(
                "the step has written to table `{written}` before the restart; set `table` to it, or run `abandon` for this execution and \
                 `start` the job again"
            );
            return Err(self.wrong(cause).into());
        }
        if let Some(fields) = fields {
            self.rows.resume(fields);
        }
        let table = self.database.describe(&self.table.0)?;
        self.check(&table).map_err(|cause| self.wrong(cause))?;
        self.known = Some(table);
        Ok(())
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
        let mut items = items.enumerate().peekable();
        let Some((_, first)) = items.peek() else {
            return Ok(());
        };
        if self.plan.is_none() {
            self.plan = Some(self.plan_for(*first)?);
            self.written = Some(self.table.0.clone());
        }
        self.rows.clear();
        for (index, item) in items {
            let pushed = self.rows.push(item);
            pushed.map_err(|cause| self.bad_item(index, cause))?;
        }
        let Some(plan) = &self.plan else { return Ok(()) };
        let converted = plan.convert(&mut self.rows);
        let kinds = converted.map_err(|(index, cause)| self.bad_item(index, cause))?;
        if let Some(column) = plan.null_column(&self.rows) {
            return Err(TableError::null_column(self.action(), column));
        }
        match self.database.execute(tx, plan, &kinds, &self.rows) {
            Ok(changed) => self.check_rows(changed),
            Err(error) => Err(self.failed(error, tx)),
        }
    }

    /// Compares the table with the first item.
    fn plan_for(&mut self, first: &T) -> Result<Plan, BatchError> {
        let table = self.known.clone();
        let table = table.ok_or_else(|| self.fail("it is not open"))?;
        let learned = self.rows.learn(first);
        let plan = learned.and_then(|()| Plan::new(&self.settings(), self.rows.names(), &table));
        let plan = plan.map_err(|cause| self.wrong(cause))?;
        self.database.report(&table, &self.table.0);
        Ok(plan)
    }

    /// Checks what is known before the first item.
    fn check(&self, table: &Table) -> Result<(), String> {
        let settings = self.settings();
        table.check(&settings)?;
        match self.rows.names() {
            [] => Ok(()),
            columns => {
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                table.check_written(&settings, &columns)
            }
        }
    }

    fn settings(&self) -> Settings<'_> {
        Settings {
            table: &self.table.0,
            key: &self.key,
            add: &self.add,
            mode: self.mode,
            rows_affected: self.rows_affected,
        }
    }

    /// Returns the error of a statement. The table may have changed while the step runs: then no item is at fault.
    fn failed(&mut self, error: StatementError, tx: &mut ChunkTransaction) -> BatchError {
        if error.may_be_of_table
            && let Some(table) = self.database.describe_again(&self.table.0, tx)
            && self.known.as_deref().is_some_and(|known| *known != table)
        {
            let cause = self.check(&table).and_then(|()| {
                let plan = Plan::new(&self.settings(), self.rows.names(), &table);
                plan.map(|_| error.cause.to_string())
            });
            let (Ok(cause) | Err(cause)) = cause;
            return self
                .wrong(format!("the table was changed while the step runs: {cause}"))
                .into();
        }
        let key = error
            .key
            .clone()
            .or_else(|| self.key_of_sqlite(&error.cause.to_string()));
        TableError::of_statement(self.action(), StatementError { key, ..error })
    }

    /// Returns the values of the columns that SQLite names, but not their values, if only one row can be meant.
    fn key_of_sqlite(&self, message: &str) -> Option<String> {
        let columns = message.strip_prefix("UNIQUE constraint failed: ")?;
        if self.rows.len() != 1 {
            return None;
        }
        let plan = self.plan.as_ref()?;
        let mut scratch = String::new();
        let value = |column: &str| {
            let name = column.rsplit('.').next()?;
            let written = plan.columns.iter().find(|written| written.name == name)?;
            Some(self.rows.shown(0, written.field, &mut scratch).to_owned())
        };
        let values: Vec<String> = columns.split(", ").map(value).collect::<Option<_>>()?;
        Some(format!("({})", values.join(", ")))
    }

    /// Returns the table, and the fields if only the first record has shown them. The rows are committed together with the checkpoint.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> TablePosition {
        let fields = self.rows.shown_by_record();
        TablePosition::Table {
            table: self.written.clone(),
            fields: (!fields.is_empty()).then(|| fields.to_vec()),
            elsewhere: Some(self.elsewhere),
        }
    }

    fn check_rows(&self, Changed { rows, items }: Changed) -> Result<(), BatchError> {
        if self.rows_affected == RowsAffected::Ignore || rows == items {
            return Ok(());
        }
        let past = match self.mode {
            WriteMode::Insert => "inserted",
            WriteMode::Upsert => "inserted or updated",
            WriteMode::Update => "updated",
            WriteMode::Delete => "deleted",
        };
        Err(self
            .fail(format!(
                "{rows} rows were {past} for {items} items; set `rows.affected` to `ignore` if that is not an error"
            ))
            .into())
    }

    /// Returns the error of a setting, which no item could be written with.
    fn wrong(&self, cause: String) -> ConfigurationError {
        let action = format!("{} rows in table `{}`", self.mode.verb(), self.table.0);
        ConfigurationError::new(TableError::new(action, cause))
    }

    fn bad_item(&self, index: usize, cause: String) -> BatchError {
        EncodeError::of_chunk(self.table.0.clone(), index, cause)
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
