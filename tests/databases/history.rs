//! Databases created by Spring Batch: version 4.3 is used unchanged, older ones are migrated first.

use std::fs;
use std::path::Path;

use batch_runtime::repository::{RepositoryUrl, SpringBatchVersion};
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobOperatorError, JobParameters};
use batch_tests::database::{Database, Place};
use batch_tests::stage::said;

use super::jobs::{CHUNK, SUM};
use super::prefix::with_prefix;

/// The differences between the scripts: the types of whole numbers and of points in time.
fn types(database: Database) -> (&'static str, &'static str) {
    match database {
        Database::Sqlite => ("INTEGER", "TIMESTAMP"),
        Database::Postgres => ("BIGINT", "TIMESTAMP"),
        // Without fractions, until 4.3.
        Database::Mariadb => ("BIGINT", "DATETIME"),
    }
}

/// The tables of Spring Batch 2.1: parameters belong to instances, and the file of a job is not recorded.
fn tables_of_2_1(database: Database) -> String {
    let (number, time) = types(database);
    let engine = if database == Database::Mariadb {
        "ENGINE=InnoDB"
    } else {
        ""
    };
    let mut tables = format!(
        "CREATE TABLE BATCH_JOB_INSTANCE (JOB_INSTANCE_ID {number} NOT NULL PRIMARY KEY, VERSION {number},
             JOB_NAME VARCHAR(100) NOT NULL, JOB_KEY VARCHAR(32) NOT NULL,
             constraint JOB_INST_UN unique (JOB_NAME, JOB_KEY)) {engine};
         CREATE TABLE BATCH_JOB_EXECUTION (JOB_EXECUTION_ID {number} NOT NULL PRIMARY KEY, VERSION {number},
             JOB_INSTANCE_ID {number} NOT NULL, CREATE_TIME {time} NOT NULL, START_TIME {time} DEFAULT NULL,
             END_TIME {time} DEFAULT NULL, STATUS VARCHAR(10), EXIT_CODE VARCHAR(20), EXIT_MESSAGE VARCHAR(2500),
             LAST_UPDATED {time}, constraint JOB_INST_EXEC_FK foreign key (JOB_INSTANCE_ID)
             references BATCH_JOB_INSTANCE(JOB_INSTANCE_ID)) {engine};
         CREATE TABLE BATCH_JOB_PARAMS (JOB_INSTANCE_ID {number} NOT NULL, TYPE_CD VARCHAR(6) NOT NULL,
             KEY_NAME VARCHAR(100) NOT NULL, STRING_VAL VARCHAR(250), DATE_VAL {time} DEFAULT NULL, LONG_VAL {number},
             DOUBLE_VAL DOUBLE PRECISION, constraint JOB_INST_PARAMS_FK foreign key (JOB_INSTANCE_ID)
             references BATCH_JOB_INSTANCE(JOB_INSTANCE_ID)) {engine};
         CREATE TABLE BATCH_STEP_EXECUTION (STEP_EXECUTION_ID {number} NOT NULL PRIMARY KEY, VERSION {number} NOT NULL,
             STEP_NAME VARCHAR(100) NOT NULL, JOB_EXECUTION_ID {number} NOT NULL, START_TIME {time} NOT NULL,
             END_TIME {time} DEFAULT NULL, STATUS VARCHAR(10), COMMIT_COUNT {number}, READ_COUNT {number},
             FILTER_COUNT {number}, WRITE_COUNT {number}, READ_SKIP_COUNT {number}, WRITE_SKIP_COUNT {number},
             PROCESS_SKIP_COUNT {number}, ROLLBACK_COUNT {number}, EXIT_CODE VARCHAR(20), EXIT_MESSAGE VARCHAR(2500),
             LAST_UPDATED {time}, constraint JOB_EXEC_STEP_FK foreign key (JOB_EXECUTION_ID)
             references BATCH_JOB_EXECUTION(JOB_EXECUTION_ID)) {engine};
         CREATE TABLE BATCH_STEP_EXECUTION_CONTEXT (STEP_EXECUTION_ID {number} NOT NULL PRIMARY KEY,
             SHORT_CONTEXT VARCHAR(2500) NOT NULL, SERIALIZED_CONTEXT TEXT,
             constraint STEP_EXEC_CTX_FK foreign key (STEP_EXECUTION_ID)
             references BATCH_STEP_EXECUTION(STEP_EXECUTION_ID)) {engine};
         CREATE TABLE BATCH_JOB_EXECUTION_CONTEXT (JOB_EXECUTION_ID {number} NOT NULL PRIMARY KEY,
             SHORT_CONTEXT VARCHAR(2500) NOT NULL, SERIALIZED_CONTEXT TEXT,
             constraint JOB_EXEC_CTX_FK foreign key (JOB_EXECUTION_ID)
             references BATCH_JOB_EXECUTION(JOB_EXECUTION_ID)) {engine};"
    );
    for sequence in [
        "BATCH_STEP_EXECUTION_SEQ",
        "BATCH_JOB_EXECUTION_SEQ",
        "BATCH_JOB_SEQ",
    ] {
        tables.push_str(&match database {
            Database::Sqlite => format!("CREATE TABLE {sequence} (ID INTEGER PRIMARY KEY AUTOINCREMENT);"),
            Database::Postgres => format!("CREATE SEQUENCE {sequence} MAXVALUE 9223372036854775807 NO CYCLE;"),
            Database::Mariadb => format!(
                "CREATE TABLE {sequence} (ID BIGINT NOT NULL) ENGINE=MYISAM; INSERT INTO {sequence} VALUES (0);"
            ),
        });
    }
    tables
}

/// The script of 4.3, which is the first migration.
fn tables_of_4_3(database: Database) -> String {
    let name = match database {
        Database::Sqlite => "sqlite",
        Database::Postgres => "postgres",
        Database::Mariadb => "mysql",
    };
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let script = migrations
        .join(name)
        .join("0000000000430_spring_batch_4_3/up.sql");
    fs::read_to_string(script).unwrap()
}

/// An instance that failed after its second checkpoint, and a complete one; the next ids are 3.
fn rows(database: Database, parameters_of_executions: bool) -> String {
    let time = match database {
        Database::Sqlite => "1336737600000",
        Database::Postgres | Database::Mariadb => "'2012-05-11 12:00:00'",
    };
    let mut statements = String::from("CREATE TABLE written (n INTEGER);");
    for n in 1..=20 {
        statements.push_str(&format!("INSERT INTO written VALUES ({n});"));
    }
    for (id, to, status, checkpoint) in [(1, "35", "FAILED", "20"), (2, "50", "COMPLETED", "50")] {
        let key = JobParameters::from([("to", to)]).job_key();
        let (table, columns, identifying) = if parameters_of_executions {
            (
                "BATCH_JOB_EXECUTION_PARAMS",
                "JOB_EXECUTION_ID, IDENTIFYING",
                "'Y',",
            )
        } else {
            ("BATCH_JOB_PARAMS", "JOB_INSTANCE_ID", "")
        };
        statements.push_str(&format!(
            "INSERT INTO BATCH_JOB_INSTANCE (JOB_INSTANCE_ID, VERSION, JOB_NAME, JOB_KEY) VALUES ({id}, 0, 'job', '{key}');
             INSERT INTO BATCH_JOB_EXECUTION (JOB_EXECUTION_ID, VERSION, JOB_INSTANCE_ID, CREATE_TIME, START_TIME, END_TIME,
                 STATUS, EXIT_CODE, EXIT_MESSAGE, LAST_UPDATED)
                 VALUES ({id}, 2, {id}, {time}, {time}, {time}, '{status}', '{status}', 'as it was', {time});
             INSERT INTO {table} ({columns}, TYPE_CD, KEY_NAME, STRING_VAL, DATE_VAL, LONG_VAL, DOUBLE_VAL)
                 VALUES ({id}, {identifying} 'STRING', 'to', '{to}', {time}, 0, 0);
             INSERT INTO BATCH_JOB_EXECUTION_CONTEXT (JOB_EXECUTION_ID, SHORT_CONTEXT) VALUES ({id}, '{{\"map\":\"\"}}');
             INSERT INTO BATCH_STEP_EXECUTION (STEP_EXECUTION_ID, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME, END_TIME,
                 STATUS, COMMIT_COUNT, READ_COUNT, FILTER_COUNT, WRITE_COUNT, READ_SKIP_COUNT, WRITE_SKIP_COUNT,
                 PROCESS_SKIP_COUNT, ROLLBACK_COUNT, EXIT_CODE, EXIT_MESSAGE, LAST_UPDATED)
                 VALUES ({id}, 4, 'one', {id}, {time}, {time}, '{status}', 2, {checkpoint}, 0, {checkpoint}, 0, 0, 0, 1,
                 '{status}', '', {time});
             INSERT INTO BATCH_STEP_EXECUTION_CONTEXT (STEP_EXECUTION_ID, SHORT_CONTEXT) VALUES ({id},
                 '{{\"@class\":\"java.util.HashMap\",\"batch.reader.checkpoint\":\"{checkpoint}\",\"batch.writer.checkpoint\":\"null\"}}');"
        ));
    }
    for sequence in [
        "BATCH_STEP_EXECUTION_SEQ",
        "BATCH_JOB_EXECUTION_SEQ",
        "BATCH_JOB_SEQ",
    ] {
        statements.push_str(&match database {
            Database::Sqlite => format!("INSERT INTO {sequence} VALUES (2);"),
            Database::Postgres => format!("SELECT setval('{sequence}', 2);"),
            Database::Mariadb => format!("UPDATE {sequence} SET ID = 2;"),
        });
    }
    statements
}

/// Returns every column as the database describes it; SQLite ignores widths.
pub(super) fn shape(place: &Place) -> Vec<String> {
    shape_of(place, "BATCH_")
}

/// As `shape`, for tables with a prefix, which is removed.
fn shape_of(place: &Place, prefix: &str) -> Vec<String> {
    let of_server = |schema: &str| {
        format!(
            "SELECT CONCAT(UPPER(TABLE_NAME), '.', UPPER(COLUMN_NAME), ' ', DATA_TYPE, ' ', IS_NULLABLE, ' ',
             COALESCE(CHARACTER_MAXIMUM_LENGTH, 0), ' ', COALESCE(DATETIME_PRECISION, 0)) AS text
             FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema} ORDER BY 1"
        )
    };
    let query = match place.database() {
        Database::Sqlite => "SELECT upper(t.name || '.' || c.name) AS text
             FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1"
            .to_owned(),
        Database::Postgres => of_server("'public'"),
        Database::Mariadb => of_server("DATABASE()"),
    };
    let columns = place.connect().rows(&query);
    let columns = columns.iter().filter_map(|column| column.strip_prefix(prefix));
    // The old table remains.
    let columns = columns.filter(|column| !column.starts_with("JOB_PARAMS."));
    columns.map(str::to_owned).collect()
}

/// The failed instance resumes after its last checkpoint, the other one is complete, and nothing is lost; the same for
/// tables with another prefix, beside tables with the usual one.
fn check(database: Database, age: &str, statements: &str) {
    check_prefix(database, age, statements, "BATCH_");
    let renamed = statements
        .replace("BATCH_", "ORDERS_")
        .replace("constraint ", "constraint ORDERS_");
    check_prefix(database, age, &renamed, "ORDERS_");
}

fn check_prefix(database: Database, age: &str, statements: &str, prefix: &str) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(database, folder.path());
    place.connect().execute(statements).unwrap();
    fs::write(folder.path().join("job.xml"), CHUNK).unwrap();
    let log = format!("history {database:?} {age} {prefix}");
    let build = || {
        BatchRuntime::builder()
            .repository(with_prefix(&place, prefix))
            .job_path(folder.path().display().to_string())
            .system_property("log", &log)
            .build()
            .unwrap_or_else(|error| panic!("{database:?} {age}: {error}"))
    };
    for _ in 0..2 {
        drop(build());
    }
    let operator = build().job_operator();
    let parameters = JobParameters::from([("to", "35")]);
    let first = operator.job_execution(JobExecutionId(1)).unwrap().unwrap();
    assert_eq!(first.exit_message, "as it was");
    assert_eq!(first.created.to_string(), "2012-05-11T12:00:00.000Z");
    assert_eq!(operator.parameters(first.id).unwrap(), parameters);

    let second = operator.launch("job", parameters).unwrap();
    let ended = operator.wait(second).unwrap();
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    assert_eq!((ended.id.0, ended.instance_id), (3, first.instance_id));
    assert_eq!(said(&log), ["open Some(20)"]);
    assert_eq!(place.connect().number(SUM), 35_000_630);
    let complete = operator.launch("job", [("to", "50")]).unwrap_err();
    assert!(
        matches!(complete, JobOperatorError::JobInstanceAlreadyComplete { .. }),
        "{complete}"
    );

    let other_folder = tempfile::tempdir().unwrap();
    let fresh = Place::new(database, other_folder.path());
    BatchRuntime::builder().repository(fresh.url()).build().unwrap();
    assert_eq!(
        shape_of(&place, prefix),
        shape(&fresh),
        "{database:?} {age} {prefix}"
    );
}

/// Spec: REPO-08, REPO-09, REPO-10, REPO-11, REPO-12, D-71
#[test]
fn a_database_of_2_1_is_migrated() {
    for database in Database::ALL {
        check(
            database,
            "2.1",
            &(tables_of_2_1(database) + &rows(database, false)),
        );
    }
}

/// Spec: REPO-11, REPO-12, REPO-38, D-71
#[test]
fn a_database_of_4_3_is_used_unchanged() {
    for database in Database::ALL {
        check(
            database,
            "4.3",
            &(tables_of_4_3(database) + &rows(database, true)),
        );
    }
}

/// Parameters belong to executions, but the file of a job is not recorded.
///
/// Spec: REPO-11, REPO-12, D-71
#[test]
fn a_database_of_2_2_is_migrated() {
    for database in Database::ALL {
        let column = "ALTER TABLE BATCH_JOB_EXECUTION DROP COLUMN JOB_CONFIGURATION_LOCATION;";
        let statements = tables_of_4_3(database) + column + &rows(database, true);
        check(database, "2.2", &statements);
    }
}

/// The printed statements bring tables of each version up to date.
///
/// Spec: REPO-08 to REPO-12
#[test]
fn an_administrator_can_upgrade_the_tables() {
    for database in Database::ALL {
        let column = "ALTER TABLE BATCH_JOB_EXECUTION DROP COLUMN JOB_CONFIGURATION_LOCATION;";
        for (version, tables) in [
            (
                SpringBatchVersion::V2_1,
                tables_of_2_1(database) + &rows(database, false),
            ),
            (
                SpringBatchVersion::V2_2,
                tables_of_4_3(database) + column + &rows(database, true),
            ),
            (
                SpringBatchVersion::V4_3,
                tables_of_4_3(database) + &rows(database, true),
            ),
        ] {
            let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let (place, fresh) = (
                Place::new(database, folder.path()),
                Place::new(database, other.path()),
            );
            let url: RepositoryUrl = place.url().parse().unwrap();
            let mut outside = place.connect();
            outside.execute(&tables).unwrap();
            outside
                .execute(&url.upgrade_statements(url.database(), version))
                .unwrap();
            fresh.connect().execute(&url.schema(url.database())).unwrap();
            assert_eq!(shape(&place), shape(&fresh), "{database:?} {version:?}");
            let operator = BatchRuntime::builder()
                .repository(place.url())
                .build()
                .unwrap()
                .job_operator();
            let parameters = operator.parameters(JobExecutionId(1)).unwrap();
            assert_eq!(
                parameters,
                JobParameters::from([("to", "35")]),
                "{database:?} {version:?}"
            );
        }
    }
}

/// A step of Spring Batch may run several times in one execution: such rows are migrated, whether the tables come from Spring
/// Batch or from the version of this runtime that had a unique index.
///
/// Spec: REPO-12, REPO-82, D-71
#[test]
fn a_step_may_have_several_rows_in_one_execution() {
    for database in Database::ALL {
        for unique in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let place = Place::new(database, folder.path());
            let mut outside = place.connect();
            let tables = tables_of_4_3(database) + &rows(database, true);
            outside.execute(&tables).unwrap();
            let again = "INSERT INTO BATCH_STEP_EXECUTION (STEP_EXECUTION_ID, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME,
                     END_TIME, STATUS, COMMIT_COUNT, READ_COUNT, FILTER_COUNT, WRITE_COUNT, READ_SKIP_COUNT, WRITE_SKIP_COUNT,
                     PROCESS_SKIP_COUNT, ROLLBACK_COUNT, EXIT_CODE, EXIT_MESSAGE, LAST_UPDATED)
                 SELECT STEP_EXECUTION_ID + 50, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME, END_TIME, STATUS, COMMIT_COUNT,
                     READ_COUNT, FILTER_COUNT, WRITE_COUNT, READ_SKIP_COUNT, WRITE_SKIP_COUNT, PROCESS_SKIP_COUNT, ROLLBACK_COUNT,
                     EXIT_CODE, EXIT_MESSAGE, LAST_UPDATED FROM BATCH_STEP_EXECUTION";
            if unique {
                let index = "CREATE UNIQUE INDEX BATCH_STEP_EXECUTION_NAME_IX ON BATCH_STEP_EXECUTION (JOB_EXECUTION_ID, STEP_NAME)";
                outside.execute(index).unwrap();
                assert!(outside.execute(again).is_err(), "{database:?}");
            } else {
                outside.execute(again).unwrap();
            }
            let operator = BatchRuntime::builder().repository(place.url()).build();
            let operator = operator
                .unwrap_or_else(|error| panic!("{database:?}: {error}"))
                .job_operator();
            if unique {
                outside.execute(again).unwrap();
            }
            let steps = operator.step_executions(JobExecutionId(1)).unwrap();
            let names: Vec<&str> = steps.iter().map(|step| step.step_name.as_str()).collect();
            assert_eq!(names, ["one", "one"], "{database:?}");
        }
    }
}

/// The tables with one row of MySQL's sequences are in a safe engine afterwards.
///
/// Spec: REPO-12, REPO-20
#[cfg(feature = "servers")]
#[test]
fn the_sequences_of_2_1_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(Database::Mariadb, folder.path());
    let tables = tables_of_2_1(Database::Mariadb);
    place.connect().execute(&tables).unwrap();
    BatchRuntime::builder().repository(place.url()).build().unwrap();
    let others = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND ENGINE <> 'InnoDB'";
    assert_eq!(place.connect().number(others), 0);
}

/// A migration that fails is run again when the cause is fixed, also where the database keeps a part of it.
///
/// Spec: REPO-12
#[cfg(feature = "servers")]
#[test]
fn a_failed_migration_is_repeated() {
    for database in [Database::Postgres, Database::Mariadb] {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let mut outside = place.connect();
        let tables = tables_of_2_1(database).replace("KEY_NAME VARCHAR(100)", "KEY_NAME VARCHAR(200)");
        outside.execute(&(tables + &rows(database, false))).unwrap();
        let long = format!("UPDATE BATCH_JOB_PARAMS SET KEY_NAME = '{}'", "n".repeat(101));
        outside.execute(&long).unwrap();
        let build = || BatchRuntime::builder().repository(place.url()).build();
        let error = build().err().unwrap().to_string();
        assert!(
            error.contains("migration `0000000000220_parameters_of_executions` failed: ")
                && error.contains("fix the cause, then run `db migrate` to repeat it"),
            "{database:?}: {error}"
        );
        outside
            .execute("UPDATE BATCH_JOB_PARAMS SET KEY_NAME = 'to'")
            .unwrap();
        let operator = build().unwrap().job_operator();
        let parameters = operator.parameters(JobExecutionId(1)).unwrap();
        assert_eq!(parameters, JobParameters::from([("to", "35")]), "{database:?}");
    }
}
