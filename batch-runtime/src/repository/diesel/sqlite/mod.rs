//! SQLite: one file, or none, and one writer at a time.

mod schema;
mod turn;

#[path = "../common/archive.rs"]
mod archive;
#[path = "../common/checkpoint.rs"]
mod checkpoint;
#[path = "../common/closing.rs"]
mod closing;
#[path = "../common/launch.rs"]
mod launch;
#[path = "../common/lease.rs"]
mod lease;
#[path = "../common/queries.rs"]
mod queries;
#[path = "../common/rows.rs"]
mod rows;
#[path = "../common/steps.rs"]
mod steps;

#[cfg(test)]
#[path = "../common/tests.rs"]
mod every_database;
#[cfg(test)]
mod fixture;
#[cfg(test)]
#[path = "../common/races.rs"]
mod races;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::{AnsiTransactionManager, Connection as _, SimpleConnection, TransactionManager};
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use diesel::sql_types::BigInt;
use diesel::sqlite::Sqlite as Backend;

use super::DieselRepository;
use super::database::{self, Pool, TransactionError, overtaken_by_a_change, overtaken_by_a_double};
use super::migrations::{Layout, MigrationFailed, Migrations, Name, scripts};
use super::moment::Moment;
use super::prefix::{RunQueryDsl, Session, TablePrefix};
use super::transaction::Chunk;
use crate::clock::Clock;
use crate::repository::RepositoryError;
use crate::repository::owner::Owner;
use schema::{batch_job_execution_seq, batch_job_seq, batch_step_execution_seq};
use turn::{Turn, Turns};

// What the files in `common/` take for the database, beside what is imported.
type Connection = Session<SqliteConnection>;
type Database = SqliteDatabase;
type Repository = DieselRepository<SqliteDatabase>;

const MIGRATIONS: Migrations = Migrations {
    current: scripts!("sqlite": "0000000000430_spring_batch_4_3", "0000000000431_job_instance_lease"),
    upgrades: scripts!(
        "upgrade/sqlite":
        "0000000000220_parameters_of_executions",
        "0000000000300_configuration_location",
        "0000000000410_character_lengths",
    ),
};

/// Opens the database of `url` and brings its tables up to date.
pub(super) fn open(
    url: &str,
    prefix: TablePrefix,
    clock: Arc<dyn Clock>,
    lease_time: Duration,
) -> Result<Repository, RepositoryError> {
    let database = SqliteDatabase::from_url(url)?;
    let mut connection = Session::new(database.connect_to_look()?, prefix.clone());
    let unusable = |problem: String| RepositoryError::Schema {
        url: database.url.clone(),
        problem,
    };
    let layout = layout(&mut connection).map_err(|error| unusable(error.to_string()))?;
    let applied = MIGRATIONS.are_applied(&mut connection, &layout);
    let applied = applied.map_err(|error| unusable(error.to_string()))?;
    // Only now: what was refused is not ours to change.
    database.use_write_ahead_log(&mut connection)?;
    if !applied {
        migrate(&mut connection).map_err(|MigrationFailed(error)| unusable(error.to_string()))?;
    }
    // The database exists by now, which settles where its owners' locks are.
    let owner = Owner::new(database.owners_directory());
    let pool = Pool::new(database, prefix, lease_time)?;
    pool.put_back(connection);
    Ok(Repository {
        pool,
        owner,
        clock,
        lease_time,
    })
}

/// Whether `url` can be read.
pub(super) fn check_url(url: &str) -> Result<(), RepositoryError> {
    SqliteDatabase::from_url(url).map(drop)
}

/// The names of the migrations that opening it would run; `None` if there is no job repository yet.
pub(super) fn missing_migrations(
    url: &str,
    prefix: TablePrefix,
) -> Result<Option<Vec<String>>, RepositoryError> {
    let database = SqliteDatabase::from_url(url)?;
    // To look at a file that is not there would make it.
    if !database.file.as_ref().is_some_and(|file| file.exists()) {
        return Ok(None);
    }
    // It waits like every other: a process that ends may hold the file for a moment.
    let mut connection = Session::new(database.connect_to_look()?, prefix);
    let layout = layout(&mut connection).map_err(|error| database.unusable(Box::new(error)))?;
    let missing = MIGRATIONS.names_of_missing(&mut connection, &layout);
    missing.map_err(|error| RepositoryError::Schema {
        url: database.url.clone(),
        problem: error.to_string(),
    })
}

/// Two processes that open a new database at once: the second finds the migrations applied when it gets the lock.
fn migrate(connection: &mut Connection) -> Result<(), MigrationFailed> {
    type Transaction = AnsiTransactionManager;
    // After an error the connection is closed, which rolls back.
    Transaction::begin_transaction_sql(&mut **connection, <Database as database::Database>::BEGIN_WRITE)?;
    let layout = layout(connection)?;
    MIGRATIONS.run(connection, &layout)?;
    Ok(Transaction::commit_transaction(&mut **connection)?)
}

fn layout(connection: &mut Connection) -> QueryResult<Layout> {
    let columns =
        "SELECT upper(t.name || '.' || c.name) AS name FROM sqlite_master t, pragma_table_info(t.name) c
        WHERE t.type = 'table'";
    let columns: Vec<Name> = diesel::sql_query(columns).load(connection)?;
    let layout = Layout::new(columns, connection.prefix());
    Ok(match layout.query_for_listed() {
        Some(listed) => layout.with_listed(diesel::sql_query(listed).load(connection)?),
        None => layout,
    })
}

/// The sequences that keys are drawn from. Spec: REPO-18, REPO-19
#[derive(Clone, Copy)]
enum Sequence {
    Instance,
    Execution,
    Step,
}

/// The next number of a sequence table, as Spring Batch draws it. Spec: REPO-20 to REPO-22
macro_rules! next_id {
    ($connection:expr, $sequence:ident) => {{
        let id: i64 = diesel::insert_into($sequence::table)
            .default_values()
            .returning($sequence::id)
            .get_result($connection)?;
        diesel::delete($sequence::table.filter($sequence::id.lt(id))).execute($connection)?;
        Ok(id)
    }};
}

impl Repository {
    fn next_id(&self, connection: &mut Connection, sequence: Sequence) -> QueryResult<i64> {
        match sequence {
            Sequence::Instance => next_id!(connection, batch_job_seq),
            Sequence::Execution => next_id!(connection, batch_job_execution_seq),
            Sequence::Step => next_id!(connection, batch_step_execution_seq),
        }
    }
}

/// The database's clock, in milliseconds since 1970: several hosts share it.
fn database_now() -> SqlLiteral<BigInt> {
    sql::<BigInt>("CAST(unixepoch('subsec') * 1000 AS INTEGER)")
}

/// Who writes is alone, from the beginning of his transaction.
fn lock_instance(_connection: &mut Connection, _instance: i64) -> QueryResult<bool> {
    Ok(true)
}

fn lock_executions(_connection: &mut Connection, _instance: i64) -> QueryResult<()> {
    Ok(())
}

fn lock_step(_connection: &mut Connection, _step: i64) -> QueryResult<()> {
    Ok(())
}

fn hold_execution(_connection: &mut Connection, _execution: i64) -> QueryResult<()> {
    Ok(())
}

impl database::Database for SqliteDatabase {
    type Connection = SqliteConnection;
    type Turn = Turn;

    /// Holds the write lock from its beginning, so that it never has to give up half-way because another came first.
    const BEGIN_WRITE: &'static str = "BEGIN IMMEDIATE";
    const BEGIN_READ: &'static str = "BEGIN";
    const IS_REMOTE: bool = false;
    const BEGIN_CHUNK: &'static str = "BEGIN IMMEDIATE; SAVEPOINT batch_chunk";

    fn begin_ahead(&self) -> (&'static str, Option<&'static str>) {
        match self.synchronous {
            "FULL" => (
                "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
                Some("PRAGMA synchronous = FULL"),
            ),
            _ => (Self::BEGIN_WRITE, None),
        }
    }

    fn connect(&self) -> Result<SqliteConnection, RepositoryError> {
        let mut connection = self.connect_to_look()?;
        self.use_write_ahead_log(&mut connection)?;
        Ok(connection)
    }

    fn turn(&self, hurried: bool) -> QueryResult<Turn> {
        let limit = Duration::from_millis(BUSY_MILLIS);
        let turn = self.turns.take(limit, hurried);
        turn.ok_or_else(|| {
            let held = "one transaction of this process has held the database for a minute".to_owned();
            DieselError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(held))
        })
    }

    fn lives_by_its_connections(&self) -> bool {
        self.file.is_none()
    }
}

/// Where the database is, and how its connections are set up.
pub(super) struct SqliteDatabase {
    url: String,
    target: String,
    file: Option<PathBuf>,
    synchronous: &'static str,
    turns: Arc<Turns>,
}

impl SqliteDatabase {
    /// Reads `sqlite://PATH`, `sqlite://:memory:`, each with `?synchronous=full|normal` if wanted.
    pub(super) fn from_url(url: &str) -> Result<Self, RepositoryError> {
        let refuse = |problem: String| RepositoryError::Url {
            url: url.to_owned(),
            problem,
        };
        let Some(rest) = url.strip_prefix("sqlite:") else {
            return Err(refuse("expected `sqlite://PATH` or `sqlite://:memory:`".into()));
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        let mut synchronous = "FULL";
        for option in options.split('&').filter(|option| !option.is_empty()) {
            synchronous = match option {
                "synchronous=full" => "FULL",
                "synchronous=normal" => "NORMAL",
                _ => {
                    return Err(refuse(format!(
                        "unknown option `{option}`; known: `synchronous=full|normal`, `table_prefix=NAME_`"
                    )));
                }
            };
        }
        match path {
            "" => Err(refuse("the path is missing".into())),
            ":memory:" => {
                // SQLite's memdb file system, unlike `:memory:`, lets several connections see one database.
                static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
                let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let target = format!("file:/batch-memory-{number}?vfs=memdb");
                Ok(Self {
                    url: url.to_owned(),
                    target,
                    file: None,
                    synchronous,
                    turns: Arc::default(),
                })
            }
            path => {
                // The program may change its directory later; the database stays where it was.
                let file = std::path::absolute(path).map_err(|error| refuse(error.to_string()))?;
                let target = file
                    .to_str()
                    .ok_or_else(|| refuse("the path is no text".into()))?
                    .to_owned();
                Ok(Self {
                    url: url.to_owned(),
                    target,
                    file: Some(file),
                    synchronous,
                    turns: Arc::default(),
                })
            }
        }
    }

    /// The directory for the owners' lock files; none for a database that lives in memory. The database exists by now,
    /// and whoever comes to it by a symbolic link finds the same owners.
    fn owners_directory(&self) -> Option<PathBuf> {
        let file = self.file.as_ref()?;
        let mut name = file
            .canonicalize()
            .unwrap_or_else(|_| file.clone())
            .into_os_string();
        name.push("-owners");
        Some(name.into())
    }

    /// What SQLite does not say when it cannot open a file.
    fn hint(&self) -> &'static str {
        let Some(file) = &self.file else { return "" };
        if file.is_dir() {
            return " (it is a directory)";
        }
        match file.parent() {
            Some(folder) if !folder.exists() => " (its folder does not exist)",
            _ => "",
        }
    }

    /// A connection that has not changed anything in the file yet, which may be another program's.
    fn connect_to_look(&self) -> Result<SqliteConnection, RepositoryError> {
        let mut sqlite =
            SqliteConnection::establish(&self.target).map_err(|error| self.unusable(Box::new(error)))?;
        let settings = format!(
            "PRAGMA busy_timeout = {BUSY_MILLIS}; PRAGMA synchronous = {}; PRAGMA foreign_keys = ON;",
            self.synchronous
        );
        sqlite
            .batch_execute(&settings)
            .map_err(|error| self.unusable(Box::new(error)))?;
        Ok(sqlite)
    }

    fn use_write_ahead_log(&self, connection: &mut SqliteConnection) -> Result<(), RepositoryError> {
        use_write_ahead_log(connection).map_err(|error| self.unusable(Box::new(error)))
    }

    fn unusable(&self, source: Box<dyn std::error::Error + Send + Sync>) -> RepositoryError {
        RepositoryError::Connect {
            url: self.url.clone(),
            source,
            hint: self.hint(),
        }
    }
}

/// How long a writer waits for another one, of this process and of others. Longer than a chunk ought to take, and than a
/// lease lasts: whoever has waited in vain for so long has lost its lease anyway.
const BUSY_MILLIS: u64 = 60_000;

#[derive(QueryableByName)]
struct JournalMode {
    #[diesel(sql_type = diesel::sql_types::Text)]
    journal_mode: String,
}

/// The write-ahead log lets readers go on while one writes. Only the first connection ever switches to it, and the switch
/// does not wait for other connections, as everything else does.
fn use_write_ahead_log(sqlite: &mut SqliteConnection) -> QueryResult<()> {
    let begin = Instant::now();
    loop {
        let mode = diesel::sql_query("PRAGMA journal_mode");
        let mode: JournalMode = diesel::RunQueryDsl::get_result(mode, sqlite)?;
        // A database in memory has no log, and stays as it is.
        if mode.journal_mode == "wal" || mode.journal_mode == "memory" {
            return Ok(());
        }
        match sqlite.batch_execute("PRAGMA journal_mode = WAL") {
            Err(error) if begin.elapsed() < Duration::from_secs(10) => {
                tracing::debug!(%error, "trying again to switch to the write-ahead log");
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod urls {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_the_reason() {
        let check = |url: &str, problem: &str| {
            let error = SqliteDatabase::from_url(url).err().unwrap().to_string();
            assert!(error.contains(url) && error.contains(problem), "{error}");
        };
        check("oracle://x", "expected `sqlite://PATH`");
        check("sqlite://", "the path is missing");
        check(
            "sqlite://a.db?synchronous=off",
            "unknown option `synchronous=off`",
        );
        let file = SqliteDatabase::from_url("sqlite:///tmp/a.db?synchronous=normal").unwrap();
        assert_eq!((file.target.as_str(), file.synchronous), ("/tmp/a.db", "NORMAL"));
        assert_eq!(file.owners_directory(), Some("/tmp/a.db-owners".into()));
        assert_eq!(
            SqliteDatabase::from_url("sqlite://:memory:")
                .unwrap()
                .owners_directory(),
            None
        );
    }
}
