//! The query reader of `batch-items` on each database.

use std::fs;
use std::io::{self, Write};
use std::sync::Mutex;

use batch_items::{QueryItemReader, Record};
use batch_runtime::prelude::*;
use batch_tests::database::{Database, Place};
use batch_tests::stage::Stage;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

#[derive(Clone, Debug, QueryableByName)]
struct Account {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Text)]
    owner: String,
}

#[item_reader("AccountReader")]
type AccountReader = QueryItemReader<Account>;

#[item_reader("RecordReader")]
type RecordReader = QueryItemReader<Record>;

/// Shows accounts as lines, fails at one of them, and runs statements before another, as a program beside the job would.
#[derive(BatchArtifact)]
struct ShowAccount {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: i64,
    #[batch_property(name = "insert.at", value = "0")]
    insert_at: i64,
    #[batch_context]
    job: JobContext,
}

#[item_processor("ShowAccount")]
impl ShowAccount {
    #[process_item]
    fn process(&mut self, account: &Account) -> Result<Option<String>, BatchError> {
        if account.id == self.fail_at {
            return Err(BatchError::msg("stopped by the test"));
        }
        if account.id == self.insert_at {
            let rows = "INSERT INTO account VALUES (-5, 'before', NULL), (9999, 'after', NULL)";
            let mut connection = self.job.connect()?;
            match connection.any() {
                batch_runtime::repository::DatabaseConnection::Sqlite(connection) => {
                    diesel::sql_query(rows).execute(connection)
                }
                #[cfg(feature = "servers")]
                batch_runtime::repository::DatabaseConnection::Postgres(connection) => {
                    diesel::sql_query(rows).execute(connection)
                }
                #[cfg(feature = "servers")]
                batch_runtime::repository::DatabaseConnection::Mysql(connection) => {
                    diesel::sql_query(rows).execute(connection)
                }
                _ => return Err(BatchError::msg("another database")),
            }?;
        }
        Ok(Some(format!("{} {}", account.id, account.owner)))
    }
}

#[derive(BatchArtifact)]
struct ShowRecord;

#[item_processor("ShowRecord")]
impl ShowRecord {
    #[process_item]
    fn process(&mut self, record: &Record) -> Option<String> {
        Some(record.to_string())
    }
}

#[item_writer("LineWriter")]
type LineWriter = batch_items::LineItemWriter<String>;

fn stage(database: Database, reader: &str, properties: &str) -> Stage {
    stage_with(database, reader, properties, "")
}

/// The same with further children of the chunk.
fn stage_with(database: Database, reader: &str, properties: &str, children: &str) -> Stage {
    let processor = if reader == "AccountReader" {
        "ShowAccount"
    } else {
        "ShowRecord"
    };
    let properties: String = properties
        .lines()
        .map(|line| {
            let (name, value) = line.trim().split_once('=').unwrap();
            let value = value.replace('<', "&lt;").replace('"', "&quot;");
            format!("<property name=\"{name}\" value=\"{value}\" target=\"reader\"/>")
        })
        .collect();
    let stage = Stage::on(
        database,
        &format!(
            r#"<job id="job"><step id="copy"><chunk reader="{reader}" processor="{processor}" writer="LineWriter"
                commit-interval="4">
                <properties>
                  <property name="output" value="${{folder}}/out.txt" target="writer"/>{properties}
                </properties>{children}
              </chunk></step></job>"#
        ),
    );
    let mut outside = stage.outside();
    outside
        .execute("CREATE TABLE account (id BIGINT, owner VARCHAR(40) NOT NULL, day DATE)")
        .unwrap();
    let rows: Vec<_> = (1..=23)
        .map(|id| format!("({id}, 'owner {}', '2026-01-{id:02}')", id % 5))
        .collect();
    outside
        .execute(&format!("INSERT INTO account VALUES {}", rows.join(", ")))
        .unwrap();
    stage
}

fn output(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.path().join("out.txt")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn run(stage: &Stage) -> String {
    let execution = stage.start("job", ());
    stage.tree(execution)
}

const ALL: &str = "query=SELECT id, owner FROM account";

/// With any page size, and wherever the job fails, each row is read once, in the order of the key.
#[test]
fn a_restart_continues_after_the_last_key() {
    for database in Database::ALL {
        for (properties, first) in [
            ("\nkey=id\npage.size=1", "1 owner 1"),
            ("\nkey=id\npage.size=5", "1 owner 1"),
            ("\nkey=id\npage.size=23", "1 owner 1"),
            ("\nkey=id", "1 owner 1"),
            ("\nkey=owner, id\npage.size=3", "5 owner 0"),
            (" ORDER BY id DESC", "23 owner 3"),
            (" ORDER BY id\npage.size=2", "1 owner 1"),
        ] {
            for fail_at in [1, 7, 23] {
                let stage = stage(database, "AccountReader", &format!("{ALL}{properties}"));
                let failed = stage.start("job", [("fail.at", fail_at.to_string())]);
                assert!(
                    stage.tree(failed).contains("stopped by the test"),
                    "{}",
                    stage.tree(failed)
                );
                let again = stage.operator().restart(failed, [("fail.at", "0")]).unwrap();
                stage.operator().wait(again).unwrap();
                let tree = stage.tree(again);
                assert!(
                    tree.contains("job job COMPLETED"),
                    "{database:?} {properties}\n{tree}"
                );
                let lines = output(&stage);
                assert_eq!(lines[0], first, "{database:?} {properties}");
                let mut ids: Vec<i64> = lines
                    .iter()
                    .map(|line| line.split(' ').next().unwrap().parse().unwrap())
                    .collect();
                ids.sort_unstable();
                assert_eq!(
                    ids,
                    (1..=23).collect::<Vec<_>>(),
                    "{database:?} {properties} {fail_at}"
                );
            }
        }
    }
}

/// A key of any type has an order: dates, texts and numbers.
#[test]
fn keys_have_the_types_of_their_columns() {
    for database in Database::ALL {
        for key in ["day", "owner, day", "day, id"] {
            let stage = stage(
                database,
                "AccountReader",
                &format!("{ALL_WITH_DAY}\nkey={key}\npage.size=3"),
            );
            let tree = run(&stage);
            assert!(tree.contains("job job COMPLETED"), "{database:?} {key}\n{tree}");
            assert_eq!(output(&stage).len(), 23, "{database:?} {key}");
        }
    }
}

const ALL_WITH_DAY: &str = "query=SELECT id, owner, day FROM account";

/// Keys that differ in digits that a float does not have, keys of a fixed width, and bytes are not confused.
///
/// Spec: INPUT-09
#[test]
fn keys_are_compared_exactly() {
    for database in Database::ALL {
        let (bytes, [one, two, three]) = match database {
            Database::Sqlite => ("BLOB", ["x'00a1'", "x'a2'", "x'a2ff'"]),
            Database::Postgres => ("BYTEA", ["'\\x00a1'", "'\\xa2'", "'\\xa2ff'"]),
            Database::Mariadb => ("VARBINARY(2)", ["x'00a1'", "x'a2'", "x'a2ff'"]),
        };
        let columns = [
            (bytes, one, two, three),
            (
                "BIGINT",
                "9007199254740992",
                "9007199254740993",
                "9007199254740994",
            ),
            (
                "DECIMAL(30)",
                "9007199254740992",
                "9007199254740993",
                "9007199254740994",
            ),
            (
                // SQLite rounds this number to a float.
                if database == Database::Sqlite {
                    "VARCHAR(60)"
                } else {
                    "DECIMAL(60, 2)"
                },
                "'9007199254740992900719925474099290071992547409929007199254.01'",
                "'9007199254740992900719925474099290071992547409929007199254.02'",
                "'9007199254740992900719925474099290071992547409929007199255.00'",
            ),
            ("CHAR(6)", "'abc'", "'abd'", "'abe'"),
        ];
        for (kind, one, two, three) in columns {
            let query = "query=SELECT k, id, owner FROM wide";
            let stage = stage(database, "AccountReader", &format!("{query}\nkey=k\npage.size=1"));
            let table = format!("CREATE TABLE wide (k {kind} PRIMARY KEY, id BIGINT, owner VARCHAR(9))");
            stage.outside().execute(&table).unwrap();
            let rows = format!("INSERT INTO wide VALUES ({one}, 1, ''), ({two}, 2, ''), ({three}, 3, '')");
            stage.outside().execute(&rows).unwrap();
            let tree = run(&stage);
            assert!(tree.contains("job job COMPLETED"), "{database:?} {kind}\n{tree}");
            assert_eq!(output(&stage), ["1 ", "2 ", "3 "], "{database:?} {kind}");
        }
    }
}

/// A key that MySQL orders in another way than it compares it would lose rows: its type is an error, or both agree.
///
/// Spec: INPUT-09
#[test]
#[cfg(feature = "servers")]
fn keys_of_mysql_that_are_ordered_in_another_way_are_not_confused() {
    let text = "x".repeat(1_500);
    let texts = ["b", "c", "a"].map(|end| format!("'{text}{end}'"));
    let position = Some("orders by the position of a value in the type");
    let unreadable = Some("has a type that cannot be read; convert it in the query");
    for (kind, rejected, [one, two, three]) in [
        (
            "ENUM('z', 'a', 'm')",
            position,
            ["'z'", "'a'", "'m'"].map(str::to_owned),
        ),
        (
            "SET('z', 'a', 'm')",
            position,
            ["'z'", "'a'", "'z,m'"].map(str::to_owned),
        ),
        (
            "BIT(9)",
            unreadable,
            ["b'1'", "b'10'", "b'100000001'"].map(str::to_owned),
        ),
        ("TEXT", None, texts),
    ] {
        let query = "query=SELECT k, id, owner FROM wide";
        let stage = stage(
            Database::Mariadb,
            "AccountReader",
            &format!("{query}\nkey=k,id\npage.size=1"),
        );
        stage
            .outside()
            .execute(&format!(
                "CREATE TABLE wide (k {kind}, id BIGINT, owner VARCHAR(9)); INSERT INTO wide VALUES ({one}, 1, ''), ({two}, 2, ''), ({three}, 3, '')"
            ))
            .unwrap();
        let tree = run(&stage);
        let expected = rejected.unwrap_or("job job COMPLETED");
        assert!(tree.contains(expected), "{kind}\n{tree}");
        if rejected.is_none() {
            assert_eq!(output(&stage).len(), 3, "{kind}");
        }
    }
}

/// Rows that others insert before the position are not read, those after it are; none is read twice.
#[test]
fn concurrent_inserts_do_not_shift_pages() {
    for database in Database::ALL {
        let stage = stage(database, "AccountReader", &format!("{ALL}\nkey=id\npage.size=4"));
        let execution = stage.start("job", [("insert.at", "6")]);
        let tree = stage.tree(execution);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        let lines = output(&stage);
        assert_eq!(lines.len(), 24, "{database:?}");
        assert_eq!(lines[23], "9999 after", "{database:?}");
    }
}

/// With `snapshot`, all pages show the state at the beginning.
#[test]
fn a_snapshot_does_not_show_what_others_insert() {
    for database in Database::ALL {
        let properties = format!("{ALL}\nkey=id\npage.size=4\nsnapshot=true");
        let stage = stage(database, "AccountReader", &properties);
        let execution = stage.start("job", [("insert.at", "6")]);
        let tree = stage.tree(execution);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        let lines = output(&stage);
        assert_eq!(lines.len(), 23, "{database:?}");
        assert_eq!(lines[22], "23 owner 3", "{database:?}");
    }
}

/// A snapshot of a SQLite database without a log would keep all others from writing.
#[test]
fn a_snapshot_needs_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.db");
    SqliteConnection::establish(file.to_str().unwrap())
        .unwrap()
        .batch_execute("CREATE TABLE account (id BIGINT, owner TEXT)")
        .unwrap();
    let properties = format!(
        "{ALL}\nkey=id\nsnapshot=true\ndatabase=sqlite://{}",
        file.display()
    );
    let tree = run(&stage(Database::Sqlite, "AccountReader", &properties));
    assert!(
        tree.contains("cannot begin the snapshot of the database")
            && tree.contains("`PRAGMA journal_mode = WAL`"),
        "{tree}"
    );
}

/// A key that would lose rows is rejected.
#[test]
fn a_key_must_be_unique_and_not_null() {
    for database in Database::ALL {
        let stage_with = |properties: &str| stage(database, "AccountReader", &format!("{ALL}\n{properties}"));
        let tree = run(&stage_with("key=owner\npage.size=2"));
        let expected = "cannot read the query: the key `owner` is not unique: two rows have [\"owner 0\"]; add a column to it";
        assert!(tree.contains(expected), "{database:?}\n{tree}");
        let null = stage_with("key=id");
        null.outside()
            .execute("INSERT INTO account VALUES (NULL, 'x', NULL)")
            .unwrap();
        let tree = run(&null);
        let expected = "cannot read the query: the key `id` is null in 1 rows, which would not be read";
        assert!(tree.contains(expected), "{database:?}\n{tree}");
    }
}

/// Rows with one key on both sides of the end of a page, or of the position of a restart, fail the step: a later page would not have the second
/// one. What is equal is up to the database.
///
/// Spec: INPUT-09
#[test]
fn equal_keys_are_found_where_a_page_begins() {
    for database in Database::ALL {
        let (before, text) = match database {
            Database::Sqlite => ("", "VARCHAR(9) COLLATE NOCASE"),
            Database::Postgres => (
                "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);",
                "VARCHAR(9) COLLATE any_case",
            ),
            Database::Mariadb => ("", "VARCHAR(9)"),
        };
        for (kind, key, equal) in [("BIGINT", "40", "40"), (text, "'d'", "'D'")] {
            let table = format!(
                "{before} CREATE TABLE doubled (k {kind}, id BIGINT, owner VARCHAR(9));
                 INSERT INTO doubled VALUES ({}, 1, ''), ({}, 2, ''), ({}, 3, ''), ({key}, 4, ''), ({}, 6, '')",
                key.replace(['4', 'd'], "1"),
                key.replace(['4', 'd'], "2"),
                key.replace(['4', 'd'], "3"),
                key.replace('4', "5").replace('d', "e"),
            );
            let double = format!("INSERT INTO doubled VALUES ({equal}, 5, '')");
            let with = |size: u32| {
                let query = format!("query=SELECT k, id, owner FROM doubled\nkey=k\npage.size={size}");
                let stage = stage(database, "AccountReader", &query);
                stage.outside().execute(&table).unwrap();
                stage
            };
            let context = format!("{database:?} {kind}");
            let expected = "cannot read the query: the key `k` is not unique: two rows have";
            let paged = with(4);
            paged.outside().execute(&double).unwrap();
            let tree = run(&paged);
            assert!(tree.contains(expected), "{context}\n{tree}");

            for (change, completes) in [
                (double.as_str(), false),
                ("DELETE FROM doubled WHERE id = 4", true),
                ("UPDATE doubled SET owner = 'new'", true),
            ] {
                let stage = with(1000);
                let failed = stage.start("job", [("fail.at", "6")]);
                stage.outside().execute(change).unwrap();
                let again = stage.operator().restart(failed, [("fail.at", "0")]).unwrap();
                stage.operator().wait(again).unwrap();
                let tree = stage.tree(again);
                let found = if completes { "job job COMPLETED" } else { expected };
                assert!(tree.contains(found), "{context} {change}\n{tree}");
            }
        }
    }
}

/// Records take the columns as they are, with any types.
#[test]
fn records_have_the_columns_of_the_query() {
    for database in Database::ALL {
        let query = "query=SELECT id, owner, day, id / 4.0 AS quarter, NULL AS missing FROM account WHERE id < :most AND owner = :owner";
        let stage = stage(
            database,
            "RecordReader",
            &format!("{query}\nparameters=most=5; owner='owner 3'\nkey=id"),
        );
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        let lines = output(&stage);
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert!(
            line.starts_with("id=3 owner=owner 3 day=2026-01-03 quarter=0.75"),
            "{database:?} {line}"
        );
        assert!(line.ends_with(" missing="), "{database:?} {line}");
    }
}

/// Values of the types that a server sends in its own form.
#[cfg(feature = "servers")]
#[test]
fn types_of_servers_are_shown_as_text() {
    let postgres = "SELECT 1 AS id, 12345678.9012::numeric AS a, (-0.05)::numeric AS b, 100000::numeric AS c, 0::numeric(9,2) AS d, \
        '2026-11-22 01:02:03.5'::timestamp AS e, '2026-11-22 01:02:03+00'::timestamptz AS f, '23:59:59'::time AS g, \
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS h, '{\"x\":1}'::jsonb AS i, true AS j, 1.5::real AS k, \
        '1999-02-28'::date AS l, '0005-02-29 BC'::date AS m, 'x'::varchar AS n, '\\x00ff'::bytea AS o, \
        'infinity'::timestamp AS p, '-infinity'::timestamptz AS q, 'infinity'::date AS r";
    let shown = |database, query: &str| {
        let stage = stage(database, "RecordReader", &format!("query={query}"));
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{tree}");
        output(&stage)
    };
    assert_eq!(
        shown(Database::Postgres, postgres),
        [
            "id=1 a=12345678.9012 b=-0.05 c=100000 d=0.00 e=2026-11-22 01:02:03.500000 f=2026-11-22 01:02:03+00 g=23:59:59 \
          h=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 i={\"x\": 1} j=true k=1.5 l=1999-02-28 m=0005-02-29 BC n=x o=\\x00ff \
          p=infinity q=-infinity r=infinity"
        ]
    );
    let mariadb = "SELECT 1 AS id, CAST(12345678.9012 AS DECIMAL(20,4)) AS a, CAST('2026-11-22 01:02:03.5' AS DATETIME(6)) AS b, \
        CAST('2026-11-22' AS DATE) AS c, CAST('23:59:59' AS TIME) AS d, CAST(18446744073709551615 AS UNSIGNED) AS e, 1.5e0 AS f, \
        'x' AS g, CAST('ab' AS BINARY) AS h";
    assert_eq!(
        shown(Database::Mariadb, mariadb),
        [
            "id=1 a=12345678.9012 b=2026-11-22 01:02:03.500000 c=2026-11-22 d=23:59:59 e=18446744073709551615 f=1.5 g=x h=\\x6162"
        ]
    );
}

/// A time of MySQL is a span, which may be long or negative.
#[cfg(feature = "servers")]
#[test]
fn a_negative_time_names_its_column_and_the_remedy() {
    let late = "CAST('-01:30:00' AS TIME)";
    let with = |columns: &str| {
        stage(
            Database::Mariadb,
            "RecordReader",
            &format!("query=SELECT {columns}"),
        )
    };
    let stage = with(&format!(
        "CAST('300:00:01.5' AS TIME(1)) AS a, CAST({late} AS CHAR) AS b"
    ));
    let tree = run(&stage);
    assert!(tree.contains("job job COMPLETED"), "{tree}");
    assert_eq!(output(&stage), ["a=300:00:01.500000 b=-01:30:00"]);
    let tree = run(&with(&format!("{late} AS late")));
    let expected = "column `late`: Negative dates/times are not yet supported; convert it to a text in the query, by CAST(.. AS CHAR)";
    assert!(tree.contains(expected), "{tree}");
}

/// A query on another database than the repository's.
#[test]
fn another_database_is_named_by_its_url() {
    for database in Database::ALL {
        let folder = tempfile::tempdir().unwrap();
        let other = Place::new(database, folder.path());
        let mut outside = other.connect();
        outside
            .execute("CREATE TABLE elsewhere (id BIGINT, owner VARCHAR(9))")
            .unwrap();
        outside
            .execute("INSERT INTO elsewhere VALUES (1, 'Ada'), (2, 'Bob')")
            .unwrap();
        let url = other.url().replace('&', "&amp;");
        let query = "query=SELECT id, owner FROM elsewhere";
        let stage = stage(
            Database::Sqlite,
            "AccountReader",
            &format!("{query}\nkey=id\ndatabase={url}"),
        );
        let tree = run(&stage);
        assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
        assert_eq!(output(&stage), ["1 Ada", "2 Bob"], "{database:?}");
    }
}

/// The warnings of this process.
static WARNINGS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Warnings;

impl Write for Warnings {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WARNINGS.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The rows of a query without a key and an order may come in another order after a restart. Each execution of the step is warned.
#[test]
fn a_query_without_an_order_is_reported() {
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(|| Warnings)
        .init();
    for database in Database::ALL {
        let warnings = |name: &str, end: &str| {
            let name = format!("{name}_{database:?}");
            let query = format!("query=SELECT id, owner FROM account AS {name}{end}");
            let stage = stage(database, "AccountReader", &query);
            let failed = stage.start("job", [("fail.at", "7")]);
            let again = stage.operator().restart(failed, [("fail.at", "0")]).unwrap();
            stage.operator().wait(again).unwrap();
            let tree = stage.tree(again);
            assert!(tree.contains("job job COMPLETED"), "{database:?} {end}\n{tree}");
            let log = String::from_utf8(WARNINGS.lock().unwrap().clone()).unwrap();
            let lines = log.lines().filter(|line| line.contains(&name));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let logged = warnings("unordered", " WHERE owner <> ' ORDER BY id'");
        assert_eq!(logged.len(), 2, "{logged:?}");
        let expected = "the query has neither the property `key` nor an ORDER BY: after a restart its rows may come in another order";
        assert!(logged.iter().all(|line| line.contains(expected)), "{logged:?}");
        assert_eq!(warnings("sorted", " ORDER BY id"), [""; 0]);
        assert_eq!(warnings("keyed", "\nkey=id"), [""; 0]);
    }
}

/// A query cannot continue after an error. A skip of the error does not make it the end of the rows.
///
/// Spec: INPUT-01
#[test]
fn a_skipped_error_of_a_query_is_not_its_end() {
    let skip = r#"<skippable-exception-classes><include class="Exception"/></skippable-exception-classes>"#;
    let query = "query=SELECT id, CASE WHEN id = 10 THEN NULL ELSE owner END AS owner FROM account AS a";
    for database in Database::ALL {
        for end in [" ORDER BY id", "\nkey=id"] {
            let tree = run(&stage_with(
                database,
                "AccountReader",
                &format!("{query}{end}"),
                skip,
            ));
            let expected = "has to advance past input that it cannot read";
            assert!(
                tree.contains("job job FAILED") && tree.contains(expected),
                "{database:?}{end}\n{tree}"
            );
        }
    }
}

/// The position of a checkpoint is one in the rows of its query, in the order of its key.
///
/// Spec: INPUT-11
#[test]
fn a_restart_with_another_query_or_key_fails() {
    for database in Database::ALL {
        for (first, then, expected) in [
            (
                "id@id",
                "owner, id@id",
                "it had the `key` `id`, and has the `key` `owner, id`",
            ),
            ("id@id", "@id", "it had the `key` `id`, and has no `key`"),
            ("@id", "id@id", "it had no `key`, and has the `key` `id`"),
            ("id@id", "id@id + 0", "its text is another"),
            ("@id", "@id + 0", "its text is another"),
            ("id@id", "id@id", ""),
        ] {
            let properties = "query=SELECT id, owner FROM account WHERE id > :least ORDER BY ${by}\n\
                              parameters=least=${least}\nkey=${key}";
            let stage = stage(database, "AccountReader", properties);
            let with = |settings: &str, fail_at: &str, least: &str| {
                let (key, by) = settings.split_once('@').unwrap();
                [("key", key), ("by", by), ("fail.at", fail_at), ("least", least)]
                    .map(|(name, value)| (name, value.to_owned()))
            };
            let failed = stage.start("job", with(first, "7", "0"));
            assert!(
                stage.tree(failed).contains("stopped by the test"),
                "{}",
                stage.tree(failed)
            );
            // The parameters may have other values.
            let again = stage.operator().restart(failed, with(then, "0", "-1")).unwrap();
            stage.operator().wait(again).unwrap();
            let tree = stage.tree(again);
            let found = if expected.is_empty() {
                tree.contains("job job COMPLETED")
            } else {
                tree.contains("cannot resume the query: the query has changed since the checkpoint")
                    && tree.contains(expected)
            };
            assert!(found, "{database:?} {first} {then}\n{tree}");
        }
    }
}

/// A restart passes over as many rows as were read, so these must be the same. A query for unfinished rows returns other ones.
///
/// Spec: INPUT-12
#[test]
fn a_restart_without_a_key_notices_other_rows() {
    for database in Database::ALL {
        for (change, expected) in [
            (
                "DELETE FROM account WHERE id <= 4",
                "the last of them has another value in its first column",
            ),
            ("DELETE FROM account WHERE id > 3", "the query returns 3"),
            ("UPDATE account SET owner = 'x' WHERE id <= 4", ""),
            ("DELETE FROM account WHERE id > 22", ""),
        ] {
            let stage = stage(database, "AccountReader", &format!("{ALL} ORDER BY id"));
            let failed = stage.start("job", [("fail.at", "7")]);
            stage.outside().execute(change).unwrap();
            let again = stage.operator().restart(failed, [("fail.at", "0")]).unwrap();
            stage.operator().wait(again).unwrap();
            let tree = stage.tree(again);
            let found = match expected {
                "" => tree.contains("job job COMPLETED"),
                cause => tree.contains(&format!(
                    "cannot resume the query: its rows have changed since the checkpoint, at which 4 were read: {cause}"
                )),
            };
            assert!(found, "{database:?} {change}\n{tree}");
        }
    }
}

/// A query that changes rows fails before it runs.
///
/// Spec: INPUT-10
#[test]
fn a_query_that_changes_rows_is_rejected() {
    for database in Database::ALL {
        let deletes = match database {
            Database::Postgres => {
                "WITH a AS (DELETE FROM account RETURNING id, owner) SELECT id, owner FROM a"
            }
            _ => "DELETE FROM account RETURNING id, owner",
        };
        let stage = stage(database, "AccountReader", &format!("query={deletes}"));
        let tree = run(&stage);
        assert!(
            tree.contains("job job FAILED") && tree.contains("cannot read the query: expected a query that"),
            "{database:?}\n{tree}"
        );
        let left = stage.outside().number("SELECT COUNT(*) FROM account");
        assert_eq!(left, 23, "{database:?}");
    }
}

/// Errors name what is wrong, and no password.
#[test]
fn errors_name_the_cause() {
    let fails = |properties: &str| run(&stage(Database::Sqlite, "AccountReader", properties));
    let check = |tree: &str, expected: &str| assert!(tree.contains(expected), "{expected}\n{tree}");
    check(
        &fails("query=SELECT id FROM acount\nkey=id"),
        "cannot run the query: no such table: acount",
    );
    check(
        &fails("query=SELECT id FROM acount"),
        "cannot run the query: no such table: acount",
    );
    check(
        &fails("query=SELECT id FROM account WHERE id > :least"),
        "cannot read the query: the query has a parameter `:least`, which `parameters` does not set",
    );
    check(
        &fails(&format!("{ALL}\nkey=number")),
        "no such column: batch_page.number",
    );
    check(
        &fails("query=SELECT id FROM account"),
        "Column `owner` was not present in query",
    );
    check(
        &fails(&format!("{ALL}\ndatabase=sqlite:///nowhere/x.db")),
        "cannot open the database of the query: the database `sqlite:///nowhere/x.db` does not exist",
    );
    let tree = fails(&format!("{ALL}\ndatabase=oracle://me:secret@host"));
    check(&tree, "cannot open the database of the query");
    assert!(!tree.contains("secret"), "{tree}");
    #[cfg(feature = "servers")]
    {
        let tree = fails(&format!("{ALL}\ndatabase=postgres://me:secret@127.0.0.1:1/x"));
        check(&tree, "cannot connect to `postgres://me:");
        assert!(!tree.contains("secret"), "{tree}");
    }
}
