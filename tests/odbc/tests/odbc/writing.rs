//! The writer of tables.

use std::fs;

use batch_runtime::{BatchStatus, JobParameters};
use batch_tests::database::Database;

use crate::stage::{Stage, job};

/// Writes lines of JSON to the table `t`, and returns how the job ends.
fn write(stage: &Stage, lines: &[&str], properties: &[(&str, &str)]) -> (BatchStatus, String) {
    let input = stage.file("in.jsonl");
    fs::write(&input, lines.join("\n")).unwrap();
    let mut all = vec![
        ("reader", "resource", input.as_str()),
        ("writer", "database", "there"),
    ];
    if properties.iter().all(|(name, _)| *name != "table") {
        all.push(("writer", "table", "t"));
    }
    all.extend(properties.iter().map(|(name, value)| ("writer", *name, *value)));
    let job = job("jsonlRecordReader", "recordOdbcTableWriter", &all);
    stage.run(&job, JobParameters::new().with("number", unique()))
}

/// Returns a text that differs with each call.
fn unique() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

#[track_caller]
fn writes(stage: &Stage, lines: &[&str], properties: &[(&str, &str)]) {
    let (status, message) = write(stage, lines, properties);
    assert_eq!(
        status,
        BatchStatus::Completed,
        "{:?}: {message}",
        stage.place.database()
    );
}

#[track_caller]
fn fails(stage: &Stage, lines: &[&str], properties: &[(&str, &str)], expected: &str) {
    let (status, message) = write(stage, lines, properties);
    assert_eq!(
        status,
        BatchStatus::Failed,
        "{:?}: {message}",
        stage.place.database()
    );
    assert!(
        message.contains(expected),
        "{:?}: {message}",
        stage.place.database()
    );
}

/// Returns the rows of a table as text, by the client of diesel.
fn rows(stage: &Stage) -> Vec<String> {
    let joined = match stage.place.database() {
        Database::Mariadb => "CONCAT(id, '|', COALESCE(name, 'null'), '|', COALESCE(amount, 'null'))",
        _ => {
            "CAST(id AS TEXT) || '|' || COALESCE(name, 'null') || '|' || COALESCE(CAST(amount AS TEXT), 'null')"
        }
    };
    stage.rows(&format!("SELECT {joined} AS text FROM t ORDER BY id"))
}

const TABLE: &str =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(40), amount NUMERIC(9, 2) CHECK (amount > -100))";

/// Spec: ODBC-04
#[test]
fn rows_are_inserted_updated_upserted_and_deleted() {
    for database in Database::ALL {
        let stage = Stage::new(database, TABLE);
        let ten: Vec<String> = (1..=10)
            .map(|id| format!(r#"{{"id":{id},"name":"é€😀 {id}","amount":{id}.25}}"#))
            .collect();
        let ten: Vec<&str> = ten.iter().map(String::as_str).collect();
        writes(&stage, &ten, &[]);
        let expected: Vec<String> = (1..=10).map(|id| format!("{id}|é€😀 {id}|{id}.25")).collect();
        assert_eq!(rows(&stage), expected, "{database:?}");

        let key = ("key", "id");
        writes(
            &stage,
            &[
                r#"{"id":2,"name":null,"amount":"7.50"}"#,
                r#"{"id":11,"name":"new","amount":0.5}"#,
                r#"{"id":2,"name":"","amount":1.25}"#,
            ],
            &[("mode", "upsert"), key],
        );
        writes(
            &stage,
            &[r#"{"id":1,"name":"é€😀 1"}"#, r#"{"id":3,"name":"three"}"#],
            &[("mode", "update"), key],
        );
        writes(
            &stage,
            &[r#"{"id":4}"#, r#"{"id":5}"#, r#"{"id":6}"#, r#"{"id":7}"#],
            &[("mode", "delete"), key],
        );
        let found = rows(&stage);
        let expected = [
            "1|é€😀 1|1.25",
            "2||1.25",
            "3|three|3.25",
            "8|é€😀 8|8.25",
            "9|é€😀 9|9.25",
            "10|é€😀 10|10.25",
        ];
        assert_eq!(&found[..6], &expected, "{database:?}");
        assert!(
            ["11|new|0.50", "11|new|0.5"].contains(&found[6].as_str()),
            "{database:?}: {found:?}"
        );

        // Each row is counted.
        fails(
            &stage,
            &[r#"{"id":3,"name":"x"}"#, r#"{"id":99,"name":"x"}"#],
            &[("mode", "update"), key],
            "0 rows were updated for 1 items",
        );
        fails(
            &stage,
            &[r#"{"id":99}"#],
            &[("mode", "delete"), key],
            "0 rows were deleted for 1 items",
        );
        writes(
            &stage,
            &[r#"{"id":99}"#],
            &[("mode", "delete"), key, ("rows.affected", "ignore")],
        );
        assert_eq!(rows(&stage), found, "{database:?}");
    }
}

/// Spec: ODBC-04, MARK-09
#[test]
fn a_row_that_the_database_rejects_is_skipped_alone() {
    for database in Database::ALL {
        let stage = Stage::new(database, TABLE);
        let input = stage.file("in.jsonl");
        let lines: Vec<String> = (1..=8)
            .map(|id| {
                // A key that is there, and an amount that is checked.
                let (id, amount) = if id == 5 {
                    (2, 0)
                } else if id == 7 {
                    (7, -100)
                } else {
                    (id, id)
                };
                format!(r#"{{"id":{id},"name":"n","amount":{amount}}}"#)
            })
            .collect();
        fs::write(&input, lines.join("\n")).unwrap();
        let job = job(
            "jsonlRecordReader",
            "recordOdbcTableWriter",
            &[
                ("reader", "resource", &input),
                ("writer", "database", "there"),
                ("writer", "table", "t"),
            ],
        );
        let job = job.replace(
            r#"commit-interval="3">"#,
            r#"commit-interval="3" skip-limit="2">"#,
        );
        let job = job.replace(
            "</chunk>",
            r#"<skippable-exception-classes><include class="batch_items::ConstraintViolation"/></skippable-exception-classes></chunk>"#,
        );
        stage.complete(&job, JobParameters::new());
        let ids: Vec<String> = rows(&stage)
            .iter()
            .map(|row| row.split('|').next().unwrap().to_owned())
            .collect();
        assert_eq!(ids, ["1", "2", "3", "4", "6", "8"], "{database:?}");
    }
}

/// Spec: ODBC-04, ODBC-05
#[test]
fn what_the_table_does_not_hold_is_an_error() {
    for database in Database::ALL {
        let stage = Stage::new(database, TABLE);
        let id = r#"{"id":1}"#;
        fails(
            &stage,
            &[id],
            &[("table", "no_table")],
            "the table does not exist",
        );
        fails(
            &stage,
            &[r#"{"id":1,"nam":"x"}"#],
            &[],
            "it has no column `nam`; did you mean `name`?",
        );
        fails(
            &stage,
            &[r#"{"id":"x"}"#],
            &[],
            "expected an integer, found \"x\"",
        );
        fails(
            &stage,
            &[r#"{"id":1,"name":"a\u0000b"}"#],
            &[],
            "contains the character NUL",
        );
        fails(
            &stage,
            &[id],
            &[("mode", "upsert"), ("key", "name")],
            "`upsert` needs a unique index",
        );
        if database != Database::Sqlite {
            fails(
                &stage,
                &[r#"{"id":1,"amount":1.255}"#],
                &[],
                "at most 2 digits after the point",
            );
            let long = format!(r#"{{"id":1,"name":"{}"}}"#, "x".repeat(41));
            fails(&stage, &[&long], &[], "cannot insert 1 row in table `t`");
        }
        assert_eq!(rows(&stage), [""; 0], "{database:?}");
    }
}

/// Spec: ODBC-04
#[test]
fn temporal_values_and_bytes_are_written() {
    for database in Database::ALL {
        let bytes = match database {
            Database::Postgres => "BYTEA",
            _ => "VARBINARY(20)",
        };
        let stage = Stage::new(
            database,
            &format!(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, day DATE, clock TIME, at TIMESTAMP(6) NULL, raw {bytes}, ratio DOUBLE PRECISION, flag BOOLEAN)"
            ),
        );
        writes(
            &stage,
            &[
                r#"{"id":9223372036854775807,"day":"2026-11-30","clock":"23:59:58","at":"2026-11-30 10:00:00.123456","raw":"\\x00ff61","ratio":0.1,"flag":true}"#,
                r#"{"id":1,"day":null,"clock":null,"at":null,"raw":null,"ratio":null,"flag":null}"#,
            ],
            &[],
        );
        let hex = match database {
            Database::Postgres => "encode(raw, 'hex')",
            _ => "HEX(raw)",
        };
        let flag = match database {
            Database::Postgres => "CASE WHEN flag THEN '1' END",
            _ => "flag",
        };
        let text = |column: &str| match database {
            Database::Mariadb => format!("CAST({column} AS CHAR)"),
            _ => format!("CAST({column} AS TEXT)"),
        };
        for (column, expected) in [
            ("day", "2026-11-30"),
            ("clock", "23:59:58"),
            ("at", "2026-11-30 10:00:00.123456"),
            (hex, "00FF61"),
            ("ratio", "0.1"),
            (flag, "1"),
        ] {
            let found = stage.rows(&format!("SELECT {} AS text FROM t WHERE id > 1", text(column)));
            assert_eq!(found[0].to_uppercase(), expected, "{database:?}, {column}");
        }
        assert_eq!(
            stage.rows(&format!(
                "SELECT {} AS text FROM t WHERE ratio IS NULL AND raw IS NULL",
                text("id")
            )),
            ["1"]
        );
    }
}

/// Spec: ODBC-04
#[test]
fn rows_that_match_nothing_are_passed_over_alone() {
    for database in Database::ALL {
        let stage = Stage::new(database, TABLE);
        stage.execute("INSERT INTO t (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')");
        let lines = [
            r#"{"id":1,"name":"x"}"#,
            r#"{"id":99,"name":"x"}"#,
            r#"{"id":3,"name":"x"}"#,
        ];
        let ignore = ("rows.affected", "ignore");
        writes(&stage, &lines, &[("mode", "update"), ("key", "id"), ignore]);
        assert_eq!(rows(&stage), ["1|x|null", "2|b|null", "3|x|null"], "{database:?}");
        writes(
            &stage,
            &lines,
            &[("mode", "delete"), ("key", "id"), ("columns", "id"), ignore],
        );
        assert_eq!(rows(&stage), ["2|b|null"], "{database:?}");
    }
}

/// The driver of MariaDB reports such an error as a warning.
///
/// Spec: ODBC-04
#[test]
fn a_value_that_an_enum_lacks_is_an_error() {
    let stage = Stage::new(
        Database::Mariadb,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name ENUM('a', 'b'), amount INTEGER); INSERT INTO t VALUES (1, 'a', 0)",
    );
    let expected = "Data truncated for column 'name'";
    for properties in [
        [("mode", "upsert"), ("key", "id")].as_slice(),
        &[("mode", "update"), ("key", "id"), ("rows.affected", "ignore")],
        &[("mode", "insert"), ("rows.affected", "ignore")],
    ] {
        let id = if properties[0].1 == "update" { 1 } else { 7 };
        fails(
            &stage,
            &[&format!(r#"{{"id":{id},"name":"q"}}"#)],
            properties,
            expected,
        );
    }
    fails(
        &stage,
        &[r#"{"id":1,"name":"q"}"#],
        &[("mode", "upsert"), ("key", "id")],
        expected,
    );
    assert_eq!(rows(&stage), ["1|a|0"]);
}

/// Spec: ODBC-04
#[test]
fn numbers_and_documents_keep_their_digits() {
    let stage = Stage::new(
        Database::Postgres,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name JSONB, amount MONEY, any_number NUMERIC, at TIMESTAMPTZ)",
    );
    writes(
        &stage,
        &[
            r#"{"id":1,"name":{"a":1},"amount":"90000000000000000.01","any_number":"1.0000000001","at":"2026-11-30 10:00:00+05:00"}"#,
        ],
        &[],
    );
    let found = stage
        .rows("SELECT amount::numeric || ' ' || any_number || ' ' || (at AT TIME ZONE 'UTC') AS text FROM t");
    assert_eq!(found, ["90000000000000000.01 1.0000000001 2026-11-30 05:00:00"]);
    fails(
        &stage,
        &[r#"{"id":2,"name":"{\"a\":1,\"a\":2}"}"#],
        &[],
        "each name once",
    );

    let stage = Stage::new(
        Database::Mariadb,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name DOUBLE(7, 2), amount INTEGER)",
    );
    fails(
        &stage,
        &[r#"{"id":1,"name":1.239}"#],
        &[],
        "at most 2 digits after the point",
    );
    let stage = Stage::new(
        Database::Sqlite,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name DECIMAL(20, 2), amount REAL)",
    );
    fails(
        &stage,
        &[r#"{"id":1,"name":"12345678901234567890.12"}"#],
        &[],
        "at most 15 digits",
    );
    fails(
        &stage,
        &[r#"{"id":1,"amount":9007199254740993}"#],
        &[],
        "which a float does not hold exactly",
    );
}

/// Spec: ODBC-07
#[test]
fn a_server_that_cuts_values_does_not_for_a_job() {
    let stage = Stage::new(Database::Mariadb, TABLE);
    let string = format!("{};INITSTMT={{SET SESSION sql_mode = ''}}", stage.string());
    let input = stage.file("in.jsonl");
    fs::write(&input, format!(r#"{{"id":1,"name":"{}"}}"#, "x".repeat(41))).unwrap();
    let job = job(
        "jsonlRecordReader",
        "recordOdbcTableWriter",
        &[
            ("reader", "resource", &input),
            ("writer", "database", &string),
            ("writer", "table", "t"),
        ],
    );
    let message = stage.fail(&job);
    assert!(message.contains("Data too long for column 'name'"), "{message}");
    assert_eq!(rows(&stage), [""; 0]);
}

/// Spec: ODBC-04
#[test]
fn columns_that_differ_in_case_are_not_confused() {
    let stage = Stage::new(
        Database::Postgres,
        r#"CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, "NAME" TEXT, "Only" TEXT)"#,
    );
    writes(&stage, &[r#"{"id":1,"NAME":"upper","only":"any"}"#], &[]);
    let found =
        stage.rows(r#"SELECT COALESCE(name, 'null') || ' ' || "NAME" || ' ' || "Only" AS text FROM t"#);
    assert_eq!(found, ["null upper any"]);
}
