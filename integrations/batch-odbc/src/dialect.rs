//! What differs between the databases.
// Spec: ODBC-06

use batch_items::sql::{self, Syntax};
use batch_runtime::destination::{SavepointWords, SqlDialect};

/// A database.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// How its driver's name of it begins.
    pub(crate) name: &'static str,
    /// The statements about markers.
    pub(crate) markers: SqlDialect,
    /// How it writes texts and comments.
    pub(crate) syntax: &'static Syntax,
    /// What follows a query that returns the first rows only, with `{}` in place of their number.
    pub(crate) first_rows: &'static str,
    pub(crate) upsert: Upsert,
    /// How one statement inserts several rows. Arrays of values would do it, too, but not every driver counts the rows of all.
    pub(crate) insert: Insert,
    /// How texts are passed: the drivers of some convert others by the settings of the process, and the rest decides by itself.
    pub(crate) texts: Texts,
    /// Whether values of dates and decimals are passed with their types. If not, the database converts their texts.
    pub(crate) is_typed: bool,
    /// A query of one row, which shows that the connection works.
    pub(crate) probe: &'static str,
    /// A query whose result shows that texts are passed as UTF-8, and this result.
    pub(crate) encoding: Option<(&'static str, &'static str)>,
    /// Statements that prepare a connection, so that no value is cut or shown in another form.
    pub(crate) prepare: &'static [&'static str],
    /// How the catalogue declares the columns of a table; the driver's description does not have all.
    pub(crate) declared: Option<Declared>,
    /// A query for the errors of the last statement, where a driver reports some as warnings.
    pub(crate) errors: Option<&'static str>,
    /// Why its rows cannot be read by ODBC.
    pub(crate) unreadable: Option<&'static str>,
    /// The types that its driver changes, and a cast of a column `{}` to the text that it does not change.
    pub(crate) lossy: &'static [(Lossy, &'static str)],
}

/// How rows are inserted or updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upsert {
    /// `MERGE`, with what follows the values of the row. DB2 does not know their types there.
    Merge(&'static str),
    /// `INSERT .. ON CONFLICT`.
    OnConflict,
    /// `UPDATE OR INSERT .. MATCHING`.
    UpdateOrInsert,
    /// An update, and an insert if it has changed no row.
    UpdateElseInsert,
    /// The same, where an update of equal values changes no row: the insert looks for the row itself. With what follows its values.
    UpdateThenInsert(&'static str),
}

/// The catalogue that declares the types of a table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's.
    Mysql,
    /// SQLite's.
    Sqlite,
}

/// How several rows are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insert {
    /// `INSERT .. VALUES (..), (..)`.
    Values,
    /// `INSERT .. SELECT .. UNION ALL SELECT ..`, with what follows the values of a row.
    Select(&'static str),
    /// One by one.
    One,
}

/// The encoding of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    /// UTF-8.
    Narrow,
    /// UTF-16.
    Wide,
}

/// A type whose values a driver changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lossy {
    /// Dates and timestamps.
    Temporal,
    /// Types of the database alone.
    Other,
}

/// A database that is not known: what the standard says.
const STANDARD: Dialect = Dialect {
    name: "",
    markers: SqlDialect {
        begin: "",
        numbered_parameters: false,
        create_table: "CREATE TABLE",
        key_type: "VARCHAR(250)",
        state_type: "CLOB",
        guard: None,
        sessions: None,
        ..SqlDialect::POSTGRES
    },
    syntax: &sql::odbc::STANDARD,
    first_rows: " FETCH FIRST {} ROWS ONLY",
    upsert: Upsert::UpdateElseInsert,
    insert: Insert::One,
    texts: Texts::Wide,
    is_typed: true,
    probe: "SELECT 1",
    encoding: None,
    prepare: &[],
    declared: None,
    errors: None,
    unreadable: None,
    lossy: &[],
};

const KNOWN: &[Dialect] = &[
    Dialect {
        name: "Oracle",
        markers: SqlDialect {
            key_type: "VARCHAR2(250 CHAR)",
            number_type: "NUMBER(19)",
            savepoints: SavepointWords {
                release: "",
                ..SavepointWords::STANDARD
            },
            ..STANDARD.markers
        },
        upsert: Upsert::Merge(" FROM DUAL"),
        insert: Insert::Select(" FROM DUAL"),
        probe: "SELECT 1 FROM DUAL",
        ..STANDARD
    },
    Dialect {
        name: "Microsoft SQL Server",
        markers: SqlDialect {
            key_type: "NVARCHAR(250) COLLATE Latin1_General_BIN2",
            state_type: "NVARCHAR(MAX)",
            substring: "SUBSTRING",
            savepoints: SavepointWords {
                set: "SAVE TRANSACTION",
                release: "",
                undo: "ROLLBACK TRANSACTION",
                ..SavepointWords::STANDARD
            },
            ..STANDARD.markers
        },
        syntax: &sql::odbc::SQL_SERVER,
        first_rows: " OFFSET 0 ROWS FETCH NEXT {} ROWS ONLY",
        upsert: Upsert::Merge(""),
        insert: Insert::Values,
        ..STANDARD
    },
    Dialect {
        name: "DB2",
        markers: SqlDialect {
            savepoints: SavepointWords {
                set_end: " ON ROLLBACK RETAIN CURSORS",
                ..SavepointWords::STANDARD
            },
            ..STANDARD.markers
        },
        insert: Insert::Values,
        probe: "SELECT 1 FROM SYSIBM.SYSDUMMY1",
        ..STANDARD
    },
    Dialect {
        name: "Firebird",
        markers: SqlDialect {
            state_type: "BLOB SUB_TYPE TEXT",
            ..STANDARD.markers
        },
        upsert: Upsert::UpdateOrInsert,
        probe: "SELECT 1 FROM RDB$DATABASE",
        ..STANDARD
    },
    Dialect {
        name: "PostgreSQL",
        markers: SqlDialect {
            numbered_parameters: false,
            ..SqlDialect::POSTGRES
        },
        syntax: &sql::odbc::POSTGRES,
        first_rows: " LIMIT {}",
        upsert: Upsert::OnConflict,
        insert: Insert::Values,
        texts: Texts::Narrow,
        is_typed: false,
        // An option makes the driver change the ends of lines.
        encoding: Some(("SELECT current_setting('client_encoding') || chr(10)", "UTF8\n")),
        // The driver takes an encoding from the locale of the process, which another thread may change meanwhile.
        prepare: &[
            "SET client_encoding = 'UTF8'",
            "SET DateStyle = 'ISO, MDY'",
            "SET extra_float_digits = 1",
        ],
        declared: Some(Declared::Postgres),
        // The driver has dates neither before Christ nor of infinity, and no time zone.
        lossy: &[
            (Lossy::Temporal, "CAST({} AS TEXT)"),
            (Lossy::Other, "CAST({} AS TEXT)"),
        ],
        ..STANDARD
    },
    Dialect {
        name: "MariaDB",
        ..MYSQL
    },
    Dialect {
        name: "MySQL",
        ..MYSQL
    },
    Dialect {
        name: "SQLite",
        markers: SqlDialect::SQLITE,
        syntax: &sql::SQLITE,
        first_rows: " LIMIT {}",
        upsert: Upsert::OnConflict,
        insert: Insert::Values,
        texts: Texts::Narrow,
        is_typed: false,
        declared: Some(Declared::Sqlite),
        unreadable: Some(
            "the driver of SQLite returns floats with 15 digits, and takes the types of a page from its first row; read the file by \
             `queryRecordReader` or `QueryItemReader`",
        ),
        ..STANDARD
    },
];

const MYSQL: Dialect = Dialect {
    markers: SqlDialect::MYSQL,
    syntax: &sql::MYSQL,
    first_rows: " LIMIT {}",
    // `ON DUPLICATE KEY` would also update a row that has another unique value of the new one.
    upsert: Upsert::UpdateThenInsert(" FROM DUAL"),
    insert: Insert::Values,
    texts: Texts::Narrow,
    is_typed: false,
    encoding: Some(("SELECT @@character_set_client", MYSQL_CHARSET)),
    // Otherwise the server cuts what does not fit.
    // And it would order a key by its beginning.
    prepare: &[
        "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES')",
        "SET SESSION max_sort_length = 8388608",
    ],
    declared: Some(Declared::Mysql),
    errors: Some("SHOW ERRORS"),
    ..STANDARD
};

/// The encoding of MySQL that holds each character.
pub(crate) const MYSQL_CHARSET: &str = "utf8mb4";

impl Dialect {
    /// Returns the dialect of a database, by the name that its driver gives it.
    pub(crate) fn of(name: &str) -> &'static Self {
        let known = KNOWN.iter().find(|dialect| name.starts_with(dialect.name));
        known.unwrap_or(&STANDARD)
    }
}

/// The databases whose statements are compared with their texts, with the quotes around names.
#[cfg(test)]
pub(crate) const COMPARED: &[(&str, char)] = &[
    ("Oracle", '"'),
    ("Microsoft SQL Server", '"'),
    ("DB2/LINUXX8664", '"'),
    ("Firebird", '"'),
    ("PostgreSQL", '"'),
    ("MariaDB", '`'),
    ("SQLite", '"'),
    ("Informix", '"'),
];
