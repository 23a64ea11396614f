//! Writers of items with diesel's `Insertable`.

use batch_runtime::{BatchError, ChunkTransaction, ConfigurationError};
use diesel::Connection;
use diesel::backend::Backend;
use diesel::query_builder::QueryFragment;
use diesel::result::{Error, QueryResult};

use super::error::TableError;
use super::fit::statement_error;
use super::plan::{TableColumn, WriteMode, quoted};
use super::writer::{action, table_columns};

pub use super::fit::{Fit, continues_after_errors, explain, with_savepoint};

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
/// than items are an error, a [`TableError`]. A table that does not take any row, such as one that lacks a column, fails
/// the step whatever it skips. The writer can be part of others, such as a
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
/// PostgreSQL, which does not update a row twice in a statement. MySQL counts rows that exist, so a statement that ignores them could
/// not be checked. There, and if items of a chunk may have the same key, use [`TableItemWriter`](crate::TableItemWriter).
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
            @declare { $(#[$about])* $visibility struct $type { fit: $crate::insertable::Fit } }
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
            #[open]
            fn open(&mut self, _checkpoint: ::core::option::Option<()>) {}

            #[write_items]
            fn write(
                &mut self,
                items: &[$item],
                tx: &mut ::batch_runtime::ChunkTransaction,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                let savepoint = self.insertable_before(items.first(), items.len(), tx)?;
                let inserted = match tx.any()? {
                    $($crate::insertable_writer_part!(@connection $database connection) => {
                        $crate::insertable::with_savepoint(savepoint, connection, |connection| {
                            $crate::insertable::insert(
                                items,
                                connection,
                                |rows: &[$item; $crate::insertable_writer_part!(@rows $database)], connection| {
                                    $crate::insertable_writer_part!(@execute $database rows, connection, $table, $end)
                                },
                                |rows: &[$item], connection| {
                                    $crate::insertable_writer_part!(@execute $database rows, connection, $table, $end)
                                },
                            )
                        })
                    })+
                    #[allow(unreachable_patterns, reason = "there may be no other database")]
                    _ => $crate::insertable::on_another_database(&[$(::core::stringify!($database)),+]),
                };
                self.insertable_after(items.first(), items.len(), inserted, savepoint, tx)
            }

            #[get_checkpoint_info]
            fn checkpoint(&mut self) {}
        }

        impl $type {
            fn insertable_before(
                &mut self,
                first: ::core::option::Option<&$item>,
                items: usize,
                tx: &mut ::batch_runtime::ChunkTransaction,
            ) -> ::core::result::Result<bool, ::batch_runtime::BatchError> {
                if self.fit.is_doubtful() {
                    self.insertable_explain(first, items, tx)?;
                }
                ::core::result::Result::Ok(self.fit.needs_savepoint(items, tx)?)
            }

            fn insertable_explain(
                &mut self,
                first: ::core::option::Option<&$item>,
                items: usize,
                tx: &mut ::batch_runtime::ChunkTransaction,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                let ::core::option::Option::Some(row) = first else {
                    return ::core::result::Result::Ok(());
                };
                let explained = match tx.any()? {
                    $($crate::insertable_writer_part!(@connection $database connection) => {
                        $crate::insertable_writer_part!(@explain $database row, connection, $table, $end)
                    })+
                    #[allow(unreachable_patterns, reason = "there may be no other database")]
                    _ => $crate::insertable::on_another_database(&[$(::core::stringify!($database)),+]),
                };
                self.fit.explained($crate::insertable::action_of(::core::stringify!($table), items), explained)
            }

            fn insertable_after(
                &mut self,
                first: ::core::option::Option<&$item>,
                items: usize,
                inserted: ::diesel::QueryResult<usize>,
                savepoint: bool,
                tx: &mut ::batch_runtime::ChunkTransaction,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                self.fit = $crate::insertable::Fit::after(&inserted);
                if inserted.is_ok() || !(savepoint || $crate::insertable::continues_after_errors(tx)?) {
                    return $crate::insertable::check(::core::stringify!($table), items, inserted, ::core::option::Option::None);
                }
                if self.fit.is_doubtful() {
                    self.insertable_explain(first, items, tx)?;
                }
                let declared = match tx.any()? {
                    $($crate::insertable_writer_part!(@connection $database connection) => {
                        $crate::insertable::declared_columns(connection, &::diesel::QueryDsl::limit($table, 0))
                    })+
                    #[allow(unreachable_patterns, reason = "there may be no other database")]
                    _ => ::std::string::String::new(),
                };
                let declared = ::core::option::Option::Some((declared.as_str(), tx));
                $crate::insertable::check(::core::stringify!($table), items, inserted, declared)
            }
        }

        impl $crate::compose::WriteItems<$item> for $type {
            type Position = ();

            fn open(&mut self, _: ::core::option::Option<()>) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                ::core::result::Result::Ok(())
            }

            fn write(
                &mut self,
                items: &[&$item],
                tx: &mut ::batch_runtime::ChunkTransaction,
            ) -> ::core::result::Result<(), ::batch_runtime::BatchError> {
                let savepoint = self.insertable_before(items.first().copied(), items.len(), tx)?;
                let inserted = match tx.any()? {
                    $($crate::insertable_writer_part!(@connection $database connection) => {
                        const ROWS: usize = $crate::insertable_writer_part!(@rows $database);
                        $crate::insertable::with_savepoint(savepoint, connection, |connection| {
                            $crate::insertable::insert_references::<_, _, ROWS>(items, connection, |rows, connection| {
                                $crate::insertable_writer_part!(@execute $database rows, connection, $table, $end)
                            })
                        })
                    })+
                    #[allow(unreachable_patterns, reason = "there may be no other database")]
                    _ => $crate::insertable::on_another_database(&[$(::core::stringify!($database)),+]),
                };
                self.insertable_after(items.first().copied(), items.len(), inserted, savepoint, tx)
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
    // After an error, PostgreSQL executes nothing more up to a savepoint.
    (@explain postgres $row:ident, $connection:ident, $table:path, $end:tt) => {
        $crate::insertable::with_savepoint(true, $connection, |connection| {
            $crate::insertable_writer_part!(@explained $row, connection, $table, $end)
        })
    };
    (@explain $any:ident $row:ident, $connection:ident, $table:path, $end:tt) => {
        $crate::insertable_writer_part!(@explained $row, $connection, $table, $end)
    };
    (@explained $row:ident, $connection:ident, $table:path, []) => {
        $crate::insertable::explain($connection, &::diesel::insert_into($table).values($row))
    };
    (@explained $row:ident, $connection:ident, $table:path, [$insert:ident $statement:expr]) => {{
        let $insert = ::diesel::insert_into($table).values($row);
        $crate::insertable::explain($connection, &$statement)
    }};
    (@execute $any:ident $rows:ident, $connection:ident, $table:path, []) => {
        ::diesel::RunQueryDsl::execute(::diesel::insert_into($table).values($rows), $connection)
    };
    // On SQLite diesel can complete a statement of one row only.
    (@execute sqlite $rows:ident, $connection:ident, $table:path, [$insert:ident $statement:expr]) => {{
        let mut inserted = 0;
        for row in $rows {
            let $insert = ::diesel::insert_into($table).values(row);
            inserted += ::diesel::RunQueryDsl::execute($statement, $connection)?;
        }
        ::diesel::QueryResult::Ok(inserted)
    }};
    (@execute $any:ident $rows:ident, $connection:ident, $table:path, [$insert:ident $statement:expr]) => {{
        let $insert = ::diesel::insert_into($table).values($rows);
        ::diesel::RunQueryDsl::execute($statement, $connection)
    }};
}

/// Inserts the items in arrays, whose statement is prepared once, and the remaining ones in one statement.
pub fn insert<T, C, const ROWS: usize>(
    items: &[T],
    connection: &mut C,
    array: impl Fn(&[T; ROWS], &mut C) -> QueryResult<usize>,
    rest: impl FnOnce(&[T], &mut C) -> QueryResult<usize>,
) -> QueryResult<usize> {
    let (arrays, remaining) = items.as_chunks();
    let mut inserted = 0;
    for rows in arrays {
        inserted += array(rows, connection)?;
    }
    if !remaining.is_empty() {
        inserted += rest(remaining, connection)?;
    }
    Ok(inserted)
}

/// Inserts references to items, in statements of at most `ROWS` rows. diesel cannot prepare these once.
pub fn insert_references<'a, T, C, const ROWS: usize>(
    items: &[&'a T],
    connection: &mut C,
    each: impl Fn(Vec<&'a T>, &mut C) -> QueryResult<usize>,
) -> QueryResult<usize> {
    let mut inserted = 0;
    for rows in items.chunks(ROWS) {
        inserted += each(rows.to_vec(), connection)?;
    }
    Ok(inserted)
}

/// Returns the error of a writer that is not declared for the repository's database.
pub fn on_another_database(supported: &[&str]) -> QueryResult<usize> {
    Err(Error::QueryBuilderError(
        format!(
            "the writer is declared for `{}`, and the job repository is on another database; add that database to the declaration",
            supported.join("`, `")
        )
        .into(),
    ))
}

/// Returns what the statement does, for errors. `table` is the path of diesel's table.
pub fn action_of(table: &str, items: usize) -> String {
    action(WriteMode::Insert, items, &name_of(table))
}

/// Returns a text with the columns that diesel's table declares: a query of it.
pub fn declared_columns<C>(_connection: &C, query: &impl QueryFragment<C::Backend>) -> String
where
    C: Connection<Backend: Backend<QueryBuilder: Default> + Default>,
{
    diesel::debug_query::<C::Backend, _>(query).to_string()
}

/// Returns the columns of the table that are not in the text of [`declared_columns`]; none if the database does not list them.
fn undeclared_columns(table: &str, declared: &str, tx: &mut ChunkTransaction) -> Vec<TableColumn> {
    let found = tx
        .any()
        .and_then(|database| table_columns(database, &name_of(table)));
    let mut columns = found.map(|found| found.columns).unwrap_or_default();
    columns.retain(|column| !declares(declared, &column.name));
    columns
}

/// Returns the name of a table from the path of diesel's table.
fn name_of(path: &str) -> String {
    let path = path.replace(' ', "");
    let module = path.strip_suffix("::table").unwrap_or(&path);
    module.rsplit("::").next().unwrap_or(module).to_owned()
}

/// Checks that a row was inserted for each item. `table` is the path of diesel's table. `declared` are the text of [`declared_columns`] and the
/// transaction, if it executes statements after the error.
pub fn check(
    table: &str,
    items: usize,
    inserted: QueryResult<usize>,
    declared: Option<(&str, &mut ChunkTransaction)>,
) -> Result<(), BatchError> {
    if inserted.as_ref() == Ok(&items) {
        return Ok(());
    }
    let action = action_of(table, items);
    match inserted {
        Ok(rows) => {
            let cause = format!("{rows} rows were inserted for {items} items");
            Err(TableError::new(action, cause).into())
        }
        Err(error @ Error::QueryBuilderError(_)) => {
            Err(ConfigurationError::new(TableError::new(action, error)).into())
        }
        Err(error) => {
            let unwritten = declared.map(|(declared, tx)| undeclared_columns(table, declared, tx));
            Err(statement_error(action, error, &unwritten.unwrap_or_default()))
        }
    }
}

/// Returns whether a text of diesel has the column, in the quotes of a database.
fn declares(columns: &str, column: &str) -> bool {
    ['"', '`']
        .iter()
        .any(|quote| columns.contains(&quoted(column, *quote)))
}
