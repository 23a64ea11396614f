//! Fields are found by name, and settings that no item can be written with fail the step.

use batch_items::Record;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobParameters};

use super::stage::{Stage, pass};

pass!(PassFields: Record);

const RECORDS: &str = r#"{"name":"Ada","id":1,"cents":500}
{"cents":700,"name":"Bob"}
{"id":3,"cents":900,"name":"Eve"}
"#;

/// Skips every error that an item can have.
const SKIP: &str =
    r#"<skippable-exception-classes><include class="Exception"/></skippable-exception-classes>"#;

/// Writes records with a writer of records, and returns the output, or the message of the failure.
fn written(input: &str, writer: &str, properties: &str) -> Result<String, String> {
    let chunk = format!("reader=\"jsonlRecordReader\" writer=\"{writer}\" commit-interval=\"1\"");
    copied(&chunk, input, properties)
}

fn copied(chunk: &str, input: &str, properties: &str) -> Result<String, String> {
    let properties = format!("resource@reader=${{dir}}/in.txt\noutput@writer=${{dir}}/out.txt\n{properties}");
    let stage = Stage::with_children(chunk, &properties, SKIP);
    stage.write("in.txt", input);
    let ended = stage.start(JobParameters::new());
    assert_eq!(ended.skips, 0, "{}", ended.message);
    match ended.status {
        BatchStatus::Completed => Ok(stage.read("out.txt")),
        _ => Err(ended.message),
    }
}

#[track_caller]
fn fails(result: Result<String, String>, expected: &str) {
    let message = result.unwrap_err();
    assert!(message.contains(expected), "{message}");
}

/// Spec: ITEM-VALUE-01
#[test]
fn columns_select_fields_by_name() {
    let csv = |columns: &str| written(RECORDS, "recordCsvWriter", columns);
    assert_eq!(
        csv("").unwrap(),
        "name,id,cents\nAda,1,500\nBob,,700\nEve,3,900\n"
    );
    assert_eq!(
        csv("columns@writer=id?,cents,name").unwrap(),
        "id,cents,name\n1,500,Ada\n,700,Bob\n3,900,Eve\n"
    );
    assert_eq!(csv("columns@writer=cents").unwrap(), "cents\n500\n700\n900\n");
    assert_eq!(
        csv("columns@writer=cents,note?\nquotes@writer=text").unwrap(),
        "\"cents\",\"note\"\n500,\"\"\n700,\"\"\n900,\"\"\n".replace("\"\"", "")
    );
    assert_eq!(
        written(
            RECORDS,
            "recordFixedWidthWriter",
            "columns@writer=cents 1-3, name 4-6"
        )
        .unwrap(),
        "500Ada\n700Bob\n900Eve\n"
    );
}

/// `columns` of a chunk reach its reader too, which would take the fields of a file with a header by their order.
///
/// Spec: ITEM-VALUE-01
#[test]
fn columns_for_the_writer_do_not_name_the_fields_of_the_reader() {
    let chunk = "reader=\"csvRecordReader\" writer=\"recordCsvWriter\"";
    let copy = |properties: &str| copied(chunk, "first,last\nAda,Lovelace\n", properties);
    for (properties, found) in [
        ("columns=last,first", "its first row has the name `first`"),
        ("columns=last", "its first row has the name `last`"),
        ("columns@reader=a,last", "its first row has the name `last`"),
        ("columns@reader=a,LAST", "its first row has the name `last`"),
        ("columns@reader=a,b\nheader@reader=true", "`header` is `true`"),
    ] {
        fails(
            copy(properties),
            &format!("{found}, but `columns` names the fields"),
        );
    }
    assert_eq!(
        copy("columns@writer=last,first").unwrap(),
        "last,first\nLovelace,Ada\n"
    );
    let row = copy("columns@reader=first,last\nheader@reader=false");
    assert_eq!(row.unwrap(), "first,last\nfirst,last\nAda,Lovelace\n");
}

/// Returns a job that copies records from files.
fn records_of(files: &[&str], properties: &str) -> Stage {
    let chunk = "reader=\"csvRecordReader\" processor=\"PassFields\" writer=\"recordJsonlWriter\" commit-interval=\"1\"";
    let properties = format!("resource=${{dir}}/in-*\noutput=${{dir}}/out\n{properties}");
    let stage = Stage::new(chunk, &properties);
    for (index, content) in files.iter().enumerate() {
        stage.write(&format!("in-{index}"), content);
    }
    stage
}

/// The first row of a file without a header would be lost.
///
/// Spec: INPUT-25
#[test]
fn a_header_that_may_be_a_record_fails_the_step() {
    let remedy =
        "; if its first row is a record, add a header; to accept other columns, set `strict` to `false`";
    for (files, expected) in [
        (
            ["id,v\n1,x\n", "2,y\n3,z\n", ""],
            "cannot read `in-1`: none of its columns `2`, `y` is one of `in-0`, which has `id`, `v`",
        ),
        (
            ["", "1,\n", "id,,v\n"],
            "cannot read `in-2`: none of its columns `id`, `v` is one of `in-1`, which has `1`",
        ),
    ] {
        let message = records_of(&files, "").fails();
        assert!(message.starts_with(&format!("{expected}{remedy}")), "{message}");
        records_of(&files, "strict@reader=false").completes();
    }
    for (files, properties) in [
        (["id,v\n1,x\n", "V,w\n2,y\n", "\n"], ""),
        (["1,x\n", "2,y\n", ""], "columns@reader=id,v"),
        (["1,x\n", "2,y\n", ""], "columns@reader=id,v\nheader@reader=false"),
    ] {
        records_of(&files, properties).completes();
    }
}

/// Spec: INPUT-25
#[test]
fn a_restart_compares_headers_too() {
    let stage = records_of(&["id,v\n1,x\n", "id,v\n2,x\n3,x\n", "4,y\n5,y\n"], "");
    let failed = stage.start([("fail.at", "3")]);
    let again = stage.restart(&failed, [("fail.at", "0")]);
    let expected = "cannot read `in-2`: none of its columns `4`, `y` is one of `in-0`, which has `id`, `v`; ";
    assert!(again.message.starts_with(expected), "{}", again.message);
    stage.write("in-2", "v,id\ny,4\ny,5\n");
    let again = stage.restart(&again, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(stage.read("out").lines().count(), 5);
}

/// Spec: ITEM-SETTING-01
#[test]
fn a_character_has_one_meaning() {
    let chunk = "reader=\"csvRecordReader\" writer=\"recordCsvWriter\"";
    for (properties, expected) in [
        (
            "comment@reader=,",
            "`delimiter` and `comment` are the same character",
        ),
        (
            "comment@reader=\"",
            "`quote` and `comment` are the same character",
        ),
        ("escape@reader=\"", "`quote` and `escape` are the same character"),
        ("quote@writer=,", "`delimiter` and `quote` are the same character"),
    ] {
        fails(copied(chunk, "a,b\n1,2\n", properties), expected);
    }
}

/// The readers pass over an empty line.
///
/// Spec: ITEM-VALUE-02
#[test]
fn an_item_is_not_written_as_an_empty_line() {
    let item = "{\"a\":null}\n";
    let without = "header@writer=false\nquote@writer=none";
    assert_eq!(written(item, "recordCsvWriter", "").unwrap(), "a\n\"\"\n");
    for (writer, properties) in [
        ("recordCsvWriter", without),
        ("recordFixedWidthWriter", "columns@writer=a 1-"),
    ] {
        let chunk = format!("reader=\"jsonlRecordReader\" writer=\"{writer}\"");
        let stage = Stage::new(
            &chunk,
            &format!("resource=${{dir}}/in\noutput=${{dir}}/out\n{properties}"),
        );
        stage.write("in", item);
        let message = stage.fails();
        assert!(message.contains("an empty line is no r"), "{message}");
    }
}

/// Spec: ITEM-SETTING-01
#[test]
fn limits_that_no_memory_can_hold_are_rejected() {
    for columns in [
        "a 1-99999999999",
        "a 18446744073709551615",
        "a 1-18446744073709551615",
    ] {
        let properties = format!("resource@reader=in\noutput@writer=out\ncolumns@writer={columns}");
        let chunk = "reader=\"jsonlRecordReader\" writer=\"recordFixedWidthWriter\"";
        let rejected = Stage::new(chunk, &properties).rejected();
        assert!(
            rejected.contains("column `a` ends after character 1048576"),
            "{rejected}"
        );
    }
    let chunk = "reader=\"csvRecordReader\" writer=\"recordCsvWriter\"";
    let all = copied(chunk, "a\n1\n", "skip.lines@reader=18446744073709551615");
    assert_eq!(all.unwrap(), "");
}

/// Spec: ITEM-VALUE-01, ITEM-SETTING-01
#[test]
fn a_column_that_the_items_do_not_have_fails_the_step() {
    for (writer, columns) in [
        ("recordCsvWriter", "columns@writer=id,nmae"),
        ("recordFixedWidthWriter", "columns@writer=nmae 1-3, id 4-6"),
    ] {
        fails(
            written(RECORDS, writer, columns),
            "the items have no field `nmae`; did you mean `name`?",
        );
    }
}

/// Without `columns`, a field that the first record lacks would be lost.
///
/// Spec: ITEM-VALUE-01
#[test]
fn a_further_field_is_an_error_of_its_item() {
    let properties = "resource@reader=${dir}/in.txt\noutput@writer=${dir}/out.txt";
    let chunk = "reader=\"jsonlRecordReader\" writer=\"recordCsvWriter\"";
    let stage = Stage::new(chunk, properties);
    stage.write("in.txt", "{\"a\":1}\n{\"a\":2,\"b\":3}\n");
    let message = stage.fails();
    assert!(
        message.contains("cannot write item 2 of the file to `out.txt`: the item has a field `b`, which the first item does not have"),
        "{message}"
    );
    let known = written(
        "{\"a\":1}\n{\"a\":2,\"b\":3}\n",
        "recordCsvWriter",
        "columns@writer=a,b?",
    );
    assert_eq!(known.unwrap(), "a,b\n1,\n2,3\n");
}

/// After a restart, a table still has the fields of the first record: what a later one lacks is null, not the default of
/// its column.
///
/// Spec: ITEM-VALUE-01
#[test]
fn a_restart_writes_the_fields_of_the_first_record() {
    for fail_at in 1..=4 {
        let stage = Stage::after_step(
            "createTable",
            "reader=\"jsonlRecordReader\" processor=\"PassFields\" writer=\"recordTableWriter\" commit-interval=\"1\"",
            "resource@reader=${dir}/in.txt\ntable@writer=noted",
            "",
        );
        stage.execute("CREATE TABLE noted (id INTEGER, note TEXT DEFAULT 'none')");
        stage.write(
            "in.txt",
            "{\"id\":1,\"note\":\"a\"}\n{\"id\":2}\n{\"note\":\"c\",\"id\":3}\n{\"id\":4}\n",
        );
        let failed = stage.start([("fail.at", fail_at.to_string())]);
        assert_eq!(failed.status, BatchStatus::Failed, "{}", failed.message);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(
            again.status,
            BatchStatus::Completed,
            "{fail_at}: {}",
            again.message
        );
        let notes = [
            ("id IN (1, 3) AND note IN ('a', 'c')", 2),
            ("id IN (2, 4) AND note IS NULL", 2),
        ];
        for (rows, expected) in notes {
            let found = stage.number(&format!("SELECT COUNT(*) FROM noted WHERE {rows}"));
            assert_eq!(found, expected, "failed at {fail_at}: {rows}");
        }
    }
}

/// Spec: ITEM-SETTING-01
#[test]
fn an_encoding_that_cannot_be_written_is_an_error() {
    for encoding in ["utf-16le", "utf-16be", "utf-16"] {
        for writer in ["recordCsvWriter", "recordFixedWidthWriter"] {
            let properties = format!(
                "resource@reader=in.txt\noutput@writer=out.txt\ncolumns@writer=name 1-3\nencoding@writer={encoding}"
            );
            let chunk = format!("reader=\"jsonlRecordReader\" writer=\"{writer}\"");
            let rejected = Stage::with_children(&chunk, &properties, SKIP).rejected();
            assert!(
                rejected.contains("can be read, but not written; use `utf-8`"),
                "{rejected}"
            );
        }
    }
    let properties = "resource@reader=in.txt\noutput@writer=out.txt\nencoding@writer=utf-99";
    let rejected = Stage::new(
        "reader=\"jsonlRecordReader\" writer=\"recordCsvWriter\"",
        properties,
    )
    .rejected();
    assert!(
        rejected.contains("such as `utf-8` or `windows-1252`") && !rejected.contains("utf-16"),
        "{rejected}"
    );
}

/// Spec: ITEM-VALUE-02
#[test]
fn numbers_keep_their_value() {
    let numbers = "{\"v\":18446744073709551615}\n{\"v\":12345678901234567890123}\n{\"v\":1234567890123456.78}\n\
                   {\"v\":100000000000000000000}\n\
                   {\"v\":-0.000000000000000000001234567890123456789}\n{\"v\":0.1}\n{\"v\":[1.0000000000000000001]}\n";
    assert_eq!(written(numbers, "recordJsonlWriter", "").unwrap(), numbers);
    let csv = written(
        numbers,
        "recordCsvWriter",
        "quotes@writer=text\nheader@writer=false",
    )
    .unwrap();
    assert!(
        csv.starts_with(
            "18446744073709551615\n12345678901234567890123\n1234567890123456.78\n100000000000000000000\n"
        ),
        "{csv}"
    );
}

/// Spec: ITEM-VALUE-02
#[test]
fn only_texts_are_trimmed() {
    let chunk = "reader=\"jsonlRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\"";
    let copy = |input: &str| copied(chunk, input, "trim@processor=true").unwrap();
    assert_eq!(
        copy("{\"big\":12345678901234567890,\"n\":{\"a\":1},\"t\":\" x \"}\n"),
        "{\"big\":12345678901234567890,\"n\":{\"a\":1},\"t\":\"x\"}\n"
    );
}

/// Spec: ITEM-VALUE-01
#[test]
fn a_name_that_occurs_twice_is_an_error() {
    let stage = Stage::new(
        "reader=\"jsonlRecordReader\" writer=\"recordCsvWriter\"",
        "resource@reader=${dir}/in.txt\noutput@writer=${dir}/out.txt",
    );
    stage.write("in.txt", "{\"a\":1,\"a\":9}\n");
    let message = stage.fails();
    assert!(
        message.contains("in.txt:1:") && message.contains("two fields have the name `a`"),
        "{message}"
    );
}

/// Spec: ITEM-SETTING-02
#[test]
fn a_property_that_an_artifact_does_not_know_is_an_error() {
    for (property, expected) in [
        (
            "tablespace@writer=fast",
            "`recordTableWriter` has no property `tablespace`",
        ),
        ("tabel@writer=t", "did you mean `table`?"),
        ("resourse@reader=in.txt", "did you mean `resource`?"),
    ] {
        let properties = format!("resource@reader=in.txt\ntable@writer=t\n{property}");
        let rejected = Stage::new(
            "reader=\"csvRecordReader\" writer=\"recordTableWriter\"",
            &properties,
        )
        .rejected();
        assert!(rejected.contains(expected), "{rejected}");
    }
}

/// A restart keeps the columns of the header, although the next record has its fields in another order.
///
/// Spec: ITEM-VALUE-01
#[test]
fn a_restart_keeps_the_order_of_the_columns() {
    let stage = Stage::new(
        "reader=\"jsonlRecordReader\" processor=\"recordProcessor\" writer=\"recordCsvWriter\" commit-interval=\"1\"",
        "resource@reader=${dir}/in.txt\noutput@writer=${dir}/out.txt\ntypes@processor=a=${type}",
    );
    stage.write("in.txt", "{\"a\":1,\"b\":2}\n{\"b\":3,\"a\":\"x\"}\n{\"a\":5}\n");
    let failed = stage.start([("type", "int")]);
    assert_eq!(
        (failed.status, failed.writes),
        (BatchStatus::Failed, 1),
        "{}",
        failed.message
    );
    let again = stage.restart(&failed, [("type", "text")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(stage.read("out.txt"), "a,b\n1,2\nx,3\n5,\n");
}

/// Spec: ITEM-VALUE-01
#[test]
fn blanks_are_trimmed_if_asked_for() {
    for (trim, expected) in [("false", "v,n\n x ,1\n"), ("true", "v,n\nx,1\n")] {
        let chunk = "reader=\"csvRecordReader\" processor=\"recordProcessor\" writer=\"recordCsvWriter\"";
        let properties =
            format!("resource@reader=${{dir}}/in.txt\noutput@writer=${{dir}}/out.txt\ntrim@processor={trim}");
        let stage = Stage::new(chunk, &properties);
        stage.write("in.txt", "v,n\n x ,1\n");
        stage.completes();
        assert_eq!(stage.read("out.txt"), expected);
    }
}

/// A row whose first field begins like a comment is not one for a reader.
///
/// Spec: ITEM-VALUE-02
#[test]
fn a_field_that_begins_like_a_comment_has_quotes() {
    let input = "{\"a\":\"#1\",\"b\":\"#2\"}\n{\"b\":\"x\",\"a\":\"# \\\"q\\\"\"}\n";
    let csv = written(input, "recordCsvWriter", "").unwrap();
    assert_eq!(csv, "a,b\n\"#1\",#2\n\"# \"\"q\"\"\",x\n");
    let chunk = "reader=\"csvRecordReader\" writer=\"recordJsonlWriter\"";
    let read = copied(chunk, &csv, "comment@reader=#").unwrap();
    assert_eq!(
        read,
        "{\"a\":\"#1\",\"b\":\"#2\"}\n{\"a\":\"# \\\"q\\\"\",\"b\":\"x\"}\n"
    );
}

/// One of two values of a name would replace the other.
///
/// Spec: ITEM-SETTING-03
#[test]
fn a_name_has_one_value() {
    let chunk = "reader=\"jsonlRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\"";
    for (list, name) in [
        ("fields@processor=a, b, a=c", "a"),
        ("set@processor=c=1, d=2, c=3", "c"),
        ("types@processor=a=int, a?=text", "a"),
    ] {
        let properties = format!("resource@reader=${{dir}}/in.txt\noutput@writer=${{dir}}/out.txt\n{list}");
        let message = Stage::new(chunk, &properties).rejected();
        assert!(
            message.contains(&format!("the name `{name}` is there twice; remove one")),
            "{list}\n{message}"
        );
    }
    let query = "query@reader=SELECT :c\nparameters@reader=c=7; c=8\noutput@writer=${dir}/out.txt";
    let message = Stage::new("reader=\"queryRecordReader\" writer=\"recordJsonlWriter\"", query).rejected();
    assert!(message.contains("`c` has two values; remove one"), "{message}");
}

/// Without a `?`, a column is in every item, not only in the first.
///
/// Spec: ITEM-VALUE-01
#[test]
fn a_required_column_is_required_of_every_item() {
    let stage = Stage::new(
        "reader=\"jsonlRecordReader\" writer=\"recordCsvWriter\"",
        "resource@reader=${dir}/in.txt\noutput@writer=${dir}/out.txt\ncolumns@writer=cents,id",
    );
    stage.write("in.txt", RECORDS);
    let message = stage.fails();
    assert!(
        message.contains("cannot write item 2")
            && message.contains("the item has no field `id`; if items may lack it, write `id?`"),
        "{message}"
    );
    assert_eq!(
        written(RECORDS, "recordCsvWriter", "columns@writer=cents,id?").unwrap(),
        "cents,id\n500,1\n700,\n900,3\n"
    );
}

/// Spec: ITEM-VALUE-01
#[test]
fn columns_that_are_ambiguous_fail_the_step() {
    for (columns, expected) in [
        ("id,id?", "`columns` has the name `id` twice"),
        ("name,id?,name", "`columns` has the name `name` twice"),
        (
            "note?",
            "the items have no field `note`, but one named `note?`; write `note??`",
        ),
    ] {
        let record = r#"{"id":1,"name":"Ada","note?":"x"}"#;
        fails(
            written(record, "recordCsvWriter", &format!("columns@writer={columns}")),
            expected,
        );
        let noted = written(record, "recordCsvWriter", "columns@writer=note??");
        assert_eq!(noted.unwrap(), "note?\nx\n");
    }
}

/// A value that a reader would take for two is not written.
///
/// Spec: ITEM-VALUE-04
#[test]
fn a_value_that_needs_quotes_is_not_written_without() {
    for quotes in ["quotes@writer=never", "quote@writer=none"] {
        for value in ["a,b", "a\\nb", "a\\rb", "\\\"a"] {
            let stage = Stage::new(
                "reader=\"jsonlRecordReader\" writer=\"recordCsvWriter\"",
                &format!("resource@reader=${{dir}}/in.txt\noutput@writer=${{dir}}/out.txt\n{quotes}"),
            );
            stage.write("in.txt", format!("{{\"v\":\"{value}\",\"w\":1}}\n"));
            let is_quote = value.contains('"') && quotes.starts_with("quote@");
            if !is_quote {
                let message = stage.fails();
                assert!(
                    message.contains("field `v` contains the delimiter"),
                    "{quotes} {value}: {message}"
                );
            }
        }
        let plain = written(r#"{"v":"a b","w":1}"#, "recordCsvWriter", quotes);
        assert_eq!(plain.unwrap(), "v,w\na b,1\n");
    }
}

/// Spec: ITEM-SETTING-02
#[test]
fn a_property_that_no_ready_made_artifact_has_is_an_error() {
    let misspelt = std::panic::catch_unwind(|| written(RECORDS, "recordCsvWriter", "colums=id"));
    assert!(misspelt.is_err_and(|panic| {
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        text.contains("nor another artifact here has a property `colums`")
            && text.contains("did you mean `columns`?")
    }));
}
