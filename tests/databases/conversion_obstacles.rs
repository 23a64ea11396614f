//! The obstacles of conversions to another layout.

use batch_runtime::parameters::JavaValue;
use batch_runtime::repository::RepositoryLayout;
use batch_runtime::time::TimeZone;
use batch_runtime::{JobParameters, ParameterValue, Timestamp};
use batch_tests::database::Database;

use super::conversion::Repository;
use super::layouts::{operator, place_in};

/// What the new layout cannot store, or what runs, is named, and nothing is changed.
///
/// Spec: REPO-91
#[test]
fn what_would_be_lost_prevents_a_conversion() {
    for database in Database::ALL {
        let repository = Repository::new(database, RepositoryLayout::V5);
        let operator = repository.operator();
        let locale = ParameterValue::Java(JavaValue {
            class: "java.util.Locale".into(),
            text: "de".into(),
        });
        let given = JobParameters::from([("to", "3")])
            .with_parameter("locale", locale, false)
            .with("long", "x".repeat(251));
        operator.wait(operator.launch("job", given).unwrap()).unwrap();
        for (name, value) in [
            ("n", ParameterValue::Long(5)),
            ("n", ParameterValue::String("5".into())),
        ] {
            let given = JobParameters::from([("to", "4")]).with_parameter(name, value, true);
            operator.wait(operator.launch("job", given).unwrap()).unwrap();
        }
        drop(operator);
        let original = repository.exported();
        let running =
            "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'STARTED', END_TIME = NULL WHERE JOB_EXECUTION_ID = 1";
        repository.place.connect().execute(running).unwrap();
        let obstacles = repository.plan(RepositoryLayout::V4_3).obstacles.join("\n");
        for expected in [
            "job execution 1 of `job` is STARTED",
            "job execution 3: ",
            "java.util.Locale",
            "job instance 5 of `job` would have the key of another one",
        ] {
            assert!(obstacles.contains(expected), "{database:?}: {obstacles}");
        }
        let mut backup = Vec::new();
        let rejected = repository
            .url()
            .convert(RepositoryLayout::V4_3, &TimeZone::UTC, &mut backup);
        let rejected = rejected.unwrap_err().to_string();
        assert!(
            rejected.contains(&obstacles.replace('\n', "\n  ")),
            "{database:?}: {rejected}"
        );
        assert!(backup.is_empty(), "{database:?}");
        let ended = running.replace("'STARTED', END_TIME = NULL", "'FAILED', END_TIME = START_TIME");
        repository.place.connect().execute(&ended).unwrap();
        let ids = |lines: &[String]| lines.len();
        assert_eq!(ids(&repository.exported()), ids(&original), "{database:?}");
    }
}

/// Values that 4.3 would read differently: the sign of zero, and a local time that the clocks show twice.
///
/// Spec: REPO-91
#[test]
fn values_that_would_change_prevent_a_conversion() {
    let berlin: TimeZone = "Europe/Berlin".parse().unwrap();
    for database in Database::ALL {
        let (folder, place) = place_in(database, RepositoryLayout::V5);
        let operator = operator(folder.path(), place.url()).unwrap();
        let repository = Repository {
            folder,
            place: place.without_options(),
        };
        let given = JobParameters::from([("to", "1")])
            .with_parameter("zero", ParameterValue::Double(-0.0), false)
            // 02:30 in summer time, an hour before the other 02:30.
            .with_parameter("twice", ParameterValue::Date(Timestamp(1_729_989_000_000)), false);
        operator.wait(operator.launch("job", given).unwrap()).unwrap();
        drop(operator);
        let plan = repository.url().plan_conversion(RepositoryLayout::V4_3, &berlin);
        let obstacles = plan.unwrap().obstacles;
        let names = |name: &str| obstacles.iter().any(|one| one.contains(&format!("`{name}`")));
        assert_eq!(
            names("zero"),
            database != Database::Postgres,
            "{database:?}: {obstacles:?}"
        );
        assert_eq!(
            names("twice"),
            database != Database::Sqlite,
            "{database:?}: {obstacles:?}"
        );
        let plan = repository.url().plan_conversion(RepositoryLayout::V6, &berlin);
        assert_eq!(plan.unwrap().obstacles, [""; 0], "{database:?}");
    }
}

/// What a program has added to a table that is replaced would be lost; what it added to another one stays.
///
/// Spec: REPO-91
#[test]
fn additions_to_replaced_tables_prevent_a_conversion() {
    let sqlite = [
        (
            "INDEX mine ON BATCH_STEP_EXECUTION (STATUS)",
            "INDEX mine",
            "index mine",
        ),
        (
            "VIEW mine AS SELECT COUNT(*) AS steps FROM BATCH_STEP_EXECUTION",
            "VIEW mine",
            "view mine",
        ),
        (
            "TRIGGER mine AFTER INSERT ON BATCH_JOB_EXECUTION_PARAMS BEGIN SELECT 1; END",
            "TRIGGER mine",
            "trigger mine",
        ),
    ];
    let servers = [(
        "INDEX IDX_BATCH_JOB_EXEC_PARAMS ON BATCH_JOB_EXECUTION_PARAMS (KEY_NAME)",
        "INDEX IDX_BATCH_JOB_EXEC_PARAMS",
        "index IDX_BATCH_JOB_EXEC_PARAMS",
    )];
    for database in Database::ALL {
        let repository = Repository::new(database, RepositoryLayout::V4_3);
        let mine = match database {
            Database::Sqlite => &sqlite[..],
            _ => &servers,
        };
        let refused = |addition: &str| {
            let obstacles = repository.plan(RepositoryLayout::V6).obstacles;
            let expected = format!(
                "{addition} does not survive the conversion: save its values if it has any, drop it, and add it again afterwards"
            );
            let obstacles: Vec<_> = obstacles.iter().map(|one| one.to_lowercase()).collect();
            assert_eq!(obstacles, [expected.to_lowercase()], "{database:?}");
            assert!(repository.convert(RepositoryLayout::V6).is_err(), "{database:?}");
        };
        let sql = |statement: &str| repository.place.connect().execute(statement).unwrap();
        for (created, dropped, addition) in mine {
            sql(&format!("CREATE {created}"));
            refused(addition);
            let of_table = match database {
                Database::Mariadb => " ON BATCH_JOB_EXECUTION_PARAMS",
                _ => "",
            };
            sql(&format!("DROP {dropped}{of_table}"));
        }
        sql("ALTER TABLE BATCH_JOB_EXECUTION_PARAMS ADD COLUMN OWNER VARCHAR(10)");
        refused("column OWNER of BATCH_JOB_EXECUTION_PARAMS");
        sql("ALTER TABLE BATCH_JOB_EXECUTION_PARAMS DROP COLUMN OWNER");
        sql("CREATE INDEX others ON BATCH_JOB_EXECUTION (STATUS)");
        if database == Database::Sqlite {
            sql("CREATE VIEW contexts AS SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION_CONTEXT");
        }
        assert_eq!(
            repository.plan(RepositoryLayout::V6).obstacles,
            [""; 0],
            "{database:?}"
        );
        repository.convert(RepositoryLayout::V6).unwrap();
        // Between 5 and 6 no table is replaced.
        let column = match database {
            Database::Sqlite => "ALTER TABLE BATCH_STEP_EXECUTION ADD COLUMN OWNER VARCHAR(10)",
            _ => "ALTER TABLE BATCH_JOB_EXECUTION_PARAMS ADD COLUMN OWNER VARCHAR(10)",
        };
        sql(column);
        repository.convert(RepositoryLayout::V5).unwrap();
    }
}

/// SQLite does not enforce foreign keys in a program that does not ask for it.
///
/// Spec: REPO-91
#[test]
fn parameters_without_an_execution_prevent_a_conversion() {
    let repository = Repository::new(Database::Sqlite, RepositoryLayout::V4_3);
    for (id, orphan) in [(1, "execution 0"), (2, "execution 77")] {
        let number = orphan.trim_start_matches("execution ");
        let insert = format!(
            "PRAGMA foreign_keys = OFF; INSERT INTO BATCH_JOB_EXECUTION_PARAMS
                 SELECT {number}, TYPE_CD, KEY_NAME, STRING_VAL, DATE_VAL, LONG_VAL, DOUBLE_VAL, IDENTIFYING
                 FROM BATCH_JOB_EXECUTION_PARAMS WHERE JOB_EXECUTION_ID = {id} LIMIT 1"
        );
        repository.place.connect().execute(&insert).unwrap();
    }
    assert_eq!(
        repository.plan(RepositoryLayout::V6).obstacles,
        [0, 77].map(|id| format!(
            "there are parameters of job execution {id}, which does not exist: delete them"
        ))
    );
}

/// PostgreSQL knows what depends on a column; the privileges of the table remain.
///
/// Spec: REPO-91
#[cfg(feature = "servers")]
#[test]
fn what_depends_on_a_replaced_column_prevents_a_conversion() {
    let repository = Repository::new(Database::Postgres, RepositoryLayout::V5);
    let sql = |statement: &str| repository.place.connect().execute(statement).unwrap();
    sql("GRANT SELECT ON BATCH_JOB_EXECUTION_PARAMS TO PUBLIC");
    sql("CREATE VIEW others AS SELECT JOB_EXECUTION_ID FROM BATCH_JOB_EXECUTION_PARAMS");
    assert_eq!(repository.plan(RepositoryLayout::V4_3).obstacles, [""; 0]);
    sql("GRANT SELECT (PARAMETER_NAME) ON BATCH_JOB_EXECUTION_PARAMS TO PUBLIC");
    sql("CREATE VIEW mine AS SELECT PARAMETER_NAME FROM BATCH_JOB_EXECUTION_PARAMS");
    let rest = "does not survive the conversion: save its values if it has any, drop it, and add it again afterwards";
    assert_eq!(
        repository.plan(RepositoryLayout::V4_3).obstacles,
        [
            format!("privileges on column parameter_name {rest}"),
            format!("rule _RETURN on view mine {rest}")
        ]
    );
    sql("REVOKE SELECT (PARAMETER_NAME) ON BATCH_JOB_EXECUTION_PARAMS FROM PUBLIC");
    sql("DROP VIEW mine");
    repository.convert(RepositoryLayout::V4_3).unwrap();
    let granted = "SELECT COUNT(*) FROM information_schema.role_table_grants
        WHERE table_name = 'batch_job_execution_params' AND grantee = 'PUBLIC'";
    assert_eq!(repository.place.connect().number(granted), 1);
}

/// Only one of the sequences of 5 and 6 is used, and only the user knows which; for a runtime the URL can name it.
///
/// Spec: REPO-87, REPO-91
#[test]
fn two_sequences_of_instances_prevent_a_conversion() {
    for database in Database::ALL {
        let repository = Repository::new(database, RepositoryLayout::V5);
        let second = match database {
            Database::Sqlite => "CREATE TABLE BATCH_JOB_INSTANCE_SEQ (ID INTEGER PRIMARY KEY AUTOINCREMENT)",
            _ => "CREATE SEQUENCE BATCH_JOB_INSTANCE_SEQ START WITH 100",
        };
        repository.place.connect().execute(second).unwrap();
        let planned = repository
            .url()
            .plan_conversion(RepositoryLayout::V4_3, &TimeZone::UTC)
            .unwrap_err();
        let opened = operator(repository.folder.path(), repository.place.url()).err();
        for problem in [planned.to_string(), opened.unwrap()] {
            assert!(
                problem.contains("drop the one that is not used"),
                "{database:?}: {problem}"
            );
        }
        let place = repository.place.clone().with_option("layout", "5");
        let operator = operator(repository.folder.path(), place.url()).unwrap();
        let started = operator.start("job", [("to", "1")]).unwrap();
        assert_eq!(operator.wait(started).unwrap().instance_id.0, 3, "{database:?}");
        drop(operator);
        let place = repository.place.clone().with_option("layout", "6");
        assert!(
            self::operator(repository.folder.path(), place.url()).is_ok(),
            "{database:?}"
        );
    }
}
