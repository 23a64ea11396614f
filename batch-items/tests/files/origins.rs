//! Failed steps name the file and line of the item that a processor or writer rejects.

use super::stage::Stage;

/// Two files, of four and of three records; `properties` are further ones.
fn stage(chunk: &str, properties: &str) -> Stage {
    let stage = Stage::after_step(
        "nothing",
        &format!("reader=\"csvRecordReader\" {chunk}"),
        &format!("resource@reader=${{dir}}/in-*.csv\ntable@writer=delay\n{properties}"),
        "<skippable-exception-classes><include class=\"RecordError\"/></skippable-exception-classes>",
    );
    stage.execute("CREATE TABLE delay (flight INTEGER PRIMARY KEY, minutes INTEGER) STRICT");
    stage.write("in-1.csv", "flight,minutes\n1,10\n2,\"20\"\n3,30\n4,40\n");
    stage.write("in-2.csv", "flight,minutes\n5,50\n6,late\n7,70\n");
    stage
}

/// The place is exact if the writer knows the item and no input of the chunk was filtered or skipped. If not, it is the whole chunk's.
///
/// Spec: READ-11
#[test]
fn a_rejected_value_names_its_file_and_line() {
    let table = "writer=\"recordTableWriter\"";
    let filtered = "processor=\"recordProcessor\" writer=\"recordTableWriter\"";
    for (chunk, properties, expected) in [
        (table, "", "read from in-2.csv:3"),
        // The chunks before it are committed.
        (
            &format!("{table} commit-interval=\"5\""),
            "",
            "read from in-2.csv:3",
        ),
        (
            &format!("{table} commit-interval=\"1\""),
            "",
            "read from in-2.csv:3",
        ),
        // Rows of the table, not items of the file.
        (
            filtered,
            "where@processor=flight <> 1",
            "read from in-1.csv:2 to in-2.csv:4",
        ),
        (filtered, "where@processor=flight <> 9", "read from in-2.csv:3"),
        (filtered, "types@processor=minutes=int", "read from in-2.csv:3"),
    ] {
        let stage = stage(chunk, properties);
        let message = stage.fails();
        let last = message.lines().last();
        assert_eq!(last, Some(expected), "{chunk} {properties}: {message}");
    }
}

/// A pipelined step, and one with several processors, is at a later item when the error is known.
///
/// Spec: READ-11
#[test]
fn what_was_read_ahead_is_not_named() {
    let properties = "<properties><property name=\"batch.chunk.pipeline\" value=\"true\"/><property name=\"batch.chunk.processors\" value=\"2\"/></properties>";
    let stage = Stage::with_listeners(
        properties,
        "reader=\"csvRecordReader\" processor=\"recordProcessor\" writer=\"recordCsvWriter\" commit-interval=\"2\"",
        "resource@reader=${dir}/in.csv\noutput@writer=${dir}/out.csv\ntypes@processor=number=int",
        "",
    );
    let numbers: String = (1..100).map(|number| format!("{number}\n")).collect();
    stage.write(
        "in.csv",
        format!("number\n{}", numbers.replace("\n42\n", "\nmany\n")),
    );
    let message = stage.fails();
    assert!(
        message.ends_with("at item 42 of `copy`\nread from in.csv:43"),
        "{message}"
    );
}

/// A skipped line is not an item, and has a place.
///
/// Spec: READ-11
#[test]
fn a_skipped_line_shifts_no_place() {
    for (rows, expected) in [
        ("1,10\n2\n3,30\n4,late\n", "read from in-1.csv:2 to in-2.csv:4"),
        ("1,10\n2,20\n3,30\n4,late\n", "read from in-1.csv:5"),
    ] {
        let stage = stage("writer=\"recordTableWriter\"", "");
        stage.write("in-1.csv", format!("flight,minutes\n{rows}"));
        let message = stage.fails();
        assert_eq!(message.lines().last(), Some(expected), "{message}");
    }
}

/// The database names no row.
///
/// Spec: READ-11
#[test]
fn a_rejected_list_names_its_first_and_last_line() {
    let stage = stage("writer=\"recordTableWriter\" commit-interval=\"4\"", "");
    stage.write("in-2.csv", "flight,minutes\n5,50\n1,60\n7,70\n");
    let message = stage.fails();
    assert_eq!(
        message.lines().last(),
        Some("read from in-2.csv:2 to in-2.csv:4"),
        "{message}"
    );
}

/// A group names its first and last record; one that continues in the next file, both files.
///
/// Spec: READ-11
#[test]
fn a_rejected_group_names_its_lines() {
    for (group, first, second, expected) in [
        (
            "key day",
            "1,1,10\n1,2,20\n2,3,late\n2,4,40\n",
            "3,5,50\n",
            "read from in-1.csv:4-5",
        ),
        (
            "key day",
            "1,1,10\n2,2,20\n",
            "2,3,late\n3,4,40\n",
            "read from in-1.csv:3 through in-2.csv:2",
        ),
        (
            "key day",
            "1,1,10\n2,2,late\n",
            "3,5,50\n",
            "read from in-1.csv:3",
        ),
        (
            "size 2",
            "1,1,10\n1,2,20\n1,3,30\n",
            "1,4,late\n1,5,50\n",
            "read from in-1.csv:4 through in-2.csv:2",
        ),
    ] {
        let stage = Stage::after_step(
            "nothing",
            "reader=\"csvRecordGroupReader\" processor=\"recordGroupProcessor\" writer=\"recordGroupCsvWriter\"",
            &format!(
                "resource@reader=${{dir}}/in-*.csv\noutput@writer=${{dir}}/out.csv\ntypes@processor=minutes=int\ngroup@reader={group}"
            ),
            "",
        );
        stage.write("in-1.csv", format!("day,flight,minutes\n{first}"));
        stage.write("in-2.csv", format!("day,flight,minutes\n{second}"));
        let message = stage.fails();
        assert_eq!(message.lines().last(), Some(expected), "{group}: {message}");
    }
}
