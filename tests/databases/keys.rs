//! Keys of the table writer: what `upsert`, `update` and `delete` do is the same on each database, for all sizes of chunks.

use std::fs;

use batch_tests::database::Database;
use batch_tests::stage::Stage;

/// Returns a stage with these tables, and a job that writes JSON objects with these properties of the writer.
fn stage(database: Database, chunk: u32, tables: &str, items: &str, properties: &str) -> Stage {
    skipping("ConstraintViolation", database, chunk, tables, items, properties)
}

/// The same with the class of errors that are skipped.
fn skipping(
    class: &str,
    database: Database,
    chunk: u32,
    tables: &str,
    items: &str,
    properties: &str,
) -> Stage {
    let properties: String = properties
        .lines()
        .filter_map(|line| line.trim().split_once('='))
        .map(|(name, value)| format!("<property name=\"{name}\" value=\"{value}\" target=\"writer\"/>"))
        .collect();
    let stage = Stage::on(
        database,
        &format!(
            r#"<job id="job"><step id="load"><chunk reader="jsonlRecordReader" writer="recordTableWriter"
                commit-interval="{chunk}">
                <properties>
                  <property name="resource" value="${{folder}}/items.jsonl" target="reader"/>{properties}
                </properties>
                <skippable-exception-classes><include class="{class}"/></skippable-exception-classes>
              </chunk></step></job>"#
        ),
    );
    fs::write(stage.path().join("items.jsonl"), items).unwrap();
    stage.outside().execute(tables).unwrap();
    stage
}

fn run(stage: &Stage) -> String {
    let execution = stage.start("job", ());
    stage.tree(execution)
}

/// Returns the rows of `t`, whose columns are texts and numbers, ordered.
fn rows(stage: &Stage, columns: &[&str]) -> Vec<String> {
    let text = |column: &&str| format!("COALESCE(CAST({column} AS CHAR(30)), '-')");
    let columns: Vec<_> = columns.iter().map(text).collect();
    let text = match stage.place().database() {
        Database::Mariadb => format!("CONCAT_WS(' ', {})", columns.join(", ")),
        _ => {
            let trimmed: Vec<_> = columns.iter().map(|column| format!("TRIM({column})")).collect();
            trimmed.join(" || ' ' || ")
        }
    };
    let mut rows = stage.outside().rows(&format!("SELECT {text} AS text FROM t"));
    rows.sort();
    rows
}

/// A row that collides with another unique index changes no other row.
///
/// Spec: ITEM-TABLE-02
#[test]
fn an_upsert_changes_only_the_row_with_its_key() {
    let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(9), key2 BIGINT UNIQUE);
        INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20)";
    let items = "{\"id\":1,\"name\":\"x\",\"key2\":10}\n{\"id\":3,\"name\":\"d\",\"key2\":20}\n\
                 {\"id\":4,\"name\":\"e\",\"key2\":40}\n{\"id\":1,\"name\":\"y\",\"key2\":20}\n\
                 {\"id\":4,\"name\":\"f\",\"key2\":41}\n";
    for database in Database::ALL {
        for chunk in [1, 3, 10] {
            let stage = stage(database, chunk, table, items, "table=t\nmode=upsert\nkey=id");
            let tree = run(&stage);
            assert!(tree.contains("job job COMPLETED"), "{database:?} {chunk}\n{tree}");
            assert!(tree.contains("write skip 2"), "{database:?} {chunk}\n{tree}");
            assert_eq!(
                rows(&stage, &["id", "name", "key2"]),
                ["1 x 10", "2 b 20", "4 f 41"],
                "{database:?} {chunk}"
            );
        }
    }
}

/// Spec: ITEM-TABLE-02
#[test]
fn the_key_may_be_a_unique_index_beside_a_generated_one() {
    for database in Database::ALL {
        let id = match database {
            Database::Sqlite => "INTEGER PRIMARY KEY",
            Database::Postgres => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            Database::Mariadb => "BIGINT AUTO_INCREMENT PRIMARY KEY",
        };
        let table = format!(
            "CREATE TABLE t (id {id}, a VARCHAR(9) NOT NULL, b BIGINT NOT NULL, v BIGINT, UNIQUE (a, b));
             INSERT INTO t (a, b, v) VALUES ('x', 1, 0)"
        );
        let items = "{\"a\":\"x\",\"b\":1,\"v\":1}\n{\"b\":2,\"a\":\"x\"}\n{\"a\":\"x\",\"b\":1,\"v\":3}\n";
        for chunk in [1, 10] {
            let stage = stage(database, chunk, &table, items, "table=t\nmode=upsert\nkey=b,a");
            let tree = run(&stage);
            assert!(tree.contains("job job COMPLETED"), "{database:?} {chunk}\n{tree}");
            assert_eq!(
                rows(&stage, &["a", "b", "v"]),
                ["x 1 3", "x 2 -"],
                "{database:?} {chunk}"
            );
        }
    }
}

/// A key that is not a unique index, and settings that no row can be written with, fail the step before it reads.
///
/// Spec: ITEM-TABLE-01, ITEM-TABLE-02
#[test]
fn settings_that_do_not_fit_the_table_fail_the_step() {
    let table =
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(9) NOT NULL, a BIGINT, b BIGINT, UNIQUE (a, b));
        CREATE TABLE other (id BIGINT PRIMARY KEY)";
    let items = "{\"id\":1,\"name\":\"d\",\"a\":1,\"b\":1}\n";
    for database in Database::ALL {
        for (properties, expected) in [
            (
                "table=t\nmode=upsert\nkey=name",
                "`upsert` needs a unique index of exactly the columns of `key`, `name`",
            ),
            (
                "table=t\nmode=upsert\nkey=a",
                "needs a unique index of exactly the columns of `key`, `a`",
            ),
            (
                "table=t\nmode=upsert\nkey=id,a",
                "needs a unique index of exactly the columns of `key`, `id,a`",
            ),
            ("table=t\nmode=upsert", "set the property `key` to upsert rows"),
            (
                "table=t\nmode=update\nkey=nmae",
                "it has no column `nmae`; did you mean `name`?",
            ),
            (
                "table=t\nmode=delete\nkey=id,ID",
                "`key` has the column `ID` twice",
            ),
            ("table=t\ncolumns=id,nosuch", "it has no column `nosuch`"),
            ("table=t\ncolumns=id", "the column `name` needs a value"),
            (
                "table=t\ncolumns=id,name,ID",
                "two fields for the column `id`, `id` and `ID`",
            ),
            (
                "table=t\nmode=update\nkey=id\ncolumns=name",
                "no field `id` of the key",
            ),
            ("table=nosuch", "the table does not exist"),
        ] {
            // An empty file, too.
            for items in [items, ""] {
                let stage = stage(database, 1, table, items, properties);
                let tree = run(&stage);
                assert!(
                    tree.contains("job job FAILED") && tree.contains(expected),
                    "{database:?} {properties}\n{tree}"
                );
                assert!(
                    tree.contains("read 0") && !tree.contains("skip"),
                    "{database:?}\n{tree}"
                );
            }
        }
    }
}

/// SQLite generates a key only if it is the row id: any other key would be null.
///
/// Spec: ITEM-TABLE-01
#[test]
fn a_key_of_sqlite_that_is_not_written_needs_a_value() {
    for (columns, is_given) in [
        ("id INTEGER PRIMARY KEY, v TEXT", true),
        ("id integer, v TEXT, PRIMARY KEY (id)", true),
        ("id TEXT PRIMARY KEY DEFAULT 'x', v TEXT", true),
        ("id TEXT PRIMARY KEY, v TEXT", false),
        ("id INT PRIMARY KEY, v TEXT", false),
        ("id INTEGER PRIMARY KEY DESC, v TEXT", false),
        ("id INTEGER, v TEXT, PRIMARY KEY (id, v)", false),
    ] {
        let table = format!("CREATE TABLE t ({columns})");
        let tree = run(&stage(Database::Sqlite, 1, &table, "{\"v\":\"a\"}\n", "table=t"));
        let is_as_expected = match is_given {
            true => tree.contains("job job COMPLETED") && tree.contains("write 1"),
            false => tree.contains("the column `id` needs a value") && !tree.contains("skip"),
        };
        assert!(is_as_expected, "{columns}\n{tree}");
    }
}

/// A key with a null matches nothing: for all sizes of chunks, no row gets it, and none is changed.
///
/// Spec: ITEM-TABLE-02
#[test]
fn null_in_a_key_is_an_error_of_the_item() {
    let table = "CREATE TABLE t (email VARCHAR(20) UNIQUE, v BIGINT); INSERT INTO t VALUES (NULL, 0), ('a', 0), ('b', 0)";
    let items = "{\"email\":null,\"v\":1}\n{\"email\":\"a\",\"v\":3}\n{\"v\":2}\n";
    for database in Database::ALL {
        for (mode, left) in [
            ("upsert", ["- 0", "a 3", "b 0"].as_slice()),
            ("update", &["- 0", "a 3", "b 0"]),
            ("delete", &["- 0", "b 0"]),
        ] {
            for chunk in [1, 2, 10] {
                let properties = format!("table=t\nmode={mode}\nkey=email");
                let stage = stage(database, chunk, table, items, &properties);
                let tree = run(&stage);
                assert!(
                    tree.contains("write 1") && tree.contains("write skip 2"),
                    "{database:?} {mode}\n{tree}"
                );
                assert_eq!(rows(&stage, &["email", "v"]), left, "{database:?} {mode} {chunk}");
            }
        }
        let properties = "table=t\nmode=upsert\nkey=email";
        let stage = skipping("EncodeError", database, 10, table, items, properties);
        let tree = run(&stage);
        assert!(
            tree.contains("the column `email` of the key is null; no row can have it"),
            "{database:?}\n{tree}"
        );
    }
}

/// The last item with a key counts, also if the texts of equal keys differ.
///
/// Spec: ITEM-TABLE-02
#[test]
fn the_last_item_with_a_key_counts() {
    let kinds = [
        (Database::Sqlite, "BIGINT", ["\"1\"", "1"]),
        (Database::Sqlite, "VARCHAR(9) COLLATE NOCASE", ["\"A\"", "\"a\""]),
        (Database::Sqlite, "NUMERIC(9, 2)", ["\"1.50\"", "1.5"]),
        (Database::Postgres, "NUMERIC(9, 2)", ["\"1.50\"", "1.5"]),
        (Database::Postgres, "CHAR(9)", ["\"A\"", "\"A  \""]),
        (
            Database::Postgres,
            "TIMESTAMP",
            ["\"2026-11-26T10:00:00\"", "\"2026-11-26 10:00\""],
        ),
        (
            Database::Postgres,
            "UUID",
            [
                "\"9F1E7F36-5C1F-4d0e-8a44-0d2f8f7f6a01\"",
                "\"9f1e7f365c1f4d0e8a440d2f8f7f6a01\"",
            ],
        ),
        (Database::Mariadb, "DECIMAL(9, 2)", ["\"1.50\"", "1.5"]),
        (Database::Mariadb, "VARCHAR(9)", ["\"A\"", "\"a\""]),
        (
            Database::Mariadb,
            "DATETIME",
            ["\"2026-11-26T10:00:00\"", "\"2026-11-26 10:00\""],
        ),
    ];
    for (database, kind, [first, second]) in kinds {
        if !Database::ALL.contains(&database) {
            continue;
        }
        let table = format!("CREATE TABLE t (k {kind} NOT NULL UNIQUE, v BIGINT, w BIGINT UNIQUE)");
        let items = format!("{{\"k\":{first},\"v\":1,\"w\":7}}\n{{\"k\":{second},\"v\":2,\"w\":8}}\n");
        for chunk in [1, 10] {
            for (mode, expected) in [("upsert", "2 8"), ("update", "2 8")] {
                let properties = format!("table=t\nmode={mode}\nkey=k");
                let stage = stage(database, chunk, &table, &items, &properties);
                if mode == "update" {
                    let exists = format!("INSERT INTO t VALUES ({}, 0, 1)", first.replace('"', "'"));
                    stage.outside().execute(&exists).unwrap();
                }
                let tree = run(&stage);
                assert!(
                    tree.contains("job job COMPLETED"),
                    "{database:?} {kind} {mode}\n{tree}"
                );
                assert_eq!(
                    rows(&stage, &["v", "w"]),
                    [expected],
                    "{database:?} {kind} {mode} {chunk}"
                );
            }
        }
    }
}

/// Of several rows with one key, the rows of one item do not count as another item's.
///
/// Spec: ITEM-TABLE-03
#[test]
fn each_item_changes_one_row() {
    let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, region VARCHAR(9), part VARCHAR(9), v BIGINT);
        INSERT INTO t VALUES (1, 'EU', 'a', 0), (2, 'EU', 'b', 1), (3, 'US', 'a', 0)";
    let item =
        |region: &str, part: &str| format!("{{\"region\":\"{region}\",\"part\":\"{part}\",\"v\":7}}\n");
    let items = [item("EU", "x"), item("ASIA", "x"), item("US", "x")].concat();
    for database in Database::ALL {
        for (mode, left) in [
            ("update", ["EU 0", "EU 1", "US 7"].as_slice()),
            ("delete", &["EU 0", "EU 1"]),
        ] {
            for chunk in [1, 10] {
                let properties = format!("table=t\nmode={mode}\nkey=region");
                let stage = skipping("TableError", database, chunk, table, &items, &properties);
                let tree = run(&stage);
                assert!(
                    tree.contains("write 1") && tree.contains("write skip 2"),
                    "{database:?} {mode} {chunk}\n{tree}"
                );
                assert_eq!(
                    rows(&stage, &["region", "v"]),
                    left,
                    "{database:?} {mode} {chunk}"
                );
            }
        }
        let properties = "table=t\nmode=update\nkey=region";
        let tree = run(&stage(database, 10, table, &items, properties));
        let expected = "cannot update 3 rows in table `t`: 2 rows were updated for 1 items";
        assert!(tree.contains(expected), "{database:?}\n{tree}");
        let ignored = format!("{properties}\nrows.affected=ignore\ncolumns=region,part");
        let ignored = stage(database, 10, table, &items, &ignored);
        let tree = run(&ignored);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert_eq!(
            rows(&ignored, &["region", "part"]),
            ["EU x", "EU x", "US x"],
            "{database:?}"
        );
    }
}

/// A row that a trigger leaves out is not written. MySQL has no such triggers.
///
/// Spec: ITEM-TABLE-03
#[test]
fn a_row_that_a_trigger_leaves_out_is_an_error() {
    let items = "{\"id\":1,\"v\":1}\n{\"id\":13,\"v\":1}\n{\"id\":3,\"v\":1}\n{\"id\":4,\"v\":1}\n{\"id\":4,\"v\":1}\n";
    for database in Database::ALL {
        let trigger = match database {
            Database::Sqlite => {
                "CREATE TRIGGER leave BEFORE INSERT ON t WHEN new.id = 13 BEGIN SELECT RAISE(IGNORE); END"
            }
            Database::Postgres => {
                "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.id = 13 THEN RETURN NULL; END IF; \
                 RETURN new; END $$; CREATE TRIGGER leave BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION leave()"
            }
            Database::Mariadb => continue,
        };
        let table = format!(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (3, 0); {trigger}"
        );
        for columns in ["id", "id,v"] {
            let properties = format!("table=t\nmode=upsert\nkey=id\ncolumns={columns}");
            let stage = skipping("TableError", database, 10, &table, items, &properties);
            let tree = run(&stage);
            assert!(
                tree.contains("write 4") && tree.contains("write skip 1"),
                "{database:?} {columns}\n{tree}"
            );
            assert_eq!(rows(&stage, &["id"]), ["1", "3", "4"], "{database:?} {columns}");
        }
    }
}

/// Returns the type of exact amounts, and an amount as JSON. SQLite has no decimals.
fn amounts(database: Database) -> (&'static str, fn(i64) -> String) {
    match database {
        Database::Sqlite => ("BIGINT", |cents| cents.to_string()),
        _ => ("NUMERIC(20, 2)", |cents| {
            format!("\"{}.{:02}\"", cents / 100, cents % 100)
        }),
    }
}

/// Balances: of repeated keys in a chunk, each value is added, and the other columns have the value of the last item.
///
/// Spec: ITEM-TABLE-05
#[test]
fn values_are_added_to_the_row_with_the_key() {
    for database in Database::ALL {
        let (amount, json) = amounts(database);
        for (mode, collides) in [
            ("upsert", ""),
            ("update", ""),
            ("upsert", ", other BIGINT UNIQUE DEFAULT NULL"),
        ] {
            let table = format!(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, amount {amount}, postings BIGINT NOT NULL, name VARCHAR(9){collides});
                 INSERT INTO t (id, amount, postings, name) VALUES (1, NULL, 5, 'old'), (2, 7, 0, 'old'), (3, 0, 0, 'old')"
            );
            let items: String = (1..=12)
                .map(|item| {
                    let (id, amount) = (if item == 12 { 3 } else { 1 + item % 2 }, json(item * 110));
                    format!("{{\"id\":{id},\"amount\":{amount},\"postings\":1,\"name\":\"n{item}\"}}\n")
                })
                .collect();
            for chunk in [1, 5, 100] {
                let properties = format!("table=t\nmode={mode}\nkey=id\nadd=amount,postings");
                let stage = stage(database, chunk, &table, &items, &properties);
                let tree = run(&stage);
                let case = format!("{database:?} {mode} {chunk} {collides}\n{tree}");
                assert!(tree.contains("job job COMPLETED"), "{case}");
                let expected = match database {
                    Database::Sqlite => ["1 3300 10 n10", "2 3967 6 n11", "3 1320 1 n12"],
                    _ => ["1 33.00 10 n10", "2 46.60 6 n11", "3 13.20 1 n12"],
                };
                assert_eq!(
                    rows(&stage, &["id", "amount", "postings", "name"]),
                    expected,
                    "{case}"
                );
            }
        }
    }
}

/// A sum that the column does not hold, null, and a text that SQLite holds in a column of integers are errors of their items.
///
/// Spec: ITEM-TABLE-05
#[test]
fn what_cannot_be_added_is_an_error_of_its_item() {
    let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, amount BIGINT);
        INSERT INTO t VALUES (1, 9223372036854775807), (2, 1)";
    let items = "{\"id\":2,\"amount\":1}\n{\"id\":1,\"amount\":1}\n{\"id\":2,\"amount\":null}\n{\"id\":2,\"amount\":2}\n\
                 {\"id\":3,\"amount\":2}\n";
    for database in Database::ALL {
        for (mode, skips, expected) in [
            ("upsert", 2, vec!["1 9223372036854775807", "2 4", "3 2"]),
            ("update", 3, vec!["1 9223372036854775807", "2 4"]),
        ] {
            let properties = format!("table=t\nmode={mode}\nkey=id\nadd=amount");
            let stage = skipping("TableError", database, 10, table, items, &properties);
            if database == Database::Sqlite {
                stage
                    .outside()
                    .execute("INSERT INTO t VALUES (4, 'many')")
                    .unwrap();
                let path = stage.path().join("items.jsonl");
                let items = fs::read_to_string(&path).unwrap();
                fs::write(path, items + "{\"id\":4,\"amount\":1}\n").unwrap();
            }
            let tree = run(&stage);
            let skips = skips + u64::from(database == Database::Sqlite);
            assert!(tree.contains("job job COMPLETED"), "{database:?} {mode}\n{tree}");
            assert!(
                tree.contains(&format!("write skip {skips}")),
                "{database:?} {mode}\n{tree}"
            );
            let found = rows(&stage, &["id", "amount"]);
            assert_eq!(found[..expected.len()], expected, "{database:?} {mode}");
        }
    }
}

/// Spec: ITEM-TABLE-05
#[test]
fn a_column_that_cannot_be_added_fails_the_step_before_it_reads() {
    let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, amount DOUBLE PRECISION, name VARCHAR(9), n BIGINT)";
    for database in Database::ALL {
        for (properties, message) in [
            (
                "mode=insert\nadd=n",
                "`add` needs the mode `upsert` or `update`, not `insert`",
            ),
            (
                "mode=upsert\nkey=id\nadd=id",
                "`add` names the column `id` of the key",
            ),
            (
                "mode=upsert\nkey=id\nadd=amount",
                "`add` has the column `amount` of the type",
            ),
            (
                "mode=upsert\nkey=id\nadd=name",
                "`add` has the column `name` of the type",
            ),
            ("mode=upsert\nkey=id\nadd=nn", "it has no column `nn`"),
            (
                "mode=upsert\nkey=id\nadd=n\ncolumns=id,name",
                "the items have no field `n` of `add`",
            ),
        ] {
            let stage = skipping(
                "TableError",
                database,
                10,
                table,
                "{\"id\":1,\"n\":1}\n",
                &format!("table=t\n{properties}"),
            );
            let tree = run(&stage);
            assert!(
                tree.contains("job job FAILED"),
                "{database:?} {properties}\n{tree}"
            );
            assert!(tree.contains(message), "{database:?} {properties}\n{tree}");
        }
    }
}

/// Names that the statements use themselves, and names that need quotes.
///
/// Spec: ITEM-TABLE-05
#[test]
fn columns_of_any_name_are_added() {
    for database in Database::ALL {
        for name in ["batch_added", "Batch_Added", "batch_new", "a b?", "select"] {
            let quote = if database == Database::Mariadb { '`' } else { '"' };
            let table = format!(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, {quote}{name}{quote} BIGINT); INSERT INTO t VALUES (1, 100)"
            );
            for mode in ["upsert", "update"] {
                let items: String = [5, 7]
                    .map(|value| format!("{{\"id\":1,\"{name}\":{value}}}\n"))
                    .concat();
                let stage = stage(
                    database,
                    10,
                    &table,
                    &items,
                    &format!("table=t\nmode={mode}\nkey=id\nadd={name}"),
                );
                let tree = run(&stage);
                assert!(tree.contains("job job COMPLETED"), "{database:?} {name}\n{tree}");
                let column = format!("{quote}{name}{quote}");
                assert_eq!(
                    rows(&stage, &["id", &column]),
                    ["1 112"],
                    "{database:?} {mode} {name}"
                );
            }
        }
    }
}
