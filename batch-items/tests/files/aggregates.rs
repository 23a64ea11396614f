//! Totals of groups of records.

use std::fmt::Write as _;

use batch_runtime::BatchStatus;

use super::stage::Stage;

const SKIP: &str =
    r#"<skippable-exception-classes><include class="MappingError"/></skippable-exception-classes>"#;

fn job(commit_interval: u32, properties: &str, input: &str, skip: &str) -> Stage {
    let chunk = format!(
        r#"reader="csvRecordGroupReader" processor="recordAggregateProcessor" writer="recordJsonlWriter" commit-interval="{commit_interval}" skip-limit="9""#
    );
    let properties =
        format!("resource=${{dir}}/in.csv\noutput=${{dir}}/out\ngroup=key account\n{properties}");
    let stage = Stage::with_children(&chunk, &properties, skip);
    stage.write("in.csv", input);
    stage
}

/// Spec: ITEM-AGGREGATE-01
#[test]
fn a_group_becomes_a_record_of_its_totals() {
    let (mut input, mut expected) = ("account,name,cents,day,kind\n".to_owned(), String::new());
    for account in 1..=40_i64 {
        let rows = 1 + account % 4;
        for row in 0..rows {
            let kind = if row == 0 { "D" } else { "C" };
            let (cents, day) = (account * 100 + row, 28 - row);
            writeln!(
                input,
                "A{account},Name {account},{cents}.5,2026-01-{day:02},{kind}"
            )
            .unwrap();
        }
        let tenths = rows * account * 1000 + 10 * (0..rows).sum::<i64>() + 5 * rows;
        let (total, tenth) = (tenths / 10, tenths % 10);
        let (credits, first, most) = (rows - 1, 29 - rows, account * 100 + rows - 1);
        writeln!(
            expected,
            "{{\"owner\":\"A{account}\",\"name\":\"Name {account}\",\"total\":{total}.{tenth},\"rows\":{rows},\"credits\":{credits},\
             \"first\":\"2026-01-{first:02}\",\"last\":\"2026-01-28\",\"most\":{most},\"label\":\"A{account}/{rows}\"}}"
        )
        .unwrap();
    }
    let properties = "fields=owner=account, name
        set=total=sum(cents), rows=count(), credits=count(kind = 'C'), first=min(day), last=max(day), most=max(floor(cents)), label=account || '/' || count()";
    for commit_interval in [1, 7, 100] {
        let stage = job(commit_interval, properties, &input, "");
        assert_eq!(stage.completes().writes, 40);
        assert_eq!(stage.read("out"), expected);
    }
}

/// A group that has no value for a total, or several values where one is needed, is rejected.
///
/// Spec: ITEM-AGGREGATE-01
#[test]
fn a_group_without_its_totals_is_rejected() {
    for (rows, set, expected) in [
        (
            "A,1,x\nA,2,y\n",
            "n=sum(cents), label=note",
            "field `note` is \"x\" and \"y\" in one group",
        ),
        ("A,1,x\nA,,y\n", "n=sum(cents)", "`cents` is null"),
        (
            "A,9,x\nA,16,y\n",
            "n=max(cents)",
            "compare as numbers in another way",
        ),
        ("A,1,\nA,1,\n", "n=min(note)", "`note` is null"),
    ] {
        let input = format!("account,cents,note\n{rows}B,7,z\n");
        let properties = format!("fields=account\nset={set}");
        let message = job(10, &properties, &input, "").fails();
        assert!(message.contains(expected), "{set}: {message}");
        let ended = job(10, &properties, &input, SKIP).start(());
        let skips = if set.starts_with("account") { 2 } else { 1 };
        assert_eq!(
            (ended.status, ended.skips),
            (BatchStatus::Completed, skips),
            "{set}"
        );
    }
    for (set, expected) in [
        ("n=skipped()", "`skipped()` is a total of an input"),
        ("n=min()", "expected a value in `min(day)`"),
        ("n=max(sum(a))", "not inside another total"),
        ("n", "expected"),
        ("n=count(), n=sum(a)", "the name `n` is there twice"),
        (
            "v=sum(v), half=v / 2",
            "expressions do not see each other's results",
        ),
    ] {
        let rejected = job(10, &format!("set={set}"), "account\n", "").rejected();
        assert!(rejected.contains(expected), "{set}: {rejected}");
    }
}

/// Numbers are compared by value, as in the key of the group.
///
/// Spec: ITEM-AGGREGATE-01
#[test]
fn equal_numbers_are_one_value_of_a_group() {
    let stage = Stage::new(
        r#"reader="jsonlRecordGroupReader" processor="recordAggregateProcessor" writer="recordJsonlWriter""#,
        "resource=${dir}/in.jsonl\noutput=${dir}/out\ngroup=key k\nfields=k\nset=n=count()",
    );
    stage.write("in.jsonl", "{\"k\":1}\n{\"k\":1.0}\n{\"k\":2}\n");
    stage.completes();
    assert_eq!(stage.read("out"), "{\"k\":1,\"n\":2}\n{\"k\":2,\"n\":1}\n");
}

/// A field may be called as a total; a missing field is null; lists and objects have no order.
///
/// Spec: ITEM-AGGREGATE-01
#[test]
fn totals_are_no_fields() {
    let run = |set: &str| {
        let stage = Stage::new(
            r#"reader="jsonlRecordGroupReader" processor="recordAggregateProcessor" writer="recordJsonlWriter""#,
            &format!("resource=${{dir}}/in.jsonl\noutput=${{dir}}/out\ngroup=key k\nset={set}"),
        );
        let rows =
            "{\"k\":1,\"count()\":7,\"v\":null,\"o\":{\"x\":9}}\n{\"k\":1,\"count()\":7,\"o\":{\"x\":10}}\n";
        stage.write("in.jsonl", rows);
        let message = stage.start(()).message;
        (
            message,
            std::fs::read_to_string(stage.path().join("out")).unwrap_or_default(),
        )
    };
    let (message, written) = run(r#"n=count(), m="count()", w=coalesce(v?, 0)"#);
    assert_eq!(written, "{\"n\":2,\"m\":7,\"w\":0}\n", "{message}");
    for set in ["most=max(o)", "least=min(o)"] {
        let (message, _) = run(set);
        assert!(
            message.contains("which has no order; use `json_value`"),
            "{message}"
        );
    }
}

/// Spec: ITEM-AGGREGATE-01
#[test]
fn rejected_groups_are_listed() {
    let listeners = r#"<listeners><listener ref="recordAggregateRejects"><properties>
        <property name="rejects.output" value="${dir}/rejects.jsonl"/></properties></listener></listeners>"#;
    let stage = Stage::with_listeners(
        listeners,
        r#"reader="csvRecordGroupReader" processor="recordAggregateProcessor" writer="recordJsonlWriter" skip-limit="9""#,
        "resource=${dir}/in.csv\noutput=${dir}/out\ngroup=key account\nset=n=sum(cents)",
        SKIP,
    );
    stage.write("in.csv", "account,cents\nA,1\nB,2\nB,\nC,3\n");
    assert_eq!(stage.completes().writes, 2);
    let rejects = stage.read("rejects.jsonl");
    assert_eq!(rejects.lines().count(), 1, "{rejects}");
    assert!(
        rejects.contains("`cents` is null") && rejects.contains("\"B\""),
        "{rejects}"
    );
}

/// The least and the greatest value are kept over restarts, with their types.
///
/// Spec: ITEM-EXPECT-01
#[test]
fn min_and_max_survive_a_restart() {
    let rows: String = (1..=30).map(|id| format!("{id},0{}\n", id % 7)).collect();
    let run = |expect: &str| {
        let stage = Stage::new(
            r#"reader="csvRecordReader" writer="recordCsvWriter" commit-interval="4""#,
            &format!("resource=${{dir}}/in.csv\noutput=${{dir}}/out\nif.changed=resume\nexpect={expect}"),
        );
        stage.write(
            "in.csv",
            format!("id,code\n{}", rows.replace("20,06\n", "20,06,\n")),
        );
        let failed = stage.start(());
        assert!(failed.message.contains("in.csv:21"), "{}", failed.message);
        stage.write("in.csv", format!("id,code\n{rows}"));
        stage.restart(&failed, ())
    };
    let ended = run(
        "min(cast(id as int)) = 1 and max(cast(id as int)) = 30 and max(code) = '06' and min(code) = '00'",
    );
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
    let message = run("min(cast(id as int)) > 1").message;
    assert!(message.contains("`min(cast(id as int))` is \"1\""), "{message}");
}
