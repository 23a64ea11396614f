//! Records to several tables and files.

use std::collections::BTreeMap;

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;

use super::stage::{Ended, Stage};

#[batchlet("createLedger")]
fn create_ledger(#[batch_context] job: &JobContext) -> Result<(), BatchError> {
    use diesel::connection::SimpleConnection;
    let mut connection = job.connect()?;
    let tables = "CREATE TABLE posting (number TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL, cents INTEGER NOT NULL);
         CREATE TABLE balance (account TEXT NOT NULL PRIMARY KEY, cents INTEGER NOT NULL CHECK (cents < 90000))";
    Ok(connection.sqlite()?.batch_execute(tables)?)
}

/// The numbers of the rows are unique but for the last row, whose number an earlier one has.
fn rows() -> Vec<(u64, String, u64)> {
    let mut rows: Vec<_> = (1..=60)
        .map(|number| (number, format!("A{}", number % 7), number * 10))
        .collect();
    rows.push((17, "A0".to_owned(), 5));
    // A balance rejects it.
    rows[20].2 = 90_000;
    rows
}

fn input(stage: &Stage) {
    let rows = rows();
    let lines = rows
        .iter()
        .map(|(number, account, cents)| format!("{number},{account},{cents}\n"));
    stage.write(
        "in.csv",
        format!("number,account,cents\n{}", lines.collect::<String>()),
    );
}

const LEDGER: &str = "resource=${dir}/in.csv
    1.output=${dir}/all.csv
    1.fields=no=number, cents
    2.table=posting
    3.table=balance
    3.fields=account, cents
    3.mode=upsert
    3.key=account
    3.add=cents
    4.where=cents > 300 and account <> 'A1'
    4.set=euros=cents / 100
    4.output=${dir}/large.jsonl.gz";

const SKIP: &str =
    r#"<skippable-exception-classes><include class="ConstraintViolation"/></skippable-exception-classes>"#;

fn chunk(attributes: &str) -> String {
    format!(r#"reader="csvRecordReader" writer="recordRoutingWriter" {attributes}"#)
}

fn unpacked(stage: &Stage, name: &str) -> String {
    let file = std::fs::File::open(stage.path().join(name)).unwrap();
    std::io::read_to_string(flate2::read::MultiGzDecoder::new(file)).unwrap()
}

fn assert_ledger(stage: &Stage, context: &str) {
    let kept: Vec<_> = rows()
        .into_iter()
        .take(60)
        .filter(|row| row.2 != 90_000)
        .collect();
    let all: String = kept
        .iter()
        .map(|(number, _, cents)| format!("{number},{cents}\n"))
        .collect();
    assert_eq!(stage.read("all.csv"), format!("no,cents\n{all}"), "{context}");
    let large: String = kept
        .iter()
        .filter(|(_, account, cents)| *cents > 300 && account != "A1")
        .map(|(number, account, cents)| {
            let euros = match (cents / 100, cents / 10 % 10) {
                (euros, 0) => euros.to_string(),
                (euros, tenths) => format!("{euros}.{tenths}"),
            };
            format!("{{\"number\":\"{number}\",\"account\":\"{account}\",\"cents\":\"{cents}\",\"euros\":{euros}}}\n")
        })
        .collect();
    assert_eq!(unpacked(stage, "large.jsonl.gz"), large, "{context}");
    assert_eq!(
        stage.number("SELECT COUNT(*) FROM posting"),
        kept.len() as i64,
        "{context}"
    );
    let mut balances: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, account, cents) in &kept {
        *balances.entry(account).or_default() += cents;
    }
    for (account, cents) in balances {
        let query = format!("SELECT cents FROM balance WHERE account = '{account}'");
        assert_eq!(stage.number(&query), cents as i64, "{context}: {account}");
    }
}

/// A record that one destination rejects is in none, whatever the sizes of lists and intervals.
///
/// Spec: ITEM-ROUTE-01
#[test]
fn a_record_is_in_all_of_its_destinations_or_in_none() {
    for attributes in [
        r#"commit-interval="100" skip-limit="2""#,
        r#"commit-interval="7" chunk-size="3" skip-limit="2""#,
        r#"commit-interval="1" skip-limit="2""#,
        r#"commit-interval="6" buffer-reads="false" skip-limit="2""#,
    ] {
        let stage = Stage::after_step("createLedger", &chunk(attributes), LEDGER, SKIP);
        input(&stage);
        let ended = stage.completes();
        assert_eq!((ended.writes, ended.skips), (59, 2), "{attributes}");
        assert_ledger(&stage, attributes);
    }
}

/// An error of a record names the part that has it.
///
/// Spec: ITEM-ROUTE-01
#[test]
fn errors_name_their_part() {
    let fails = |properties: &str| {
        let properties = format!("resource=${{dir}}/in.csv\n1.output=${{dir}}/all.csv\n{properties}");
        let stage = Stage::after_step(
            "createLedger",
            &chunk(r#"commit-interval="100""#),
            &properties,
            "",
        );
        input(&stage);
        stage.start(()).message
    };
    let of_table = fails("2.table=posting");
    assert!(
        of_table.contains("part `2.`: cannot insert 61 rows in table `posting`"),
        "{of_table}"
    );
    let of_expression = fails("3.output=${dir}/b.csv\n3.set=n=year(account)");
    assert!(of_expression.contains("part `3.`: "), "{of_expression}");
}

/// Spec: ITEM-ROUTE-01
#[test]
fn a_restart_continues_all_destinations() {
    let stage = Stage::after_step("createLedger", &chunk(r#"commit-interval="4""#), LEDGER, "");
    input(&stage);
    let failed = stage.start(());
    assert_eq!(failed.status, BatchStatus::Failed);
    assert!(
        failed.message.contains("in table `balance`"),
        "{}",
        failed.message
    );
    let corrected = stage.read("in.csv").replace("90000", "10");
    stage.write("in.csv", corrected.replace("17,A0,5\n", ""));
    let again = stage.restart(&failed, [("if.changed", "resume")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(stage.number("SELECT COUNT(*) FROM posting"), 60);
    assert_eq!(stage.read("all.csv").lines().count(), 61);
    let large = unpacked(&stage, "large.jsonl.gz");
    let expected = (31..=60).filter(|number| number % 7 != 1).count();
    assert_eq!(large.lines().count(), expected);
}

fn routed(properties: &str, children: &str) -> (Stage, Ended) {
    let properties = format!("resource=${{dir}}/in.csv\n{properties}");
    let stage = Stage::with_children(
        &chunk(r#"commit-interval="10" skip-limit="100""#),
        &properties,
        children,
    );
    input(&stage);
    let ended = stage.start(());
    (stage, ended)
}

/// Spec: ITEM-ROUTE-01, ITEM-ROUTE-02
#[test]
fn the_first_destination_takes_a_record() {
    let destinations = "route=first\n1.where=account = 'A1'\n1.output=${dir}/one.csv
        2.where=cents > 300\n2.output=${dir}/large.csv\n3.output=${dir}/others.csv";
    let (stage, ended) = routed(destinations, "");
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
    let lines = |name: &str| {
        stage
            .read(name)
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (one, large, others) = (lines("one.csv"), lines("large.csv"), lines("others.csv"));
    assert_eq!(one.len() + large.len() + others.len(), 61);
    for (number, account, cents) in rows() {
        let line = format!("{number},{account},{cents}");
        let expected = match (account.as_str(), cents) {
            ("A1", _) => &one,
            (_, 301..) => &large,
            _ => &others,
        };
        assert!(expected.contains(&line), "{line}");
    }
}

/// A record that no destination takes is not lost in silence.
///
/// Spec: ITEM-ROUTE-02
#[test]
fn a_record_without_a_destination_is_an_error_of_the_record() {
    let some = "1.where=cents > 300\n1.output=${dir}/large.csv";
    let (_, failed) = routed(some, "");
    assert_eq!(failed.status, BatchStatus::Failed);
    for part in [
        "no part takes the record with `number` \"1\"",
        "add a part without `where`",
        "in.csv:2",
    ] {
        assert!(failed.message.contains(part), "{part}: {}", failed.message);
    }
    let skip =
        r#"<skippable-exception-classes><include class="UnroutedRecord"/></skippable-exception-classes>"#;
    let (_, skipped) = routed(some, skip);
    assert_eq!(
        (skipped.status, skipped.skips),
        (BatchStatus::Completed, 30),
        "{}",
        skipped.message
    );
}

/// A mistake fails the step before a record is read, or the job before it starts.
///
/// Spec: ITEM-ROUTE-03, D-97
#[test]
fn destinations_that_are_not_whole_are_rejected() {
    for (properties, expected) in [
        ("route=all", "no part is set; set `1.table` or `1.output`"),
        (
            "1.output=${dir}/a.csv\n2.where=cents > 1",
            "part `2.`: it has neither `table` nor `output`",
        ),
        (
            "1.output=${dir}/a.jsonl\n1.columns=number",
            "part `1.`: `columns` has no effect on JSON Lines",
        ),
        ("1.output=${dir}/a.parquet", "give it another one"),
        ("1.output=${dir}/a.csv.GZ", "write it in lower case"),
        (
            "1.output=${dir}/a.csv\n1.table=row",
            "part `1.`: it has `table` and `output`",
        ),
        (
            "1.table=missing",
            "part `1.`: cannot insert rows in table `missing`",
        ),
    ] {
        let (_, failed) = routed(properties, SKIP);
        assert_eq!(
            (failed.status, failed.reads),
            (BatchStatus::Failed, 0),
            "{properties}"
        );
        assert!(
            failed.message.contains(expected),
            "{properties}: {}",
            failed.message
        );
    }
    for (properties, expected) in [
        (
            "1.output=${dir}/a.csv\n1.mode=upsert",
            "the property `1.mode` has no effect",
        ),
        (
            "1.output=${dir}/a.csv\n2.delimiter=;",
            "it has an effect only with `2.output`",
        ),
        ("1.output=${dir}/a.csv\n2.tabel=row", "did you mean `2.table`?"),
        ("1.output=${dir}/a.csv\n2.output=${dir}/a.csv", "both write"),
        ("1.output=${dir}/a.csv\n1.where=cents >", "expected a value"),
    ] {
        let all = format!("resource=${{dir}}/in.csv\n{properties}");
        let rejected = Stage::new(&chunk(""), &all).rejected();
        assert!(rejected.contains(expected), "{properties}: {rejected}");
    }
}

/// A destination that is another one after a restart would lack records.
///
/// Spec: ITEM-ROUTE-03
#[test]
fn destinations_stay_the_same_in_a_restart() {
    let file = "${dir}/a.csv";
    for (before, after) in [
        (
            format!("1.output={file}"),
            [("2.output", "${dir}/b.csv"), ("no", "")],
        ),
        (
            format!("1.output={file}"),
            [("1.output", "${dir}/a.jsonl"), ("no", "")],
        ),
        (
            format!("1.output={file}"),
            [("1.output", ""), ("1.table", "posting")],
        ),
        (
            "1.table=posting".to_owned(),
            [("1.output", file), ("1.table", "")],
        ),
    ] {
        let properties = format!("resource=${{dir}}/in.csv\n{before}");
        let stage = Stage::after_step("createLedger", &chunk(r#"commit-interval="4""#), &properties, "");
        input(&stage);
        stage.write("in.csv", stage.read("in.csv").replace("\n9,", "\nbad,9,"));
        let failed = stage.start(());
        assert_eq!(failed.status, BatchStatus::Failed);
        let folder = stage.path().display().to_string();
        let again = stage.restart(
            &failed,
            after.map(|(name, value)| (name, value.replace("${dir}", &folder))),
        );
        assert!(
            again.message.contains("it was added, removed or of another kind"),
            "{before} {after:?}: {}",
            again.message
        );
    }
}

/// A table in another database than before would lack records.
///
/// Spec: ITEM-TABLE-04
#[test]
fn a_table_stays_in_its_database_in_a_restart() {
    use diesel::prelude::*;
    let table = r#"reader="csvRecordReader" writer="recordTableWriter" commit-interval="4""#;
    for from_other in [false, true] {
        let stage = Stage::after_step("createLedger", table, "resource=${dir}/in.csv\ntable=posting", "");
        input(&stage);
        let other = stage.path().join("other.db").display().to_string();
        let posting = "CREATE TABLE posting (number TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL, cents INTEGER NOT NULL)";
        let mut connection = SqliteConnection::establish(&other).unwrap();
        diesel::sql_query(posting).execute(&mut connection).unwrap();
        stage.write("in.csv", stage.read("in.csv").replace("\n9,", "\nbad,9,"));
        let [mut before, mut after] = [String::new(), format!("sqlite://{other}")];
        if from_other {
            std::mem::swap(&mut before, &mut after);
        }
        let failed = stage.start([("database", before)]);
        assert_eq!(failed.status, BatchStatus::Failed);
        let again = stage.restart(&failed, [("database", after)]);
        assert!(
            again.message.contains("another database before the restart"),
            "{from_other}: {}",
            again.message
        );
    }
}
