//! The table writer of `batch-items` on each database.

use std::fs;
use std::sync::Mutex;

use batch_items::{JsonLinesItemReader, TableItemWriter};
use batch_runtime::prelude::*;
use batch_tests::database::{Database, Place};
use batch_tests::stage::Stage;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Payment {
    id: i64,
    payer: Option<String>,
    amount: f64,
    paid: Option<bool>,
    day: Option<String>,
    tags: Vec<String>,
}

#[item_reader("PaymentReader")]
type PaymentReader = JsonLinesItemReader<Payment>;

#[item_writer("PaymentTable")]
type PaymentTable = TableItemWriter<Payment>;

/// The database whose table is dropped.
static DROPS: Mutex<Option<Place>> = Mutex::new(None);

/// Fails at a payment that a property names, and drops the table at another.
#[derive(BatchArtifact)]
struct PassPayment {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: i64,
    #[batch_property(name = "drop.at", value = "0")]
    drop_at: i64,
}

#[item_processor("PassPayment")]
impl PassPayment {
    #[process_item]
    fn process(&mut self, payment: Payment) -> Result<Option<Payment>, BatchError> {
        if payment.id == self.fail_at {
            return Err(BatchError::msg("stopped by the test"));
        }
        if payment.id == self.drop_at {
            let place = DROPS.lock().unwrap().take().unwrap();
            place.connect().execute("DROP TABLE payment").unwrap();
        }
        Ok(Some(payment))
    }
}

const SKIP: &str = r#"<skippable-exception-classes>
  <include class="EncodeError"/><include class="TableError"/>
</skippable-exception-classes>"#;

/// Returns a stage with a table `payment`, whose key is `id`, and a job that writes these payments with these properties.
fn stage(database: Database, payments: &str, properties: &str, children: &str) -> Stage {
    stage_of_chunks(100, database, payments, properties, children)
}

/// The same with a given number of payments in a chunk.
fn stage_of_chunks(
    chunk: u32,
    database: Database,
    payments: &str,
    properties: &str,
    children: &str,
) -> Stage {
    let properties: String = properties
        .lines()
        .map(|line| {
            let (name, value) = line.trim().split_once('=').unwrap();
            format!("<property name=\"{name}\" value=\"{value}\" target=\"writer\"/>")
        })
        .collect();
    let stage = Stage::on(
        database,
        &format!(
            r#"<job id="job"><step id="load"><chunk reader="PaymentReader" processor="PassPayment" writer="PaymentTable"
                commit-interval="{chunk}">
                <properties>
                  <property name="resource" value="${{folder}}/payments.jsonl" target="reader"/>{properties}
                </properties>{children}
              </chunk></step></job>"#
        ),
    );
    fs::write(stage.path().join("payments.jsonl"), payments).unwrap();
    let characters = match database {
        Database::Mariadb => "CHARACTER SET utf8mb4",
        _ => "",
    };
    let table = "CREATE TABLE payment (id BIGINT NOT NULL PRIMARY KEY, payer VARCHAR(100), amount DOUBLE PRECISION, \
                 paid BOOLEAN, day DATE, tags VARCHAR(100))";
    stage.outside().execute(&format!("{table} {characters}")).unwrap();
    stage
}

fn payment(id: i64, payer: &str) -> String {
    format!(
        "{{\"id\":{id},\"payer\":{payer},\"amount\":{id}.5,\"paid\":{},\"day\":\"2026-11-{:02}\",\"tags\":[\"a\",\"b\"]}}\n",
        id % 2 == 0,
        id % 28 + 1
    )
}

/// Returns the rows of the table, in the order of their key.
fn rows(stage: &Stage) -> Vec<String> {
    let text = |column: &str| format!("COALESCE(CAST({column} AS CHAR(40)), '-')");
    let columns = ["id", "payer", "amount", "day", "tags"].map(text);
    let columns = match stage.place().database() {
        Database::Mariadb => format!("CONCAT_WS('|', {})", columns.join(", ")),
        _ => columns
            .map(|column| format!("TRIM({column})"))
            .join(" || '|' || "),
    };
    stage
        .outside()
        .rows(&format!("SELECT {columns} AS text FROM payment ORDER BY id"))
}

fn run(stage: &Stage) -> String {
    let execution = stage.start("job", ());
    stage.tree(execution)
}

/// Every value of every type arrives, in full statements and in the remaining rows.
#[test]
fn items_are_inserted() {
    for database in Database::ALL {
        for count in [1, 9, 11, 50, 99, 100, 101, 1_203] {
            let payments: String = (1..=count).map(|id| payment(id, "\"Ada\"")).collect();
            let stage = stage(database, &payments, "table=payment", "");
            let tree = run(&stage);
            assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
            let rows = rows(&stage);
            assert_eq!(rows.len() as i64, count, "{database:?}");
            assert_eq!(rows[0], "1|Ada|1.5|2026-11-02|[\"a\",\"b\"]", "{database:?}");
            let paid = stage.outside().number("SELECT COUNT(*) FROM payment WHERE paid");
            assert_eq!(paid, count / 2, "{database:?}");
        }
    }
}

/// Statements are found by their table, also if a process writes to more tables than have their own prepared statements.
#[test]
fn each_table_has_its_statements() {
    const TABLES: i64 = 12;
    for database in Database::ALL {
        let steps: String = (1..=TABLES)
            .map(|table| {
                let next = if table < TABLES {
                    format!("next=\"load{}\"", table + 1)
                } else {
                    String::new()
                };
                format!(
                    r#"<step id="load{table}" {next}><chunk reader="PaymentReader" processor="PassPayment" writer="PaymentTable"
                        commit-interval="100">
                        <properties>
                          <property name="resource" value="${{folder}}/{table}.jsonl" target="reader"/>
                          <property name="table" value="payment{table}" target="writer"/>
                          <property name="columns" value="id,payer" target="writer"/>
                        </properties>
                      </chunk></step>"#
                )
            })
            .collect();
        let stage = Stage::on(database, &format!(r#"<job id="job">{steps}</job>"#));
        for table in 1..=TABLES {
            // One full statement, and one for each of the remaining rows.
            let payments: String = (1..=50 + table).map(|id| payment(id, "\"Ada\"")).collect();
            fs::write(stage.path().join(format!("{table}.jsonl")), payments).unwrap();
            let create = format!("CREATE TABLE payment{table} (id BIGINT PRIMARY KEY, payer VARCHAR(9))");
            stage.outside().execute(&create).unwrap();
        }
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        for table in 1..=TABLES {
            let rows = stage
                .outside()
                .number(&format!("SELECT COUNT(*) FROM payment{table}"));
            assert_eq!(rows, 50 + table, "{database:?}");
        }
    }
}

/// Changes a table between two steps that write it.
#[cfg(feature = "servers")]
#[derive(BatchArtifact)]
struct ChangeTable {
    #[batch_context]
    job: JobContext,
}

#[cfg(feature = "servers")]
#[batchlet]
impl ChangeTable {
    #[process]
    fn process(&self) -> Result<(), BatchError> {
        let change = "ALTER TABLE payment ALTER COLUMN tags TYPE jsonb USING tags::jsonb";
        self.job.connect()?.batch_execute(change)?;
        Ok(())
    }
}

/// The columns of a table are those that it has when a step begins; the writers of its partitions share them.
#[cfg(feature = "servers")]
#[test]
fn a_step_sees_what_an_earlier_one_has_changed() {
    let step = |id: &str, next: &str| {
        format!(
            r#"<step id="{id}" {next}><chunk reader="PaymentReader" processor="PassPayment" writer="PaymentTable">
                <properties>
                  <property name="resource" value="${{file}}" target="reader"/>
                  <property name="table" value="payment" target="writer"/>
                </properties>
              </chunk><partition><algorithm ref="filePartitions"><properties>
                <property name="resource" value="${{folder}}/{id}-*.jsonl"/></properties></algorithm></partition></step>"#
        )
    };
    let steps = [
        step("first", "next=\"change\""),
        r#"<step id="change" next="second"><batchlet ref="ChangeTable"/></step>"#.to_owned(),
        step("second", ""),
    ];
    let stage = Stage::on(
        Database::Postgres,
        &format!(r#"<job id="job">{}</job>"#, steps.concat()),
    );
    for (file, id) in [("first-1", 1), ("first-2", 2), ("second-1", 3), ("second-2", 4)] {
        fs::write(stage.path().join(format!("{file}.jsonl")), payment(id, "\"Ada\"")).unwrap();
    }
    let table = "CREATE TABLE payment (id BIGINT NOT NULL PRIMARY KEY, payer VARCHAR(100), amount DOUBLE PRECISION, \
                 paid BOOLEAN, day DATE, tags VARCHAR(100))";
    stage.outside().execute(table).unwrap();
    let tree = run(&stage);
    assert!(tree.contains("job job COMPLETED"), "{tree}");
    let arrays = "SELECT COUNT(*) FROM payment WHERE jsonb_array_length(tags) = 2";
    assert_eq!(stage.outside().number(arrays), 4);
}

/// Null stays null, and a text is not SQL.
#[test]
fn values_are_only_values() {
    for database in Database::ALL {
        let payments = "{\"id\":1,\"payer\":null,\"amount\":0,\"paid\":null,\"day\":null,\"tags\":[]}\n"
            .to_owned()
            + &payment(2, r#""O'Brien \"; DROP TABLE payment; -- ä€😀""#);
        let stage = stage(database, &payments, "table=payment", "");
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        let rows = rows(&stage);
        assert!(
            rows[0].starts_with("1|-|0") && rows[0].ends_with("|-|[]"),
            "{database:?} {rows:?}"
        );
        assert!(
            rows[1].contains("O'Brien \"; DROP TABLE payment; -- ä€😀"),
            "{database:?} {rows:?}"
        );
        let nulls = "SELECT COUNT(*) FROM payment WHERE payer IS NULL AND paid IS NULL AND day IS NULL";
        assert_eq!(stage.outside().number(nulls), 1, "{database:?}");
    }
}

/// A row is inserted or updated by its key; the last item with a key counts.
#[test]
fn items_are_upserted_updated_and_deleted() {
    for database in Database::ALL {
        let payments: String = [(1, "\"new\""), (3, "\"third\""), (1, "\"newest\"")]
            .map(|(id, payer)| payment(id, payer))
            .concat();
        let existing =
            "INSERT INTO payment (id, payer, amount) VALUES (1, 'old', 0), (2, 'kept', 0), (3, 'old', 0)";
        let ids_and_payers = |stage: &Stage| -> Vec<String> {
            let part = |row: &String| row.splitn(3, '|').take(2).collect::<Vec<_>>().join(" ");
            rows(stage).iter().map(part).collect()
        };
        let upserted = stage(database, &payments, "table=payment\nmode=upsert\nkey=id", "");
        upserted
            .outside()
            .execute("INSERT INTO payment (id, payer, amount) VALUES (1, 'old', 0), (2, 'kept', 0)")
            .unwrap();
        let tree = run(&upserted);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert_eq!(
            ids_and_payers(&upserted),
            ["1 newest", "2 kept", "3 third"],
            "{database:?}"
        );

        let updated = stage(
            database,
            &payments,
            "table=payment\nmode=update\nkey=id\ncolumns=id,payer",
            "",
        );
        updated.outside().execute(existing).unwrap();
        let tree = run(&updated);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert_eq!(
            ids_and_payers(&updated),
            ["1 newest", "2 kept", "3 third"],
            "{database:?}"
        );
        let untouched = updated
            .outside()
            .number("SELECT COUNT(*) FROM payment WHERE amount = 0");
        assert_eq!(untouched, 3, "{database:?}");

        let payments = payment(1, "null") + &payment(3, "null");
        let deleted = stage(database, &payments, "table=payment\nmode=delete\nkey=id", "");
        deleted.outside().execute(existing).unwrap();
        let tree = run(&deleted);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert_eq!(ids_and_payers(&deleted), ["2 kept"], "{database:?}");

        let payments = payment(1, "null") + &payment(2, "null");
        let two_keys = stage(
            database,
            &payments,
            "table=payment\nmode=delete\nkey=id,amount\ncolumns=id,amount",
            "",
        );
        two_keys
            .outside()
            .execute("INSERT INTO payment (id, amount) VALUES (1, 1.5), (2, 2.5), (3, 3.5)")
            .unwrap();
        let tree = run(&two_keys);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert_eq!(rows(&two_keys).len(), 1, "{database:?}");
    }
}

/// Keys that differ in digits that a float does not have are not confused.
#[test]
fn large_keys_are_compared_exactly() {
    for database in Database::ALL {
        let payments = payment(9_007_199_254_740_993, "\"right\"");
        let updated = stage(
            database,
            &payments,
            "table=payment\nmode=update\nkey=id\ncolumns=id,payer",
            "",
        );
        let existing =
            "INSERT INTO payment (id, payer) VALUES (9007199254740992, 'kept'), (9007199254740993, 'old')";
        updated.outside().execute(existing).unwrap();
        let tree = run(&updated);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        let right = "SELECT COUNT(*) FROM payment WHERE payer = 'right'";
        assert_eq!(updated.outside().number(right), 1, "{database:?}");
        let deleted = stage(
            database,
            &payments,
            "table=payment\nmode=delete\nkey=id\ncolumns=id",
            "",
        );
        deleted.outside().execute(existing).unwrap();
        let tree = run(&deleted);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert_eq!(rows(&deleted).len(), 1, "{database:?}");
    }
}

/// The same of keys that are texts in the items and numbers in the table, alone and with another column, on the servers: a decimal of
/// SQLite is a float.
#[test]
#[cfg(feature = "servers")]
fn large_decimal_keys_are_compared_exactly() {
    let types = [
        (Database::Postgres, "NUMERIC(30, 2)", "12345678901234567.8"),
        (Database::Mariadb, "DECIMAL(30, 2)", "12345678901234567.8"),
        (
            Database::Mariadb,
            "DECIMAL(65, 30) UNSIGNED",
            "12345678901234567.8",
        ),
        (
            Database::Mariadb,
            "DECIMAL(65)",
            "1234567890123456789012345678901234567890123456789012345678901234",
        ),
        (Database::Mariadb, "BIGINT UNSIGNED", "1844674407370955160"),
    ];
    for (database, number, digits) in types {
        for (mode, keys) in [
            ("update", "payer"),
            ("update", "payer,tags"),
            ("delete", "payer"),
            ("delete", "payer,tags"),
        ] {
            let payments = [2, 4]
                .map(|last| payment(last, &format!("\"{digits}{last}\"")))
                .concat();
            let properties = format!("table=wide\nmode={mode}\nkey={keys}\ncolumns=id,payer,tags");
            let properties = properties.replace(if mode == "delete" { "id," } else { "\0" }, "");
            let stage = stage(database, &payments, &properties, "");
            let row = |last| format!("({digits}{last}, 0, '[\"a\",\"b\"]')");
            let rows: Vec<_> = (1..=5).map(row).collect();
            let mut outside = stage.outside();
            let table = format!("CREATE TABLE wide (payer {number}, id BIGINT, tags VARCHAR(9))");
            outside.execute(&table).unwrap();
            outside
                .execute(&format!("INSERT INTO wide VALUES {}", rows.join(", ")))
                .unwrap();
            let tree = run(&stage);
            let context = format!("{database:?} {number} {mode} {keys}");
            assert!(tree.contains("job job COMPLETED"), "{context}\n{tree}");
            let left = outside.rows("SELECT CAST(id AS CHAR(1)) AS text FROM wide ORDER BY payer");
            let expected: &[&str] = match mode {
                "update" => &["0", "2", "0", "4", "0"],
                _ => &["0", "0", "0"],
            };
            assert_eq!(left, expected, "{context}");
        }
    }
}

/// An item without a row is not ignored.
#[test]
fn the_number_of_changed_rows_is_checked() {
    for database in Database::ALL {
        for (mode, past) in [("update", "updated"), ("delete", "deleted")] {
            let payments = payment(1, "null") + &payment(2, "null");
            let properties = format!("table=payment\nmode={mode}\nkey=id");
            let checked = stage(database, &payments, &properties, "");
            checked
                .outside()
                .execute("INSERT INTO payment (id) VALUES (1)")
                .unwrap();
            let tree = run(&checked);
            let expected = format!("cannot {mode} 2 rows in table `payment`: 1 rows were {past} for 2 items");
            assert!(tree.contains(&expected), "{database:?}\n{tree}");
            assert_eq!(rows(&checked).len(), 1, "rolled back");

            let ignored = stage(
                database,
                &payments,
                &(properties.clone() + "\nrows.affected=ignore"),
                "",
            );
            ignored
                .outside()
                .execute("INSERT INTO payment (id) VALUES (1)")
                .unwrap();
            assert!(run(&ignored).contains("job job COMPLETED"), "{database:?}");

            let skipped = stage(database, &payments, &properties, SKIP);
            skipped
                .outside()
                .execute("INSERT INTO payment (id) VALUES (1)")
                .unwrap();
            let tree = run(&skipped);
            assert!(
                tree.contains("write 1 commit 1 rollback 1 write skip 1"),
                "{database:?}\n{tree}"
            );
        }
    }
}

/// A table that does not fit the items is not the fault of an item: nothing is skipped, even if the list includes the error.
///
/// Spec: D-106
#[test]
fn a_wrong_table_is_not_skipped() {
    for class in ["TableError", "Exception"] {
        let skip = SKIP.replace("class=\"TableError\"", &format!("class=\"{class}\""));
        for properties in ["table=paymnet", "table=payment\ncolumns=id,payr"] {
            let payments = payment(1, "null") + &payment(2, "null");
            let tree = run(&stage(Database::Sqlite, &payments, properties, &skip));
            assert!(tree.contains("job job FAILED"), "{properties}\n{tree}");
            assert!(!tree.contains("skip"), "{properties}\n{tree}");
        }
    }
}

/// Returns statements that leave a table of this kind in the place of `payment`, which takes no payment.
fn unfit(kind: &str) -> String {
    match kind {
        "is missing" => "DROP TABLE payment".to_owned(),
        "is a view" => "ALTER TABLE payment RENAME TO other; CREATE VIEW payment AS SELECT MAX(id) AS id, MAX(payer) AS payer FROM other".to_owned(),
        "needs another column" => "DROP TABLE payment; CREATE TABLE payment (id BIGINT, payer VARCHAR(9), audit VARCHAR(9) NOT NULL)".to_owned(),
        "has no key" => "DROP TABLE payment; CREATE TABLE payment (id BIGINT, payer VARCHAR(9))".to_owned(),
        other => panic!("{other}"),
    }
}

/// A table that takes no payment fails the step, with a list of one row, too: nothing is skipped.
///
/// Spec: D-106
#[test]
fn a_table_that_takes_no_row_is_not_skipped() {
    let insert = "table=payment\ncolumns=id,payer".to_owned();
    let upsert = format!("{insert}\nmode=upsert\nkey=id");
    for database in Database::ALL {
        for (kind, properties) in [
            ("is missing", &insert),
            ("is a view", &insert),
            ("needs another column", &insert),
            ("has no key", &upsert),
        ] {
            for chunk in [1, 2] {
                let payments = payment(1, "null") + &payment(2, "null") + &payment(3, "null");
                let stage = stage_of_chunks(chunk, database, &payments, properties, SKIP);
                stage.outside().execute(&unfit(kind)).unwrap();
                let tree = run(&stage);
                assert!(
                    tree.contains("job job FAILED"),
                    "{database:?} {kind} {chunk}\n{tree}"
                );
                assert!(!tree.contains("skip"), "{database:?} {kind} {chunk}\n{tree}");
            }
        }
    }
}

/// What is written to a table without transactions could not be undone.
///
/// Spec: ITEM-TABLE-01
#[test]
#[cfg(feature = "servers")]
fn a_table_without_transactions_fails_the_step() {
    let stage = stage(
        Database::Mariadb,
        &payment(1, "null"),
        "table=payment\ncolumns=id,payer",
        "",
    );
    stage
        .outside()
        .execute("ALTER TABLE payment ENGINE = MyISAM")
        .unwrap();
    let tree = run(&stage);
    assert!(
        tree.contains("its engine MyISAM has no transactions")
            && tree.contains("ALTER TABLE payment ENGINE = InnoDB"),
        "{tree}"
    );
}

/// A column that is computed from a bad item is the fault of the item.
///
/// Spec: D-106
#[test]
fn a_computed_column_without_a_value_is_skipped() {
    // MariaDB has no computed columns that must not be null.
    for database in Database::ALL
        .into_iter()
        .filter(|database| *database != Database::Mariadb)
    {
        let payments = payment(1, "\"A\"") + &payment(2, "null") + &payment(3, "\"B\"");
        let stage = stage(database, &payments, "table=payment\ncolumns=id,payer", SKIP);
        let computed = "DROP TABLE payment; CREATE TABLE payment (id BIGINT, payer VARCHAR(9), \
                        copy VARCHAR(9) NOT NULL GENERATED ALWAYS AS (payer) STORED)";
        stage.outside().execute(computed).unwrap();
        let tree = run(&stage);
        assert!(
            tree.contains("write 2 commit 1 rollback 1 write skip 1"),
            "{database:?}\n{tree}"
        );
    }
}

/// So does a table that is dropped between two chunks.
///
/// Spec: D-106, ITEM-TABLE-01
#[test]
fn a_table_that_is_dropped_is_not_skipped() {
    for database in Database::ALL {
        for chunk in [1, 2] {
            let payments: String = (1..=4).map(|id| payment(id, "null")).collect();
            let stage = stage_of_chunks(chunk, database, &payments, "table=payment", SKIP);
            *DROPS.lock().unwrap() = Some(stage.place().clone());
            let execution = stage.start("job", [("drop.at", "3")]);
            let tree = stage.tree(execution);
            assert!(tree.contains("job job FAILED"), "{database:?} {chunk}\n{tree}");
            assert!(tree.contains("write 2"), "{database:?} {chunk}\n{tree}");
            assert!(!tree.contains("skip"), "{database:?} {chunk}\n{tree}");
        }
    }
}

/// What a constraint rejects has its own class, which is a table error too. Its message contains the key if the
/// database reports it.
#[test]
fn violations_of_constraints_are_skipped_alone() {
    let skip = SKIP.replace("class=\"TableError\"", "class=\"ConstraintViolation\"");
    for database in Database::ALL {
        let payments = payment(1, "null") + &payment(1, "null") + &payment(2, "null");
        for skip in [&skip, SKIP] {
            let stage = stage(database, &payments, "table=payment", skip);
            let tree = run(&stage);
            assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
            assert!(
                tree.contains("write 2 commit 1 rollback 1 write skip 1"),
                "{database:?}\n{tree}"
            );
        }
        let properties = "table=payment\nmode=update\nkey=id";
        let tree = run(&stage(database, &payments, properties, &skip));
        assert!(tree.contains("job job FAILED"), "{database:?}\n{tree}");

        let rejected = match database {
            Database::Sqlite => "UNIQUE constraint failed: payment.id",
            // The tree shows messages up to their first parenthesis.
            Database::Postgres => r#"constraint "payment_pkey": Key"#,
            Database::Mariadb => "Duplicate entry '1' for key",
        };
        let tree = run(&stage(database, &payments, "table=payment", ""));
        assert!(tree.contains(rejected), "{database:?}\n{tree}");
    }
}

/// Errors name the table, the field and the value. A bad item can be skipped alone.
#[test]
fn errors_name_the_place() {
    for database in Database::ALL {
        let good = payment(1, "null");
        let fails = |payments: &str, properties: &str| run(&stage(database, payments, properties, ""));
        let check =
            |tree: &str, expected: &str| assert!(tree.contains(expected), "{database:?} {expected}\n{tree}");
        check(
            &fails(&good, "table=paymnet"),
            "cannot insert rows in table `paymnet`: the table does not exist; create it by `schema_sql`, or by a step with the batchlet `sqlScript`",
        );
        check(
            &fails(&good, "table=payment\ncolumns=id,payr"),
            "cannot insert rows in table `payment`: it has no column `payr`; did you mean `payer`?",
        );
        check(
            &fails(&good, "table=payment\nmode=update"),
            "cannot update rows in table `payment`: set the property `key` to update rows",
        );
        check(
            &fails(&good, "table=payment\nmode=update\nkey=id\ncolumns=id"),
            "all columns are part of the key; there is nothing to update",
        );
        let smaller = stage(database, &good, "table=small", "");
        smaller
            .outside()
            .execute("CREATE TABLE small (id BIGINT, payr VARCHAR(9))")
            .unwrap();
        check(&run(&smaller), "it has no column `payer`; did you mean `payr`?");

        // A duplicate key is found among many.
        let many: String = (1..=90).map(|id| payment(id, "null")).collect();
        let duplicate = stage(
            database,
            &(many.clone() + &payment(17, "null")),
            "table=payment",
            SKIP,
        );
        let tree = run(&duplicate);
        check(&tree, "job job COMPLETED");
        check(&tree, "write skip 1");
        assert_eq!(rows(&duplicate).len(), 90, "{database:?}");
        let duplicate = stage(database, &(many + &payment(17, "null")), "table=payment", "");
        check(&run(&duplicate), "cannot insert 91 rows in table `payment`: ");
        assert_eq!(rows(&duplicate).len(), 0, "{database:?}");
    }
}

/// A text in a column of numbers is an error, also on SQLite, which would store it.
#[test]
fn a_text_is_converted_or_rejected() {
    for database in Database::ALL {
        let payments = payment(1, "\"12\"") + &payment(2, "\"twelve\"") + &payment(3, "\"13\"");
        let stage = stage(database, &payments, "table=number\ncolumns=id,payer", SKIP);
        stage
            .outside()
            .execute("CREATE TABLE number (id BIGINT, payer INTEGER)")
            .unwrap();
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert!(
            tree.contains("write 2") && tree.contains("write skip 1"),
            "{database:?}\n{tree}"
        );
        let sum = stage.outside().number("SELECT SUM(payer) FROM number");
        assert_eq!(sum, 25, "{database:?}");
    }
}

/// A text that is not a number matches no row, not even the one with key 0, and is rejected for a decimal column.
#[test]
fn a_text_in_a_column_of_decimals_is_rejected() {
    for database in Database::ALL {
        for (mode, left) in [("delete", "0,3"), ("update", "0,1,3"), ("insert", "0,1,3")] {
            let payments = ["5x", "", "twelve", "7.00", "-1e2 "]
                .map(|payer| payment(1, &format!("\"{payer}\"")))
                .concat();
            let properties =
                format!("table=number\ncolumns=id,payer\nkey=payer\nmode={mode}\nrows.affected=ignore");
            let stage = stage(database, &payments, &properties, SKIP);
            let mut outside = stage.outside();
            outside
                .execute("CREATE TABLE number (id BIGINT, payer DECIMAL(10, 2))")
                .unwrap();
            let rows = match mode {
                "insert" => "(0, 0), (3, 5)",
                _ => "(0, 0), (3, 5), (7, 7)",
            };
            outside
                .execute(&format!("INSERT INTO number VALUES {rows}"))
                .unwrap();
            let tree = run(&stage);
            let context = format!("{database:?} {mode}\n{tree}");
            assert!(
                tree.contains("job job COMPLETED") && tree.contains("write skip 3"),
                "{context}"
            );
            let ids = outside.rows("SELECT DISTINCT CAST(id AS CHAR(1)) AS text FROM number ORDER BY 1");
            assert_eq!(ids.join(","), left, "{context}");
        }
    }
}

/// The rows are committed with the checkpoint: a restart writes each payment once.
#[test]
fn a_restart_writes_each_row_once() {
    for database in Database::ALL {
        for fail_at in [1, 100, 101, 250] {
            let payments: String = (1..=250).map(|id| payment(id, "null")).collect();
            let stage = stage(database, &payments, "table=payment", "");
            let failed = stage.start("job", [("fail.at", fail_at.to_string())]);
            assert_eq!(
                rows(&stage).len() as i64,
                (fail_at - 1) / 100 * 100,
                "{database:?}"
            );
            let again = stage.operator().restart(failed, [("fail.at", "0")]).unwrap();
            stage.operator().wait(again).unwrap();
            assert_eq!(rows(&stage).len(), 250, "{database:?}");
        }
    }
}

/// A restart has to continue in the table with the rows of the first run.
///
/// Spec: ITEM-TABLE-04
#[test]
fn a_restart_with_another_table_fails() {
    for database in Database::ALL {
        let payments: String = (1..=150).map(|id| payment(id, "null")).collect();
        let stage = stage(database, &payments, "table=${table}", "");
        let with =
            |fail_at: &str, table: &str| [("fail.at", fail_at.to_owned()), ("table", table.to_owned())];
        let copy = "CREATE TABLE other AS SELECT * FROM payment";
        stage.outside().execute(copy).unwrap();
        let failed = stage.start("job", with("101", "payment"));
        let mut again = stage.operator().restart(failed, with("0", "other")).unwrap();
        stage.operator().wait(again).unwrap();
        let tree = stage.tree(again);
        let expected =
            "cannot insert rows in table `other`: the step has written to table `payment` before the restart";
        assert!(tree.contains(expected), "{database:?}\n{tree}");
        again = stage.operator().restart(again, with("0", "payment")).unwrap();
        stage.operator().wait(again).unwrap();
        assert_eq!(rows(&stage).len(), 150, "{database:?}\n{}", stage.tree(again));
    }
}

/// A text that is too long for its column is not cut. On SQLite a column has no length.
#[test]
fn a_text_that_is_too_long_is_an_error() {
    for database in Database::ALL {
        if database == Database::Sqlite {
            continue;
        }
        for (column, chunk) in [("VARCHAR(5)", 10), ("CHAR(5)", 10), ("VARCHAR(5)", LARGE)] {
            if chunk == LARGE && database == Database::Mariadb {
                continue;
            }
            let payments: String = (1..=i64::from(chunk) - 1)
                .map(|id| payment(id, "\"Ada\""))
                .collect();
            let payments = payments + &payment(17_000, "\"Ada Lovelace\"");
            for mode in ["insert", "upsert"] {
                let properties = format!("table=short\ncolumns=id,payer\nkey=id\nmode={mode}");
                let stage = stage_of_chunks(chunk, database, &payments, &properties, SKIP);
                let table = format!("CREATE TABLE short (id BIGINT PRIMARY KEY, payer {column})");
                stage.outside().execute(&table).unwrap();
                let tree = run(&stage);
                assert!(
                    tree.contains("write skip 1"),
                    "{database:?} {column} {chunk} {mode}\n{tree}"
                );
                let rows = stage.outside().number("SELECT COUNT(*) FROM short");
                assert_eq!(rows, i64::from(chunk) - 1, "{database:?} {column} {chunk} {mode}");
            }
        }
    }
}

/// A chunk large enough for PostgreSQL's `COPY`.
const LARGE: u32 = 3_000;

/// A large chunk writes the same rows as small ones, with anything in their texts.
#[test]
fn a_large_chunk_is_the_same_as_small_ones() {
    for database in Database::ALL {
        let texts = [
            r#""a\tb\nc\rd\\e""#,
            r#""\\N""#,
            r#""\\.""#,
            "null",
            r#""""#,
            r#""'ä€😀\"""#,
        ];
        let payments: String = (1..=i64::from(LARGE))
            .map(|id| payment(id, texts[id as usize % texts.len()]))
            .collect();
        let [small, large] = [100, LARGE].map(|chunk| {
            let stage = stage_of_chunks(chunk, database, &payments, "table=payment", "");
            let tree = run(&stage);
            assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
            rows(&stage)
        });
        assert_eq!(small.len(), LARGE as usize);
        assert!(small == large, "{database:?}");
    }
}

/// A duplicate key is found in a large chunk, too.
#[test]
fn a_bad_item_of_a_large_chunk_is_skipped() {
    for database in Database::ALL {
        let payments: String = (1..=i64::from(LARGE)).map(|id| payment(id, "null")).collect();
        let payments = payments + &payment(17, "null");
        for (children, expected) in [
            (SKIP, "write skip 1"),
            ("", "cannot insert 3001 rows in table `payment`: "),
        ] {
            let stage = stage_of_chunks(LARGE + 1, database, &payments, "table=payment", children);
            let tree = run(&stage);
            assert!(tree.contains(expected), "{database:?}\n{tree}");
            let kept = if children.is_empty() { 0 } else { LARGE as usize };
            assert_eq!(rows(&stage).len(), kept, "{database:?}");
        }
    }
}

/// `COPY` rejects views and row-level security, and ignores rules; statements do not.
#[test]
#[cfg(feature = "servers")]
fn a_large_chunk_goes_to_tables_that_cannot_be_copied_to() {
    let payments: String = (1..=i64::from(LARGE)).map(|id| payment(id, "null")).collect();
    for (table, setup) in [
        ("seen", "CREATE VIEW seen AS SELECT * FROM payment"),
        ("payment", "ALTER TABLE payment ENABLE ROW LEVEL SECURITY"),
        (
            "other",
            "CREATE TABLE other AS SELECT * FROM payment;
             CREATE RULE redirect AS ON INSERT TO other DO INSTEAD INSERT INTO payment VALUES (NEW.*)",
        ),
    ] {
        let stage = stage_of_chunks(
            LARGE,
            Database::Postgres,
            &payments,
            &format!("table={table}"),
            "",
        );
        stage.outside().execute(setup).unwrap();
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{setup}\n{tree}");
        assert_eq!(rows(&stage).len(), LARGE as usize, "{setup}");
    }
    // `INSERT` protects a generated identity; `COPY` would not.
    let stage = stage_of_chunks(LARGE, Database::Postgres, &payments, "table=payment", "");
    let identity = "ALTER TABLE payment ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY";
    stage.outside().execute(identity).unwrap();
    let tree = run(&stage);
    assert!(
        tree.contains("the database computes the column `id`; leave it out by the property `columns`"),
        "{tree}"
    );
}

/// Collects rejects, and would never write them.
#[skip_listener("SkipsAlone")]
type SkipsAlone = batch_items::RejectListener<batch_items::Record>;

/// Spec: LOSS-07
#[test]
fn a_listener_that_would_lose_rejects_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let xml = r#"<job id="job"><step id="load"><listeners><listener ref="SkipsAlone"><properties>
        <property name="rejects.output" value="r.csv"/></properties></listener></listeners>
        <chunk reader="csvRecordReader" writer="recordJsonlWriter"><properties><property name="resource" value="in.csv"/>
        <property name="output" value="o.jsonl"/></properties></chunk></step></job>"#;
    std::fs::write(folder.path().join("job.xml"), xml).unwrap();
    let runtime = batch_runtime::BatchRuntime::builder()
        .job_path(folder.path().display().to_string())
        .repository("memory:")
        .build()
        .unwrap();
    let problems = runtime.job_operator().start("job", ()).unwrap_err().to_string();
    assert!(problems.contains("ART0030"), "{problems}");
}
