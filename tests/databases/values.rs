//! Values on their way into tables and out of them: exact, or an error of the item, the same on each database.

use std::fs;

use batch_tests::database::Database;
use batch_tests::stage::Stage;

/// Returns a stage with this table, and a job that reads a file with `reader` into it.
fn stage(database: Database, table: &str, reader: &str, input: &str) -> Stage {
    let stage = Stage::on(
        database,
        &format!(
            r#"<job id="job"><step id="load"><chunk reader="{reader}" writer="recordTableWriter" commit-interval="10">
                <properties>
                  <property name="resource" value="${{folder}}/input" target="reader"/>
                  <property name="table" value="t" target="writer"/>
                </properties>
                <skippable-exception-classes><include class="EncodeError"/><include class="TableError"/></skippable-exception-classes>
              </chunk></step></job>"#
        ),
    );
    fs::write(stage.path().join("input"), input).unwrap();
    stage.outside().execute(table).unwrap();
    stage
}

fn run(stage: &Stage) -> String {
    let execution = stage.start("job", ());
    stage.tree(execution)
}

/// Dates, times, booleans and numbers are of their types, or their items are rejected.
///
/// Spec: ITEM-VALUE-04
#[test]
fn a_text_that_is_not_of_the_type_is_rejected() {
    for database in Database::ALL {
        let timestamp = if database == Database::Mariadb {
            "DATETIME"
        } else {
            "TIMESTAMP"
        };
        for (kind, good, bad) in [
            (
                "DATE",
                ["2026-11-26", "2024-02-29"],
                ["26.11.2026", "12.11.2026", "2026-02-30", "soon", "11/12/2026"],
            ),
            (
                timestamp,
                ["2026-11-26 10:00:00", "2026-11-26T10:00"],
                ["26.11.2026 10:00", "10:00", "now", "x", "1"],
            ),
            (
                "TIME",
                ["10:00:00", "23:59"],
                ["10", "noon", "25.00", "x", "2026-11-26"],
            ),
            (
                "BOOLEAN",
                ["1", "0"],
                ["maybe", "2x", "yes and no", "''", "26.11.2026"],
            ),
            ("INTEGER", ["1", "-2"], ["1.5x", "one", "0x10", "1 2", "1,5"]),
            (
                "DECIMAL(9,2)",
                ["1.5", "-2"],
                ["1,5", "1.234,50", "NaN.", "--1", "5x"],
            ),
            (
                "DOUBLE PRECISION",
                ["1.5", "-2e3"],
                ["1,5", "five", "1.2.3", "--1", "5x"],
            ),
        ] {
            let table = format!("CREATE TABLE t (v {kind})");
            let input: String = good
                .iter()
                .chain(&bad)
                .map(|text| format!("\"{text}\"\n"))
                .collect();
            let stage = stage(database, &table, "csvRecordReader", &format!("v\n{input}"));
            let tree = run(&stage);
            assert!(
                tree.contains("write 2") && tree.contains("write skip 5"),
                "{database:?} {kind}\n{tree}"
            );
            let count = stage.outside().number("SELECT COUNT(*) FROM t");
            assert_eq!(count, 2, "{database:?} {kind}");
        }
    }
}

/// Spec: ITEM-VALUE-04
#[test]
fn a_float_without_a_fraction_is_an_integer() {
    for database in Database::ALL {
        let values = ["1.0", "-1e2", "9007199254740992.0", "1.5", "1e16", "1e300"];
        assert_eq!(written(database, "BIGINT", &values), 3, "{database:?}");
    }
}

/// Writes each value of JSON to a column of this type, and returns how many were written.
fn written(database: Database, kind: &str, values: &[&str]) -> i64 {
    let before = match kind {
        "cents" => "CREATE DOMAIN cents AS NUMERIC(9, 2);",
        "short" => "CREATE DOMAIN any_short AS VARCHAR(3); CREATE DOMAIN short AS any_short;",
        _ => "",
    };
    let input: String = values
        .iter()
        .map(|value| format!("{{\"v\":{value}}}\n"))
        .collect();
    let table = format!("{before} CREATE TABLE t (v {kind})");
    let stage = stage(database, &table, "jsonlRecordReader", &input);
    let tree = run(&stage);
    assert!(
        tree.contains("job job COMPLETED"),
        "{database:?} {kind} {values:?}\n{tree}"
    );
    stage.outside().number("SELECT COUNT(*) FROM t")
}

/// A number is not rounded to the digits of its column.
///
/// Spec: ITEM-VALUE-05
#[test]
fn a_number_with_more_digits_than_its_column_is_rejected() {
    let good = ["1.25", "\"1.2500\"", "-7", "\"1.5e1\"", "0.5"];
    let bad = ["1.255", "\"1.255\"", "0.001", "\"1e-3\"", "1234567.125"];
    for database in Database::ALL {
        let kinds: &[&str] = match database {
            Database::Sqlite => &[],
            Database::Postgres => &["NUMERIC(9, 2)", "MONEY", "cents"],
            Database::Mariadb => &["DECIMAL(9, 2)", "DOUBLE(9, 2)", "FLOAT(9, 2)"],
        };
        for kind in kinds {
            assert_eq!(written(database, kind, &good), 5, "{database:?} {kind}");
            assert_eq!(written(database, kind, &bad), 0, "{database:?} {kind}");
        }
    }
    if Database::ALL.contains(&Database::Mariadb) {
        let unsigned = written(
            Database::Mariadb,
            "BIGINT UNSIGNED",
            &["1.0", "\"2\"", "1.5", "\"2.5\""],
        );
        assert_eq!(unsigned, 2);
    }
    if Database::ALL.contains(&Database::Postgres) {
        assert_eq!(written(Database::Postgres, "NUMERIC", &bad), 5);
        assert_eq!(
            written(Database::Postgres, "NUMERIC(9, -2)", &["1200", "1250"]),
            1
        );
        assert_eq!(
            written(Database::Postgres, "MONEY", &["\"$1.00\"", "\"1,000\""]),
            0
        );
    }
}

/// A time keeps its offset and its digits.
///
/// Spec: ITEM-VALUE-05
#[test]
fn a_time_with_more_than_its_column_is_rejected() {
    let day = "2026-11-26";
    let texts = |texts: &[&str]| -> Vec<String> {
        texts
            .iter()
            .map(|text| format!("\"{}\"", text.replace("DAY", day)))
            .collect()
    };
    let (good, bad) = (
        ["DAY 10:00:00", "DAY 10:00:00.000"],
        ["DAY 10:00:00.5", "DAY 10:00:00+01:00"],
    );
    for database in Database::ALL {
        let kinds: &[(&str, &[&str], &[&str])] = match database {
            Database::Sqlite => &[(
                "TIMESTAMP",
                &["DAY 10:00:00.123456789", "DAY 10:00:00+01:00"],
                &[],
            )],
            Database::Postgres => &[
                ("TIMESTAMP(0)", &good, &bad),
                (
                    "TIMESTAMP",
                    &["DAY 10:00:00.5", "DAY 10:00:00.1234560", "DAY 10:00Z"],
                    &["DAY 10:00:00.1234567", "DAY 10:00-0130"],
                ),
                (
                    "TIMESTAMP(1) WITH TIME ZONE",
                    &["DAY 10:00:00.5+01:00"],
                    &["DAY 10:00:00.55Z"],
                ),
                (
                    "TIME",
                    &["10:00:00.5", "10:00"],
                    &["10:00+02", "10:00:00.1234567"],
                ),
                ("TIME WITH TIME ZONE", &["10:00+02"], &[]),
            ],
            Database::Mariadb => &[
                ("DATETIME", &good, &bad),
                ("TIMESTAMP NULL", &good, &bad),
                (
                    "DATETIME(3)",
                    &["DAY 10:00:00.1230"],
                    &["DAY 10:00:00.1234", "DAY 10:00:00 +01:00"],
                ),
                ("TIME", &["10:00:00", "-10:00:00.0"], &["10:00:00.5", "10:00+02"]),
            ],
        };
        for (kind, good, bad) in kinds {
            for (values, count) in [(texts(good), good.len()), (texts(bad), 0)] {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                let written = written(database, kind, &values);
                assert_eq!(written, count as i64, "{database:?} {kind} {values:?}");
            }
        }
    }
}

/// An integer is exact in a column of floats, and a text is not cut.
///
/// Spec: ITEM-VALUE-05
#[test]
fn a_value_that_its_column_does_not_hold_is_rejected() {
    let double = ["9007199254740992", "\"9007199254740992\"", "0.1", "\"1e23\""];
    let no_double = [
        "9007199254740993",
        "\"9007199254740993\"",
        "\"9007199254740993.0\"",
        "\"1e400\"",
        "\"1e-400\"",
    ];
    let single = ["16777216", "\"16777216\"", "0.1", "1e20"];
    let no_single = ["16777217", "\"16777217\"", "16777217.0", "9007199254740993"];
    let short = ["\"abc\"", "\"a  \"", "\"ééé\""];
    let no_short = ["\"abcd\"", "\"abc \"", "\"    \""];
    let long = "\"".to_owned() + &"x".repeat(64) + "\"";
    let name = long.replacen('x', "", 1);
    for database in Database::ALL {
        let kinds: &[(&str, &[&str], &[&str])] = match database {
            Database::Sqlite => &[("REAL", &double, &no_double), ("FLOAT", &double, &no_double)],
            Database::Postgres => &[
                ("DOUBLE PRECISION", &double, &no_double),
                ("REAL", &single, &no_single),
                ("NAME", &[&name], &[&long]),
                ("\"char\"", &["\"a\""], &["\"ab\""]),
                ("short", &short, &no_short),
                ("VARCHAR(3)", &short, &no_short),
                ("VARCHAR", &[&long], &[]),
                (
                    "JSONB",
                    &[r#"{"a":{"b":1.50,"c":2}}"#],
                    &[r#"{"a":{"b":1,"b":2}}"#],
                ),
            ],
            Database::Mariadb => &[
                ("DOUBLE", &double, &no_double),
                ("FLOAT", &single, &no_single),
                ("VARCHAR(3)", &short, &no_short),
            ],
        };
        for (kind, good, bad) in kinds {
            assert_eq!(
                written(database, kind, good),
                good.len() as i64,
                "{database:?} {kind}"
            );
            assert_eq!(written(database, kind, bad), 0, "{database:?} {kind}");
        }
    }
}

/// Spec: ITEM-VALUE-04
#[test]
fn hexadecimal_digits_are_bytes() {
    for database in Database::ALL {
        let kind = if database == Database::Postgres {
            "BYTEA"
        } else {
            "BLOB"
        };
        let table = format!("CREATE TABLE t (id BIGINT, v {kind})");
        let input = "id,v\n1,\\xDEAD\n2,\\x\n3,text\n4,\\xDEA\n5,\\xZZ\n6,\\x5cé\n";
        let stage = stage(database, &table, "csvRecordReader", input);
        let tree = run(&stage);
        assert!(
            tree.contains("write 3") && tree.contains("write skip 3"),
            "{database:?}\n{tree}"
        );
        let lengths: Vec<i64> = (1..=3)
            .map(|id| {
                stage
                    .outside()
                    .number(&format!("SELECT LENGTH(v) FROM t WHERE id = {id}"))
            })
            .collect();
        assert_eq!(lengths, [2, 0, 4], "{database:?}");
        let value = match database {
            Database::Postgres => "'\\xdead'",
            _ => "x'dead'",
        };
        let found = format!("SELECT COUNT(*) FROM t WHERE v = {value}");
        assert_eq!(stage.outside().number(&found), 1, "{database:?}");
    }
}

const NUMBERS: &str = "{\"id\":1,\"v\":18446744073709551615}\n{\"id\":2,\"v\":12345678901234567890123}\n\
                       {\"id\":3,\"v\":1234567890123456.78}\n{\"id\":4,\"v\":0.5}\n{\"id\":5,\"v\":-7}\n";

/// A number arrives with all digits. SQLite has 15 in a column of numbers, so it gets more as texts only.
///
/// Spec: ITEM-VALUE-02
#[test]
fn numbers_keep_their_digits() {
    for database in Database::ALL {
        let kind = if database == Database::Sqlite {
            "TEXT"
        } else {
            "NUMERIC(30, 2)"
        };
        let table = format!("CREATE TABLE t (id BIGINT, v {kind})");
        let stage = stage(database, &table, "jsonlRecordReader", NUMBERS);
        let tree = run(&stage);
        assert!(
            tree.contains("job job COMPLETED") && !tree.contains("skip"),
            "{database:?}\n{tree}"
        );
        let found = stage
            .outside()
            .rows("SELECT CAST(v AS CHAR(40)) AS text FROM t ORDER BY id");
        let zeros = if database == Database::Sqlite { "" } else { ".00" };
        let half = if database == Database::Sqlite {
            "0.5"
        } else {
            "0.50"
        };
        let expected = [
            &format!("18446744073709551615{zeros}"),
            &format!("12345678901234567890123{zeros}"),
            "1234567890123456.78",
            half,
            &format!("-7{zeros}"),
        ];
        let found: Vec<&str> = found.iter().map(|text| text.trim()).collect();
        assert_eq!(found, expected, "{database:?}");
    }
    let short = stage(
        Database::Sqlite,
        "CREATE TABLE t (id BIGINT, v NUMERIC(30, 2))",
        "jsonlRecordReader",
        NUMBERS,
    );
    let tree = run(&short);
    assert!(
        tree.contains("write 2") && tree.contains("write skip 3"),
        "{tree}"
    );
    assert_eq!(
        short
            .outside()
            .rows("SELECT CAST(v AS TEXT) AS text FROM t ORDER BY id"),
        ["0.5", "-7"]
    );
}

/// Sums and decimals are numbers in JSON, on every database.
///
/// Spec: ITEM-VALUE-02
#[test]
fn sums_are_numbers_in_json() {
    for database in Database::ALL {
        let stage = Stage::on(
            database,
            r#"<job id="job"><step id="export"><chunk reader="queryRecordReader" writer="recordJsonlWriter">
                <properties>
                  <property name="query" value="SELECT SUM(v) AS v FROM t" target="reader"/>
                  <property name="output" value="${folder}/out.jsonl" target="writer"/>
                </properties>
              </chunk></step></job>"#,
        );
        stage
            .outside()
            .execute("CREATE TABLE t (v BIGINT); INSERT INTO t VALUES (1), (2), (9007199254740990)")
            .unwrap();
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        let out = fs::read_to_string(stage.path().join("out.jsonl")).unwrap();
        assert_eq!(out, "{\"v\":9007199254740993}\n", "{database:?}");
    }
}

/// Names decide, not order; a header without names is reported.
///
/// Spec: ITEM-VALUE-01
#[test]
fn fields_go_to_the_columns_of_their_names() {
    for database in Database::ALL {
        let table = "CREATE TABLE t (a BIGINT, b BIGINT)";
        let input = "{\"a\":1,\"b\":2}\n{\"b\":3,\"a\":4}\n{\"a\":5}\n";
        let good = stage(database, table, "jsonlRecordReader", input);
        let tree = run(&good);
        assert!(
            tree.contains("write 3") && !tree.contains("skip"),
            "{database:?}\n{tree}"
        );
        let sums = [
            "SELECT CAST(SUM(a) AS DECIMAL(9)) FROM t WHERE b IS NULL",
            "SELECT CAST(SUM(a * 10 + b) AS DECIMAL(9)) FROM t WHERE b IS NOT NULL",
        ];
        assert_eq!(
            sums.map(|query| good.outside().number(query)),
            [5, 55],
            "{database:?}"
        );
        for (reader, input, expected) in [
            (
                "csvRecordReader",
                "a,b,,\n1,2,3,4\n",
                "several fields of the item have no name",
            ),
            (
                "csvRecordReader",
                "a,b,\n1,2,3\n",
                "1 of 3 fields of the items have no name",
            ),
            (
                "jsonlRecordReader",
                "{\"a\":1,\"A\":2}\n",
                "two fields for the column `a`, `a` and `A`",
            ),
        ] {
            let tree = run(&stage(database, table, reader, input));
            assert!(
                tree.contains("job job FAILED") && tree.contains(expected),
                "{database:?}\n{tree}"
            );
            assert!(!tree.contains("skip"), "{database:?}\n{tree}");
        }
    }
}

/// A ready-made artifact declares all its properties, so another one that is addressed to it is an error. One that reaches it only because it
/// is in the chunk may be meant for another artifact.
///
/// Spec: ITEM-SETTING-02, BPROP-11
#[test]
fn a_property_that_a_ready_made_artifact_does_not_know_is_an_error() {
    let chunk = |property: &str| {
        Stage::new(&format!(
            r#"<job id="job"><step id="load"><chunk reader="csvRecordReader" writer="recordTableWriter">
                <properties>
                  <property name="resource" value="input" target="reader"/>
                  <property name="table" value="t" target="writer"/>{property}
                </properties>
              </chunk></step></job>"#
        ))
    };
    let batchlet = |property: &str| {
        Stage::new(&format!(
            r#"<job id="job"><step id="wait"><batchlet ref="systemCommand">
                <properties><property name="command" value="true"/>{property}</properties></batchlet></step></job>"#
        ))
    };
    let error = |stage: Stage| format!("{:?}", stage.operator().start("job", ()).unwrap_err());
    let own = error(chunk(
        r#"<property name="tablespace" value="fast" target="writer"/>"#,
    ));
    assert!(
        own.contains("ART0028") && own.contains("`recordTableWriter` has no property `tablespace`"),
        "{own}"
    );
    let near = error(batchlet(r#"<property name="comand" value="x"/>"#));
    assert!(
        near.contains("ART0028") && near.contains("did you mean `command`?"),
        "{near}"
    );
    let parts = error(Stage::new(
        r#"<job id="job"><step id="load"><chunk reader="csvRecordReader" writer="BothTables"><properties>
             <property name="resource" value="input" target="reader"/><property name="1.table" value="t"/>
             <property name="2.table" value="u"/><property name="mode" value="upsert" target="writer"/>
           </properties></chunk></step></job>"#,
    ));
    assert!(parts.contains("did you mean `1.mode` or `2.mode`?"), "{parts}");
    let shared = chunk(r#"<property name="tablespace" value="fast"/>"#);
    let shared = error(shared);
    let nowhere = "neither `csvRecordReader` nor another artifact here has a property `tablespace`";
    assert!(shared.contains("ART0028") && shared.contains(nowhere), "{shared}");
}

/// Bytes go to a file and back to a table.
///
/// Spec: ITEM-VALUE-04
#[test]
fn bytes_survive_a_file() {
    for database in Database::ALL {
        let kind = if database == Database::Postgres {
            "BYTEA"
        } else {
            "BLOB"
        };
        for (format, file) in [("Csv", "csv"), ("Jsonl", "jsonl")] {
            let reader = format!("{file}RecordReader");
            let stage = Stage::on(
                database,
                &format!(
                    r#"<job id="job"><step id="export" next="load"><chunk reader="queryRecordReader" writer="record{format}Writer">
                        <properties><property name="query" value="SELECT v FROM old" target="reader"/>
                          <property name="output" value="${{folder}}/out" target="writer"/></properties></chunk></step>
                      <step id="load"><chunk reader="{reader}" writer="recordTableWriter">
                        <properties><property name="resource" value="${{folder}}/out" target="reader"/>
                          <property name="table" value="t" target="writer"/></properties></chunk></step></job>"#
                ),
            );
            let tables = format!(
                "CREATE TABLE old (v {kind}); CREATE TABLE t (v {kind}); INSERT INTO old VALUES ({})",
                if database == Database::Postgres {
                    "'\\xdead0a00'"
                } else {
                    "x'dead0a00'"
                }
            );
            stage.outside().execute(&tables).unwrap();
            let tree = run(&stage);
            assert!(
                tree.contains("job job COMPLETED"),
                "{database:?} {format}\n{tree}"
            );
            let same = stage
                .outside()
                .number("SELECT COUNT(*) FROM t JOIN old ON t.v = old.v");
            assert_eq!(same, 1, "{database:?} {format}");
        }
    }
}
