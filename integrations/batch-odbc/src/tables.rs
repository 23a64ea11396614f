//! The tables that are written.
// Spec: ODBC-04

use std::sync::Arc;

use batch_items::TableItemWriter;
use batch_items::database::declared::{mysql_kind, mysql_limit, postgres_kind, postgres_limit, sqlite_kind};
use batch_items::database::{Changed, Plan, StatementError, Table, TableColumn, TableDatabase};
use batch_items::dataset::Datasets;
use batch_items::rows::{Cell, Dialect as TextDialect, Kind, Limit, Rows, Temporal};
use batch_items::writers::{RowsAffected, WriteMode};
use batch_runtime::destination::{AnyDestination, DatabaseName};
use batch_runtime::observer::DatasetRole;
use batch_runtime::prelude::*;
use odbc_api::handles::StatementImpl;
use odbc_api::parameter::VarBinaryBox;
use odbc_api::{Bit, DataType, IntoParameter, Nullable, Prepared, ResultSetMetadata};

use crate::columns::described;
use crate::connection::OdbcConnection;
use crate::destination::OdbcDestination;
use crate::dialect::Declared;
use crate::error::OdbcError;
use crate::parameters::{self, Parameter};
use crate::statements::{Names, Statement};

/// Writes items to a table by ODBC, exactly once: the rows and a [marker](batch_runtime::destination::Destination) are one transaction.
///
/// It has the properties of [`TableItemWriter`], whose `database` is a connection string such as `odbc:DSN=erp;UID=batch;PWD=secret`, or
/// the name of one in `[databases]`. `upsert` needs the primary key as its `key`. Names of tables and columns are written with quotes, so
/// they have the case of the database: upper case on Oracle, DB2 and Firebird.
///
/// One statement inserts up to 100 rows, if the database has such a statement; updates, deletes and upserts take one or two statements for each row. Each is counted: MariaDB counts a row that an update leaves
/// as it is only with `OPTION=2` in the connection string. Texts with the character NUL are rejected: some drivers would cut them there.
///
/// ```
/// use batch_odbc::OdbcTableWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Payment {
///     number: String,
///     cents: i64,
/// }
///
/// #[item_writer("PaymentWriter")]
/// type PaymentWriter = OdbcTableWriter<Payment>;
/// ```
pub type OdbcTableWriter<T> = TableItemWriter<T, OdbcTables>;

/// The database of an [`OdbcTableWriter`].
#[derive(BatchArtifact)]
pub struct OdbcTables {
    /// The name or the connection string of the database.
    #[batch_property(name = "database")]
    database: DatabaseName,
    #[batch_context]
    job: JobContext,
    #[batch_artifact]
    datasets: Datasets,
    /// The types of the table's columns, in their order.
    types: Vec<(String, DataType)>,
}

impl OdbcTables {
    fn describe_table(&self, table: &str) -> Result<(Table, Vec<(String, DataType)>), BatchError> {
        let connection = OdbcConnection::open(&self.job.connection_string(&self.database)?)?;
        let (described, types) = describe(&connection, table)?;
        // A connection string may contain a password.
        let name = (!self.database.contains('=')).then(|| self.database.to_string());
        let database = Some(name.unwrap_or_else(|| "of the connection string".to_owned()));
        Ok((
            Table {
                database,
                ..described
            },
            types,
        ))
    }

    fn type_of(&self, column: &str) -> DataType {
        let found = self.types.iter().find(|(name, _)| name == column);
        found.map_or(DataType::Unknown, |(_, data_type)| *data_type)
    }
}

impl TableDatabase for OdbcTables {
    fn destination(&self) -> Result<Option<AnyDestination>, BatchError> {
        let string = self.job.connection_string(&self.database)?;
        Ok(Some(OdbcDestination::new(string).into()))
    }

    fn describe(&mut self, table: &str) -> Result<Arc<Table>, BatchError> {
        let (described, types) = self.describe_table(table)?;
        self.types = types;
        Ok(Arc::new(described))
    }

    fn describe_again(&mut self, table: &str, _: &mut ChunkTransaction) -> Option<Table> {
        // By another connection: PostgreSQL executes nothing after an error in a transaction.
        self.describe_table(table).ok().map(|(described, _)| described)
    }

    fn report(&self, _: &Table, name: &str) {
        if let Ok(database) = self.job.connection_string(&self.database) {
            self.datasets
                .report(DatasetRole::Output, (database.to_string(), name.to_owned()));
        }
    }

    fn execute(
        &mut self,
        tx: &mut ChunkTransaction,
        plan: &Plan,
        kinds: &[Kind],
        rows: &Rows,
    ) -> Result<Changed, StatementError> {
        let connection = tx.destination::<OdbcConnection>();
        let connection = connection.map_err(|error| OdbcError::new(error.chain()))?;
        let names = names_of(connection)?;
        let writing = Writing {
            connection,
            kinds,
            rows,
            plan,
            types: plan
                .columns
                .iter()
                .map(|column| self.type_of(&column.name))
                .collect(),
        };
        Ok(match plan.mode {
            WriteMode::Insert => writing.insert(names)?,
            _ => writing.one_by_one(names)?,
        })
    }
}

fn names_of(connection: &OdbcConnection) -> Result<Names, OdbcError> {
    Ok(Names {
        quote: connection.odbc().identifier_quote_char()?.unwrap_or('"'),
        dialect: connection.dialect(),
    })
}

/// Rows that are written by a plan.
struct Writing<'w> {
    connection: &'w OdbcConnection,
    plan: &'w Plan,
    kinds: &'w [Kind],
    rows: &'w Rows,
    /// The types of the columns, in the order of the plan.
    types: Vec<DataType>,
}

impl Writing<'_> {
    /// Inserts the rows by as few statements as possible.
    fn insert(&self, names: Names) -> Result<Changed, OdbcError> {
        let most = names.rows_of_insert(self.plan);
        let (mut changed, mut from) = (0, 0);
        while from < self.rows.len() {
            let count = most.min(self.rows.len() - from);
            let statement = names.insert(self.plan, count);
            let mut prepared = self.connection.odbc().prepare(&statement.text)?;
            // All statements of this size, then the rest.
            while self.rows.len() - from >= count {
                prepared.execute(self.values(&statement, from, from + count)?.as_slice())?;
                changed += self.count_of(&mut prepared)?;
                from += count;
            }
        }
        Ok(Changed {
            rows: changed,
            items: self.rows.len(),
        })
    }

    fn one_by_one(&self, names: Names) -> Result<Changed, OdbcError> {
        let statements = names.row(self.plan);
        let mut prepared = Vec::new();
        for statement in &statements {
            prepared.push(self.connection.odbc().prepare(&statement.text)?);
        }
        let is_counted = names.counts_row(self.plan);
        let mut write = |row| {
            let mut changed = 0;
            for (statement, prepared) in statements.iter().zip(&mut prepared) {
                if changed == 0 {
                    prepared.execute(self.values(statement, row, row + 1)?.as_slice())?;
                    changed = self.count_of(prepared)?;
                }
            }
            Ok(if is_counted { changed } else { 1 })
        };
        let items = self.rows.len();
        if self.plan.rows_affected == RowsAffected::Ignore {
            let rows = (0..items).map(write).sum::<Result<usize, OdbcError>>()?;
            return Ok(Changed { rows, items });
        }
        Changed::one_by_one(items, &mut write)
    }

    /// Returns how many rows a statement has changed.
    fn count_of(&self, prepared: &mut Prepared<StatementImpl<'_>>) -> Result<usize, OdbcError> {
        let count = prepared.row_count()?.unwrap_or_default();
        if count == 0 {
            self.connection.check_errors()?;
        }
        Ok(count)
    }

    /// Returns the values of rows, for a statement.
    fn values(&self, statement: &Statement, from: usize, to: usize) -> Result<Vec<Parameter<'_>>, OdbcError> {
        let mut values = Vec::with_capacity((to - from) * statement.parameters.len());
        for row in from..to {
            for place in &statement.parameters {
                values.push(self.value(row, *place)?);
            }
        }
        Ok(values)
    }

    /// Returns the value of a row in a column, by its place in the plan.
    fn value(&self, row: usize, place: usize) -> Result<Parameter<'_>, OdbcError> {
        let (column, dialect) = (&self.plan.columns[place], self.connection.dialect());
        Ok(match self.rows.cell(row, column.field) {
            Cell::Null => null(self.kinds[place]),
            Cell::Bool(value) => Box::new(Bit::from_bool(*value).into_parameter()),
            Cell::Int(value) => parameters::integer(*value, dialect),
            Cell::Float(value) => Box::new(value.into_parameter()),
            Cell::Text(range) => {
                let text = self.rows.text(range);
                if text.contains('\0') {
                    return Err(OdbcError::new(format!(
                        "the text of column `{}` contains the character NUL, where a driver cuts it",
                        column.name
                    )));
                }
                parameters::text(text, parameters::typed(self.types[place], dialect), dialect)
            }
            Cell::Bytes(range) => Box::new(self.rows.slice(range).into_parameter()),
        })
    }
}

/// Returns null as a parameter. Not every database converts it.
fn null(kind: Kind) -> Parameter<'static> {
    match kind {
        Kind::Bytes => Box::new(VarBinaryBox::null()),
        Kind::Float => Box::new(Nullable::<f64>::null()),
        _ => parameters::null_text(),
    }
}

/// Describes a table, with the types of its columns.
fn describe(connection: &OdbcConnection, table: &str) -> Result<(Table, Vec<(String, DataType)>), OdbcError> {
    let query = format!(
        "SELECT * FROM {} WHERE 1 = 0",
        names_of(connection)?.quoted_table(table)
    );
    // PostgreSQL reports a table that does not exist only when the query runs.
    let result = connection
        .odbc()
        .execute(&query, (), None)
        .map_err(OdbcError::from);
    let mut result = match result {
        Err(error) if error.is_of_missing_table() => return Ok((Table::default(), Vec::new())),
        Err(error) => return Err(error),
        Ok(None) => return Err(OdbcError::new("the database describes no table")),
        Ok(Some(result)) => result,
    };
    let declared = declared_in(connection, table)?;
    let (mut columns, mut types) = (Vec::new(), Vec::new());
    for number in 1..=u16::try_from(result.num_result_cols()?).unwrap_or_default() {
        let (name, data_type) = described(&mut result, number)?;
        let (sql_type, kind, limit) = match &declared {
            None => {
                let (kind, limit) = kind_of(data_type);
                (format!("{data_type:?}"), kind, limit)
            }
            Some(declared) => {
                let found = declared.iter().find(|column| column.name == name);
                let missing =
                    || OdbcError::new(format!("the catalogue declares no type of the column `{name}`"));
                let column = found.ok_or_else(missing)?;
                (column.sql_type.clone(), column.kind, column.limit)
            }
        };
        columns.push(TableColumn {
            name: name.clone(),
            sql_type,
            kind: Some(kind),
            limit,
            needs_value: false,
            is_computed: false,
            is_distinct: false,
            // Drivers convert parameters in expressions by rules of their own.
            is_exact_number: false,
        });
        types.push((name, data_type));
    }
    drop(result);
    let described = Table {
        columns,
        inserts: true,
        updates: true,
        deletes: true,
        unique: primary_key(connection, table)?.into_iter().collect(),
        holds_nan: connection.dialect().declared == Some(Declared::Postgres),
        ..Table::default()
    };
    Ok((described, types))
}

/// A column, as the catalogue declares it.
struct DeclaredColumn {
    name: String,
    sql_type: String,
    kind: Kind,
    limit: Limit,
}

/// The columns of a table, with the types below domains, and their modifiers. As for tables that diesel writes.
const COLUMNS_OF_POSTGRES: &str = "SELECT attname::text, format_type(base.oid, -1), \
     CASE base.oid WHEN 'money'::regtype THEN scale(0::money::numeric) ELSE base.modifier END FROM pg_attribute \
     CROSS JOIN LATERAL (WITH RECURSIVE types (oid, modifier, depth) AS (SELECT atttypid, atttypmod, 0 UNION ALL \
     SELECT typbasetype, typtypmod, depth + 1 FROM types JOIN pg_type ON pg_type.oid = types.oid WHERE typtype = 'd') \
     SELECT oid, modifier FROM types ORDER BY depth DESC LIMIT 1) AS base \
     WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped";
const COLUMNS_OF_MYSQL: &str = "SELECT column_name, column_type, 0 FROM information_schema.columns \
     WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?";
const COLUMNS_OF_SQLITE: &str = "SELECT name, type, 0 FROM pragma_table_xinfo(?, ?)";

/// Returns the columns of a table as the catalogue declares them; `None` where only the driver describes them.
fn declared_in(connection: &OdbcConnection, table: &str) -> Result<Option<Vec<DeclaredColumn>>, OdbcError> {
    let dialect = connection.dialect();
    let Some(declared) = dialect.declared else {
        return Ok(None);
    };
    let (schema, name) = table.rsplit_once('.').unwrap_or(("", table));
    let quoted = names_of(connection)?.quoted_table(table);
    let (query, values) = match declared {
        Declared::Postgres => (COLUMNS_OF_POSTGRES, vec![quoted.as_str()]),
        Declared::Mysql => (COLUMNS_OF_MYSQL, vec![schema, name]),
        Declared::Sqlite if schema.is_empty() => (COLUMNS_OF_SQLITE, vec![name, "main"]),
        Declared::Sqlite => (COLUMNS_OF_SQLITE, vec![name, schema]),
    };
    let values: Vec<_> = values
        .into_iter()
        .map(|value| parameters::text(value, None, dialect))
        .collect();
    let columns = connection.select(query, &values)?.into_iter().map(|row| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || values.next().unwrap_or_default();
        let (name, sql_type, modifier) = (next(), next(), next());
        let modifier = modifier.trim().parse().unwrap_or(-1);
        let (kind, limit) = match declared {
            Declared::Postgres => (postgres_kind(&sql_type), postgres_limit(&sql_type, modifier)),
            Declared::Mysql => (mysql_kind(&sql_type), mysql_limit(&sql_type)),
            Declared::Sqlite => (sqlite_kind(&sql_type), Limit::None),
        };
        DeclaredColumn {
            name,
            sql_type,
            kind,
            limit,
        }
    });
    Ok(Some(columns.collect()))
}

/// Returns the columns of the primary key, if there is one.
fn primary_key(connection: &OdbcConnection, table: &str) -> Result<Option<Vec<String>>, OdbcError> {
    let (schema, name) = match table.rsplit_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, table),
    };
    // MySQL calls a database so.
    let is_catalogue = connection.dialect().declared == Some(Declared::Mysql);
    let (catalogue, schema) = if is_catalogue {
        (schema, None)
    } else {
        (None, schema)
    };
    let mut rows = connection.odbc().primary_keys(catalogue, schema, name)?;
    let mut key: Vec<(i16, String)> = Vec::new();
    while let Some(row) = rows.next().transpose()? {
        key.push((
            row.key_seq,
            row.column
                .as_str()
                .unwrap_or_default()
                .unwrap_or_default()
                .to_owned(),
        ));
    }
    key.sort();
    key.dedup();
    let columns: Vec<_> = key.into_iter().map(|(_, column)| column).collect();
    Ok(Some(columns).filter(|columns| !columns.is_empty()))
}

/// Returns the type of the values of a column, and what it holds of them, as its driver describes it.
fn kind_of(data_type: DataType) -> (Kind, Limit) {
    let temporal = |kind, precision: i16| {
        let limit = Limit::Clock {
            kind,
            fraction: usize::try_from(precision).unwrap_or(0),
            has_zone: false,
        };
        (Kind::Temporal(kind, TextDialect::Sqlite), limit)
    };
    match data_type {
        DataType::Bit => (Kind::Bool, Limit::None),
        DataType::TinyInt | DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            (Kind::Int, Limit::None)
        }
        DataType::Real => (Kind::Float, Limit::Single),
        DataType::Double | DataType::Float { .. } => (Kind::Float, Limit::None),
        DataType::Numeric { scale, .. } | DataType::Decimal { scale, .. } => {
            (Kind::Decimal, Limit::Fraction(i64::from(scale)))
        }
        DataType::Date => temporal(Temporal::Date, 0),
        DataType::Time { precision } => temporal(Temporal::Time, precision),
        DataType::Timestamp { precision } => temporal(Temporal::Timestamp, precision),
        DataType::Binary { .. } | DataType::Varbinary { .. } | DataType::LongVarbinary { .. } => {
            (Kind::Bytes, Limit::None)
        }
        DataType::Varchar { length: Some(length) } | DataType::WVarchar { length: Some(length) } => {
            (Kind::Text, Limit::Characters(length.get()))
        }
        _ => (Kind::Text, Limit::None),
    }
}
