//! Expressions in jobs of records: conditions, computed fields, keys of groups.

use super::stage::Stage;

const CHUNK: &str = "reader=\"csvRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\"";

fn stage(properties: &str, input: &str) -> Stage {
    let files = "resource@reader=${dir}/in.csv\ndelimiter@reader=;\noutput@writer=${dir}/out";
    let stage = Stage::new(CHUNK, &format!("{files}\n{properties}"));
    stage.write("in.csv", input);
    stage
}

fn check(properties: &str, input: &str, output: &str) {
    let stage = stage(properties, input);
    stage.completes();
    assert_eq!(stage.read("out"), output, "{properties}");
}

/// An amount keeps its digits, from the decimal comma to JSON. A record that is filtered may have any values.
///
/// Spec: EXPR-01, EXPR-02, ITEM-FORMAT-02
#[test]
fn fields_are_typed_computed_and_selected() {
    check(
        "nulls=NA, -\nwhere=kind in ('A', 'B')\n\
         types=day=date(%d.%m.%Y), net=comma, rate=decimal, paid=bool(J/N), count=int\n\
         set=gross=round(net * (1 + rate), 2), month=substring(day, 1, 7), note=coalesce(note, lower(month))",
        "kind;day;net;rate;paid;count;note\n\
         A;30.11.2026;1.234,50;0.190;J;7;NA\nC;x;x;x;x;x;x\nB;01.02.2026;-0,10;0.07;N;-;late\n",
        "{\"kind\":\"A\",\"day\":\"2026-11-30\",\"net\":1234.50,\"rate\":0.190,\"paid\":true,\"count\":7,\"note\":\"2026-11\",\
         \"gross\":1469.06,\"month\":\"2026-11\"}\n\
         {\"kind\":\"B\",\"day\":\"2026-02-01\",\"net\":-0.10,\"rate\":0.07,\"paid\":false,\"count\":null,\"note\":\"late\",\
         \"gross\":-0.11,\"month\":\"2026-02\"}\n",
    );
}

/// A field that is computed is never dropped, and has the place that `fields` gives it.
///
/// Spec: EXPR-05
#[test]
fn computed_fields_are_in_the_result() {
    let input = "id;a;b\n1;2;3\n4;5;6\n";
    for (properties, output) in [
        (
            "fields=id\nset=sum=a + b",
            "{\"id\":\"1\",\"sum\":5}\n{\"id\":\"4\",\"sum\":11}\n",
        ),
        (
            "fields=sum, id\nset=sum=a + b, twice=sum * 2",
            "{\"sum\":5,\"id\":\"1\",\"twice\":10}\n{\"sum\":11,\"id\":\"4\",\"twice\":22}\n",
        ),
        (
            "fields=first=a, second=a, none?\nset=a=a * 10",
            "{\"first\":20,\"second\":20,\"none\":null,\"a\":20}\n{\"first\":50,\"second\":50,\"none\":null,\"a\":50}\n",
        ),
        ("set=a='x'\nfields=a", "{\"a\":\"x\"}\n{\"a\":\"x\"}\n"),
    ] {
        check(properties, input, output);
    }
}

/// Records of JSON may have other names than the record before.
///
/// Spec: EXPR-05
#[test]
fn records_with_different_fields_are_mapped_by_name() {
    let files = "resource@reader=${dir}/in.jsonl\noutput@writer=${dir}/out";
    let stage = Stage::new(
        "reader=\"jsonlRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\"",
        &format!("{files}\nset=sum=a + coalesce(b?, 0)\nfields=id, sum, b?"),
    );
    stage.write(
        "in.jsonl",
        "{\"id\":1,\"a\":1,\"b\":2}\n{\"a\":5,\"id\":2}\n{\"b\":0.5,\"id\":3,\"a\":1,\"sum\":9}\n{\"id\":4,\"a\":1,\"b\":null}\n",
    );
    stage.completes();
    assert_eq!(
        stage.read("out"),
        "{\"id\":1,\"sum\":3,\"b\":2}\n{\"id\":2,\"sum\":5,\"b\":null}\n{\"id\":3,\"sum\":1.5,\"b\":0.5}\n\
         {\"id\":4,\"sum\":1,\"b\":null}\n"
    );
}

/// Spec: EXPR-03
#[test]
fn a_record_without_a_value_is_rejected_by_name() {
    let input = "id;amount;limit\n1;5;9\n2;;9\n";
    for (properties, expected) in [
        (
            "where=amount > 1",
            "`amount` is null; test `amount is not null` before, or give it a value",
        ),
        (
            "set=x=amount / (limit - 9)",
            "`amount / (limit - 9)` divides by zero in the record with `id` \"1\"",
        ),
        (
            "where=amonut > 1",
            "the record has no field `amonut`, but `id`, `amount`, `limit`; write `amonut?` if",
        ),
        (
            "where=limit > amount and id = '1' and limit > 'x' and amount + 1 = limit - 'x'",
            "expected a number, found a text, `'x'`",
        ),
        (
            "types=amount=comma",
            "field `amount`: expected a number such as `1.234,56`, found \"5.0\"",
        ),
    ] {
        let input = input.replace(
            "1;5;",
            if properties.contains("comma") {
                "1;5.0;"
            } else {
                "1;5;"
            },
        );
        let stage = stage(properties, &input);
        let message = match properties.contains("'x'") {
            true => stage.rejected(),
            false => stage.fails(),
        };
        assert!(message.contains(expected), "{properties}: {message}");
    }
}

/// Spec: EXPR-04, ITEM-VALUE-03, ITEM-SETTING-03
#[test]
fn a_wrong_expression_is_rejected_before_the_job_starts() {
    for (property, expected) in [
        (
            "where=id == 1",
            "found `==`; `=` compares, at character 4 of `id == 1`",
        ),
        (
            "where=id = 1 or",
            "expected a value, found the end at character 10",
        ),
        ("set=a=1, a=2", "the name `a` is there twice"),
        ("set=a", "expected `=` after `a`"),
        ("types=a=date(%d.%m)", "needs a year, a month and a day"),
        ("types=a=bool(J)", "expected two texts, such as `bool(J/N)`"),
        ("types==int", "expected `name=type`"),
        ("fields=new?=old", "the `?` follows the old name, `new=old?`"),
        ("fields=\"a", "expected the name of a field, found `\"a`"),
        ("types=a=money", "expected `int`, `decimal`, `comma`"),
    ] {
        let rejected = stage(property, "id\n").rejected();
        let name = property.split('=').next().unwrap();
        assert!(
            rejected.contains(name) && rejected.contains(expected),
            "{property}: {rejected}"
        );
    }
}

/// Spec: EXPR-01
#[test]
fn a_group_has_equal_keys_of_any_expression() {
    let stage = Stage::new(
        "reader=\"csvRecordGroupReader\" processor=\"recordGroupProcessor\" writer=\"recordGroupJsonlWriter\" commit-interval=\"1\"",
        "resource@reader=${dir}/in\noutput@writer=${dir}/out\ngroup=key account, substring(day, 1, 7)\nwhere=cents <> 0",
    );
    stage.write(
        "in",
        "account,day,cents\nA,2026-10-01,1\nA,2026-10-31,2\nA,2026-11-01,3\nB,2026-11-01,4\n",
    );
    let ended = stage.completes();
    assert_eq!(ended.reads, 3, "groups");
    assert_eq!(stage.read("out").lines().count(), 4);
}

/// Spec: ITEM-FORMAT-02, ITEM-VALUE-02
#[test]
fn numbers_are_written_as_numbers_whatever_their_form() {
    check(
        "types=a=decimal, b=comma, c=int",
        "a;b;c\n+5;+0,10;16.0\n007;007,5;007\n.5;1.234.567,8;-0\n5.;-12;5e1\n",
        "{\"a\":5,\"b\":0.10,\"c\":16}\n{\"a\":7,\"b\":7.5,\"c\":7}\n{\"a\":0.5,\"b\":1234567.8,\"c\":0}\n\
         {\"a\":5,\"b\":-12,\"c\":50}\n",
    );
    let files = "resource@reader=${dir}/in.jsonl\noutput@writer=${dir}/out";
    let stage = Stage::new(
        "reader=\"jsonlRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\"",
        &format!("{files}\ntypes=a=comma\nset=b=from_comma(a), big=large * 1"),
    );
    stage.write(
        "in.jsonl",
        "{\"a\":1.234,\"large\":1e20}\n{\"a\":\"1.234\",\"large\":1}\n",
    );
    stage.completes();
    assert_eq!(
        stage.read("out"),
        "{\"a\":1.234,\"large\":1e+20,\"b\":1.234,\"big\":100000000000000000000}\n{\"a\":1234,\"large\":1,\"b\":1234,\"big\":1}\n"
    );
}

/// Spec: EXPR-01, ITEM-VALUE-01
#[test]
fn names_with_other_characters_are_in_quotes() {
    check(
        "types=day=date(%d, %m %Y), \"order no\"=int, order no2=int, \"paid?\"=bool(J/N)\nset=next=\"order no\" + 1\nfields=no=\"order no\", \"paid?\", none?, \"a,b\"=day",
        "order no;order no2;paid?;day\n7;8;J;30, 11 2026\n",
        "{\"no\":7,\"paid?\":true,\"none\":null,\"a,b\":\"2026-11-30\",\"next\":8}\n",
    );
}

/// A record with a number of any size is an error of the record, not of the job.
///
/// Spec: EXPR-02, EXPR-03
#[test]
fn numbers_that_are_too_long_are_errors_of_their_records() {
    let chunk = "reader=\"jsonlRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\" skip-limit=\"9\"";
    let stage = Stage::with_children(
        chunk,
        "resource@reader=${dir}/in.jsonl\noutput@writer=${dir}/out\nset=b=a * a",
        "<skippable-exception-classes><include class=\"MappingError\"/></skippable-exception-classes>",
    );
    let large = "9".repeat(30);
    stage.write(
        "in.jsonl",
        format!(
            "{{\"a\":1e-70000}}\n{{\"a\":1e-2147483648}}\n{{\"a\":{large}}}\n{{\"a\":1e300}}\n{{\"a\":0.1}}\n"
        ),
    );
    let ended = stage.completes();
    assert_eq!((ended.reads, ended.skips, ended.writes), (5, 4, 1), "{ended:?}");
    assert_eq!(stage.read("out"), "{\"a\":0.1,\"b\":0.01}\n");
}

/// Spec: EXPR-05
#[test]
fn a_computed_field_is_not_replaced_by_another_one() {
    let message = stage("set=x=1\nfields=id, x=a", "id;a\n1;7\n").fails();
    assert!(
        message.contains("`set` computes the field `x`, which `fields` would replace by `a`"),
        "{message}"
    );
}

/// Spec: EXPR-01
#[test]
fn equal_numbers_are_one_key() {
    for (rule, groups) in [("k", 2), ("k * 1.50", 2), ("k > 0", 1)] {
        let stage = Stage::new(
            "reader=\"jsonlRecordGroupReader\" processor=\"recordGroupProcessor\" writer=\"recordGroupJsonlWriter\"",
            &format!("resource@reader=${{dir}}/in\noutput@writer=${{dir}}/out\ngroup=key {rule}"),
        );
        stage.write("in", "{\"k\":1}\n{\"k\":1.0}\n{\"k\":2}\n");
        assert_eq!(stage.completes().reads, groups, "{rule}");
    }
}
