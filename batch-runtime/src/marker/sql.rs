//! The statements about markers in a database.

use std::fmt;

use crate::random::{random, random_id};

/// A database as far as the statements about markers depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlDialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
    /// SQLite.
    Sqlite,
}

/// The statements about markers. [`SqlDestination`](super::SqlDestination) executes them.
// Spec: MARK-02
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkerSql {
    /// Begins a transaction that writes.
    pub(super) begin: &'static str,
    /// Creates the table, if it is not there.
    pub(super) create: String,
    /// Selects the fence, the interval, the state and the session of the owner. Parameter: key.
    pub(super) select: String,
    /// Raises the fence of a marker. Parameters: session of the owner, key.
    pub(super) raise: String,
    /// Inserts a marker with interval 0 and no state. Parameters: key, session of the owner, first fence.
    pub(super) insert: String,
    /// Moves a marker. Parameters: new interval, new state, key, fence, old interval.
    pub(super) advance: String,
    /// Removes a marker. Parameters: key, fence.
    pub(super) remove: String,
    /// The statements about sessions; `None` where the database is a file.
    pub(super) sessions: Option<SessionSql>,
}

/// The statements about the session of a marker's owner. A process that is suspended in a transaction keeps its locks, so a new owner ends
/// the session of the previous one, as a takeover of a repository does.
// Spec: MARK-11, D-94
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionSql {
    /// Names this session. Parameter: name, of at most 60 characters.
    pub(super) name: &'static str,
    /// Selects the ids of the sessions with a name, as a column `id` of large integers that may be null. Parameter: name.
    pub(super) find: &'static str,
    /// The statement that ends a session, with `ID` in place of its id.
    end: &'static str,
}

impl SessionSql {
    const POSTGRES: Self = Self {
        name: "SELECT set_config('application_name', $1, false)",
        find: "SELECT pid::bigint AS id FROM pg_catalog.pg_stat_activity WHERE datname = current_database() \
               AND usename = current_user AND pid <> pg_backend_pid() AND application_name = $1",
        end: "SELECT pg_terminate_backend(ID)",
    };
    // The server has no names for sessions, but a lock that a session keeps until it ends.
    const MYSQL: Self = Self {
        name: "SELECT GET_LOCK(?, 0)",
        find: "SELECT CAST(IS_USED_LOCK(?) AS SIGNED) AS id",
        end: "KILL ID",
    };

    /// Returns the statement that ends the session `id`.
    pub(super) fn end_of(&self, id: i64) -> String {
        self.end.replace("ID", &id.to_string())
    }
}

impl MarkerSql {
    /// Returns the statements about markers in the table `table`, which may have a schema before its name.
    pub(super) fn new(dialect: SqlDialect, table: &str) -> Self {
        let place = |number: usize| Placeholder { dialect, number };
        let (one, two, three, four, five) = (place(1), place(2), place(3), place(4), place(5));
        // MySQL compares texts without regard to case, unless the collation says otherwise, and its TEXT ends at 64 KiB.
        let (key, text, options) = match dialect {
            SqlDialect::Postgres | SqlDialect::Sqlite => ("VARCHAR(250)", "TEXT", ""),
            SqlDialect::Mysql => (
                "VARCHAR(250) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
                "LONGTEXT CHARACTER SET utf8mb4",
                " ENGINE=InnoDB",
            ),
        };
        Self {
            begin: match dialect {
                SqlDialect::Postgres | SqlDialect::Mysql => "BEGIN",
                // A transaction that reads first could not wait for the right to write.
                SqlDialect::Sqlite => "BEGIN IMMEDIATE",
            },
            create: format!(
                "CREATE TABLE IF NOT EXISTS {table} (MARKER_KEY {key} NOT NULL PRIMARY KEY, FENCE BIGINT NOT NULL, \
                 INTERVAL_NUMBER BIGINT NOT NULL, STATE {text} NOT NULL, SESSION_NAME VARCHAR(60) NOT NULL){options}"
            ),
            select: format!(
                "SELECT FENCE AS fence, INTERVAL_NUMBER AS interval_number, STATE AS state, SESSION_NAME AS session_name \
                 FROM {table} WHERE MARKER_KEY = {one}"
            ),
            raise: format!(
                "UPDATE {table} SET FENCE = FENCE + 1, SESSION_NAME = {one} WHERE MARKER_KEY = {two}"
            ),
            insert: format!(
                "INSERT INTO {table} (MARKER_KEY, INTERVAL_NUMBER, STATE, SESSION_NAME, FENCE) VALUES ({one}, 0, '-', {two}, {three})"
            ),
            advance: format!(
                "UPDATE {table} SET INTERVAL_NUMBER = {one}, STATE = {two} WHERE MARKER_KEY = {three} AND FENCE = {four} \
                 AND INTERVAL_NUMBER = {five}"
            ),
            remove: format!("DELETE FROM {table} WHERE MARKER_KEY = {one} AND FENCE = {two}"),
            sessions: match dialect {
                SqlDialect::Postgres => Some(SessionSql::POSTGRES),
                SqlDialect::Mysql => Some(SessionSql::MYSQL),
                SqlDialect::Sqlite => None,
            },
        }
    }
}

impl MarkerSql {
    /// Returns the statement that removes the markers of an instance whose keys begin with a text. Parameter: the text. Another repository
    /// may have a job of the same name.
    pub(super) fn forget(table: &str, dialect: SqlDialect, beginning: &str, instance: i64) -> String {
        let (length, text) = (beginning.chars().count(), Placeholder { dialect, number: 1 });
        format!(
            "DELETE FROM {table} WHERE SUBSTR(MARKER_KEY, 1, {length}) = {text} AND STATE LIKE '%\"job_instance\":{instance},%'"
        )
    }
}

/// The place of a parameter in a statement.
struct Placeholder {
    dialect: SqlDialect,
    number: usize,
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dialect {
            SqlDialect::Postgres => write!(f, "${}", self.number),
            SqlDialect::Mysql | SqlDialect::Sqlite => f.write_str("?"),
        }
    }
}

/// Returns the first fence of a marker. It is random: an owner of a marker that was removed must not own the one that is created under the same
/// key.
pub(super) fn first_fence() -> i64 {
    // Positive, with room to be raised.
    i64::try_from(random() >> 2).unwrap_or_default()
}

/// Returns a name for the session of a marker's owner that no other session has.
pub(super) fn session_name() -> String {
    format!("batch-marker {}", random_id())
}
