//! `sqlScript` on SQLite.

use batch_runtime::BatchStatus;
use diesel::prelude::*;
use diesel::sql_types::Text;

use super::stage::{Stage, log_with};

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    text: String,
}

fn connect(stage: &Stage) -> SqliteConnection {
    SqliteConnection::establish(&stage.repository().replace("sqlite://", "")).unwrap()
}

/// Returns the values of a query with one column `text`.
fn query(stage: &Stage, query: &str) -> Vec<String> {
    let rows: Vec<Row> = diesel::sql_query(query).load(&mut connect(stage)).unwrap();
    rows.into_iter().map(|row| row.text).collect()
}

fn script(text: &str, more: &[(&str, &str)]) -> Stage {
    let mut properties = vec![("resource", "${folder}/setup.sql")];
    properties.extend(more);
    let stage = Stage::new("sqlScript", &properties);
    stage.write("setup.sql", text);
    stage
}

const SETUP: &str = "
-- Orders; with their lines.
CREATE TABLE orders (text TEXT NOT NULL);
INSERT INTO orders VALUES ('one; two'), ('it''s');
/* A query; its result is discarded. */
SELECT * FROM orders;
";

#[test]
fn a_script_runs_statement_by_statement() {
    let stage = script(SETUP, &[]);
    stage.run().completed_as("COMPLETED");
    assert_eq!(query(&stage, "SELECT text FROM orders"), ["one; two", "it's"]);
}

#[test]
fn statements_may_be_a_property() {
    let stage = Stage::new(
        "sqlScript",
        &[("sql", "CREATE TABLE a (text TEXT);\nINSERT INTO a VALUES ('x')")],
    );
    stage.run().completed_as("COMPLETED");
    assert_eq!(query(&stage, "SELECT text FROM a"), ["x"]);
    for properties in [[].as_slice(), &[("sql", "SELECT 1"), ("resource", "a.sql")]] {
        let ended = Stage::new("sqlScript", properties).run();
        assert!(
            ended.failed().contains("set either `resource` or `sql`"),
            "{}",
            ended.message
        );
    }
}

#[test]
fn an_error_names_the_statement_and_rolls_back() {
    let stage = script(
        &format!("{SETUP}\nINSERT INTO missing\n  VALUES (1);\nSELECT 1;"),
        &[],
    );
    let ended = stage.run();
    let name = stage.name("setup.sql");
    let expected = format!(
        "cannot execute statement 4 of 5 at {name}:8, `INSERT INTO missing VALUES (1)`: no such table: missing"
    );
    assert!(ended.failed().contains(&expected), "{}", ended.message);
    let tables = "SELECT name AS text FROM sqlite_master WHERE name = 'orders'";
    assert_eq!(query(&stage, tables), [""; 0]);
    // The restart executes the corrected script from its beginning.
    stage.write("setup.sql", SETUP);
    stage.restart(ended.id, ()).completed_as("COMPLETED");
    assert_eq!(query(&stage, tables), ["orders"]);
}

/// A variable without a value would be null.
///
/// Spec: INPUT-01
#[test]
fn variables_are_rejected() {
    for variable in ["@day", "$day", "$1", "?", "?1", ":day"] {
        let text = format!("{SETUP}DELETE FROM orders\n  WHERE text = {variable};");
        let stage = script(&text, &[("transaction", "each")]);
        let ended = stage.run();
        let expected = format!(
            "`{variable}` in the statement `DELETE FROM orders WHERE text = {variable}` at {}:7 has no value and would be null",
            stage.name("setup.sql")
        );
        assert!(ended.failed().contains(&expected), "{}", ended.message);
        let tables = "SELECT name AS text FROM sqlite_master WHERE name = 'orders'";
        assert_eq!(query(&stage, tables), [""; 0], "nothing was executed");
    }
}

/// Spec: READY-01
#[test]
fn each_statement_may_commit_by_itself() {
    let text = format!("{SETUP}\nINSERT INTO missing VALUES (1);\nINSERT INTO orders VALUES ('three')");
    let stage = script(&text, &[("transaction", "each")]);
    let ended = stage.run();
    assert!(ended.failed().contains("statement 4 of 5"), "{}", ended.message);
    assert_eq!(query(&stage, "SELECT text FROM orders").len(), 2);

    let stage = script(&text, &[("transaction", "each"), ("on.error", "continue")]);
    let ended = stage.run();
    ended.completed_as("STATEMENTS FAILED");
    assert_eq!(ended.message, "4 statements, 1 failed");
    assert_eq!(query(&stage, "SELECT text FROM orders").len(), 3);
    let logged = log_with(&format!("{}:8", stage.name("setup.sql")));
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0].contains("no such table: missing"), "{logged:?}");

    let stage = script(SETUP, &[("on.error", "continue")]);
    let ended = stage.run();
    assert!(
        ended.failed().contains("set `transaction` to `each`"),
        "{}",
        ended.message
    );
}

#[test]
fn the_transaction_of_the_script_is_the_only_one() {
    let text = format!("{SETUP}COMMIT;");
    let stage = script(&text, &[]);
    let ended = stage.run();
    let expected = format!("`COMMIT` at {}:7 would interfere", stage.name("setup.sql"));
    assert!(ended.failed().contains(&expected), "{}", ended.message);
    let stage = script(&format!("BEGIN;{text}"), &[("transaction", "each")]);
    stage.run().completed_as("COMPLETED");
    assert_eq!(query(&stage, "SELECT text FROM orders").len(), 2);
}

#[test]
fn bodies_need_another_separator() {
    let text = "CREATE TABLE a (text TEXT)
/
CREATE TRIGGER t AFTER INSERT ON a WHEN new.text = 'x' BEGIN
  INSERT INTO a VALUES ('y');
  INSERT INTO a VALUES (4 / 2);
END
/
INSERT INTO a VALUES ('x')
/
";
    let stage = script(text, &[("separator", "/")]);
    stage.run().completed_as("COMPLETED");
    assert_eq!(query(&stage, "SELECT text FROM a"), ["x", "y", "2"]);
}

#[test]
fn a_script_that_cannot_be_read_is_named() {
    let stage = Stage::new("sqlScript", &[("resource", "${folder}/none.sql")]);
    let ended = stage.run();
    assert!(
        ended.failed().contains("/none.sql: No such file"),
        "{}",
        ended.message
    );
    let stage = script("SELECT 1;\nSELECT 'a;", &[]);
    let ended = stage.run();
    let expected = "/setup.sql: line 2: the text has no end";
    assert!(ended.failed().contains(expected), "{}", ended.message);
}

/// The script would run for hours.
#[test]
fn a_stop_takes_effect_before_the_next_statement() {
    let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT max(i) FROM n;\n";
    let text = format!("CREATE TABLE a (text TEXT);\n{}", count.repeat(10_000));
    for (transaction, tables) in [("all", 0), ("each", 1)] {
        let stage = script(&text, &[("transaction", transaction)]);
        let tables_now = || query(&stage, "SELECT name AS text FROM sqlite_master WHERE name = 'a'").len();
        let has_started = || match transaction {
            "all" => !log_with(&stage.name("setup.sql")).is_empty(),
            _ => tables_now() == 1,
        };
        let ended = stage.start_and_stop(has_started);
        assert_eq!(
            (ended.status, ended.exit_status.as_str()),
            (BatchStatus::Stopped, "STOPPED")
        );
        assert_eq!(tables_now(), tables, "{transaction}");
    }
}
