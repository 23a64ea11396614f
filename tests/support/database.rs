//! The databases of repositories, each as the tests see it from outside.

use std::path::Path;

use batch_runtime::{BatchError, ChunkTransaction};
use batch_test_servers::{Kind, shared};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;

use crate::{deadline, sqlite};

/// Names the layout of new repositories, to run tests of 4.3 on another one. Those that look into its tables fail.
const LAYOUT: &str = "BATCH_TEST_LAYOUT";

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// A database file.
    Sqlite,
    /// A server started by the tests.
    Postgres,
    /// A server started by the tests.
    Mariadb,
}

use Database::{Mariadb, Postgres, Sqlite};

impl Database {
    /// All kinds in this build.
    #[cfg(feature = "servers")]
    pub const ALL: [Self; 3] = [Sqlite, Postgres, Mariadb];
    /// All kinds in this build.
    #[cfg(not(feature = "servers"))]
    pub const ALL: [Self; 1] = [Sqlite];
}

/// One database, for one test.
#[derive(Clone, Debug)]
pub struct Place {
    database: Database,
    url: String,
}

impl Place {
    /// Returns a new database; SQLite's is the file `batch.db` in the folder.
    pub fn new(database: Database, folder: &Path) -> Self {
        deadline::waits_for(move || format!("something after the start of a database of kind {database:?}"));
        let url = match database {
            Sqlite => format!(
                "sqlite://{}?synchronous=normal",
                folder.join("batch.db").display()
            ),
            Postgres => shared(Kind::Postgres).new_database(),
            Mariadb => shared(Kind::Mariadb).new_database(),
        };
        let place = Self { database, url };
        match std::env::var(LAYOUT) {
            Ok(layout) => place.with_option("layout", &layout),
            Err(_) => place,
        }
    }

    /// Returns the same database with an option of the runtime's in the URL.
    pub fn with_option(mut self, name: &str, value: &str) -> Self {
        self.url.push(if self.url.contains('?') { '&' } else { '?' });
        self.url.push_str(&format!("{name}={value}"));
        self
    }

    /// Returns the same database without the options of the runtime's in the URL.
    pub fn without_options(mut self) -> Self {
        self.url = self.plain_url();
        self
    }

    /// Creates a schema that this database's user can name, and returns its name: on MariaDB another database.
    #[cfg(feature = "servers")]
    pub fn new_schema(&self) -> String {
        match self.database {
            Sqlite => panic!("SQLite has no schemas"),
            Postgres => {
                self.connect()
                    .execute("CREATE SCHEMA batch_night")
                    .expect("a new schema");
                "batch_night".to_owned()
            }
            Mariadb => {
                let url = shared(Kind::Mariadb).new_database();
                let place = url.split('?').next().expect("a place");
                place.rsplit('/').next().expect("a path").to_owned()
            }
        }
    }

    /// Returns a database that the caller has created.
    pub fn existing(database: Database, url: String) -> Self {
        Self { database, url }
    }

    /// Returns its kind.
    pub fn database(&self) -> Database {
        self.database
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the part of the URL that no other database has.
    pub fn address(&self) -> &str {
        let (_, address) = self.url.split_once("//").expect("a scheme");
        let without_options = address.split('?').next();
        without_options.expect("the first part of a text")
    }

    /// Opens a connection as a tool beside the runtime would.
    pub fn connect(&self) -> Outside {
        let opens = "the database opens";
        match self.database {
            Sqlite => {
                let path = self.url.trim_start_matches("sqlite://");
                let file = path.split('?').next().expect("a path");
                Outside::Sqlite(sqlite::open(Path::new(file)))
            }
            #[cfg(feature = "servers")]
            Postgres => Outside::Postgres(PgConnection::establish(&self.plain_url()).expect(opens)),
            #[cfg(feature = "servers")]
            Mariadb => Outside::Mariadb(MysqlConnection::establish(&self.plain_url()).expect(opens)),
            #[cfg(not(feature = "servers"))]
            Postgres | Mariadb => panic!("{opens} only with the feature `servers`"),
        }
    }
}

impl Place {
    /// Returns the URL without the option that only the runtime knows.
    fn plain_url(&self) -> String {
        let (place, options) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let options = options.split('&').filter(|option| !option.starts_with("layout="));
        format!("{place}?{}", options.collect::<Vec<_>>().join("&"))
    }
}

/// A connection beside the runtime.
pub enum Outside {
    /// To a file.
    Sqlite(SqliteConnection),
    #[cfg(feature = "servers")]
    /// To a server.
    Postgres(PgConnection),
    #[cfg(feature = "servers")]
    /// To a server.
    Mariadb(MysqlConnection),
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    text: String,
}

impl Outside {
    /// Runs statements.
    pub fn execute(&mut self, statements: &str) -> QueryResult<()> {
        match self {
            Self::Sqlite(connection) => connection.batch_execute(statements),
            #[cfg(feature = "servers")]
            Self::Postgres(connection) => connection.batch_execute(statements),
            #[cfg(feature = "servers")]
            Self::Mariadb(connection) => connection.batch_execute(statements),
        }
    }

    /// Returns the texts in the column `text` of a query.
    pub fn rows(&mut self, query: &str) -> Vec<String> {
        let query = diesel::sql_query(query);
        let rows: QueryResult<Vec<Row>> = match self {
            Self::Sqlite(connection) => query.load(connection),
            #[cfg(feature = "servers")]
            Self::Postgres(connection) => query.load(connection),
            #[cfg(feature = "servers")]
            Self::Mariadb(connection) => query.load(connection),
        };
        let rows = rows.unwrap_or_else(|error| panic!("{error}"));
        rows.into_iter().map(|row| row.text).collect()
    }

    /// Returns the number that a query for one number yields.
    pub fn number(&mut self, query: &str) -> i64 {
        let rows = self.rows(&format!("SELECT CAST(({query}) AS CHAR(20)) AS text"));
        rows[0]
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("{query}: {rows:?}"))
    }

    /// Returns the statements of a trigger that rejects the update of a row by a condition on `OLD` and `NEW`.
    fn refusal(&self, name: &str, table: &str, condition: &str, message: &str) -> String {
        let trigger = format!("CREATE TRIGGER {name} AFTER UPDATE ON {table}");
        match self {
            Self::Sqlite(_) => {
                format!("{trigger} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{message}'); END;")
            }
            #[cfg(feature = "servers")]
            Self::Postgres(_) => format!(
                "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                     AS $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;
                 {trigger} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION refuse('{message}');"
            ),
            #[cfg(feature = "servers")]
            Self::Mariadb(_) => format!(
                "{trigger} FOR EACH ROW IF {condition} THEN
                     SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{message}'; END IF;"
            ),
        }
    }

    /// Installs triggers that reject a wrong row at the statement that writes it: the item balance at every commit,
    /// VERSION + 1 at every update, no change of an ended execution, only the edges of the status graph, END_TIME
    /// exactly when ended.
    pub fn reject_wrong_rows(&mut self) {
        let open_status = "('STARTING', 'STARTED', 'STOPPING')";
        let mut statements = vec![self.refusal(
            "balance",
            "BATCH_STEP_EXECUTION",
            "NEW.READ_COUNT <> NEW.WRITE_COUNT + NEW.FILTER_COUNT + NEW.PROCESS_SKIP_COUNT + NEW.WRITE_SKIP_COUNT",
            "the item balance is broken",
        )];
        for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
            let rules = [
                (
                    "version",
                    "NEW.VERSION <> OLD.VERSION + 1".to_owned(),
                    "VERSION did not grow by one",
                ),
                (
                    "final",
                    format!("OLD.STATUS NOT IN {open_status}"),
                    "an ended execution was changed",
                ),
                (
                    "edge",
                    "NEW.STATUS <> OLD.STATUS AND CONCAT(OLD.STATUS, '>', NEW.STATUS) NOT IN (
                        'STARTING>STARTED', 'STARTING>STOPPING', 'STARTING>FAILED', 'STARTED>COMPLETED',
                        'STARTED>FAILED', 'STARTED>STOPPING', 'STOPPING>STOPPED', 'STOPPING>FAILED',
                        'STARTED>STOPPED', 'STARTING>STOPPED')"
                        .to_owned(),
                    "no edge of the status graph",
                ),
                (
                    "ended",
                    format!("(NEW.STATUS IN {open_status}) <> (NEW.END_TIME IS NULL)"),
                    "END_TIME does not fit STATUS",
                ),
            ];
            for (name, condition, message) in rules {
                let name = format!("{name}_{table}");
                statements.push(self.refusal(&name, table, &condition, message));
            }
        }
        for statement in statements {
            self.execute(&statement).expect("the trigger is installed");
        }
    }

    /// Installs triggers that reject counts and fences that go back.
    pub fn reject_regressions(&mut self) {
        let statements = [
            self.refusal(
                "counts",
                "BATCH_STEP_EXECUTION",
                "NEW.COMMIT_COUNT < OLD.COMMIT_COUNT OR NEW.ROLLBACK_COUNT < OLD.ROLLBACK_COUNT
                    OR NEW.READ_COUNT < OLD.READ_COUNT",
                "a count went back",
            ),
            self.refusal(
                "fence",
                "BATCH_JOB_INSTANCE_LEASE",
                "NEW.FENCE < OLD.FENCE",
                "the fence went back",
            ),
        ];
        for statement in statements {
            self.execute(&statement).expect("the trigger is installed");
        }
    }

    /// Installs a trigger that rejects a second live execution of an instance.
    pub fn reject_second_live_execution(&mut self) {
        let message = "two live executions";
        let others = "SELECT 1 FROM BATCH_JOB_EXECUTION WHERE JOB_INSTANCE_ID = NEW.JOB_INSTANCE_ID
            AND END_TIME IS NULL AND NEW.END_TIME IS NULL AND JOB_EXECUTION_ID <> NEW.JOB_EXECUTION_ID";
        let trigger = "CREATE TRIGGER live AFTER INSERT ON BATCH_JOB_EXECUTION";
        let statement = match self {
            Self::Sqlite(_) => {
                format!("{trigger} BEGIN SELECT RAISE(ABORT, '{message}') WHERE EXISTS ({others}); END;")
            }
            #[cfg(feature = "servers")]
            Self::Postgres(_) => format!(
                "CREATE FUNCTION refuse_second() RETURNS trigger LANGUAGE plpgsql
                     AS $$ BEGIN IF EXISTS ({others}) THEN RAISE EXCEPTION '{message}'; END IF; RETURN NULL; END $$;
                 {trigger} FOR EACH ROW EXECUTE FUNCTION refuse_second();"
            ),
            #[cfg(feature = "servers")]
            Self::Mariadb(_) => format!(
                "{trigger} FOR EACH ROW IF EXISTS ({others}) THEN
                     SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{message}'; END IF;"
            ),
        };
        self.execute(&statement).expect("the trigger is installed");
    }
}

/// Executes a statement on the database of the repository, in the transaction of the chunk.
///
/// # Errors
/// The error of the database.
pub fn execute(tx: &mut ChunkTransaction, statement: &str) -> Result<(), BatchError> {
    #[cfg(feature = "servers")]
    if let Ok(connection) = tx.postgres() {
        return Ok(connection.batch_execute(statement)?);
    } else if let Ok(connection) = tx.mysql() {
        return Ok(connection.batch_execute(statement)?);
    }
    Ok(tx.sqlite()?.batch_execute(statement)?)
}
