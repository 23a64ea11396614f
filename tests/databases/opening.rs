//! New databases, missing databases, and databases of other programs.

#[cfg(feature = "servers")]
use std::fs;
#[cfg(feature = "servers")]
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use batch_runtime::BatchRuntime;
use batch_tests::database::{Database, Place};

use super::history::shape;

fn build(url: &str) -> Result<BatchRuntime, String> {
    let built = BatchRuntime::builder().repository(url).build();
    built.map_err(|error| error.to_string())
}

fn new_place(database: Database) -> (tempfile::TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(database, folder.path());
    (folder, place)
}

/// Spec: REPO-08, REPO-12
#[test]
fn many_runtimes_open_a_new_database_at_once() {
    for database in Database::ALL {
        let (_folder, place) = new_place(database);
        let together = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    build(place.url()).unwrap_or_else(|error| panic!("{error}"));
                });
            }
        });
        let applied = "SELECT COUNT(*) FROM __diesel_schema_migrations";
        assert_eq!(place.connect().number(applied), 7, "{database:?}");
    }
}

/// On MySQL each table that another process creates is visible at once: a process that finds some of them waits for the others.
///
/// Spec: REPO-08, REPO-12
#[test]
#[cfg(feature = "servers")]
fn opening_waits_for_tables_that_another_process_creates() {
    let (_folder, place) = new_place(Database::Mariadb);
    build(place.url()).unwrap();
    let mut other = place.connect();
    let lock = "md5(concat('batch-runtime ', database()))";
    other
        .execute(&format!(
            "DO GET_LOCK({lock}, 60); RENAME TABLE BATCH_JOB_EXECUTION_PARAMS TO not_yet"
        ))
        .unwrap();
    thread::scope(|scope| {
        let opening = scope.spawn(|| build(place.url()).map(drop));
        let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND STATE = 'User lock'";
        while other.number(waiting) == 0 && !opening.is_finished() {}
        other
            .execute(&format!(
                "RENAME TABLE not_yet TO BATCH_JOB_EXECUTION_PARAMS; DO RELEASE_LOCK({lock})"
            ))
            .unwrap();
        assert_eq!(opening.join().unwrap(), Ok(()));
    });
}

/// Tables created by hand from the complete schema file equal the tables of the migrations, and the runtime uses them.
///
/// Spec: REPO-05, REPO-07, REPO-08, REPO-11
#[test]
fn the_schema_file_equals_the_migrations() {
    for database in Database::ALL {
        let name = match database {
            Database::Sqlite => "sqlite",
            Database::Postgres => "postgresql",
            Database::Mariadb => "mysql",
        };
        let (_folder, migrated) = new_place(database);
        build(migrated.url()).unwrap();
        let (_folder, whole) = new_place(database);
        let script = format!("{}/../migrations/schema-{name}.sql", env!("CARGO_MANIFEST_DIR"));
        whole
            .connect()
            .execute(&std::fs::read_to_string(script).unwrap())
            .unwrap();
        assert_eq!(shape(&whole), shape(&migrated), "{database:?}");
        for _ in 0..2 {
            build(whole.url()).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(shape(&whole), shape(&migrated), "{database:?}");
    }
}

/// The cause is reported, without the password.
///
/// Spec: REPO-06
#[cfg(feature = "servers")]
#[test]
fn a_missing_database_is_reported_with_the_reason() {
    let check = |url: String, reasons: &[&str]| {
        let error = build(&url).err().expect(&url);
        assert!(reasons.iter().any(|reason| error.contains(reason)), "{error}");
        assert!(!error.contains("secret"), "{error}");
    };
    let (_folder, postgres) = new_place(Database::Postgres);
    let unknown = postgres.url().replace("/test_", "/nowhere_");
    check(format!("{unknown}&password=secret"), &["does not exist"]);
    check(
        "postgres://me:secret@localhost:1/db".into(),
        &["Connection refused"],
    );
    check(
        "postgres://me:secret@localhost/db?no_such_option=1".into(),
        &["no_such_option"],
    );
    let (_folder, mariadb) = new_place(Database::Mariadb);
    let unknown = mariadb.url().replace("/test_", "/nowhere_");
    check(
        unknown.replace("root@", "root:secret@"),
        &["Access denied", "Unknown database"],
    );
    check("mysql://me:secret@127.0.0.1:1/db".into(), &["Can't connect to"]);
    check("mariadb://me:secret@127.0.0.1:1/db".into(), &["Can't connect to"]);
    check("mysql://me:secret@[".into(), &["cannot open"]);
    check("oracle:me/secret@localhost".into(), &["expected `sqlite://PATH`"]);
}

/// Tables between two layouts are rejected and not changed.
///
/// Spec: REPO-12, REPO-87
#[test]
fn incompatible_tables_are_rejected() {
    for database in Database::ALL {
        let (_folder, place) = new_place(database);
        let spring5 =
            "CREATE TABLE BATCH_JOB_EXECUTION_PARAMS (JOB_EXECUTION_ID BIGINT, PARAMETER_TYPE VARCHAR(100))";
        place.connect().execute(spring5).unwrap();
        let error = build(place.url()).err().unwrap();
        assert!(
            error.contains("layout of Spring Batch 5 except for BATCH_JOB_INSTANCE.JOB_KEY"),
            "{database:?}: {error}"
        );
        let ours = "INSERT INTO BATCH_JOB_EXECUTION_PARAMS VALUES (1, 'x')";
        place.connect().execute(ours).unwrap();

        let (_folder, place) = new_place(database);
        build(place.url()).unwrap();
        place
            .connect()
            .execute("DROP TABLE BATCH_JOB_EXECUTION_PARAMS")
            .unwrap();
        let error = build(place.url()).err().unwrap();
        assert!(
            error.contains("its table BATCH_JOB_EXECUTION_PARAMS is missing"),
            "{database:?}: {error}"
        );

        let (_folder, place) = new_place(database);
        build(place.url()).unwrap();
        let newer = "INSERT INTO __diesel_schema_migrations (version) VALUES ('0000000000999')";
        place.connect().execute(newer).unwrap();
        let error = build(place.url()).err().unwrap();
        assert!(
            error.contains("schema has version 0000000000999"),
            "{database:?}: {error}"
        );
    }
}

/// Two repositories in one database, each in its own schema.
///
/// Spec: REPO-84, D-88
#[cfg(feature = "servers")]
#[test]
fn a_schema_of_postgresql_holds_a_repository() {
    let (_folder, place) = new_place(Database::Postgres);
    place
        .connect()
        .execute("CREATE SCHEMA one; CREATE SCHEMA other")
        .unwrap();
    let tables =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'batch%' AND table_schema";
    for (number, schema) in [(1, "one"), (2, "other")] {
        let url = format!("{}&options=-csearch_path%3D{schema}%2Cpublic", place.url());
        for _ in 0..2 {
            build(&url).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(
            place.connect().number(&format!("{tables} IN ('one', 'other')")),
            number * 14
        );
    }
    assert_eq!(place.connect().number(&format!("{tables} = 'public'")), 0);
}

/// An account with read access only opens the repository and reads it.
///
/// Spec: REPO-12
#[cfg(feature = "servers")]
#[test]
fn an_account_that_may_only_read_opens_a_repository() {
    let (_folder, place) = new_place(Database::Postgres);
    build(place.url()).unwrap();
    let role = "CREATE ROLE looker LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker";
    place.connect().execute(role).unwrap();
    let url = place.url().replace("user=postgres", "user=looker");
    let runtime = build(&url).unwrap_or_else(|error| panic!("{error}"));
    assert!(runtime.job_operator().job_names().unwrap().is_empty());
}

/// Spec: REPO-12
#[test]
fn a_dropped_table_is_reported_when_the_repository_opens() {
    for database in Database::ALL {
        let (_folder, place) = new_place(database);
        build(place.url()).unwrap();
        place
            .connect()
            .execute("DROP TABLE BATCH_JOB_INSTANCE_LEASE")
            .unwrap();
        let error = build(place.url()).err().unwrap();
        assert!(
            error.contains("its table BATCH_JOB_INSTANCE_LEASE is missing"),
            "{error}"
        );
    }
}

/// A repository that is opened while its server starts.
///
/// Spec: REPO-02
#[cfg(feature = "servers")]
#[test]
fn opening_waits_for_a_server_that_is_starting() {
    use batch_test_servers::{Kind, Server};
    use diesel::{Connection, MysqlConnection, PgConnection};

    for (kind, database) in [
        (Kind::Postgres, Database::Postgres),
        (Kind::Mariadb, Database::Mariadb),
    ] {
        let mut server = Server::start(kind);
        let url = server.new_database();
        let is_down = || match database {
            Database::Postgres => PgConnection::establish(&url).is_err(),
            _ => MysqlConnection::establish(&url).is_err(),
        };
        thread::scope(|scope| {
            let crash = scope.spawn(|| server.crash());
            while !is_down() {
                assert!(!crash.is_finished(), "{kind:?} has started again too soon");
            }
            build(&url).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        });
    }
}

/// MySQL commits each table: the creation continues, whichever was the last.
///
/// Spec: REPO-08, REPO-12
#[test]
#[cfg(feature = "servers")]
fn an_interrupted_creation_is_completed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../migrations/mysql/0000000000430_spring_batch_4_3/up.sql");
    let script = fs::read_to_string(file).unwrap();
    // Comments may contain the separator.
    let script: Vec<&str> = script.lines().filter(|line| !line.starts_with("--")).collect();
    let script = script.join("\n");
    let list = "CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL, \
                run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)";
    let statements: Vec<&str> = std::iter::once(list)
        .chain(script.split(';').filter(|statement| !statement.trim().is_empty()))
        .collect();
    let expected = {
        let (_folder, place) = new_place(Database::Mariadb);
        build(place.url()).unwrap();
        shape(&place)
    };
    for executed in 1..=statements.len() {
        let (_folder, place) = new_place(Database::Mariadb);
        let mut connection = place.connect();
        for statement in &statements[..executed] {
            connection.execute(statement).unwrap();
        }
        build(place.url()).unwrap_or_else(|error| panic!("after {executed} statements: {error}"));
        assert_eq!(shape(&place), expected, "after {executed} statements");
    }
}
