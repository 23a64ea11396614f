//! Input that is wrong, and the errors that say where.

use batch_items::{FixedWidthItemReader, JsonArrayItemReader, JsonLinesItemReader, PatternItemReader};
use batch_runtime::prelude::*;

use super::delimited::{CHUNK, Flight};
use super::stage::Stage;

#[item_reader("FixedFlightReader")]
type FixedFlightReader = FixedWidthItemReader<Flight>;

#[item_reader("PatternFlightReader")]
type PatternFlightReader = PatternItemReader<Flight>;

#[item_reader("JsonFlightReader")]
type JsonFlightReader = JsonLinesItemReader<Flight>;

#[item_reader("ArrayFlightReader")]
type ArrayFlightReader = JsonArrayItemReader<Flight>;

fn stage(reader: &str, properties: &str, children: &str) -> Stage {
    let chunk = CHUNK.replace("reader=\"FlightReader\"", &format!("reader=\"{reader}\""));
    let properties = format!("resource=${{dir}}/in.txt\noutput=${{dir}}/out.csv\n{properties}");
    Stage::with_children(&chunk, &properties, children)
}

/// Returns the first line of the message of a job that fails at this content.
fn fails(reader: &str, content: impl AsRef<[u8]>, properties: &str) -> String {
    let stage = stage(reader, properties, "");
    stage.write("in.txt", content);
    let message = stage.fails();
    message.lines().next().unwrap_or_default().to_owned()
}

const SKIP: &str =
    r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;

/// Returns the output of a job that skips bad records, and their number.
fn skips(reader: &str, content: impl AsRef<[u8]>, properties: &str) -> (i64, String) {
    let stage = stage(reader, properties, SKIP);
    stage.write("in.txt", content);
    let ended = stage.completes();
    (ended.skips, stage.read("out.csv"))
}

const HEADER: &str = "origin,delay,note\n";

#[test]
fn a_bad_field_is_named_with_its_place() {
    assert_eq!(
        fails("FlightReader", "origin,delay,note\nMUC,5,x\nFRA,late,x\n", ""),
        "in.txt:3: field `delay` (number 2): invalid value \"late\": expected i32"
    );
    assert_eq!(
        fails("FlightReader", "origin,delay,note\nMUC,5\n", ""),
        "in.txt:2: the row has 2 fields, but 3 are expected"
    );
    assert_eq!(
        fails("FlightReader", b"origin,delay,note\nM\xFCC,5,x\n", ""),
        "in.txt:2: field `origin` (number 1): invalid value \"M\u{FFFD}C\": the text is not valid UTF-8 (byte 2 of it); \
         set the property `encoding`"
    );
    assert_eq!(
        fails(
            "FixedFlightReader",
            "MUC  5x\nFRA 1zx\n",
            "columns@reader=origin 1-3, delay 4-6, note 7-7"
        ),
        "in.txt:2: field `delay` (number 2): invalid value \"1z\": expected i32"
    );
    assert_eq!(
        fails(
            "FixedFlightReader",
            "MUC  5x\nFRA 1\n",
            "columns@reader=origin 1-3, delay 4-6, note 7-7"
        ),
        "in.txt:2: the line has 5 characters, but the columns have 7"
    );
    assert_eq!(
        fails(
            "PatternFlightReader",
            "MUC 5 x\nFRA\n",
            r"pattern=^(?<origin>\S+) (?<delay>\S+) (?<note>.*)$"
        ),
        "in.txt:2: the line does not match the pattern"
    );
    assert_eq!(
        fails(
            "JsonFlightReader",
            "{\"origin\":\"MUC\",\"note\":\"\"}\n{\"origin\":7}\n",
            ""
        ),
        "in.txt:2:11: invalid type: integer `7`, expected a string"
    );
    assert_eq!(
        fails(
            "ArrayFlightReader",
            "[\n{\"origin\":\"MUC\",\"note\":\"\"},\n{\"origin\":7}]\n",
            ""
        ),
        "in.txt:3: invalid type: integer `7`, expected a string"
    );
}

#[test]
fn a_bad_record_can_be_skipped() {
    let good = "MUC,5,x\nFRA,1,y\n";
    let expected = (1, HEADER.to_owned() + good);
    for bad in ["BER,late,x\n", "BER,1\n", "BER,1,x,y\n"] {
        let content = format!("{HEADER}MUC,5,x\n{bad}FRA,1,y\n");
        assert_eq!(skips("FlightReader", content, ""), expected, "{bad}");
    }
    let mut content = format!("{HEADER}MUC,5,x\nBER,1,").into_bytes();
    content.extend(b"\xFF\xFE\nFRA,1,y\n");
    assert_eq!(skips("FlightReader", content, ""), expected);
    assert_eq!(
        skips(
            "FixedFlightReader",
            "MUC 5x\n\nBERxxx\nshort\nFRA 1y\n",
            "columns@reader=origin 1-3, delay 4-5, note 6-6"
        ),
        (2, HEADER.to_owned() + good)
    );
    let json = "{\"origin\":\"MUC\",\"delay\":5,\"note\":\"x\"}\n{]\n{\"origin\":\"FRA\",\"delay\":1,\"note\":\"y\"}\n";
    assert_eq!(skips("JsonFlightReader", json, ""), expected);
    let array = "[{\"origin\":\"MUC\",\"delay\":5,\"note\":\"x\"}, {\"origin\":nul}, {\"origin\":\"FRA\",\"delay\":1,\"note\":\"y\"}]";
    assert_eq!(skips("ArrayFlightReader", array, ""), expected);
}

/// A missing quote does not read the rest of the file into memory, nor lose it.
#[test]
fn a_record_over_the_limit_is_a_bad_record() {
    let long = "x".repeat(200_000);
    let rest: String = (0..12_000).map(|number| format!("MUC,{number},x\n")).collect();
    let content = format!("{HEADER}FRA,1,\"no end\n{rest}");
    let message = fails("FlightReader", &content, "max.record.length=1000");
    assert_eq!(
        message,
        "in.txt:2: the record is longer than `max.record.length`, 1000 bytes; is a quote not closed?"
    );
    let (skipped, output) = skips("FlightReader", &content, "max.record.length=1000");
    assert_eq!((skipped, output), (1, HEADER.to_owned() + &rest));
    let content = format!("{HEADER}MUC,1,x\nMUC,1,{long}\nFRA,2,y\n");
    assert_eq!(
        skips("FlightReader", &content, "max.record.length=1000"),
        (1, format!("{HEADER}MUC,1,x\nFRA,2,y\n"))
    );
    let fixed = format!("MUC 1x\n{long}\nFRA 2y\n");
    assert_eq!(
        skips(
            "FixedFlightReader",
            fixed,
            "max.record.length=1000\ncolumns@reader=origin 1-3, delay 4-5, note 6-6"
        ),
        (1, format!("{HEADER}MUC,1,x\nFRA,2,y\n"))
    );
    let array = format!("[{{\"origin\":\"{long}\"}},{{\"origin\":\"FRA\",\"delay\":2,\"note\":\"y\"}}]");
    assert_eq!(
        skips("ArrayFlightReader", array, "max.record.length=1000"),
        (1, format!("{HEADER}FRA,2,y\n"))
    );
}

/// Lenient files may have shorter and longer rows.
#[test]
fn rows_may_be_ragged() {
    let content = "origin,note,delay\nMUC,x\nFRA,y,1,more\n";
    assert_eq!(
        skips("FlightReader", content, "strict=false"),
        (0, format!("{HEADER}MUC,,x\nFRA,1,y\n"))
    );
}

/// A skip of the error of a wrong file skips neither this file nor those after it.
#[test]
fn a_wrong_file_among_others_is_not_left_out() {
    for class in ["Exception", "ResourceError"] {
        let skip = SKIP.replace("RecordError", class);
        let properties = "resource=${dir}/in-*.txt\noutput=${dir}/out.csv";
        let stage = Stage::with_children(CHUNK, properties, &skip);
        for (name, content) in [
            ("a", "origin,delay,note"),
            ("b", "from,minutes,text"),
            ("c", "origin,delay,note"),
        ] {
            stage.write(&format!("in-{name}.txt"), format!("{content}\nMUC,5,{name}\n"));
        }
        let message = stage.fails();
        assert!(message.contains("`in-b.txt`"), "{class}: {message}");
    }
}

/// A wrong file is not a wrong record: it is not skipped.
///
/// Spec: INPUT-23
#[test]
fn a_wrong_file_fails_the_step() {
    let fails = |reader: &str, content: &str, properties: &str| {
        let stage = stage(reader, properties, SKIP);
        stage.write("in.txt", content);
        let message = stage.fails();
        message.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        fails("FlightReader", "origin,delay,notes\nMUC,5,x\n", ""),
        "cannot read `in.txt`: it has no column `note`, but `origin`, `delay`, `notes`; did you mean `notes`?"
    );
    // An `Option`, which would be `None`.
    assert_eq!(
        fails("FlightReader", "origin,Delay,note\nMUC,5,x\n", ""),
        "cannot read `in.txt`: it has no column `delay`, but `origin`, `Delay`, `note`; did you mean `Delay`?"
    );
    assert_eq!(
        fails("FlightReader", "origin;delay;note\nMUC;5;x\n", ""),
        "cannot read `in.txt`: it has none of the columns `origin`, `delay`, `note`, but `origin;delay;note`; if `;` separates the columns, set `delimiter` to it"
    );
    // Without a row, and with rows that fit another header.
    for (content, lacks) in [
        (
            "from,minutes\n",
            "none of the columns `origin`, `delay`, `note`, but `from`, `minutes`",
        ),
        (
            "origin\tdelay\tnote\n",
            "none of the columns `origin`, `delay`, `note`, but `origin\tdelay\tnote`; if a tab separates the columns, set \
             `delimiter` to `tab`",
        ),
        (
            "origin,delay\nMUC,5,x\n",
            "no column `note`, but `origin`, `delay`",
        ),
    ] {
        let expected = format!("cannot read `in.txt`: it has {lacks}");
        assert_eq!(fails("FlightReader", content, ""), expected);
    }
    assert_eq!(
        fails("FlightReader", "origin,delay,origin\n", ""),
        "cannot read `in.txt`: its header has two columns `origin`"
    );
    assert_eq!(
        fails("ArrayFlightReader", "{\"origin\":\"MUC\"}", ""),
        "cannot read `in.txt`: line 1: expected `[`, the beginning of an array"
    );
    assert_eq!(
        fails(
            "ArrayFlightReader",
            "[\n{\"origin\":\"MUC\",\"note\":\"\"}\n{}]",
            ""
        ),
        "cannot read `in.txt`: line 3: expected `,` or `]` after an element"
    );
    assert_eq!(
        fails("ArrayFlightReader", "[{\"origin\":\"MUC\",\"note\":\"\"}", ""),
        "cannot read `in.txt`: line 1: the array has no end"
    );
    assert_eq!(
        fails("ArrayFlightReader", "[{\"origin\":\"MUC\"", ""),
        "cannot read `in.txt`: line 1: the file ends within an element"
    );
    assert_eq!(
        fails(
            "FixedFlightReader",
            "MUC 5\n",
            "columns@reader=origin 1-3, delay 4-5"
        ),
        "cannot read `in.txt`: there is no field `note`, but `origin`, `delay`"
    );
}

/// An `Option` would be `None` in each item.
///
/// Spec: INPUT-23
#[test]
fn a_misspelt_name_in_the_settings_fails_the_step() {
    for (reader, properties, expected) in [
        (
            "FixedFlightReader",
            "columns@reader=origin 1-3, Delay 4-5, note 6-7",
            "there is no field `delay`, but `origin`, `Delay`, `note`; did you mean `Delay`?",
        ),
        (
            "FixedFlightReader",
            "columns@reader=origin 1-3, note 4-7\nline.field=delays",
            "there is no field `delay`, but `origin`, `note`, `delays`; did you mean `delays`?",
        ),
        (
            "PatternFlightReader",
            r"pattern@reader=(?<origin>...)(?<dela>..)(?<note>..)",
            "there is no field `delay`, but `origin`, `dela`, `note`; did you mean `dela`?",
        ),
        (
            "FlightReader",
            "columns@reader=origin,delay_,note",
            "`columns` has no column `delay`, but `origin`, `delay_`, `note`; did you mean `delay_`?",
        ),
    ] {
        let content = if reader == "FlightReader" {
            "MUC,05,ok\n"
        } else {
            "MUC05ok\n"
        };
        assert_eq!(
            fails(reader, content, properties),
            format!("cannot read `in.txt`: {expected}")
        );
    }
    for properties in [
        "columns@reader=origin 1-3, filler 4-5, note 6-7",
        "columns@reader=origin 1-3, Delay 4-5, note 6-7\nstrict@reader=false",
    ] {
        let copied = skips("FixedFlightReader", "MUC05ok\n", properties);
        assert_eq!(copied, (0, "origin,delay,note\nMUC,,ok\n".to_owned()));
    }
}

#[test]
fn a_missing_or_empty_file_is_named_with_a_remedy() {
    let message = stage("FlightReader", "", "").fails();
    assert!(
        message.starts_with("cannot read `in.txt`: No such file"),
        "{message}"
    );
    let here = std::env::current_dir().unwrap();
    for (resource, problem) in [
        ("absent.txt", "No such file"),
        ("absent-*.txt", "no file matches"),
    ] {
        let stage = Stage::new(CHUNK, &format!("resource={resource}\noutput=${{dir}}/out.csv"));
        let expected = format!(
            "cannot read `{resource}` in the current folder `{}`: {problem}",
            here.display()
        );
        let message = stage.fails();
        assert!(message.starts_with(&expected), "{message}");
    }
    assert_eq!(
        fails("FlightReader", "", "empty.files=fail"),
        "cannot read `in.txt`: it has no records; set `empty.files` to `accept` if that is not an error"
    );
    assert_eq!(
        skips("FlightReader", "", "empty.files=accept"),
        (0, String::new())
    );
    let stage = Stage::new(CHUNK, "resource=${dir}\noutput=${dir}/out.csv");
    let message = stage.fails();
    assert!(
        message.contains("it is a directory; to read its files, use a pattern such as"),
        "{message}"
    );
    let stage = Stage::new(CHUNK, "resource=${dir}/*.csv\noutput=${dir}/out.txt");
    let message = stage.fails();
    assert!(
        message.starts_with("cannot read `*.csv`: no file matches; set `if.missing` to `empty`"),
        "{message}"
    );
    let stage = Stage::new(CHUNK, "resource=ftp://host/in.csv\noutput=${dir}/out.txt");
    let message = stage.fails();
    assert!(
        message.starts_with("cannot read `ftp://host/in.csv`: the URL scheme `ftp` is not supported"),
        "{message}"
    );
    let stage = Stage::new(
        CHUNK,
        "resource=${dir}/in.csv\noutput=${dir}/out.csv\nif.missing=empty",
    );
    assert_eq!(stage.completes().reads, 0);
    assert_eq!(stage.read("out.csv"), "");
}

#[cfg(not(feature = "object-store"))]
#[test]
fn urls_need_a_feature() {
    let remedy = " is not supported by this program; enable the feature `object-store` of batch-items in its Cargo.toml";
    for (properties, expected) in [
        (
            "resource=https://me:hidden@host/in?key=hidden\noutput=${dir}/out.txt",
            "cannot read `https://host/in`: the URL scheme `https`",
        ),
        (
            "resource=${dir}/in\noutput=s3://bucket/out",
            "cannot write `s3://bucket/out`: the URL scheme `s3`",
        ),
    ] {
        let stage = Stage::new(CHUNK, properties);
        stage.write("in", "origin,delay,note\n");
        let message = stage.fails();
        assert!(message.starts_with(&format!("{expected}{remedy}")), "{message}");
        assert!(!message.contains("hidden"), "{message}");
    }
}

/// Properties are checked before the job starts.
#[test]
fn a_wrong_property_is_rejected() {
    for (property, expected) in [
        ("delimiter=;;", "expected one ASCII character, or `tab`"),
        (
            "encoding=latin",
            "expected a label of the WHATWG encoding standard",
        ),
        ("compression=zip", "expected `none`, `gzip` or `zstd`"),
        ("if.missing=ignore", "expected `fail` or `empty`"),
    ] {
        let stage = stage("FlightReader", property, "");
        let error = stage.rejected();
        assert!(error.contains(expected), "{property}: {error}");
    }
    for (columns, expected) in [
        (
            "origin 1-3, delay 3-5",
            "column `delay` overlaps the one before it",
        ),
        (
            "origin 1-, delay 4-5",
            "only the last column can be open, not `origin`",
        ),
        (
            "origin 0-3",
            "expected a name and its characters, such as `amount 11-18`, found `origin 0-3`",
        ),
        ("origin 1-3, origin 4-5", "there are two columns `origin`"),
        (
            "origin 1-3 middle",
            "expected `left`, `right` or `zeros` for column `origin`, found `middle`",
        ),
    ] {
        let error = stage("FixedFlightReader", &format!("columns@reader={columns}"), "").rejected();
        assert!(error.contains(expected), "{columns}: {error}");
    }
    let error = stage("PatternFlightReader", "pattern=^x$", "").rejected();
    assert!(error.contains("the pattern has no groups"), "{error}");
}
