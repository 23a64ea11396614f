//! Records that are compared with a trailer, and with what is expected of all of them.

use std::fs::File;
use std::io::Write;

use batch_runtime::BatchStatus;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::stage::{Ended, Stage};

const SKIP_ALL: &str = r#"<skippable-exception-classes>
      <include class="RecordError"/><include class="ExpectationFailed"/><include class="ConfigurationError"/><include class="BatchError"/>
    </skippable-exception-classes>"#;

const FILES: &str = "resource=${dir}/in*.csv*
    output=${dir}/out.csv
    trailer=kind = 'T'
    expect=count() = number and sum(from_comma(amount)) = from_comma(amount)";

fn chunk(attributes: &str) -> String {
    format!(r#"reader="csvRecordReader" writer="recordCsvWriter" {attributes}"#)
}

/// A file of `rows` and its trailer.
fn file(first: u32, rows: u32) -> String {
    let amounts = || (first..first + rows).map(|row| row * 1_010);
    let comma = |cents: u32| format!("\"{},{:02}\"", cents / 100, cents % 100);
    let details: String = (first..)
        .zip(amounts())
        .map(|(row, cents)| format!("D,{row},{}\n", comma(cents)))
        .collect();
    format!(
        "kind,number,amount\n{details}T,00{rows},{}\n",
        comma(amounts().sum())
    )
}

fn started(input: &str, properties: &str, children: &str) -> (Stage, Ended) {
    let properties = format!("resource=${{dir}}/in.csv\noutput=${{dir}}/out.csv\n{properties}");
    let stage = Stage::with_children(
        &chunk(r#"commit-interval="2" skip-limit="100""#),
        &properties,
        children,
    );
    stage.write("in.csv", input);
    let ended = stage.start(());
    (stage, ended)
}

/// Each file has its own trailer, which is no item.
///
/// Spec: ITEM-EXPECT-01
#[test]
fn trailers_are_compared_with_the_records_before_them() {
    for attributes in [
        r#"commit-interval="1""#,
        r#"commit-interval="3" chunk-size="2""#,
        r#"commit-interval="100""#,
        r#"commit-interval="4" buffer-reads="false""#,
    ] {
        let stage = Stage::new(&chunk(attributes), FILES);
        stage.write("in1.csv", file(1, 7));
        let mut packed = GzEncoder::new(
            File::create(stage.path().join("in2.csv.gz")).unwrap(),
            Compression::fast(),
        );
        packed.write_all(file(8, 5).as_bytes()).unwrap();
        packed.finish().unwrap();
        stage.write("in3.csv", file(13, 0));
        let ended = stage.completes();
        assert_eq!((ended.reads, ended.writes), (12, 12), "{attributes}");
        let numbers: Vec<_> = stage
            .read("out.csv")
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(
            numbers,
            (1..=12).map(|number| number.to_string()).collect::<Vec<_>>(),
            "{attributes}"
        );
    }
}

/// A step fails, regardless of its skip rules, if an expectation does not hold, and the file does not get its name.
///
/// Spec: ITEM-EXPECT-02
#[test]
fn an_expectation_that_does_not_hold_fails_the_step() {
    let trailer =
        "trailer=kind = 'T'\nexpect=count() = number and sum(from_comma(amount)) = from_comma(amount)";
    let whole = file(1, 5);
    let wrong_sum = whole.replace("\"30,30\"", "\"30,31\"");
    let without_row = whole.replace("D,2,\"20,20\"\n", "");
    let without_trailer = whole.split("T,").next().unwrap().to_owned();
    let after_trailer = format!("{whole}D,6,\"1,00\"\n");
    let empty = "kind,number,amount\n";
    for (input, properties, expected) in [
        (
            wrong_sum.as_str(),
            trailer,
            "the trailer at in.csv:7 does not match the records before it: expected `count() = number and sum(from_comma(amount)) = \
             from_comma(amount)`, but `count()` is \"5\", `sum(from_comma(amount))` is \"151.51\", `number` is \"005\", `amount` is \"151,50\"",
        ),
        (&without_row, trailer, "`count()` is \"4\""),
        (
            &without_trailer,
            trailer,
            "the input ends with records that have no trailer",
        ),
        (
            &after_trailer,
            trailer,
            "the input ends with records that have no trailer",
        ),
        (empty, trailer, "in.csv` has no records, so it lacks its trailer"),
        (
            empty,
            "trailer=kind = 'T'",
            "in.csv` has no records, so it lacks its trailer",
        ),
        (&without_trailer, "expect=count() = 6", "but `count()` is \"5\""),
        (
            &without_trailer,
            "expect=count() > 0 and every(number < 5)",
            "`every(number < 5)` is \"false\"",
        ),
        (
            &without_trailer,
            "expect=sum(from_comma(amount)) < 151.50",
            "`sum(from_comma(amount))` is \"151.50\"",
        ),
    ] {
        let (stage, failed) = started(input, properties, SKIP_ALL);
        assert_eq!(failed.status, BatchStatus::Failed, "{properties}: {input}");
        assert!(
            failed.message.contains(expected),
            "{expected}: {}",
            failed.message
        );
        assert_eq!(failed.skips, 0);
        assert!(!stage.path().join("out.csv").exists(), "{properties}");
    }
    for properties in [
        "expect=count() = 5",
        "expect=count(number % 2 = 1) = 3 and every(kind = 'D')",
        "expect=sum(number) = 15.0",
    ] {
        let (stage, ended) = started(&without_trailer, properties, SKIP_ALL);
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
        assert_eq!(stage.read("out.csv").lines().count(), 6);
    }
}

/// A restart continues the totals of the last checkpoint.
///
/// Spec: ITEM-EXPECT-01
#[test]
fn totals_survive_a_restart() {
    for interval in [1, 2, 3, 5] {
        let stage = Stage::new(&chunk(&format!("commit-interval=\"{interval}\"")), FILES);
        stage.write("in1.csv", file(1, 4));
        stage.write("in2.csv", file(5, 6).replace("D,8,", "D,8,surplus,"));
        let failed = stage.start(());
        assert_eq!(failed.status, BatchStatus::Failed);
        stage.write("in2.csv", file(5, 6));
        let again = stage.restart(&failed, [("if.changed", "resume")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(stage.read("out.csv").lines().count(), 11, "{interval}");
    }
}

/// The totals of other records would mean nothing.
///
/// Spec: ITEM-EXPECT-01
#[test]
fn totals_stay_the_same_in_a_restart() {
    for after in [
        Some(("expect", "sum(number) < 100")),
        Some(("trailer", "kind = 'T'")),
        None,
    ] {
        let expect = "resource=${dir}/in.csv\noutput=${dir}/out.csv\nexpect=count() < 4";
        let stage = Stage::new(&chunk(r#"commit-interval="2""#), expect);
        stage.write("in.csv", file(1, 5));
        let failed = stage.start(());
        assert!(
            failed.message.contains("`count()` is \"6\""),
            "{}",
            failed.message
        );
        let Some(after) = after else {
            let again = stage.restart(&failed, [("expect", "count() < 40")]);
            assert_eq!(
                again.status,
                BatchStatus::Completed,
                "the totals are the same: {}",
                again.message
            );
            continue;
        };
        let again = stage.restart(&failed, [after]);
        assert!(
            again.message.contains("`expect` has other totals"),
            "{}",
            again.message
        );
    }
}

/// Records that are skipped because they cannot be read are in no other total.
///
/// Spec: ITEM-EXPECT-01
#[test]
fn skipped_records_are_counted() {
    let input = "kind,number\nD,1\nD,2,3\nD,x\nD,4\nT,4\n";
    let skip = r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;
    let counted = "trailer=kind = 'T'\nexpect=count() + skipped() = number and sum(number) < 10";
    let (_, ended) = started(input, counted, skip);
    assert_eq!(
        (ended.status, ended.skips),
        (BatchStatus::Completed, 2),
        "{}",
        ended.message
    );
    let (_, failed) = started(input, counted, "");
    assert!(failed.message.contains("in.csv:3"), "{}", failed.message);
    let (_, failed) = started(
        input,
        "trailer=kind = 'T'\nexpect=count() = number and sum(number) < 10",
        skip,
    );
    assert!(
        failed.message.contains("`count()` is \"2\""),
        "{}",
        failed.message
    );
}

/// A file without its trailer is noticed, also if only its end or only a skipped record shows it, and after a restart.
///
/// Spec: ITEM-EXPECT-02
#[test]
fn each_file_ends_with_a_trailer() {
    let skip = r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;
    let whole = "kind,number\nD,1\nT,1\n";
    for (first, second, expected) in [
        (
            "kind,number\nD,1\n",
            whole,
            Some("in1.csv` ends with records that have no trailer"),
        ),
        (
            whole,
            "kind,number\nD,2\n",
            Some("the input ends with records that have no trailer"),
        ),
        (
            whole,
            "kind,number\nD,2,3\n",
            Some("the input ends with records that have no trailer"),
        ),
        (
            "kind,number\nD,1\nT,1,bad\n",
            whole,
            Some("in1.csv` ends with records that have no trailer"),
        ),
        (whole, "kind,number\nD,1,2\nD,2\nT,1\n", None),
        (
            "kind,number\n",
            whole,
            Some("in1.csv` has no records, so it lacks its trailer"),
        ),
        (
            whole,
            "kind,number\n",
            Some("in2.csv` has no records, so it lacks its trailer"),
        ),
        (
            "",
            whole,
            Some("in1.csv` has no records, so it lacks its trailer"),
        ),
    ] {
        for interval in [1, 2, 10] {
            let properties = "resource=${dir}/in*.csv\noutput=${dir}/out.csv\ntrailer=kind = 'T'\nexpect=every(number > 0)";
            let stage = Stage::with_children(
                &chunk(&format!("commit-interval=\"{interval}\" skip-limit=\"9\"")),
                properties,
                skip,
            );
            stage.write("in1.csv", first);
            stage.write("in2.csv", second);
            let ended = stage.start(());
            let Some(expected) = expected else {
                assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
                continue;
            };
            for ended in [stage.restart(&ended, ()), ended] {
                assert_eq!(ended.status, BatchStatus::Failed, "{first} {second}");
                assert!(ended.message.contains(expected), "{expected}: {}", ended.message);
            }
        }
    }
}

/// Groups have trailers, too.
///
/// Spec: ITEM-EXPECT-01
#[test]
fn groups_are_compared() {
    let run = |input: &str| {
        let stage = Stage::new(
            r#"reader="csvRecordGroupReader" writer="recordGroupCsvWriter" commit-interval="1""#,
            "resource=${dir}/in.csv\noutput=${dir}/out.csv\ngroup=key account\ntrailer=kind = 'T'\nexpect=sum(cents) = cents",
        );
        stage.write("in.csv", input);
        let ended = stage.start(());
        (stage, ended)
    };
    let rows = "kind,account,cents\nD,A,1\nD,A,2\nD,B,4\n";
    let (stage, ended) = run(&format!("{rows}T,,7\n"));
    assert_eq!(
        (ended.status, ended.reads),
        (BatchStatus::Completed, 2),
        "{}",
        ended.message
    );
    assert_eq!(stage.read("out.csv").lines().count(), 4);
    let (_, failed) = run(&format!("{rows}T,,8\n"));
    assert!(
        failed.message.contains("`sum(cents)` is \"7\", `cents` is \"8\""),
        "{}",
        failed.message
    );
}

/// Mistakes are found before the job starts or, if they are between two properties, before a record is read.
///
/// Spec: ITEM-EXPECT-03
#[test]
fn mistakes_in_expectations_are_reported() {
    for (expect, expected) in [
        ("1 = 1", "expected a total, such as `count() > 0`"),
        ("count()", "expected a condition"),
        ("count() = sum()", "expected a number in `sum(amount)`"),
        (
            "sum(sum(a)) = 1",
            "`sum` is a total: use it in `expect` or in `set` of `recordAggregateProcessor`, and not inside another total, at character 5",
        ),
        ("skipped(a) = 1", "`skipped()` takes no argument"),
        ("every(1)", "expected a condition, found a number"),
        ("count() = 1 or", "expected a value"),
    ] {
        let rejected = Stage::new(&chunk(""), &format!("resource=x\noutput=y\nexpect={expect}")).rejected();
        assert!(rejected.contains(expected), "{expect}: {rejected}");
    }
    let (_, failed) = started(&file(1, 1), "expect=count() = number", SKIP_ALL);
    assert!(
        failed
            .message
            .contains("`expect` has the field `number` outside of a total"),
        "{}",
        failed.message
    );
    assert_eq!(failed.reads, 0);
    let (_, failed) = started(
        &file(1, 1),
        "trailer=kind = 'T'\nexpect=count() = numbers",
        SKIP_ALL,
    );
    assert!(
        failed.message.contains("the record has no field `numbers`"),
        "{}",
        failed.message
    );
}
