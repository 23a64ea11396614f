//! A table in a database beside the repository, as a test of a user has it.

use std::path::Path;

use batch_items::TableItemWriter;
use batch_runtime::prelude::*;
use batch_testing::JobTest;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

#[derive(Clone, serde::Serialize)]
struct Posting {
    number: u64,
}

#[item_writer("LedgerWriter")]
type LedgerWriter = TableItemWriter<Posting>;

fn execute(file: &Path, statement: &str) {
    let mut connection = SqliteConnection::establish(&file.display().to_string()).unwrap();
    connection.batch_execute(statement).unwrap();
}

/// Each message names the database, and what to do there.
///
/// Spec: MARK-13, ITEM-TABLE-01
#[test]
fn a_database_beside_the_repository_has_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("post.xml");
    let text = r#"<job id="post"><step id="post"><chunk reader="Postings" writer="LedgerWriter"><properties>
        <property name="table" value="posting"/><property name="database" value="ledger"/></properties></chunk></step></job>"#;
    std::fs::write(&job, text).unwrap();
    let ledger = folder.path().join("ledger.db");
    let launch = || {
        let postings: Vec<_> = (1..=3).map(|number| Posting { number }).collect();
        JobTest::new(&job)
            .database("ledger", format!("sqlite://{}", ledger.display()))
            .reader("Postings", postings)
            .launch()
    };
    launch().assert_failed("(the file does not exist; only the file of the repository is created)");
    execute(&ledger, "CREATE TABLE other (number INTEGER)");
    launch().assert_failed("the table does not exist in the database `ledger`; create it there");
    execute(&ledger, "CREATE TABLE posting (number INTEGER PRIMARY KEY)");
    launch().assert_completed().step("post").assert_writes(3);
}
