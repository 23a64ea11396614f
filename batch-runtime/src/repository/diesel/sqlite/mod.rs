//! SQLite: a file, or a database in memory, with one writer at a time.

mod file;
mod group_sync;
mod schema;
mod write_lock;

mod chunk_rows;
#[path = "../per_backend/mod.rs"]
mod per_backend;

#[cfg(test)]
mod fixture;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::{AnsiTransactionManager, Connection as _, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

use super::DieselRepository;
use super::backend::{Backend, ChunkRows, NewStep, Sequence, TicketRow, UpdatedRows, WantedTickets};
use super::fixed_sql::FixedText;
use super::migrations::{Failure, MigrationFailed, Migrations, Name, TABLES};
use super::one_of::none_of;
use super::pool::Pool;
use super::sequences::Sequences;
use super::session::{RunQueryDsl, Session, SessionSettings};
use super::table_prefix::TablePrefix;
use super::url::shown;
use crate::repository::conversion::{Backup, LayoutConversion};
use crate::repository::error::MISSING_FILE;
use crate::repository::owner::Owner;
use crate::repository::{RepositoryConfig, RepositoryError, RepositoryLayout, Result};
use file::DatabaseFile;
use group_sync::GroupSync;
use per_backend::catalog;
use per_backend::step_bounds::counter_columns;
use per_backend::step_store::new_step_columns;
use schema::{
    batch_job_execution_seq, batch_job_instance_seq, batch_job_seq, batch_step_execution_seq, created_step,
    partition_ticket, step_execution,
};
use write_lock::{WriteLock, WriteQueue};

/// The backend of `per_backend`.
type Db = SqliteDatabase;
type Connection = Session<SqliteConnection>;

/// Opens the database of `url` and brings its tables up to date.
pub(super) fn open(
    url: &str,
    settings: SessionSettings,
    config: RepositoryConfig,
) -> Result<DieselRepository<Db>> {
    let database = SqliteDatabase::from_url(url)?;
    if let Some(Err(error)) = database.file.as_ref().map(|file| file.create())
        // SQLite's message has a hint for a folder that does not exist, and for one in place of the file, but no other reason.
        && !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory)
    {
        return Err(RepositoryError::Connect {
            url: database.url,
            source: error.into(),
            hint: " (the file cannot be created)",
        });
    }
    let mut connection = Session::new(database.connect_unchanged()?, settings);
    let unusable = |problem: Failure| RepositoryError::Schema {
        url: database.url.clone(),
        problem,
    };
    let mut found = catalog(&mut connection).map_err(|error| unusable(error.into()))?;
    let applied = Db::MIGRATIONS.are_applied(&mut connection, &found);
    let applied = applied.map_err(unusable)?;
    // Only now: a file that is not a repository must stay unchanged.
    database.use_write_ahead_log(&mut connection)?;
    if !applied {
        Db::migrate(&mut connection).map_err(|MigrationFailed(error)| unusable(error))?;
        found = catalog(&mut connection).map_err(|error| unusable(error.into()))?;
    }
    connection.adopt(&found);
    // After the migrations: they commit outside of the pool, which alone waits for the disk after a commit.
    database.sync_in_group(&mut connection)?;
    // The path of the owners' lock files depends on the file, which exists now.
    let mode = database.file.as_ref().map_or(file::MODE, |file| file.mode());
    let owner = Owner::new(database.owners_directory(), mode);
    let repository = DieselRepository::new(database, connection, owner, config)?;
    repository.sweep_owners();
    Ok(repository)
}

/// Opens a connection, and does not check the contents of the file.
pub(super) fn connect_to(url: &str) -> Result<SqliteConnection> {
    SqliteDatabase::from_url(url)?.connect_unchanged()
}

/// Checks that `url` is valid.
pub(super) fn check_url(url: &str) -> Result<()> {
    SqliteDatabase::from_url(url).map(drop)
}

/// Converts the tables to another layout; without `backup`, only finds out what that does.
pub(super) fn convert(
    url: &str,
    settings: SessionSettings,
    to: RepositoryLayout,
    backup: Option<Backup<'_>>,
) -> Result<LayoutConversion> {
    let database = SqliteDatabase::from_url(url)?;
    let mut connection = Session::new(database.connect_unchanged()?, settings);
    connection.accept_any_layout();
    let lock_out = match backup {
        Some(_) => database.lock_out_launches(connection.settings()),
        None => Ok(None),
    };
    let converted =
        lock_out.and_then(|lock_out| per_backend::conversion::run(connection, to, backup, lock_out));
    converted.map_err(|problem| RepositoryError::Schema {
        url: database.url,
        problem,
    })
}

/// Returns the names of the migrations that opening the repository would run; `None` if there is no repository yet.
pub(super) fn missing_migrations(
    url: &str,
    settings: SessionSettings,
) -> Result<Option<(RepositoryLayout, Vec<String>)>> {
    let database = SqliteDatabase::from_url(url)?;
    // Connecting would create the file.
    if !database.file.as_ref().is_some_and(|file| file.path().exists()) {
        return Ok(None);
    }
    // Waits for locks like all connections: a process that ends may hold the file for a moment.
    let mut connection = Session::new(database.connect_unchanged()?, settings);
    let found = catalog(&mut connection).map_err(|error| database.unusable(Box::new(error)))?;
    let missing = Db::MIGRATIONS.names_of_missing(&mut connection, &found);
    missing.map_err(|problem| RepositoryError::Schema {
        url: database.url.clone(),
        problem,
    })
}

/// Returns the next id of a sequence table, as Spring Batch does.
// Spec: REPO-20 to REPO-22
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

pub(super) struct DatabaseClock;

impl FixedText for DatabaseClock {
    const TEXT: &'static str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
}

impl Backend for SqliteDatabase {
    type Connection = SqliteConnection;
    type WriteLock = WriteLock;
    type Clock = DatabaseClock;

    /// Takes SQLite's write lock at once, so that a transaction never fails half-way because another one wrote first.
    const BEGIN_WRITE: &'static str = "BEGIN IMMEDIATE";
    const BEGIN_READ: &'static str = "BEGIN";
    const IS_REMOTE: bool = false;
    const BEGIN_CHUNK: &'static str = "BEGIN IMMEDIATE; SAVEPOINT batch_chunk";
    const MIGRATIONS: Migrations = Migrations(batch_migrations::SQLITE);
    const REPLACED_TABLES: &'static [&'static str] = &["BATCH_JOB_EXECUTION_PARAMS", "BATCH_STEP_EXECUTION"];
    const ADDITIONS: &'static str = "SELECT type || ' ' || name AS name FROM sqlite_master
            WHERE (type IN ('trigger', 'view')
                AND (' ' || upper(sql) || ' ' GLOB upper('*[^A-Z0-9_]BATCH_JOB_EXECUTION_PARAMS[^A-Z0-9_]*')
                    OR ' ' || upper(sql) || ' ' GLOB upper('*[^A-Z0-9_]BATCH_STEP_EXECUTION[^A-Z0-9_]*')))
            OR (type = 'index' AND sql IS NOT NULL
                AND upper(tbl_name) IN (upper('BATCH_JOB_EXECUTION_PARAMS'), upper('BATCH_STEP_EXECUTION'))
                AND upper(name) NOT IN (upper('BATCH_JOB_EXECUTION_PARAMS_IX'), upper('BATCH_STEP_EXECUTION_STEP_IX')))
            ORDER BY name";

    /// Checks the tables with all their indexes: a damaged index would hide steps, whose work would be repeated.
    fn damage(connection: &mut Connection) -> QueryResult<Option<String>> {
        let check = |table| format!("SELECT integrity_check AS name FROM pragma_integrity_check('{table}')");
        let checks = TABLES.map(check).join(" UNION ALL ");
        let found: Vec<Name> = diesel::sql_query(checks).load(connection)?;
        let mut problems = found.into_iter().map(|problem| problem.name);
        let first = problems.find(|problem| problem != "ok");
        Ok(first.map(|problem| {
            let remedy = "restore the file from a backup, or try `REINDEX` in the sqlite3 shell";
            format!("is damaged ({}); {remedy}", problem.replace('\n', " "))
        }))
    }

    fn make_durable(&self) -> io::Result<()> {
        self.group_sync.as_ref().map_or(Ok(()), |group| group.wait())?;
        // After the wait: a commit to a file that was moved away or replaced is lost, even on the disk.
        self.file.as_ref().map_or(Ok(()), |file| file.check_is_same())
    }

    fn connect_for_pool(&self) -> Result<SqliteConnection> {
        let mut connection = self.connect()?;
        self.sync_in_group(&mut connection)?;
        Ok(connection)
    }

    fn columns(_prefix: &TablePrefix) -> String {
        "SELECT upper(t.name || '.' || c.name) AS name FROM sqlite_master t, pragma_table_xinfo(t.name) c
            WHERE t.type = 'table'"
            .to_owned()
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn connect(&self) -> Result<SqliteConnection> {
        let mut connection = self.connect_unchanged()?;
        self.use_write_ahead_log(&mut connection)?;
        Ok(connection)
    }

    fn write_lock(&self, priority: bool) -> QueryResult<WriteLock> {
        let limit = Duration::from_millis(BUSY_MILLIS);
        let lock = self.write_queue.take(limit, priority);
        lock.ok_or_else(|| {
            let held = "one transaction of this process has held the database for a minute".to_owned();
            DieselError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(held))
        })
    }

    fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Of two processes that open a new database, the second one finds the migrations applied when it gets the lock.
    fn migrate(connection: &mut Connection) -> Result<(), MigrationFailed> {
        type Transaction = AnsiTransactionManager;
        // After an error the connection is closed, which rolls back.
        Transaction::begin_transaction_sql(&mut **connection, Self::BEGIN_WRITE)?;
        let found = catalog(connection)?;
        Self::MIGRATIONS.run(connection, &found)?;
        Ok(Transaction::commit_transaction(&mut **connection)?)
    }

    /// A table is copied to change its columns, which foreign keys would prevent.
    fn convert<T>(
        connection: &mut Connection,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        type Transaction = AnsiTransactionManager;
        // Before the transaction: SQLite ignores this setting within one.
        connection.batch_execute("PRAGMA foreign_keys = OFF")?;
        // After an error the connection is closed, which rolls back.
        Transaction::begin_transaction_sql(&mut **connection, Self::BEGIN_WRITE)?;
        let done = work(connection)?;
        let orphans: Vec<Name> =
            diesel::sql_query("SELECT \"table\" AS name FROM pragma_foreign_key_check").load(connection)?;
        // Tables of the program are not checked.
        let prefix = &connection.settings().prefix;
        let is_ours = |orphan: &&Name| prefix.plain_name(&orphan.name.to_uppercase()).is_some();
        if let Some(orphan) = orphans.iter().find(is_ours) {
            return Err(format!("its table {} refers to rows that do not exist", orphan.name).into());
        }
        Transaction::commit_transaction(&mut **connection)?;
        Ok(done)
    }

    fn insert_steps(connection: &mut Connection, steps: &[NewStep<'_>]) -> QueryResult<()> {
        for step in steps {
            if connection.layout().has_typed_parameters() {
                diesel::insert_into(created_step::table)
                    .values((
                        new_step_columns!(step, created_step),
                        created_step::create_time.eq(step.now),
                    ))
                    .execute(connection)?;
            } else {
                diesel::insert_into(step_execution::table)
                    .values(new_step_columns!(step, step_execution))
                    .execute(connection)?;
            }
        }
        Ok(())
    }

    // A transaction that writes holds the database from its beginning, so there is nothing to lock.

    fn lock_instance(_connection: &mut Connection, _instance: i64) -> QueryResult<bool> {
        Ok(true)
    }

    fn lock_executions(_connection: &mut Connection, _instance: i64) -> QueryResult<()> {
        Ok(())
    }

    fn share_execution(_connection: &mut Connection, _execution: i64) -> QueryResult<()> {
        Ok(())
    }

    fn lock_step(_connection: &mut Connection, _step: i64) -> QueryResult<()> {
        Ok(())
    }

    fn lock_tickets(connection: &mut Connection, wanted: &WantedTickets<'_>) -> QueryResult<Vec<TicketRow>> {
        partition_ticket::table
            .filter(partition_ticket::queue_name.eq(wanted.queue))
            .filter(partition_ticket::available_at.le(Self::now()))
            .filter(none_of(partition_ticket::fingerprint, wanted.except))
            .order(partition_ticket::step_execution_id.asc())
            .limit(wanted.count)
            .select((
                partition_ticket::step_execution_id,
                partition_ticket::job_execution_id,
                partition_ticket::attempt,
                partition_ticket::fingerprint,
            ))
            .load(connection)
    }

    fn update_chunk_rows(connection: &mut Connection, rows: &ChunkRows<'_>) -> QueryResult<UpdatedRows> {
        chunk_rows::write(connection, rows)
    }
}

impl Sequences for SqliteDatabase {
    fn next_ids(
        _pool: &Pool<Self>,
        connection: &mut Connection,
        sequence: Sequence,
        count: usize,
    ) -> QueryResult<Vec<i64>> {
        let next = |_| match sequence {
            Sequence::Instance if connection.layout() == RepositoryLayout::V6 => {
                next_id!(connection, batch_job_instance_seq)
            }
            Sequence::Instance => next_id!(connection, batch_job_seq),
            Sequence::Execution => next_id!(connection, batch_job_execution_seq),
            Sequence::Step => next_id!(connection, batch_step_execution_seq),
        };
        (0..count).map(next).collect()
    }
}

/// The place of the database, and the settings of its connections.
pub(super) struct SqliteDatabase {
    url: String,
    target: String,
    file: Option<Arc<DatabaseFile>>,
    synchronous: &'static str,
    /// Waits for the disk after the commits of the pool, if they have to survive a loss of power.
    group_sync: Option<GroupSync<SyncFile>>,
    write_queue: Arc<WriteQueue>,
}

type SyncFile = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Returns the level of synchronization and the mode of the file; otherwise the problem, without values that may be secrets.
fn options_of(options: &str) -> Result<(&'static str, u32), String> {
    let (mut synchronous, mut mode) = ("FULL", file::MODE);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=').unwrap_or((option, "")) {
            ("file_mode", text) => {
                let invalid =
                    || format!("invalid file mode `{text}`: expected octal permissions such as 0640");
                mode = file::parse_mode(text).ok_or_else(invalid)?;
            }
            ("synchronous", "full") => synchronous = "FULL",
            ("synchronous", "normal") => synchronous = "NORMAL",
            ("synchronous", text) => {
                return Err(format!(
                    "invalid value `{text}` of `synchronous`: expected `full` or `normal`"
                ));
            }
            (name, _) => {
                return Err(format!(
                    "unknown option `{name}`; known: `synchronous=full|normal`, `file_mode=MODE`, `table_prefix=NAME_`, \
                     `layout=4.3|5|6`, `max_varchar_length=CHARACTERS`"
                ));
            }
        }
    }
    Ok((synchronous, mode))
}

impl SqliteDatabase {
    /// Parses `sqlite://PATH` or `sqlite://:memory:`, optionally with `?synchronous=full|normal&file_mode=MODE`.
    pub(super) fn from_url(url: &str) -> Result<Self> {
        let reject = |problem: String| RepositoryError::Url {
            url: shown(url),
            problem,
        };
        let Some(rest) = url.strip_prefix("sqlite:") else {
            return Err(reject("expected `sqlite://PATH` or `sqlite://:memory:`".into()));
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (synchronous, mode) = options_of(options).map_err(reject)?;
        let (target, file) = match path {
            "" => return Err(reject("the path is missing".into())),
            ":memory:" => {
                // SQLite's memdb file system, unlike `:memory:`, shares one database between connections.
                static NUMBER: AtomicU64 = AtomicU64::new(0);
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                (format!("file:/batch-memory-{number}?vfs=memdb"), None)
            }
            path => {
                // Absolute, because the program may change its working directory.
                let file = std::path::absolute(path).map_err(|error| reject(error.to_string()))?;
                let file = Arc::new(DatabaseFile::new(file, mode));
                let target = file
                    .uri()
                    .ok_or_else(|| reject("the path is not valid UTF-8".into()))?;
                (target, Some(file))
            }
        };
        let synced = file.clone().filter(|_| synchronous == "FULL");
        let sync = |file: Arc<DatabaseFile>| -> SyncFile { Box::new(move || file.sync_log()) };
        Ok(Self {
            url: url.to_owned(),
            target,
            file,
            synchronous,
            group_sync: synced.map(|file| GroupSync::new(sync(file))),
            write_queue: Arc::default(),
        })
    }

    /// Returns the directory for the owners' lock files; `None` for a database in memory. Symbolic links to the database lead
    /// to the same directory, so the file must exist.
    fn owners_directory(&self) -> Option<PathBuf> {
        let file = self.file.as_ref()?.path();
        let mut name = file
            .canonicalize()
            .unwrap_or_else(|_| file.to_owned())
            .into_os_string();
        name.push("-owners");
        Some(name.into())
    }

    /// Returns a hint to add to SQLite's message if it cannot open a file.
    fn hint(&self) -> &'static str {
        let Some(file) = self.file.as_ref().map(|file| file.path()) else {
            return "";
        };
        if file.is_dir() {
            return " (it is a directory)";
        }
        match file.parent() {
            Some(folder) if !folder.exists() => " (its folder does not exist)",
            _ if !file.exists() => MISSING_FILE,
            _ => "",
        }
    }

    /// Opens a connection without changing the file, which may belong to another program.
    fn connect_unchanged(&self) -> Result<SqliteConnection> {
        let mut sqlite =
            SqliteConnection::establish(&self.target).map_err(|error| self.unusable(Box::new(error)))?;
        if let Some(file) = &self.file {
            file.check_is_same()
                .map_err(|error| self.unusable(Box::new(error)))?;
        }
        let settings = format!(
            "PRAGMA busy_timeout = {BUSY_MILLIS}; PRAGMA synchronous = {}; PRAGMA foreign_keys = ON;",
            self.synchronous
        );
        sqlite
            .batch_execute(&settings)
            .map_err(|error| self.unusable(Box::new(error)))?;
        Ok(sqlite)
    }

    fn use_write_ahead_log(&self, connection: &mut SqliteConnection) -> Result<()> {
        use_write_ahead_log(connection).map_err(|error| self.unusable(Box::new(error)))
    }

    /// Lets the connection commit without a wait for the disk: the pool waits after the commit.
    fn sync_in_group(&self, connection: &mut SqliteConnection) -> Result<()> {
        match self.group_sync {
            Some(_) => connection
                .batch_execute("PRAGMA synchronous = NORMAL")
                .map_err(|error| self.unusable(Box::new(error))),
            None => Ok(()),
        }
    }

    fn unusable(&self, source: Box<dyn std::error::Error + Send + Sync>) -> RepositoryError {
        RepositoryError::Connect {
            url: self.url.clone(),
            source,
            hint: self.hint(),
        }
    }
}

/// How long a writer waits for others, of this process or another. Longer than a chunk should take and longer than a lease: a runner whose
/// wait times out has lost its lease.
const BUSY_MILLIS: u64 = 60_000;

#[derive(QueryableByName)]
struct JournalMode {
    #[diesel(sql_type = diesel::sql_types::Text)]
    journal_mode: String,
}

/// Switches to the write-ahead log, so that readers do not wait for the writer. Only the first connection switches; the
/// switch itself does not wait for locks, so it is tried again.
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
                tracing::debug!(%error, "cannot switch to the write-ahead log yet; trying again");
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
    fn urls_are_parsed_or_rejected_with_the_reason() {
        let check = |url: &str, problem: &str| {
            let error = SqliteDatabase::from_url(url).err().unwrap().to_string();
            assert!(error.contains(url) && error.contains(problem), "{error}");
        };
        check("oracle://x", "expected `sqlite://PATH`");
        check("sqlite://", "the path is missing");
        check(
            "sqlite://a.db?synchronous=off",
            "invalid value `off` of `synchronous`: expected `full` or `normal`",
        );
        let secret = SqliteDatabase::from_url("sqlite://a.db?key=s3cr3t")
            .err()
            .unwrap()
            .to_string();
        assert!(
            secret.contains("unknown option `key`") && !secret.contains("s3cr3t"),
            "{secret}"
        );
        let file = SqliteDatabase::from_url("sqlite:///tmp/a.db?synchronous=normal").unwrap();
        assert_eq!(
            (file.target.as_str(), file.synchronous),
            ("file:/tmp/a.db?mode=rw", "NORMAL")
        );
        let mode = |url: &str| SqliteDatabase::from_url(url).unwrap().file.unwrap().mode();
        assert_eq!(
            (mode("sqlite://a.db"), mode("sqlite://a.db?file_mode=0640")),
            (0o600, 0o640)
        );
        for invalid in ["rw", "0400", "999", "06400"] {
            check(
                &format!("sqlite://a.db?file_mode={invalid}"),
                &format!("invalid file mode `{invalid}`: expected octal permissions such as 0640"),
            );
        }
        let odd = SqliteDatabase::from_url("sqlite:///tmp/50%25#1.db").unwrap();
        assert_eq!(odd.target, "file:/tmp/50%2525%231.db?mode=rw");
        assert_eq!(file.owners_directory(), Some("/tmp/a.db-owners".into()));
        assert_eq!(
            SqliteDatabase::from_url("sqlite://:memory:")
                .unwrap()
                .owners_directory(),
            None
        );
    }
}
