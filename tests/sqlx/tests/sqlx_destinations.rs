//! Destinations of sqlx: each item once, whatever is lost between the two commits.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::destination::{Advance, AnyDestination, Destination, block_on};
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobOperator, JobParameters};
use batch_sqlx::{SqlxDatabase, SqlxDestination};
use batch_test_servers::{Kind, Server, shared};
use batch_tests::faulty::{FAULTS, Faulty, moment_of};
use sqlx::{AssertSqlSafe, Connection, MySql, Pool, Postgres, Sqlite, Transaction};

/// A database, as the tests see it from outside.
trait Outside: SqlxDatabase {
    /// The name of the writer to it.
    const WRITER: &'static str;
    /// The server; `None` for a file.
    const SERVER: Option<Kind>;

    /// Returns the URL of a new database.
    fn new_url(folder: &Path) -> String {
        match Self::SERVER {
            Some(kind) => url_of_sqlx(shared(kind)),
            None => format!("sqlite://{}?mode=rwc", folder.join("there.db").display()),
        }
    }

    /// Executes a statement on a connection.
    fn sql(connection: &mut Self::Connection, statement: &str) -> Result<(), sqlx::Error>;

    /// Selects texts.
    fn texts(pool: &Pool<Self>, query: &str) -> Vec<String>;

    /// Returns a pool, which connects later.
    fn pool(url: &str) -> Pool<Self> {
        block_on(async { Pool::connect_lazy(url).unwrap() })
    }

    /// Executes a statement.
    fn outside(pool: &Pool<Self>, statement: &str) {
        let mut connection = block_on(pool.acquire()).unwrap();
        Self::sql(&mut connection, statement).unwrap();
        block_on(async { drop(connection) });
    }

    /// Returns the numbers that are written.
    fn numbers(pool: &Pool<Self>) -> Vec<i64> {
        let texts = Self::texts(pool, "SELECT CAST(number AS CHAR(9)) FROM number ORDER BY number");
        texts.iter().map(|text| text.trim().parse().unwrap()).collect()
    }

    /// Returns the names of the owners' sessions.
    fn owners(pool: &Pool<Self>) -> Vec<String> {
        Self::texts(pool, "SELECT SESSION_NAME FROM BATCH_MARKER")
    }

    /// Returns the ids of the sessions with a name.
    fn ids(pool: &Pool<Self>, name: &str) -> Vec<String> {
        let query = match Self::WRITER {
            "PostgresLedger" => {
                format!("SELECT pid::text FROM pg_stat_activity WHERE application_name = '{name}'")
            }
            _ => format!(
                "SELECT CAST(id AS CHAR(9)) FROM information_schema.processlist WHERE id = IS_USED_LOCK('{name}')"
            ),
        };
        Self::texts(pool, &query)
    }

    /// Ends the sessions of the owners of markers.
    fn end_owners(pool: &Pool<Self>) {
        for id in Self::owners(pool).iter().flat_map(|name| Self::ids(pool, name)) {
            let end = match Self::SERVER {
                Some(Kind::Postgres) => format!("SELECT pg_terminate_backend({id})"),
                _ => format!("KILL {id}"),
            };
            Self::outside(pool, &end);
        }
    }
}

/// Returns the URL of a new database. sqlx has another name for an option than the client library.
fn url_of_sqlx(server: &Server) -> String {
    server.new_database().replace("unix_socket=", "socket=")
}

/// The server that the fault `crash` crashes.
static CRASHING: Mutex<Option<Server>> = Mutex::new(None);

/// Returns the destination of a database, with a fault: `end` ends the sessions of the owners, `crash` the server, and `take` takes the marker.
fn faulty<DB: Outside>(url: &str, fault: &str) -> Faulty<SqlxDestination<DB>> {
    let pool = DB::pool(url);
    let destination = SqlxDestination::new(pool.clone());
    let (fault, deed) = moment_of(fault);
    let act = move |inner: &mut SqlxDestination<DB>, key: Option<&str>| {
        match deed {
            "end" => {
                Destination::transaction(inner)?;
                DB::end_owners(&pool);
            }
            "crash" => CRASHING.lock().unwrap().as_mut().unwrap().crash(),
            _ => drop(SqlxDestination::new(pool.clone()).claim(key.unwrap())?),
        }
        Ok(())
    };
    Faulty::new(destination, fault, act)
}

#[derive(Debug, BatchException)]
struct BadNumber(u64);

impl fmt::Display for BadNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is bad", self.0)
    }
}

impl std::error::Error for BadNumber {}

/// Defines a database, and the writer to it, which inserts numbers and cannot write `bad` ones.
macro_rules! database {
    ($database:ty, $writer:ident, $name:literal, $server:expr) => {
        impl Outside for $database {
            const WRITER: &'static str = $name;
            const SERVER: Option<Kind> = $server;

            fn sql(connection: &mut Self::Connection, statement: &str) -> Result<(), sqlx::Error> {
                block_on(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection)).map(drop)
            }

            fn texts(pool: &Pool<Self>, query: &str) -> Vec<String> {
                block_on(sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool)).unwrap()
            }
        }

        #[derive(BatchArtifact)]
        struct $writer {
            #[batch_property]
            url: String,
            #[batch_property]
            fault: String,
            #[batch_property]
            bad: u64,
        }

        #[item_writer($name)]
        impl $writer {
            #[destination]
            fn ledger(&self) -> Faulty<SqlxDestination<$database>> {
                faulty(&self.url, &self.fault)
            }

            #[write_items]
            async fn write(
                &mut self,
                numbers: &[u64],
                tx: &mut Transaction<'static, $database>,
            ) -> Result<(), BatchError> {
                for number in numbers {
                    let insert = format!("INSERT INTO number VALUES ({number})");
                    sqlx::query(AssertSqlSafe(insert))
                        .execute(&mut **tx)
                        .await?;
                    if *number == self.bad {
                        // It aborts the transaction on PostgreSQL.
                        let missing = "INSERT INTO no_table VALUES (1)";
                        sqlx::query(missing).execute(&mut **tx).await.unwrap_err();
                        return Err(BadNumber(*number).into());
                    }
                }
                Ok(())
            }
        }
    };
}

database!(Postgres, PostgresLedger, "PostgresLedger", Some(Kind::Postgres));
database!(MySql, MysqlLedger, "MysqlLedger", Some(Kind::Mariadb));
database!(Sqlite, SqliteLedger, "SqliteLedger", None);

const JOB: &str = r#"<job id="marked"><step id="load">
  <chunk reader="LoggedNumbers" writer="WRITER" commit-interval="3" skip-limit="1">
    <properties>
      <property name="url" value="${url}"/><property name="fault" value="${fault}"/>
      <property name="bad" value="${bad}"/><property name="log" value="${log}"/>
    </properties>
    <skippable-exception-classes><include class="BadNumber"/></skippable-exception-classes>
  </chunk>
</step></job>"#;

/// A repository in a file, and a destination.
struct Scene<DB: Outside> {
    folder: tempfile::TempDir,
    operator: JobOperator,
    url: String,
    pool: Pool<DB>,
}

impl<DB: Outside> Scene<DB> {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = DB::new_url(folder.path());
        Self::at(url, folder)
    }

    fn at(url: String, folder: tempfile::TempDir) -> Self {
        let pool = DB::pool(&url);
        DB::outside(&pool, "CREATE TABLE number (number INTEGER)");
        let repository = format!("sqlite://{}", folder.path().join("batch.db").display());
        let runtime = BatchRuntime::builder().repository(repository);
        let runtime = runtime.job_xml("marked.xml", JOB.replace("WRITER", DB::WRITER));
        Self {
            operator: runtime.build().unwrap().job_operator(),
            folder,
            url,
            pool,
        }
    }

    /// Launches the job, and returns its end with the message.
    fn launch(&self, fault: &str, bad: u64) -> (BatchStatus, String) {
        let parameters = JobParameters::new()
            .with("url", &self.url)
            .with_non_identifying("log", self.log())
            .with_non_identifying("fault", fault)
            .with_non_identifying("bad", bad.to_string());
        let execution = self.operator.launch("marked", parameters).unwrap();
        let ended = self.operator.wait(execution).unwrap();
        (ended.status, ended.exit_message)
    }

    fn log(&self) -> String {
        self.folder.path().join("log").display().to_string()
    }

    /// Returns a destination, with the table of the numbers.
    fn destination(&self) -> SqlxDestination<DB> {
        SqlxDestination::new(self.pool.clone())
    }
}

const KEY: &str = "job/key/step";

fn insert<DB: Outside>(destination: &mut SqlxDestination<DB>, number: i64) {
    let tx = destination.transaction().unwrap();
    DB::sql(tx, &format!("INSERT INTO number VALUES ({number})")).unwrap();
}

fn advance(fence: i64, from: i64) -> Advance<'static> {
    Advance {
        key: KEY,
        fence,
        from,
        to: from + 1,
        state: "{}",
    }
}

/// Calls a generic test with each database.
macro_rules! on_each {
    ($test:ident) => {
        $test::<Postgres>();
        $test::<MySql>();
        $test::<Sqlite>();
    };
}

fn commits_once<DB: Outside>() {
    for (fault, fails, begins) in FAULTS {
        if fault.starts_with("end") && DB::SERVER.is_none() {
            continue;
        }
        let context = format!("{fault}, {}", DB::WRITER);
        let scene = Scene::<DB>::new();
        let (status, message) = scene.launch(fault, 0);
        if fails {
            assert_eq!(status, BatchStatus::Failed, "{context}");
            assert!(message.contains("is lost"), "{context}: {message}");
            let (status, message) = scene.launch("none", 0);
            assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
        } else {
            assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
        }
        assert_eq!(DB::numbers(&scene.pool), [1, 2, 3, 4, 5, 6, 7], "{context}");
        assert_eq!(DB::owners(&scene.pool), [""; 0], "{context}");
        assert_eq!(fs::read_to_string(scene.log()).unwrap(), begins, "{context}");
    }
}

/// Spec: MARK-04, MARK-05, MARK-06, MARK-08, MARK-10
#[test]
fn an_interval_is_committed_once_whatever_is_lost_between_the_commits() {
    on_each!(commits_once);
}

fn survives_a_crash<DB: Outside>() {
    let server = Server::start(DB::SERVER.unwrap());
    let url = url_of_sqlx(&server);
    *CRASHING.lock().unwrap() = Some(server);
    let scene = Scene::<DB>::at(url, tempfile::tempdir().unwrap());
    let (status, message) = scene.launch("crash", 0);
    assert_eq!(status, BatchStatus::Completed, "{}: {message}", DB::WRITER);
    assert_eq!(DB::numbers(&scene.pool), [1, 2, 3, 4, 5, 6, 7], "{}", DB::WRITER);
    assert_eq!(fs::read_to_string(scene.log()).unwrap(), "0 3 ", "{}", DB::WRITER);
    *CRASHING.lock().unwrap() = None;
}

/// Spec: MARK-08
#[test]
fn a_step_continues_when_the_server_of_its_destination_has_crashed() {
    survives_a_crash::<Postgres>();
    survives_a_crash::<MySql>();
}

fn skips<DB: Outside>() {
    let scene = Scene::<DB>::new();
    let (status, message) = scene.launch("none", 5);
    assert_eq!(status, BatchStatus::Completed, "{}: {message}", DB::WRITER);
    assert_eq!(DB::numbers(&scene.pool), [1, 2, 3, 4, 6, 7], "{}", DB::WRITER);
}

/// Spec: MARK-09
#[test]
fn a_bad_item_is_undone_by_a_savepoint() {
    on_each!(skips);
}

fn ends_a_suspended_owner<DB: Outside>() {
    let scene = Scene::<DB>::new();
    let mut suspended = scene.destination();
    let first = suspended.claim(KEY).unwrap().fence;
    insert(&mut suspended, 1);
    // As in the middle of the commit, it holds the lock of the marker.
    let tx = suspended.transaction().unwrap();
    DB::sql(tx, "UPDATE BATCH_MARKER SET STATE = 'moving'").unwrap();

    let mut next = scene.destination();
    let marker = next.claim(KEY).unwrap();
    assert_eq!((marker.fence, marker.interval), (first + 1, 0), "{}", DB::WRITER);
    insert(&mut next, 1);
    assert!(next.commit(&advance(first + 1, 0)).unwrap());

    suspended.commit(&advance(first, 0)).unwrap_err();
    assert!(suspended.is_lost());
    suspended.roll_back();
    // If it still owns the step, it claims the marker again, and ends the other session in turn.
    let marker = suspended.claim(KEY).unwrap();
    assert_eq!((marker.fence, marker.interval), (first + 2, 1), "{}", DB::WRITER);
    assert!(next.is_lost());
    assert_eq!(DB::numbers(&scene.pool), [1], "{}", DB::WRITER);
}

/// Spec: MARK-05, MARK-11
#[test]
fn the_session_of_a_suspended_owner_is_ended() {
    ends_a_suspended_owner::<Postgres>();
    ends_a_suspended_owner::<MySql>();
}

fn owner_that_was_replaced<DB: Outside>() {
    let scene = Scene::<DB>::new();
    let mut first = scene.destination();
    let fence = first.claim(KEY).unwrap().fence;
    assert!(first.commit(&advance(fence, 0)).unwrap());
    let mut next = scene.destination();
    assert_eq!(next.claim(KEY).unwrap().interval, 1);
    drop(next);
    // Its session was ended on a server; in a file its commit finds the other fence.
    let mut late = SqlxDestination::new(scene.pool.clone());
    insert(&mut late, 1);
    assert!(!late.commit(&advance(fence, 1)).unwrap());
    assert_eq!(DB::numbers(&scene.pool), [0; 0], "{}", DB::WRITER);
    // Only the owner removes the marker.
    late.remove(KEY, fence).unwrap();
    assert_eq!(DB::owners(&scene.pool).len(), 1);
    late.remove(KEY, fence + 1).unwrap();
    assert_eq!(DB::owners(&scene.pool).len(), 0);
}

/// Spec: MARK-05, MARK-10
#[test]
fn an_owner_that_was_replaced_commits_nothing() {
    on_each!(owner_that_was_replaced);
}

fn ended_by_the_writer<DB: Outside>() {
    for statement in ["COMMIT", "ROLLBACK"] {
        let scene = Scene::<DB>::new();
        let mut destination = scene.destination();
        let fence = destination.claim(KEY).unwrap().fence;
        insert(&mut destination, 1);
        DB::sql(destination.transaction().unwrap(), statement).unwrap();
        let error = destination.commit(&advance(fence, 0)).unwrap_err().chain();
        assert!(
            error.contains("has ended the transaction in the destination"),
            "{error}"
        );
        assert!(!destination.is_lost());
        destination.roll_back();
        // A transaction may be nested in it.
        insert(&mut destination, 2);
        let tx = destination.transaction().unwrap();
        let mut nested = block_on(tx.begin()).unwrap();
        DB::sql(&mut nested, "INSERT INTO number VALUES (3)").unwrap();
        block_on(nested.rollback()).unwrap();
        let mut nested = block_on(destination.transaction().unwrap().begin()).unwrap();
        DB::sql(&mut nested, "INSERT INTO number VALUES (4)").unwrap();
        block_on(nested.commit()).unwrap();
        destination.commit_unmarked().unwrap();
        let first: &[i64] = if statement == "COMMIT" { &[1] } else { &[] };
        assert_eq!(
            DB::numbers(&scene.pool),
            [first, &[2, 4]].concat(),
            "{}",
            DB::WRITER
        );
    }
}

/// Spec: MARK-04, MARK-12
#[test]
fn a_writer_cannot_end_the_transaction_unnoticed() {
    on_each!(ended_by_the_writer);
}

/// Spec: MARK-04
#[test]
fn a_statement_whose_error_is_hidden_fails_the_commit_on_postgresql() {
    let scene = Scene::<Postgres>::new();
    let mut destination = scene.destination();
    let fence = destination.claim(KEY).unwrap().fence;
    insert(&mut destination, 1);
    Postgres::sql(
        destination.transaction().unwrap(),
        "INSERT INTO no_table VALUES (1)",
    )
    .unwrap_err();
    let error = destination.commit(&advance(fence, 0)).unwrap_err().chain();
    assert!(
        error.contains("has to return the error of a failed statement"),
        "{error}"
    );
    assert_eq!(Postgres::numbers(&scene.pool), [0; 0]);
}

fn claimed_at_once<DB: Outside>() {
    let scene = Scene::<DB>::new();
    // The connections of the pool are of no concern.
    let held: Vec<_> = (0..10).map(|_| block_on(scene.pool.acquire()).unwrap()).collect();
    thread::scope(|scope| {
        for partition in 0..8 {
            let mut destination = scene.destination();
            scope.spawn(move || {
                let marker = destination.claim(&format!("{KEY}:{partition}")).unwrap();
                assert_eq!(marker.interval, 0);
                insert(&mut destination, partition);
                destination.commit_unmarked().unwrap();
            });
        }
    });
    block_on(async { drop(held) });
    assert_eq!(DB::numbers(&scene.pool), [0, 1, 2, 3, 4, 5, 6, 7]);
    // Each session ends with its destination.
    let names = DB::owners(&scene.pool);
    assert_eq!(names.len(), 8);
    let begin = Instant::now();
    while DB::SERVER.is_some() && names.iter().any(|name| !DB::ids(&scene.pool, name).is_empty()) {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{} keeps sessions",
            DB::WRITER
        );
    }
}

/// Spec: MARK-02, MARK-05
#[test]
fn partitions_claim_their_markers_at_once_and_leave_no_session() {
    on_each!(claimed_at_once);
}

/// Spec: MARK-02
#[test]
fn a_table_that_cannot_be_created_is_an_error_with_its_statement() {
    let scene = Scene::<Postgres>::new();
    let mut destination = SqlxDestination::with_table(scene.pool.clone(), "no_schema.marker");
    let error = destination.claim(KEY).unwrap_err().chain();
    assert!(
        error.contains("create it by `CREATE TABLE IF NOT EXISTS no_schema.marker"),
        "{error}"
    );
    Postgres::outside(&scene.pool, "CREATE SCHEMA no_schema");
    assert_eq!(destination.claim(KEY).unwrap().interval, 0);

    let nowhere = Sqlite::pool("sqlite:///no/folder/there.db");
    let error = SqlxDestination::new(nowhere).claim(KEY).unwrap_err().chain();
    assert!(error.contains("cannot connect to the destination"), "{error}");
}

fn one_pool_is_one_destination<DB: Outside>() {
    let scene = Scene::<DB>::new();
    let part = |pool: &Pool<DB>| Some(AnyDestination::from(SqlxDestination::new(pool.clone())));
    let found = AnyDestination::of_parts([part(&scene.pool), None, part(&scene.pool)]);
    assert!(found.unwrap().is_some());
    let other = DB::pool(&scene.url);
    let Err(error) = AnyDestination::of_parts([part(&scene.pool), part(&other)]) else {
        panic!("{}: another pool may write to another schema", DB::WRITER);
    };
    let error = error.to_string();
    assert!(error.contains("two destinations"), "{error}");
}

/// Spec: MARK-12
#[test]
fn the_parts_of_a_writer_share_the_destination_of_a_pool() {
    on_each!(one_pool_is_one_destination);
}
