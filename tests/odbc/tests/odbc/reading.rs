//! The reader of queries.

use std::fs;
use std::sync::Mutex;

use batch_odbc::OdbcItemReader;
use batch_runtime::JobParameters;
use batch_runtime::prelude::*;
use batch_tests::database::Database;
use serde::Deserialize;

use crate::stage::{Stage, job};

/// The databases that are read by ODBC.
const SERVERS: [Database; 2] = [Database::Postgres, Database::Mariadb];

const VALUES: &str = "CREATE TABLE v (id INTEGER PRIMARY KEY, large BIGINT, amount NUMERIC(20, 4), ratio DOUBLE PRECISION, \
     name VARCHAR(20), long_text TEXT, day DATE, at TIMESTAMP NULL)";

/// Reads a query as records, and returns them as lines of JSON.
fn read(stage: &Stage, query: &str, key: &str) -> Vec<String> {
    let output = stage.file("out.jsonl");
    let job = job(
        "odbcRecordReader",
        "recordJsonlWriter",
        &[
            ("reader", "database", "there"),
            ("reader", "query", query),
            ("reader", "key", key),
            ("reader", "page.size", "2"),
            ("writer", "output", &output),
        ],
    );
    // Each in another instance.
    stage.complete(&job, JobParameters::new().with("query", query).with("key", key));
    let lines = fs::read_to_string(output).unwrap();
    lines.lines().map(str::to_owned).collect()
}

fn long_text() -> String {
    "é€😀 ".repeat(25_000)
}

/// Spec: ODBC-01, ODBC-03
#[test]
fn values_are_read_as_they_are() {
    for database in SERVERS {
        let stage = Stage::new(database, VALUES);
        if database == Database::Mariadb {
            stage.execute("ALTER TABLE v MODIFY long_text LONGTEXT");
        }
        let long = long_text();
        stage.execute(&format!(
            "INSERT INTO v VALUES (1, 9223372036854775807, 123456789012.3456, 0.1, 'é€😀 ''x'' ', '{long}', '2026-11-30', '2026-11-30 10:00:01'), \
             (2, -9223372036854775808, -0.5, 1e300, '', 'a', NULL, NULL), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
             (4, 0, 1, 0.3333333333333333, '  ', 'b', NULL, NULL)"
        ));
        let amounts = ["123456789012.3456", "-0.5000", "1.0000"];
        let expected = [
            format!(
                r#"{{"id":1,"large":9223372036854775807,"amount":{},"ratio":0.1,"name":"é€😀 'x' ","long_text":"{long}","day":"2026-11-30","at":"2026-11-30 10:00:01"}}"#,
                amounts[0]
            ),
            format!(
                r#"{{"id":2,"large":-9223372036854775808,"amount":{},"ratio":1e+300,"name":"","long_text":"a","day":null,"at":null}}"#,
                amounts[1]
            ),
            r#"{"id":3,"large":null,"amount":null,"ratio":null,"name":null,"long_text":null,"day":null,"at":null}"#.to_owned(),
            format!(
                r#"{{"id":4,"large":0,"amount":{},"ratio":0.3333333333333333,"name":"  ","long_text":"b","day":null,"at":null}}"#,
                amounts[2]
            ),
        ];
        let found = read(&stage, "SELECT * FROM v", "id");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(shortened(found), shortened(expected), "{database:?}");
        }
        assert_eq!(found.len(), expected.len(), "{database:?}");
        assert!(found == expected, "{database:?}");
    }
}

/// Returns the beginning and the end of a line, with its length.
fn shortened(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    match characters.len() {
        0..=400 => line.to_owned(),
        length => {
            let (head, tail): (String, String) = (
                characters[..200].iter().collect(),
                characters[length - 150..].iter().collect(),
            );
            format!("{head} .. {length} .. {tail}")
        }
    }
}

/// Spec: ODBC-03
#[test]
fn a_text_that_does_not_fit_into_a_block_is_read_whole() {
    for database in SERVERS {
        let stage = Stage::new(
            database,
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(2000))",
        );
        // The driver of PostgreSQL describes a text of an expression as one of 255 characters.
        stage.execute(&format!(
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, '{}'), (4, 'd')",
            "x".repeat(1_990)
        ));
        let expected: Vec<String> = ["a", "b", &"x".repeat(1_990), "d"]
            .iter()
            .zip(1..)
            .map(|(name, id)| format!(r#"{{"id":{id},"name":"{name}"}}"#))
            .collect();
        for query in [
            "SELECT id, name FROM t ORDER BY id",
            "SELECT id, COALESCE(NULL, name) AS name FROM t ORDER BY id",
        ] {
            for key in ["id", ""] {
                assert!(
                    read(&stage, query, key) == expected,
                    "{database:?}, {query}, key `{key}`"
                );
            }
        }
    }
}

/// Spec: ODBC-02
#[test]
fn rows_without_a_unique_key_are_an_error() {
    for database in SERVERS {
        let stage = Stage::new(
            database,
            "CREATE TABLE k (a INTEGER, b VARCHAR(9)); INSERT INTO k VALUES (1, 'x'), (1, 'y'), (2, 'x'), (3, 'z'), (3, 'z')",
        );
        let all = read(&stage, "SELECT a, b FROM k WHERE a < 3", "a,b");
        let expected = [r#"{"a":1,"b":"x"}"#, r#"{"a":1,"b":"y"}"#, r#"{"a":2,"b":"x"}"#];
        assert_eq!(all, expected, "{database:?}");
        let fail = |query: &str, key: &str| {
            let reader = [
                ("reader", "database", "there"),
                ("reader", "query", query),
                ("reader", "key", key),
            ];
            let job = job(
                "odbcRecordReader",
                "recordJsonlWriter",
                &[&reader[..], &[("writer", "output", &stage.file("no"))]].concat(),
            );
            stage.fail(&job)
        };
        let message = fail("SELECT a, b FROM k WHERE a > 1", "a,b");
        assert!(
            message.contains("the key `a, b` is not unique: two rows have [\"3\", \"z\"]"),
            "{message}"
        );
        let message = fail("SELECT a, b FROM k", "c");
        assert!(
            message.contains("its result has no column `c` of the key"),
            "{message}"
        );
        stage.execute("DELETE FROM k WHERE a = 3; INSERT INTO k VALUES (NULL, 'n')");
        let message = fail("SELECT a, b FROM k", "a,b");
        assert!(message.contains("the key `a, b` is null in 1 rows"), "{message}");
        let message = fail("SELECT a, b AS a FROM k", "");
        assert!(message.contains("two columns `a`"), "{message}");
    }
}

/// Spec: ODBC-03
#[test]
fn a_value_that_the_driver_changes_is_an_error_without_a_key() {
    let refused = |database, column: &str| {
        let stage = Stage::new(database, VALUES);
        let query = format!("SELECT id, {column} FROM v ORDER BY id");
        let job = job(
            "odbcRecordReader",
            "recordJsonlWriter",
            &[
                ("reader", "database", "there"),
                ("reader", "query", &query),
                ("writer", "output", &stage.file("no")),
            ],
        );
        stage.fail(&job)
    };
    let message = refused(Database::Postgres, "at");
    assert!(
        message.contains("set `key`, or select `CAST(\"at\" AS TEXT) AS at`"),
        "{message}"
    );
    let message = refused(Database::Sqlite, "id");
    assert!(
        message.contains("read the file by `queryRecordReader`"),
        "{message}"
    );

    let stage = Stage::new(Database::Postgres, VALUES);
    stage.execute(
        "INSERT INTO v (id, at, day) VALUES (1, 'infinity', '-infinity'), (2, '0044-03-15 10:00 BC', NULL)",
    );
    let found = read(&stage, "SELECT id, at, day FROM v", "id");
    let expected = [
        r#"{"id":1,"at":"infinity","day":"-infinity"}"#,
        r#"{"id":2,"at":"0044-03-15 10:00:00 BC","day":null}"#,
    ];
    assert_eq!(found, expected);
}

#[derive(Deserialize)]
struct Account {
    id: i64,
    owner: Option<String>,
    rate: f64,
    is_open: bool,
    kind: Kind,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Private,
    Business,
}

#[item_reader("Accounts")]
type Accounts = OdbcItemReader<Account>;

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes accounts, and fails once at the one that `fails` names.
#[derive(BatchArtifact)]
struct Notes {
    #[batch_property]
    fails: i64,
}

#[item_writer("Notes")]
impl Notes {
    #[write_items]
    fn write(&mut self, accounts: &[Account]) -> Result<(), BatchError> {
        if accounts.iter().any(|account| account.id == self.fails) {
            return Err(BatchError::msg("it fails"));
        }
        let shown = accounts.iter().map(|account| {
            let Account {
                id,
                owner,
                rate,
                is_open,
                kind,
            } = account;
            format!("{id} {owner:?} {rate} {is_open} {kind:?}")
        });
        SEEN.lock().unwrap().extend(shown);
        Ok(())
    }
}

/// Spec: ODBC-01, ODBC-02
#[test]
fn a_restart_continues_after_the_last_item_of_a_type() {
    for (database, key) in SERVERS
        .iter()
        .flat_map(|database| [(*database, "id"), (*database, "")])
    {
        SEEN.lock().unwrap().clear();
        let stage = Stage::new(
            database,
            "CREATE TABLE a (id INTEGER PRIMARY KEY, owner VARCHAR(9), rate NUMERIC(5, 2), is_open BOOLEAN, kind VARCHAR(9))",
        );
        for id in 1..=7 {
            let owner = if id % 2 == 0 { "NULL" } else { "'x'" };
            stage.execute(&format!(
                "INSERT INTO a VALUES ({id}, {owner}, {id}.5, {}, 'private')",
                id % 2 == 0
            ));
        }
        let query = "SELECT id, owner, rate, is_open, kind FROM a WHERE kind = :kind ORDER BY id";
        let with = |fails: &str| {
            job(
                "Accounts",
                "Notes",
                &[
                    ("reader", "database", "there"),
                    ("reader", "query", query),
                    ("reader", "parameters", "kind=private"),
                    ("reader", "key", key),
                    ("reader", "page.size", "2"),
                    ("writer", "fails", fails),
                ],
            )
        };
        let message = stage.fail(&with("5"));
        assert!(message.contains("it fails"), "{database:?}: {message}");
        stage.complete(&with("0"), JobParameters::new());
        let expected: Vec<String> = (1..=7)
            .map(|id| {
                let owner = if id % 2 == 0 { "None" } else { "Some(\"x\")" };
                format!("{id} {owner} {id}.5 {} Private", id % 2 == 0)
            })
            .collect();
        assert_eq!(*SEEN.lock().unwrap(), expected, "{database:?}, key `{key}`");
        stage.execute("UPDATE a SET kind = 'other' WHERE id = 1");
    }
    let _ = Kind::Business;
}

/// Spec: ODBC-02
#[test]
fn a_key_that_the_database_orders_in_another_way_is_an_error() {
    let stage = Stage::new(
        Database::Mariadb,
        "CREATE TABLE c (id INTEGER, currency ENUM('USD', 'EUR', 'CHF')); \
         INSERT INTO c VALUES (1, 'USD'), (2, 'EUR'), (3, 'CHF'), (4, 'USD')",
    );
    let query = [
        ("reader", "database", "there"),
        ("reader", "query", "SELECT * FROM c"),
    ];
    let key = [("reader", "key", "currency,id"), ("reader", "page.size", "2")];
    let file = stage.file("no");
    let to_file = job(
        "odbcRecordReader",
        "recordJsonlWriter",
        &[&query[..], &key, &[("writer", "output", &file)]].concat(),
    );
    let message = stage.fail(&to_file);
    assert!(
        message.contains("cannot read pages by the key `currency, id`: 5 times a page had other rows than the database counts"),
        "{message}"
    );
    let cast = "SELECT id, CAST(currency AS CHAR(3)) AS currency FROM c";
    assert_eq!(read(&stage, cast, "currency,id").len(), 4);
}

/// Spec: ODBC-02, ODBC-03
#[test]
fn keys_and_values_of_rare_types_are_read() {
    let stage = Stage::new(
        Database::Mariadb,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, flag BIT(1), name TEXT, large BIGINT UNSIGNED, span TIME)",
    );
    let text = "x".repeat(1_500);
    stage.execute(&format!(
        "INSERT INTO t VALUES (1, b'1', '{text}d', 18446744073709551615, '838:59:59'), (2, b'0', '{text}a', 0, '-10:00:00'), \
         (3, NULL, '{text}c', NULL, NULL), (4, b'1', '{text}b', 1, '00:00:01')"
    ));
    let ids = |lines: Vec<String>| -> Vec<String> {
        lines
            .iter()
            .map(|line| line.split([':', ',']).nth(1).unwrap_or_default().to_owned())
            .collect()
    };
    // By default the server sorts by the first 1024 bytes.
    assert_eq!(
        ids(read(&stage, "SELECT id, name FROM t", "name")),
        ["2", "4", "3", "1"]
    );
    let expected = [
        r#"{"id":1,"flag":true,"large":18446744073709551615,"span":"838:59:59"}"#,
        r#"{"id":2,"flag":false,"large":0,"span":"-10:00:00"}"#,
        r#"{"id":3,"flag":null,"large":null,"span":null}"#,
        r#"{"id":4,"flag":true,"large":1,"span":"00:00:01"}"#,
    ];
    assert_eq!(
        read(&stage, "SELECT id, flag, large, span FROM t", "id"),
        expected
    );

    let stage = Stage::new(
        Database::Postgres,
        "CREATE TABLE t (flag BOOLEAN, price MONEY, ratio FLOAT8, id UUID); \
         INSERT INTO t VALUES (true, '92233720368547758.07', 5e-324, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (false, '12.50', 0.1, NULL)",
    );
    let found = read(&stage, "SELECT flag, price, ratio FROM t", "flag");
    assert_eq!(found[0], r#"{"flag":false,"price":"$12.50","ratio":0.1}"#);
    assert_eq!(
        found[1],
        r#"{"flag":true,"price":"$92,233,720,368,547,758.07","ratio":5e-324}"#
    );
    let found = read(&stage, "SELECT id FROM t WHERE flag", "id");
    assert_eq!(found, [r#"{"id":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}"#]);
}

/// Spec: ODBC-07
#[test]
fn a_connection_that_would_change_texts_is_an_error() {
    let refused = |database, more: &str| {
        let stage = Stage::new(database, "CREATE TABLE t (id INTEGER)");
        let string = format!("{};{more}", stage.string());
        let file = stage.file("no");
        let job = job(
            "odbcRecordReader",
            "recordJsonlWriter",
            &[
                ("reader", "database", &string),
                ("reader", "query", "SELECT id FROM t"),
                ("writer", "output", &file),
            ],
        );
        stage.fail(&job)
    };
    let message = refused(Database::Mariadb, "charset=latin1");
    assert!(
        message.contains(r#"expected the character set and line end "utf8mb4", found "latin1""#),
        "{message}"
    );
    let message = refused(Database::Postgres, "LFConversion=1");
    assert!(message.contains("the driver would change texts"), "{message}");
    let message = refused(Database::Postgres, "BoolsAsChar=1");
    assert!(message.contains("add `BoolsAsChar=0`"), "{message}");
    let message = refused(Database::Postgres, "PWD={geheim;123};Port=1;Servername=127.0.0.1");
    assert!(
        message.contains("cannot open the database of the query") && !message.contains("geheim"),
        "{message}"
    );
}
