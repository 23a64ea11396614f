//! Destinations of ODBC: each item once, whatever is lost between the two commits.

use std::fs;

use batch_odbc::{OdbcConnection, OdbcDestination};
use batch_runtime::destination::{Advance, Destination};
use batch_runtime::operator::Purge;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobParameters};
use batch_tests::database::{Database, Place};
use batch_tests::faulty::{FAULTS, Faulty, moment_of};
use batch_tests::moving;
use batch_tests::random::Random;
use batch_tests::slow::times;

use crate::stage::{Stage, job, string_of};

/// Ends the sessions of the owners of markers, by the client of diesel.
fn end_owners(place: &Place) {
    let mut outside = place.connect();
    for name in outside.rows("SELECT SESSION_NAME AS text FROM BATCH_MARKER") {
        let (find, end) = match place.database() {
            Database::Postgres => (
                format!("SELECT pid::text AS text FROM pg_stat_activity WHERE application_name = '{name}'"),
                "SELECT pg_terminate_backend(ID)",
            ),
            _ => (
                format!("SELECT CAST(IS_USED_LOCK('{name}') AS CHAR) AS text"),
                "KILL ID",
            ),
        };
        for id in outside.rows(&find) {
            outside.execute(&end.replace("ID", &id)).unwrap();
        }
    }
}

/// Inserts numbers by SQL.
#[derive(BatchArtifact)]
struct Ledger {
    #[batch_property]
    url: String,
    #[batch_property]
    fault: String,
    #[batch_context]
    job: JobContext,
}

#[item_writer("Ledger")]
impl Ledger {
    #[destination]
    fn ledger(&self) -> Result<Faulty<OdbcDestination>, BatchError> {
        let string = self.job.connection_string("there")?;
        let (fault, deed) = moment_of(&self.fault);
        let other = string.clone();
        let place = place_of(&self.url);
        let act = move |inner: &mut OdbcDestination, key: Option<&str>| {
            match deed {
                "end" => {
                    Destination::transaction(inner)?;
                    end_owners(&place);
                }
                _ => drop(OdbcDestination::new(other.clone()).claim(key.unwrap())?),
            }
            Ok(())
        };
        Ok(Faulty::new(OdbcDestination::new(string), fault, act))
    }

    #[write_items]
    fn write(&mut self, numbers: &[u64], tx: &mut OdbcConnection) -> Result<(), BatchError> {
        for number in numbers {
            tx.run(&format!("INSERT INTO number VALUES ({number})"))?;
        }
        Ok(())
    }
}

fn place_of(url: &str) -> Place {
    let database = match url.split(':').next() {
        Some("postgres") => Database::Postgres,
        Some("mysql") => Database::Mariadb,
        _ => Database::Sqlite,
    };
    Place::existing(database, url.to_owned())
}

const JOB: &str = r#"<job id="job"><step id="load">
  <chunk reader="LoggedNumbers" writer="Ledger" commit-interval="3">
    <properties>
      <property name="url" value="${url}"/><property name="fault" value="${fault}"/>
      <property name="log" value="${log}"/>
    </properties>
  </chunk>
</step></job>"#;

/// Spec: ODBC-05, MARK-04, MARK-05, MARK-06, MARK-08, MARK-10
#[test]
fn an_interval_is_committed_once_whatever_is_lost_between_the_commits() {
    for database in Database::ALL {
        for (fault, fails, begins) in FAULTS {
            if fault.starts_with("end") && database == Database::Sqlite {
                continue;
            }
            let context = format!("{fault}, {database:?}");
            let stage = Stage::new(database, "CREATE TABLE number (number INTEGER)");
            let log = stage.file("log");
            let launch = |fault: &str| {
                let parameters = JobParameters::new()
                    .with("url", stage.place.url())
                    .with_non_identifying("log", &log)
                    .with_non_identifying("fault", fault);
                stage.run(JOB, parameters)
            };
            let (status, message) = launch(fault);
            if fails {
                assert_eq!(status, BatchStatus::Failed, "{context}");
                assert!(message.contains("is lost"), "{context}: {message}");
                let (status, message) = launch("none");
                assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
            } else {
                assert_eq!(status, BatchStatus::Completed, "{context}: {message}");
            }
            let text = match database {
                Database::Mariadb => "CAST(number AS CHAR)",
                _ => "CAST(number AS TEXT)",
            };
            let numbers = stage.rows(&format!("SELECT {text} AS text FROM number ORDER BY number"));
            assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7"], "{context}");
            assert_eq!(
                stage.rows("SELECT SESSION_NAME AS text FROM BATCH_MARKER"),
                [""; 0],
                "{context}"
            );
            assert_eq!(fs::read_to_string(&log).unwrap(), begins, "{context}");
        }
    }
}

const KEY: &str = "job/key/step";

fn advance(fence: i64, from: i64) -> Advance<'static> {
    Advance {
        key: KEY,
        fence,
        from,
        to: from + 1,
        state: "{}",
    }
}

/// Spec: ODBC-05, MARK-05, MARK-11
#[test]
fn an_owner_that_was_replaced_commits_nothing() {
    for database in Database::ALL {
        let stage = Stage::new(database, "CREATE TABLE number (number INTEGER)");
        let destination = || OdbcDestination::new(stage.string().parse().unwrap());
        let mut suspended = destination();
        let fence = suspended.claim(KEY).unwrap().fence;
        // On a server it holds the lock of a row, which the next owner does not wait for.
        let is_file = database == Database::Sqlite;
        if !is_file {
            suspended
                .transaction()
                .unwrap()
                .run("INSERT INTO number VALUES (1)")
                .unwrap();
            suspended
                .transaction()
                .unwrap()
                .run("UPDATE BATCH_MARKER SET STATE = 'moving'")
                .unwrap();
        }
        let mut next = destination();
        let marker = next.claim(KEY).unwrap();
        assert_eq!((marker.fence, marker.interval), (fence + 1, 0), "{database:?}");
        next.transaction()
            .unwrap()
            .run("INSERT INTO number VALUES (2)")
            .unwrap();
        assert!(next.commit(&advance(fence + 1, 0)).unwrap());
        if is_file {
            suspended
                .transaction()
                .unwrap()
                .run("INSERT INTO number VALUES (1)")
                .unwrap();
            assert!(!suspended.commit(&advance(fence, 0)).unwrap());
        } else {
            suspended.commit(&advance(fence, 0)).unwrap_err();
            assert!(suspended.is_lost());
        }
        let text = match database {
            Database::Mariadb => "CAST(number AS CHAR)",
            _ => "CAST(number AS TEXT)",
        };
        assert_eq!(
            stage.rows(&format!("SELECT {text} AS text FROM number")),
            ["2"],
            "{database:?}"
        );
    }
}

/// Spec: ODBC-05, MARK-09
#[test]
fn a_writer_that_ends_the_transaction_fails() {
    for database in Database::ALL {
        let stage = Stage::new(database, "CREATE TABLE number (number INTEGER)");
        let mut destination = OdbcDestination::new(stage.string().parse().unwrap());
        let fence = destination.claim(KEY).unwrap().fence;
        destination.transaction().unwrap().run("COMMIT").unwrap();
        let error = destination.commit(&advance(fence, 0)).unwrap_err();
        assert!(
            error
                .chain()
                .contains("has ended the transaction in the destination"),
            "{database:?}: {}",
            error.chain()
        );
    }
}

/// Spec: ODBC-05, MARK-10
#[test]
fn a_purge_removes_the_markers_of_its_instances() {
    for database in Database::ALL {
        let stage = Stage::new(database, "CREATE TABLE number (number INTEGER)");
        let parameters = JobParameters::new()
            .with("url", stage.place.url())
            .with_non_identifying("log", stage.file("log"))
            .with_non_identifying("fault", "before");
        let (status, _) = stage.run(JOB, parameters);
        assert_eq!(status, BatchStatus::Failed);
        assert_eq!(stage.rows("SELECT MARKER_KEY AS text FROM BATCH_MARKER").len(), 1);
        let all = Purge {
            force: true,
            ..Purge::default()
        };
        assert_eq!(stage.operator(JOB).purge(&all, None).unwrap(), 1, "{database:?}");
        assert_eq!(
            stage.rows("SELECT MARKER_KEY AS text FROM BATCH_MARKER"),
            [""; 0],
            "{database:?}"
        );
    }
}

const ROWS: i64 = 1_500;

/// Moves rows within a database by ODBC, in a program with its own repository that is killed.
fn moves(repository: Database, database: Database, random: &mut Random, most: usize) {
    let mut kills = 0;
    while kills < most {
        // Without a key: a row that is there twice is two rows.
        let stage = Stage::new(
            database,
            "CREATE TABLE source (number INTEGER PRIMARY KEY); CREATE TABLE number (number INTEGER)",
        );
        for some in (1..=ROWS).collect::<Vec<_>>().chunks(500) {
            let rows: Vec<String> = some.iter().map(|number| format!("({number})")).collect();
            stage.execute(&format!("INSERT INTO source VALUES {}", rows.join(", ")));
        }
        // A SQLite file is not read by ODBC.
        let (reader, source) = match database {
            Database::Sqlite => ("queryRecordReader", stage.place.url()),
            Database::Postgres | Database::Mariadb => ("odbcRecordReader", "there"),
        };
        let move_rows = job(
            reader,
            "recordOdbcTableWriter",
            &[
                ("reader", "database", source),
                ("reader", "query", "SELECT number FROM source"),
                ("reader", "key", "number"),
                ("reader", "page.size", "70"),
                ("writer", "database", "there"),
                ("writer", "table", "number"),
            ],
        );
        let move_rows = move_rows
            .replace(r#"id="job""#, r#"id="move""#)
            .replace(r#"commit-interval="3""#, r#"commit-interval="40""#);
        fs::write(stage.file("move.xml"), move_rows).unwrap();
        let place = Place::new(repository, stage.folder.path());
        let settings = format!(
            "repository = \"{}\"\njob-path = \".\"\nlease-time = 1\n[databases]\nthere = \"{}\"\n",
            place.url(),
            string_of(&stage.place)
        );
        fs::write(stage.file("batch.toml"), settings).unwrap();
        while !moving::launch(
            env!("CARGO_BIN_EXE_odbc-move"),
            stage.folder.path(),
            1 + random.below(350),
        ) {
            kills += 1;
        }
        let context = format!("{repository:?} and {database:?}, after {kills} kills");
        let mut outside = stage.place.connect();
        assert_eq!(
            outside.number("SELECT COUNT(*) AS number FROM number"),
            ROWS,
            "{context}"
        );
        assert_eq!(
            outside.number("SELECT COUNT(DISTINCT number) AS number FROM number"),
            ROWS,
            "{context}"
        );
    }
    println!("{repository:?} and {database:?}: {kills} kills");
}

/// Spec: ODBC-05, MARK-04 to MARK-06
#[test]
fn rows_are_moved_once_by_a_process_that_is_killed() {
    let mut random = Random::new("kills of a job with ODBC");
    for (repository, database) in [
        (Database::Sqlite, Database::Postgres),
        (Database::Sqlite, Database::Mariadb),
        (Database::Postgres, Database::Sqlite),
    ] {
        moves(repository, database, &mut random, times(3, 120));
    }
}
