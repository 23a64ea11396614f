//! Writers of items with diesel's `Insertable`.

use batch_runtime::destination::AnyDestination;
use batch_runtime::prelude::*;
use batch_runtime::repository::DatabaseConnection;
use batch_runtime::{BatchError, ConfigurationError};
use diesel::backend::Backend;
use diesel::connection::Connection;
use diesel::query_builder::{QueryBuilder, QueryFragment};
use diesel::query_source::{self, QuerySource};
use diesel::result::{DatabaseErrorKind, Error, QueryResult};

use super::catalogue::Table;
use super::diesel_tables::Catalogue;
use super::error::{TableError, may_be_of_table};
use super::settings::{RowsAffected, Settings, WriteMode};
use super::writer::action;

/// Declares a writer that inserts items with diesel's `Insertable`, in the transaction of the chunk: exactly once.
///
/// After the item's type come diesel's table and the databases of the job repository: `sqlite`, `postgres`, `mysql`, or several,
/// separated by `|`. The name in parentheses is the artifact's name in Job XML.
///
/// ```
/// use batch_items::insertable_writer;
/// use diesel::prelude::*;
///
/// diesel::table! {
///     payment (number) {
///         number -> Text,
///         cents -> BigInt,
///     }
/// }
///
/// #[derive(Insertable)]
/// #[diesel(table_name = payment)]
/// struct Payment {
///     number: String,
///     cents: i64,
/// }
///
/// insertable_writer!(PaymentWriter("PaymentWriter"): Payment => payment::table, sqlite);
/// ```
///
/// Rows are inserted many at a time, and the number of rows in a statement keeps below the database's limit of values. Fewer rows
/// than items are an error, a [`TableError`]. When the writer opens, it asks the catalogue of the database: a table that does not exist,
/// takes no row, lacks a column of diesel's table or needs another one fails the step, whatever it skips. The writer can be part of others, such as a
/// [`CompositeItemWriter`](crate::CompositeItemWriter).
///
/// On SQLite and PostgreSQL the statement can be completed, for example to update the rows whose key exists:
///
/// ```
/// # use diesel::prelude::*;
/// # diesel::table! { payment (number) { number -> Text, cents -> BigInt, } }
/// # #[derive(Insertable)]
/// # #[diesel(table_name = payment)]
/// # struct Payment { number: String, cents: i64 }
/// use diesel::upsert::excluded;
///
/// batch_items::insertable_writer!(
///     /// Writes the latest state of each payment.
///     pub(crate) LatestPayments("LatestPayments"): Payment => payment::table, sqlite,
///     |insert| insert
///         .on_conflict(payment::number)
///         .do_update()
///         .set(payment::cents.eq(excluded(payment::cents)))
/// );
/// ```
///
/// With `do_nothing()` an item whose row exists is still an error. A completed statement inserts one row on SQLite, and many on
/// PostgreSQL; if that fails, because a statement must not update a row twice, one row after the other. MySQL counts rows that exist, so
/// a statement that ignores them could not be checked. There, use [`TableItemWriter`](crate::TableItemWriter).
///
/// An `Option` that is `None` is the column's default, for which SQLite inserts the rows one by one and the other databases parse
/// each statement again. Where it can as well be null, `#[diesel(treat_none_as_default_value = false)]` on the type is faster. A field
/// with `serialize_as` is not supported.
#[macro_export]
macro_rules! insertable_writer {
    (
        $(#[$about:meta])* $visibility:vis $type:ident($name:literal):
            $item:ty => $table:path, $($database:ident)|+ $(, |$insert:ident| $statement:expr)? $(,)?
    ) => {
        $crate::insertable_writer_part!(
            @declare { $(#[$about])* $visibility struct $type { #[batch_artifact] table: $crate::insertable::InsertableTable } }
            $type($name): $item => $table, $($database)|+, [$($insert $statement)?]
        );
    };
}

/// The parts of [`insertable_writer!`] that depend on the database, or are repeated.
///
/// The largest tables of diesel have 128 columns. So many rows of them have fewer values than a statement can: 32,766 on SQLite, 65,535
/// on the others.
#[doc(hidden)]
#[macro_export]
macro_rules! insertable_writer_part {
    (
        @declare { $struct:item } $type:ident($name:literal): $item:ty => $table:path, $($database:ident)|+, $end:tt
    ) => {
        $($crate::insertable_writer_part!(@check $database $end);)+

        #[derive(::batch_runtime::BatchArtifact)]
        $struct

        #[::batch_runtime::item_writer($name)]
        impl $type {
            #[destination]
            fn destination(&self) -> $crate::insertable::MaybeDestination {
                self.table.destination()
            }

            #[open]
            fn open(
                &mut self,
                _checkpoint: ::core::option::Option<()>,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                self.table.open::<Self, $item>()
            }

            #[write_items]
            fn write(
                &mut self,
                items: &[$item],
                tx: &mut ::batch_runtime::ChunkTransaction,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                self.table.write::<Self, $item>($crate::insertable::Items::All(items), tx)
            }

            #[get_checkpoint_info]
            fn checkpoint(&mut self) {}
        }

        impl $crate::insertable::Inserts<$item> for $type {
            const TABLE: &'static str = ::core::stringify!($table);

            fn declared() -> ::diesel::QueryResult<$crate::insertable::Declared> {
                let [first, ..] = [$($crate::insertable_writer_part!(@declared $database $table)),+];
                first
            }

            fn insert(
                items: &$crate::insertable::Items<'_, $item>,
                database: ::batch_runtime::repository::DatabaseConnection<'_>,
            ) -> ::diesel::QueryResult<usize> {
                match database {
                    $($crate::insertable_writer_part!(@connection $database connection) => {
                        const ROWS: usize = $crate::insertable_writer_part!(@rows $database);
                        $crate::insertable_writer_part!(@run $database items, connection, $item, $table, $end)
                    })+
                    #[allow(unreachable_patterns, reason = "there may be no other database")]
                    _ => $crate::insertable::on_another_database(&[$(::core::stringify!($database)),+]),
                }
            }
        }

        impl $crate::compose::WriteItems<$item> for $type {
            type Position = ();

            fn destination(&self) -> $crate::insertable::MaybeDestination {
                self.table.destination()
            }

            fn open(&mut self, _: ::core::option::Option<()>) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                self.table.open::<Self, $item>()
            }

            fn write(
                &mut self,
                items: &[&$item],
                tx: &mut ::batch_runtime::ChunkTransaction,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                self.table.write::<Self, $item>($crate::insertable::Items::References(items), tx)
            }

            fn position(&mut self) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                ::core::result::Result::Ok(())
            }
        }
    };
    (@check mysql [$insert:ident $statement:expr]) => {
        ::core::compile_error!(
            "MySQL counts a row that exists as inserted, so a row that is ignored would not be noticed; \
             update rows with `TableItemWriter` and the property `mode` = `upsert`"
        );
    };
    (@check $any:ident $end:tt) => {};
    (@rows sqlite) => { 50 };
    (@rows postgres) => { 500 };
    (@rows mysql) => { 500 };
    (@connection sqlite $connection:ident) => { ::batch_runtime::repository::DatabaseConnection::Sqlite($connection) };
    (@connection postgres $connection:ident) => { ::batch_runtime::repository::DatabaseConnection::Postgres($connection) };
    (@connection mysql $connection:ident) => { ::batch_runtime::repository::DatabaseConnection::Mysql($connection) };
    (@declared sqlite $table:path) => { $crate::insertable::Declared::of::<::diesel::sqlite::Sqlite, _>(&$table) };
    (@declared postgres $table:path) => { $crate::insertable::Declared::of::<::diesel::pg::Pg, _>(&$table) };
    (@declared mysql $table:path) => { $crate::insertable::Declared::of::<::diesel::mysql::Mysql, _>(&$table) };
    (@run $any:ident $items:ident, $connection:ident, $item:ty, $table:path, []) => {
        $items.insert(
            $connection,
            |rows: &[$item; ROWS], connection| $crate::insertable_writer_part!(@execute rows, connection, $table, []),
            |rows: &[$item], connection| $crate::insertable_writer_part!(@execute rows, connection, $table, []),
            |rows: ::std::vec::Vec<&$item>, connection| $crate::insertable_writer_part!(@execute rows, connection, $table, []),
        )
    };
    // On SQLite diesel can complete a statement of one row only.
    (@run sqlite $items:ident, $connection:ident, $item:ty, $table:path, $end:tt) => {
        $items.insert_each($connection, |row: &$item, connection| {
            $crate::insertable_writer_part!(@execute row, connection, $table, $end)
        })
    };
    (@run $any:ident $items:ident, $connection:ident, $item:ty, $table:path, $end:tt) => {
        $crate::insertable::insert_or_each(
            $connection,
            |connection| $items.insert(
                connection,
                |rows: &[$item; ROWS], connection| $crate::insertable_writer_part!(@execute rows, connection, $table, $end),
                |rows: &[$item], connection| $crate::insertable_writer_part!(@execute rows, connection, $table, $end),
                |rows: ::std::vec::Vec<&$item>, connection| $crate::insertable_writer_part!(@execute rows, connection, $table, $end),
            ),
            |connection| $items.insert_each(connection, |row: &$item, connection| {
                $crate::insertable_writer_part!(@execute row, connection, $table, $end)
            }),
        )
    };
    (@execute $rows:ident, $connection:ident, $table:path, []) => {
        ::diesel::RunQueryDsl::execute(::diesel::insert_into($table).values($rows), $connection)
    };
    (@execute $rows:ident, $connection:ident, $table:path, [$insert:ident $statement:expr]) => {{
        let $insert = ::diesel::insert_into($table).values($rows);
        ::diesel::RunQueryDsl::execute($statement, $connection)
    }};
}

/// The statements of a writer that [`insertable_writer!`](crate::insertable_writer) declares.
pub trait Inserts<T> {
    /// The path of diesel's table.
    const TABLE: &'static str;

    /// Returns the name of the table and its columns.
    ///
    /// # Errors
    /// The errors of diesel.
    fn declared() -> QueryResult<Declared>;

    /// Inserts items, and returns the number of rows.
    ///
    /// # Errors
    /// The errors of the database, and one if the writer is not declared for it.
    fn insert(items: &Items<'_, T>, database: DatabaseConnection<'_>) -> QueryResult<usize>;
}

/// A table, as diesel declares it.
pub struct Declared {
    /// The name, with the schema if it has one.
    table: String,
    columns: Vec<String>,
}

impl Declared {
    /// Returns what diesel declares of a table.
    ///
    /// # Errors
    /// The errors of diesel.
    pub fn of<DB, T>(table: &T) -> QueryResult<Self>
    where
        DB: Backend<QueryBuilder: Default> + Default,
        T: query_source::Table<AllColumns: QueryFragment<DB>> + QuerySource<FromClause: QueryFragment<DB>>,
    {
        let names = |part: &dyn Fn(&mut DB::QueryBuilder) -> QueryResult<()>| {
            let mut builder = DB::QueryBuilder::default();
            part(&mut builder)?;
            Ok::<_, Error>(identifiers(&builder.finish()))
        };
        let of_table = names(&|out| table.from_clause().to_sql(out, &DB::default()))?;
        let of_columns = names(&|out| T::all_columns().to_sql(out, &DB::default()))?;
        // Each column follows the name of its table.
        let columns = of_columns
            .chunks(of_table.len() + 1)
            .filter_map(|column| column.last().cloned());
        Ok(Self {
            columns: columns.collect(),
            table: of_table.join("."),
        })
    }
}

/// Returns the names in quotes, which consist of nothing else and separators.
fn identifiers(text: &str) -> Vec<String> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find(['"', '`']) {
        let quote = &rest[start..=start];
        let mut name = String::new();
        rest = &rest[start + 1..];
        while let Some(end) = rest.find(quote) {
            name.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            if !rest.starts_with(quote) {
                break;
            }
            name.push_str(quote);
            rest = &rest[1..];
        }
        names.push(name);
    }
    names
}

/// The items of a call.
pub enum Items<'a, T> {
    /// The errors of the chunk.
    All(&'a [T]),
    /// Those that another artifact passes on.
    References(&'a [&'a T]),
}

impl<T> Items<'_, T> {
    fn len(&self) -> usize {
        match self {
            Self::All(items) => items.len(),
            Self::References(items) => items.len(),
        }
    }

    /// Inserts the items in arrays, whose statement is prepared once, and the remaining ones in one statement; references in statements of at
    /// most `ROWS` rows, which diesel cannot prepare once.
    ///
    /// # Errors
    /// The errors of the statements.
    pub fn insert<C, const ROWS: usize>(
        &self,
        connection: &mut C,
        array: impl Fn(&[T; ROWS], &mut C) -> QueryResult<usize>,
        rest: impl Fn(&[T], &mut C) -> QueryResult<usize>,
        references: impl Fn(Vec<&T>, &mut C) -> QueryResult<usize>,
    ) -> QueryResult<usize> {
        let mut inserted = 0;
        match self {
            Self::All(items) => {
                let (arrays, remaining) = items.as_chunks();
                for rows in arrays {
                    inserted += array(rows, connection)?;
                }
                if !remaining.is_empty() {
                    inserted += rest(remaining, connection)?;
                }
            }
            Self::References(items) => {
                for rows in items.chunks(ROWS) {
                    inserted += references(rows.to_vec(), connection)?;
                }
            }
        }
        Ok(inserted)
    }

    /// Inserts the items one by one.
    ///
    /// # Errors
    /// The errors of the statements.
    pub fn insert_each<C>(
        &self,
        connection: &mut C,
        each: impl Fn(&T, &mut C) -> QueryResult<usize>,
    ) -> QueryResult<usize> {
        match self {
            Self::All(items) => items.iter().map(|item| each(item, connection)).sum(),
            Self::References(items) => items.iter().map(|item| each(item, connection)).sum(),
        }
    }
}

/// Runs statements of many rows; if they fail, statements of one row, which may update what an earlier one has inserted.
///
/// # Errors
/// The errors of the statements.
pub fn insert_or_each<C: Connection>(
    connection: &mut C,
    many: impl FnOnce(&mut C) -> QueryResult<usize>,
    each: impl FnOnce(&mut C) -> QueryResult<usize>,
) -> QueryResult<usize> {
    // A savepoint: PostgreSQL executes nothing after an error.
    match connection.transaction(many) {
        Err(Error::DatabaseError(DatabaseErrorKind::Unknown, _)) => each(connection),
        done => done,
    }
}

/// The destination of a writer, if its table is in another database than the repository.
pub type MaybeDestination = Result<Option<AnyDestination>, BatchError>;

/// Returns the error of a writer that is not declared for the repository's database.
///
/// # Errors
/// Always.
pub fn on_another_database(supported: &[&str]) -> QueryResult<usize> {
    Err(Error::QueryBuilderError(
        format!(
            "the writer is declared for `{}`, and the job repository is on another database; add that database to the declaration",
            supported.join("`, `")
        )
        .into(),
    ))
}

/// The table of a writer that [`insertable_writer!`](crate::insertable_writer) declares.
#[derive(BatchArtifact)]
pub struct InsertableTable {
    #[batch_artifact]
    catalogue: Catalogue,
}

impl InsertableTable {
    /// Asks for the table.
    ///
    /// # Errors
    /// If it does not take the items.
    pub fn open<W: Inserts<T>, T>(&mut self) -> Result<(), BatchError> {
        let declared = W::declared()?;
        let found = self.catalogue.open(&declared.table)?;
        check(&found, &declared).map_err(|cause| wrong(&declared.table, cause).into())
    }

    /// Returns the database of the table, if it is not the repository's.
    ///
    /// # Errors
    /// If `database` is no name or URL of one.
    pub fn destination(&self) -> MaybeDestination {
        self.catalogue.destination()
    }

    /// Inserts items. Fewer rows than items are an error.
    ///
    /// # Errors
    /// The errors of the database, and of a table that does not take the items.
    pub fn write<W: Inserts<T>, T>(
        &mut self,
        items: Items<'_, T>,
        tx: &mut ChunkTransaction,
    ) -> Result<(), BatchError> {
        let action = || action(WriteMode::Insert, items.len(), &name_of(W::TABLE));
        let inserted = self
            .catalogue
            .within(tx)
            .and_then(|database| W::insert(&items, database));
        match inserted {
            Ok(rows) if rows == items.len() => Ok(()),
            Ok(rows) => {
                let cause = format!("{rows} rows were inserted for {} items", items.len());
                Err(TableError::new(action(), cause).into())
            }
            Err(error @ Error::QueryBuilderError(_)) => {
                Err(ConfigurationError::new(TableError::new(action(), error)).into())
            }
            Err(error) => {
                let declared = W::declared()?;
                let changed = may_be_of_table(&error).then(|| self.catalogue.changed(&declared.table, tx));
                match changed.flatten().map(|table| check(&table, &declared)) {
                    None => Err(TableError::of_statement(action(), error)),
                    Some(checked) => {
                        let cause = checked.err().unwrap_or_else(|| error.to_string());
                        let cause = format!("the table was changed while the step runs: {cause}");
                        Err(wrong(&declared.table, cause).into())
                    }
                }
            }
        }
    }
}

/// Checks that the table takes rows of the declared columns. Fails with the cause.
fn check(table: &Table, declared: &Declared) -> Result<(), String> {
    table.check(&Settings {
        table: &declared.table,
        key: &[],
        add: &[],
        mode: WriteMode::Insert,
        rows_affected: RowsAffected::Check,
    })?;
    for column in &declared.columns {
        table.column(column)?;
    }
    table.check_unwritten(|name| {
        declared
            .columns
            .iter()
            .any(|column| column.eq_ignore_ascii_case(name))
    })
}

fn wrong(table: &str, cause: String) -> ConfigurationError {
    ConfigurationError::new(TableError::new(format!("insert rows in table `{table}`"), cause))
}

/// Returns the name of a table from the path of diesel's table.
fn name_of(path: &str) -> String {
    let path = path.replace(' ', "");
    let module = path.strip_suffix("::table").unwrap_or(&path);
    module.rsplit("::").next().unwrap_or(module).to_owned()
}
