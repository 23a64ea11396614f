//! The statements about markers in a database.

use crate::random::{random, random_id};

/// A database as far as the statements about markers depend on it. A client of another one names what differs from these.
///
/// ```
/// use batch_runtime::destination::SqlDialect;
///
/// const H2: SqlDialect = SqlDialect { begin: "BEGIN", state_type: "CLOB", ..SqlDialect::SQLITE };
/// ```
// Spec: MARK-02
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlDialect {
    /// Begins a transaction that writes; empty if the client needs no statement for that.
    pub begin: &'static str,
    /// Whether the parameters of a statement are `$1`, `$2` and so on. Else each is `?`.
    pub numbered_parameters: bool,
    /// The words before the name of a table that is created, if it is not there. Without such words, an error that it is there is ignored.
    pub create_table: &'static str,
    /// The type of texts of at most 250 characters, which are compared with regard to case.
    pub key_type: &'static str,
    /// The type of texts of any length.
    pub state_type: &'static str,
    /// The type of integers of 64 bits.
    pub number_type: &'static str,
    /// The function that returns a part of a text, from a position, of a length.
    pub substring: &'static str,
    /// What follows the columns of a table.
    pub table_options: &'static str,
    /// The words about savepoints.
    pub savepoints: SavepointWords,
    /// How a commit detects that the writer has ended the transaction; with `None` by a savepoint, whose release fails then.
    pub guard: Option<GuardSql>,
    /// The statements about sessions; `None` where the database is a file, or the user of a program may not end a session.
    pub sessions: Option<SessionSql>,
}

/// The words around the name of a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavepointWords {
    /// Sets it.
    pub set: &'static str,
    /// What follows the name when it is set.
    pub set_end: &'static str,
    /// Releases it; empty if the database has no such statement. Without a `guard`, a `COMMIT` of a writer is not detected then.
    pub release: &'static str,
    /// Undoes what has followed it.
    pub undo: &'static str,
}

/// A session value that the end of a transaction resets. The update of the marker checks it, which saves a statement compared with a savepoint.
// Spec: MARK-04
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardSql {
    /// The statement that sets it in the transaction.
    pub set: &'static str,
    /// The condition that it is set.
    pub is_set: &'static str,
}

/// The statements about the session of a marker's owner. A process that is suspended in a transaction keeps its locks, so a new owner ends
/// the session of the previous one, as a takeover of a repository does.
// Spec: MARK-11, D-94
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSql {
    /// Names this session. Parameter: name, of at most 60 characters.
    pub name: &'static str,
    /// Selects the ids of the sessions with a name, as a column `id` of large integers that may be null. Parameter: name.
    pub find: &'static str,
    /// The statement that ends a session, with `ID` in place of its id.
    pub end: &'static str,
}

impl SavepointWords {
    /// The words of the standard.
    pub const STANDARD: Self = Self {
        set: "SAVEPOINT",
        set_end: "",
        release: "RELEASE SAVEPOINT",
        undo: "ROLLBACK TO SAVEPOINT",
    };
}

impl SqlDialect {
    /// PostgreSQL.
    pub const POSTGRES: Self = Self {
        begin: "BEGIN",
        numbered_parameters: true,
        create_table: "CREATE TABLE IF NOT EXISTS",
        key_type: "VARCHAR(250)",
        state_type: "TEXT",
        number_type: "BIGINT",
        substring: "SUBSTR",
        table_options: "",
        savepoints: SavepointWords::STANDARD,
        guard: Some(GuardSql {
            set: "SELECT set_config('batch.interval', 'open', true)",
            is_set: "current_setting('batch.interval', true) = 'open'",
        }),
        sessions: Some(SessionSql {
            name: "SELECT set_config('application_name', ?, false)",
            find: "SELECT pid::bigint AS id FROM pg_catalog.pg_stat_activity WHERE datname = current_database() \
                   AND usename = current_user AND pid <> pg_backend_pid() AND application_name = ?",
            end: "SELECT pg_terminate_backend(ID)",
        }),
    };

    /// MySQL and MariaDB, which compare texts without regard to case, unless the collation says otherwise, and whose TEXT ends at 64 KiB.
    pub const MYSQL: Self = Self {
        numbered_parameters: false,
        key_type: "VARCHAR(250) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        state_type: "LONGTEXT CHARACTER SET utf8mb4",
        table_options: " ENGINE=InnoDB",
        // The server has no names for sessions, but a lock that a session keeps until it ends.
        sessions: Some(SessionSql {
            name: "SELECT GET_LOCK(?, 0)",
            find: "SELECT CAST(IS_USED_LOCK(?) AS SIGNED) AS id",
            end: "KILL ID",
        }),
        guard: None,
        ..Self::POSTGRES
    };

    /// SQLite.
    pub const SQLITE: Self = Self {
        // A transaction that reads first could not wait for the right to write.
        begin: "BEGIN IMMEDIATE",
        numbered_parameters: false,
        guard: None,
        sessions: None,
        ..Self::POSTGRES
    };

    /// Returns a statement, whose parameters are `?`, as the database takes it.
    fn with_parameters(&self, statement: &str) -> String {
        let mut parts = statement.split('?');
        let mut numbered = parts.next().unwrap_or_default().to_owned();
        for (index, part) in parts.enumerate() {
            match self.numbered_parameters {
                true => numbered.push_str(&format!("${}", index + 1)),
                false => numbered.push('?'),
            }
            numbered.push_str(part);
        }
        numbered
    }
}

impl SavepointWords {
    pub(super) fn set(&self, name: &str) -> String {
        format!("{} {name}{}", self.set, self.set_end)
    }

    /// Returns the statement that releases a savepoint, if there is one.
    pub(super) fn release(&self, name: &str) -> Option<String> {
        (!self.release.is_empty()).then(|| format!("{} {name}", self.release))
    }

    /// Returns the statements that undo what has followed a savepoint, and release it.
    pub(super) fn undo(&self, name: &str) -> String {
        let undo = format!("{} {name}", self.undo);
        match self.release(name) {
            Some(release) => format!("{undo}; {release}"),
            None => undo,
        }
    }
}

/// The statements about markers. [`SqlDestination`](super::SqlDestination) executes them.
// Spec: MARK-02
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkerSql {
    /// Creates the table, if it is not there.
    pub(super) create: String,
    /// Selects the fence, the interval, the state and the session of the owner. Parameter: key.
    pub(super) select: String,
    /// Raises the fence of a marker. Parameters: session of the owner, key.
    pub(super) raise: String,
    /// Inserts a marker with interval 0 and no state. Parameters: key, session of the owner, first fence.
    pub(super) insert: String,
    /// Moves a marker, unless the writer has ended the transaction. Parameters: new interval, new state, key, fence, old interval.
    pub(super) advance: String,
    /// Fails if the transaction is another one; `None` if only a savepoint shows that.
    pub(super) check_guard: Option<String>,
    /// Removes a marker. Parameters: key, fence.
    pub(super) remove: String,
    /// Names this session, and finds those with a name; `None` without [`SqlDialect::sessions`].
    pub(super) sessions: Option<(String, String)>,
}

impl MarkerSql {
    /// Returns the statements about markers in the table `table`, which may have a schema before its name.
    pub(super) fn new(dialect: &SqlDialect, table: &str) -> Self {
        let SqlDialect {
            create_table,
            key_type,
            state_type,
            number_type,
            table_options,
            ..
        } = dialect;
        let with = |statement: String| dialect.with_parameters(&statement);
        let is_set = dialect
            .guard
            .map_or(String::new(), |guard| format!(" AND {}", guard.is_set));
        let named = |sessions: SessionSql| (with(sessions.name.to_owned()), with(sessions.find.to_owned()));
        Self {
            create: format!(
                "{create_table} {table} (MARKER_KEY {key_type} NOT NULL PRIMARY KEY, FENCE {number_type} NOT NULL, \
                 INTERVAL_NUMBER {number_type} NOT NULL, STATE {state_type} NOT NULL, SESSION_NAME VARCHAR(60) NOT NULL){table_options}"
            ),
            select: with(format!(
                "SELECT FENCE AS fence, INTERVAL_NUMBER AS interval_number, STATE AS state, SESSION_NAME AS session_name \
                 FROM {table} WHERE MARKER_KEY = ?"
            )),
            raise: with(format!(
                "UPDATE {table} SET FENCE = FENCE + 1, SESSION_NAME = ? WHERE MARKER_KEY = ?"
            )),
            insert: with(format!(
                "INSERT INTO {table} (MARKER_KEY, INTERVAL_NUMBER, STATE, SESSION_NAME, FENCE) VALUES (?, 0, '-', ?, ?)"
            )),
            advance: with(format!(
                "UPDATE {table} SET INTERVAL_NUMBER = ?, STATE = ? WHERE MARKER_KEY = ? AND FENCE = ? AND INTERVAL_NUMBER = ?{is_set}"
            )),
            check_guard: dialect
                .guard
                .map(|guard| format!("SELECT 1 / CASE WHEN {} THEN 1 ELSE 0 END", guard.is_set)),
            remove: with(format!("DELETE FROM {table} WHERE MARKER_KEY = ? AND FENCE = ?")),
            sessions: dialect.sessions.map(named),
        }
    }

    /// Returns the statement that removes the markers of an instance whose keys begin with a text. Parameter: the text. Another repository
    /// may have a job of the same name.
    pub(super) fn forget(table: &str, dialect: &SqlDialect, beginning: &str, instance: i64) -> String {
        let length = beginning.chars().count();
        dialect.with_parameters(&format!(
            "DELETE FROM {table} WHERE {}(MARKER_KEY, 1, {length}) = ? AND STATE LIKE '%\"job_instance\":{instance},%'",
            dialect.substring
        ))
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
