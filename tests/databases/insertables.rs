//! Writers of diesel's `Insertable` on each database.

use batch_items::{CompositeItemWriter, JsonLinesItemWriter, function_processor, insertable_writer};
use batch_runtime::prelude::*;
use batch_tests::database::Database;
use batch_tests::stage::Stage;
use diesel::prelude::*;
use serde::Serialize;

diesel::table! {
    booking (id) {
        id -> BigInt,
        payer -> Nullable<Text>,
        cents -> Nullable<BigInt>,
    }
}

/// An amount that is `None` is the default of the column.
#[derive(Insertable, Serialize)]
#[diesel(table_name = booking)]
struct Booking {
    id: i64,
    payer: &'static str,
    cents: Option<i64>,
}

/// An amount that is `None` is null.
#[derive(Insertable)]
#[diesel(table_name = booking, treat_none_as_default_value = false)]
struct NullableBooking {
    id: i64,
    payer: &'static str,
    cents: Option<i64>,
}

/// Declares the writers for the databases of this build.
macro_rules! writers {
    ($($database:ident)|+) => {
        insertable_writer!(BookingWriter("BookingWriter"): Booking => booking::table, $($database)|+);
        insertable_writer!(
            NullableBookingWriter("NullableBookingWriter"): NullableBooking => self::booking::table, $($database)|+
        );
    };
}

#[cfg(not(feature = "servers"))]
writers!(sqlite);
#[cfg(not(feature = "servers"))]
insertable_writer!(
    /// Inserts nothing where the id exists.
    NewBookingWriter("NewBookingWriter"): NullableBooking => booking::table, sqlite,
    |insert| insert.on_conflict_do_nothing(),
);
#[cfg(feature = "servers")]
writers!(sqlite | postgres | mysql);
#[cfg(feature = "servers")]
insertable_writer!(
    LatestBookingWriter("LatestBookingWriter"): NullableBooking => booking::table, sqlite | postgres,
    |insert| insert
        .on_conflict(booking::id)
        .do_update()
        .set(booking::cents.eq(diesel::upsert::excluded(booking::cents)))
);
#[cfg(feature = "servers")]
insertable_writer!(
    /// Inserts nothing where the id exists.
    NewBookingWriter("NewBookingWriter"): NullableBooking => booking::table, sqlite | postgres,
    |insert| insert.on_conflict_do_nothing(),
);

#[cfg(feature = "servers")]
insertable_writer!(ElsewhereWriter("ElsewhereWriter"): NullableBooking => booking::table, postgres);

#[cfg(not(feature = "servers"))]
insertable_writer!(
    LatestBookingWriter("LatestBookingWriter"): NullableBooking => booking::table, sqlite,
    |insert| insert
        .on_conflict(booking::id)
        .do_update()
        .set(booking::cents.eq(diesel::upsert::excluded(booking::cents)))
);

const SKIP: &str =
    r#"<skippable-exception-classes><include class="TableError"/></skippable-exception-classes>"#;

#[item_writer("BookingAndFileWriter")]
type BookingAndFileWriter = CompositeItemWriter<Booking, BookingWriter, JsonLinesItemWriter<Booking>>;

/// Reads the ids from 1 to `last`, fails at `fail.at`, and reads `again` once more at the end.
#[derive(BatchArtifact)]
struct BookingIds {
    #[batch_property(name = "last")]
    last: i64,
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: i64,
    #[batch_property(name = "again", value = "0")]
    again: i64,
    read: i64,
}

#[item_reader("BookingIds")]
impl BookingIds {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) {
        self.read = checkpoint.unwrap_or(0);
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<i64>, BatchError> {
        self.read += 1;
        if self.read == self.fail_at {
            return Err(BatchError::msg("stopped by the test"));
        }
        let again = self.again > 0 && self.read == self.last + 1;
        Ok((self.read <= self.last || again).then_some(if again { self.again } else { self.read }))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.read
    }
}

function_processor!(ToBooking("ToBooking"): |id: &i64| -> Option<Booking> {
    Some(Booking { id: *id, payer: "Ada", cents: cents(*id) })
});
function_processor!(ToNullableBooking("ToNullableBooking"): |id: &i64| -> Option<NullableBooking> {
    Some(NullableBooking { id: *id, payer: "Ada", cents: cents(*id) })
});

/// Every seventh booking has none.
fn cents(id: i64) -> Option<i64> {
    (id % 7 != 0).then_some(id * 100)
}

/// The processor of a writer's items.
fn processor(writer: &str) -> &'static str {
    match writer {
        "BookingWriter" | "BookingAndFileWriter" => "ToBooking",
        _ => "ToNullableBooking",
    }
}

/// Returns a stage with a table `booking`, and a job that writes the bookings up to `last`.
fn stage(database: Database, writer: &str, last: i64, children: &str) -> Stage {
    let processor = processor(writer);
    let stage = Stage::on(
        database,
        &format!(
            r#"<job id="job"><step id="load">
                <chunk reader="BookingIds" processor="{processor}" writer="{writer}" commit-interval="1100">
                  <properties>
                    <property name="last" value="{last}" target="reader"/>
                    <property name="2.output" value="${{folder}}/bookings.jsonl" target="writer"/>
                  </properties>{children}
                </chunk></step></job>"#
        ),
    );
    let table =
        "CREATE TABLE booking (id BIGINT NOT NULL PRIMARY KEY, payer VARCHAR(100), cents BIGINT DEFAULT -1)";
    stage.outside().execute(table).unwrap();
    stage
}

fn run(stage: &Stage, again: i64) -> String {
    let execution = stage.start("job", [("again", again.to_string())]);
    stage.tree(execution)
}

/// Returns the number of rows, the sum of their cents, and the number of those without cents.
fn totals(stage: &Stage) -> [i64; 3] {
    let mut outside = stage.outside();
    [
        "SELECT COUNT(*) FROM booking",
        "SELECT CAST(COALESCE(SUM(cents), 0) AS DECIMAL(20)) FROM booking",
        "SELECT COUNT(*) FROM booking WHERE cents IS NULL",
    ]
    .map(|query| outside.number(query))
}

fn expected(last: i64, default: Option<i64>) -> [i64; 3] {
    let ids = 1..=last;
    let sum = ids.clone().filter_map(|id| cents(id).or(default)).sum();
    let nulls = ids.filter(|id| cents(*id).or(default).is_none()).count();
    [last, sum, nulls as i64]
}

/// The writers for a database.
fn writers(database: Database) -> impl Iterator<Item = &'static str> {
    let all = [
        "BookingWriter",
        "BookingAndFileWriter",
        "NullableBookingWriter",
        "NewBookingWriter",
    ];
    let completed = database != Database::Mariadb;
    all.into_iter()
        .filter(move |writer| completed || *writer != "NewBookingWriter")
}

/// Every row arrives, in full statements and in the remaining one, with defaults and with nulls.
#[test]
fn each_item_is_a_row() {
    for database in Database::ALL {
        for writer in writers(database) {
            let default = (processor(writer) == "ToBooking").then_some(-1);
            for last in [0, 1, 49, 50, 51, 500, 501, 2_345] {
                let stage = stage(database, writer, last, "");
                let tree = run(&stage, 0);
                assert!(
                    tree.contains("job job COMPLETED"),
                    "{database:?} {writer}\n{tree}"
                );
                assert_eq!(totals(&stage), expected(last, default), "{database:?} {writer}");
            }
        }
    }
}

/// A row that is not inserted is an error, also where the statement ignores it. The bad item alone can be skipped.
#[test]
fn a_row_that_exists_is_an_error() {
    for database in Database::ALL {
        for writer in writers(database) {
            let cause = match writer {
                "NewBookingWriter" => "129 rows were inserted for 130 items",
                _ => "",
            };
            let failed = stage(database, writer, 129, "");
            let tree = run(&failed, 17);
            let expected = format!("cannot insert 130 rows in table `booking`: {cause}");
            assert!(tree.contains(&expected), "{database:?} {writer}\n{tree}");
            assert_eq!(totals(&failed)[0], 0, "{database:?} {writer}");

            let skipped = stage(database, writer, 129, SKIP);
            let tree = run(&skipped, 17);
            assert!(
                tree.contains("job job COMPLETED"),
                "{database:?} {writer}\n{tree}"
            );
            assert!(tree.contains("write skip 1"), "{database:?} {writer}\n{tree}");
            assert_eq!(totals(&skipped)[0], 129, "{database:?} {writer}");
        }
    }
}

/// The statement can be completed, here to update the rows whose id exists, also if an item of the same list has inserted it.
///
/// Spec: ITEM-TABLE-02
#[test]
fn rows_are_updated() {
    for database in Database::ALL {
        if database == Database::Mariadb {
            continue;
        }
        for again in [0, 9] {
            let stage = stage(database, "LatestBookingWriter", 60, "");
            let old = "INSERT INTO booking VALUES (7, 'Bob', 1), (8, 'Bob', 1), (61, 'Bob', 1)";
            stage.outside().execute(old).unwrap();
            let tree = run(&stage, again);
            assert!(tree.contains("job job COMPLETED"), "{database:?}\n{tree}");
            let [_, sum, nulls] = expected(60, None);
            assert_eq!(totals(&stage), [61, sum + 1, nulls], "{database:?}");
            let kept = "SELECT COUNT(*) FROM booking WHERE payer = 'Bob'";
            assert_eq!(stage.outside().number(kept), 3, "{database:?}");
        }
    }
}

/// The rows are committed with the checkpoint: a restart inserts each booking once.
#[test]
fn a_restart_inserts_each_row_once() {
    for database in Database::ALL {
        for fail_at in ["1", "1100", "1101", "2201", "2346"] {
            let stage = stage(database, "NullableBookingWriter", 2_345, "");
            let failed = stage.start("job", [("fail.at", fail_at)]);
            let committed = (fail_at.parse::<i64>().unwrap() - 1) / 1_100 * 1_100;
            assert_eq!(totals(&stage)[0], committed, "{database:?} {fail_at}");
            let again = stage.operator().restart(failed, [("fail.at", "0")]).unwrap();
            stage.operator().wait(again).unwrap();
            assert_eq!(totals(&stage), expected(2_345, None), "{database:?} {fail_at}");
        }
    }
}

/// A writer for other databases reports that, and its items are not skipped.
#[test]
#[cfg(feature = "servers")]
fn a_writer_is_for_its_databases() {
    let stage = stage(Database::Sqlite, "ElsewhereWriter", 1, SKIP);
    let tree = run(&stage, 0);
    let expected = "cannot insert 1 row in table `booking`: the writer is declared for `postgres`, \
                    and the job repository is on another database";
    assert!(tree.contains(expected), "{tree}");
    assert!(!tree.contains("skip"), "{tree}");
}

/// A table that does not exist, lacks a column or needs another one is not the fault of an item: nothing is skipped.
///
/// Spec: D-106
#[test]
fn a_wrong_table_is_not_skipped() {
    for database in Database::ALL {
        for writer in writers(database) {
            for (last, change) in [
                (1, "DROP TABLE booking"),
                (3, "DROP TABLE booking"),
                (1, "ALTER TABLE booking DROP COLUMN payer"),
                (3, "ALTER TABLE booking DROP COLUMN payer"),
                (
                    1,
                    "ALTER TABLE booking RENAME TO other; CREATE VIEW booking AS SELECT MAX(id) AS id, MAX(payer) AS payer, MAX(cents) AS cents FROM other",
                ),
                (
                    3,
                    "DROP TABLE booking; CREATE TABLE booking (id BIGINT, payer VARCHAR(9), cents BIGINT, audit VARCHAR(9) NOT NULL)",
                ),
            ] {
                let stage = stage(database, writer, last, SKIP);
                stage.outside().execute(change).unwrap();
                let tree = run(&stage, 0);
                assert!(
                    tree.contains("job job FAILED"),
                    "{database:?} {writer} {change}\n{tree}"
                );
                assert!(!tree.contains("skip"), "{database:?} {writer} {change}\n{tree}");
            }
        }
    }
}

/// A value that does not fit its column is the fault of its item, also if its row is the first or the only one.
///
/// Spec: D-106
#[test]
fn a_value_that_is_too_long_is_skipped() {
    // SQLite has no limit.
    for database in Database::ALL
        .into_iter()
        .filter(|database| *database != Database::Sqlite)
    {
        for writer in writers(database) {
            for last in [1, 4] {
                let stage = stage(database, writer, last, SKIP);
                let narrow =
                    "DROP TABLE booking; CREATE TABLE booking (id BIGINT, payer VARCHAR(2), cents BIGINT)";
                stage.outside().execute(narrow).unwrap();
                let tree = run(&stage, 0);
                assert!(
                    tree.contains("job job COMPLETED"),
                    "{database:?} {writer} {last}\n{tree}"
                );
                assert!(
                    tree.contains(&format!("write skip {last}")),
                    "{database:?} {writer}\n{tree}"
                );
            }
        }
    }
}
