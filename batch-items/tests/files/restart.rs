//! Restart at the position of the last checkpoint.

use std::fs;

use batch_items::file::ReadPosition;
use batch_items::{
    DelimitedItemReader, FixedWidthItemReader, JsonArrayItemReader, JsonLinesItemReader, PatternItemReader,
    XmlItemReader,
};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::stage::{Ended, Stage, check_restarts, pass};

/// A row with its place and text.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Placed {
    id: u64,
    file: String,
    line: u64,
    record: u64,
    raw: String,
}

#[item_reader("PlacedDelimited")]
type PlacedDelimited = DelimitedItemReader<Placed>;
#[item_reader("PlacedFixed")]
type PlacedFixed = FixedWidthItemReader<Placed>;
#[item_reader("PlacedPattern")]
type PlacedPattern = PatternItemReader<Placed>;
#[item_reader("PlacedJson")]
type PlacedJson = JsonLinesItemReader<Placed>;
#[item_reader("PlacedArray")]
type PlacedArray = JsonArrayItemReader<Placed>;
#[item_reader("PlacedXml")]
type PlacedXml = XmlItemReader<Placed>;
#[item_writer("PlacedWriter")]
type PlacedWriter = batch_items::DelimitedItemWriter<Placed>;

pass!(PassPlaced: Placed);

/// Seven records in three files, one of which has none, in each format.
const FORMATS: &[(&str, &str, [&str; 3])] = &[
    (
        "PlacedDelimited",
        "",
        ["id\n1\n\n2\n3\n4\n", "id\n", "id\r\n5\r\n\"6\"\r\n7"],
    ),
    (
        "PlacedDelimited",
        "columns@reader=id\nskip.lines=1",
        ["x\n1\n2\n3\n4\n", "", "x\n5\n6\n7\n"],
    ),
    (
        "PlacedDelimited",
        "encoding@reader=windows-1252",
        ["id\n1\n2\n3\n4\n", "id\n", "id\n5\n6\n7\n"],
    ),
    (
        "PlacedFixed",
        "columns@reader=id 2-3",
        [" 1 \n 2 \n\n 3 \n 4 \n", "", " 5 \n 6 \n 7 "],
    ),
    (
        "PlacedPattern",
        "pattern=^id=(?<id>\\d+)$",
        ["id=1\nid=2\nid=3\nid=4\n", "\n", "id=5\nid=6\nid=7\n"],
    ),
    (
        "PlacedJson",
        "",
        [
            "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n",
            "\n\n",
            "{\"id\":5}\n{\"id\":6}\n{\"id\":7}",
        ],
    ),
    (
        "PlacedArray",
        "",
        [
            "[{\"id\":1},\n{\"id\":2},{\"id\":3},\n\n{\"id\":4}]",
            "[]",
            " [\n {\"id\":5} , {\"id\":6}\n,{\"id\":7} ] ",
        ],
    ),
    (
        "PlacedXml",
        "element=row",
        [
            "<?xml version=\"1.0\"?>\n<rows>\n<row><id>1</id></row><row><id>2</id></row>\n<part>\
             <row>\n<id>3</id></row></part>\n\n<row><id>4</id></row>\n</rows>",
            "<rows/>",
            "<x:rows xmlns:x='u'><!-- <row> --><x:row><x:id>5</x:id></x:row>\n<![CDATA[<row>]]><row><id>6</id>\
             </row>\n<row><id>7</id></row></x:rows>\n",
        ],
    ),
];

fn stage(reader: &str, properties: &str, commit_interval: u32) -> Stage {
    let chunk = format!(
        "reader=\"{reader}\" processor=\"PassPlaced\" writer=\"PlacedWriter\" commit-interval=\"{commit_interval}\""
    );
    Stage::new(
        &chunk,
        &format!(
            "resource=${{dir}}/in-*\noutput=${{dir}}/out\nfile.field=file\nline.field=line\nrecord.field=record\nraw.field=raw\n{properties}"
        ),
    )
}

/// Whichever item a job fails at, the restart continues after the last committed one, with the same places; the output is
/// that of an undisturbed run.
#[test]
fn every_format_resumes_after_the_last_committed_record() {
    for (reader, properties, files) in FORMATS {
        let job = |commit_interval| with_files(stage(reader, properties, commit_interval), files);
        let undisturbed = job(2);
        undisturbed.completes();
        check_restarts(job, &undisturbed.read_relative("out"));
    }
}

fn with_files(stage: Stage, files: &[&str]) -> Stage {
    for (index, text) in files.iter().enumerate() {
        stage.write(&format!("in-{index}"), text);
    }
    stage
}

/// The place of each record is that in its file.
#[test]
fn records_have_their_places() {
    let (reader, properties, files) = FORMATS[0];
    let stage = with_files(stage(reader, properties, 10), &files);
    stage.completes();
    let rows = stage.read_relative("out");
    assert_eq!(
        rows,
        "id,file,line,record,raw\n1,in-0,2,1,1\n2,in-0,4,2,2\n3,in-0,5,3,3\n4,in-0,6,4,4\n5,in-2,2,1,5\n6,in-2,3,2,\"\"\"6\"\"\"\n7,in-2,4,3,7\n"
    );
    for (reader, properties, files) in FORMATS {
        let stage = with_files(self::stage(reader, properties, 10), files);
        stage.completes();
        let out = stage.read_relative("out");
        let mut rows = csv::Reader::from_reader(out.as_bytes());
        let rows = rows.records().map(Result::unwrap);
        let records: Vec<_> = rows.map(|row| format!("{} {}", &row[1], &row[3])).collect();
        let expected = [
            "in-0 1", "in-0 2", "in-0 3", "in-0 4", "in-2 1", "in-2 2", "in-2 3",
        ];
        assert_eq!(records, expected, "{reader}");
    }
}

/// A row that is shorter or longer than the header moves no added field.
#[test]
fn added_fields_follow_the_columns_of_the_header() {
    let stage = stage("PlacedDelimited", "strict=false", 10);
    stage.write("in-0", "id,note\n1,a,b\n2\n");
    stage.completes();
    assert_eq!(
        stage.read_relative("out"),
        "id,file,line,record,raw\n1,in-0,2,1,\"1,a,b\"\n2,in-0,3,2,2\n"
    );
}

/// The added text of a record is as it is in the file, so it can be read again.
///
/// Spec: INPUT-03
#[test]
fn records_have_their_text() {
    let texts = |reader: &str, properties: &str, file: &str| {
        let stage = stage(reader, properties, 10);
        stage.write("in-0", file);
        stage.completes();
        let mut rows = csv::Reader::from_reader(fs::File::open(stage.path().join("out")).unwrap());
        let texts = rows.records().map(|row| row.unwrap()[4].to_owned());
        texts.collect::<Vec<_>>()
    };
    for (reader, properties, expected) in [
        (
            "PlacedFixed",
            "columns@reader=id 2-3",
            vec![" 1 ", " 2 ", " 3 ", " 4 "],
        ),
        (
            "PlacedPattern",
            "pattern=^id=(?<id>\\d+)$",
            vec!["id=1", "id=2", "id=3", "id=4"],
        ),
        (
            "PlacedJson",
            "",
            vec!["{\"id\":1}", "{\"id\":2}", "{\"id\":3}", "{\"id\":4}"],
        ),
        (
            "PlacedArray",
            "",
            vec!["{\"id\":1}", "{\"id\":2}", "{\"id\":3}", "{\"id\":4}"],
        ),
        (
            "PlacedXml",
            "element=row",
            vec![
                "<row><id>1</id></row>",
                "<row><id>2</id></row>",
                "<row>\n<id>3</id></row>",
                "<row><id>4</id></row>",
            ],
        ),
    ] {
        let file = FORMATS.iter().find(|format| format.0 == reader).unwrap().2[0];
        assert_eq!(texts(reader, properties, file), expected, "{reader}");
    }
    let rows = "id;x\r\n1;\"a;b\"\r\n2;\"c\nd\"\r\n3;\"e\"\r\n\"4\";\"#f\"\r\n";
    let properties = "delimiter@reader=;\ncomment=#";
    let expected = ["1;\"a;b\"", "2;\"c\nd\"", "3;\"e\"", "\"4\";\"#f\""];
    assert_eq!(texts("PlacedDelimited", properties, rows), expected);
}

/// A file without records, such as one with a header only, is an error if the job says so, also after a restart.
///
/// Spec: INPUT-01
#[test]
fn empty_files_fail_rejects_a_file_without_records() {
    for (reader, properties, files) in FORMATS {
        for interval in [1, 4, 100] {
            let stage = stage(reader, &format!("{properties}\nempty.files=fail"), interval);
            let stage = with_files(stage, files);
            let failed = stage.start(());
            for failed in [stage.restart(&failed, ()), failed] {
                assert_eq!(failed.status, BatchStatus::Failed, "{reader} {interval}");
                let expected = "in-1`: it has no records; set `empty.files` to `accept`";
                assert!(failed.message.contains(expected), "{}", failed.message);
            }
        }
    }
}

/// A file whose lines are all no records has none.
///
/// Spec: INPUT-01, ITEM-EXPECT-02
#[test]
fn lines_that_do_not_match_are_no_records() {
    for (property, expected) in [
        ("empty.files=fail", "in-1`: it has no records"),
        (
            "trailer=kind = 'T'",
            "in-1` has no records, so it lacks its trailer",
        ),
    ] {
        let stage = Stage::new(
            r#"reader="patternRecordReader" writer="recordJsonlWriter""#,
            &format!(
                "resource=${{dir}}/in-*\noutput=${{dir}}/out\npattern=^(?<kind>[DT]):(?<id>\\d+)$\nif.no.match=skip\n{property}"
            ),
        );
        for (name, content) in [("in-0", "D:1\nT:1\n"), ("in-1", "x\ny\n"), ("in-2", "T:0\n")] {
            stage.write(name, content);
        }
        let message = stage.fails();
        assert!(message.contains(expected), "{message}");
    }
}

/// A position may be at the end of a file, whose last line needs no end.
///
/// Spec: INPUT-01
#[test]
fn reading_resumes_after_the_last_record_of_a_file() {
    for (reader, properties, files) in FORMATS {
        let stage = stage(reader, &format!("{properties}\nempty.files=fail"), 3);
        stage.write("in-0", files[2]);
        stage.write("in-1", "");
        let failed = stage.start([("fail.at", "0")]);
        assert_eq!(
            (failed.status, failed.writes),
            (BatchStatus::Failed, 3),
            "{reader}"
        );
        stage.write("in-1", files[2]);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(
            again.status,
            BatchStatus::Completed,
            "{reader}: {}",
            again.message
        );
        assert_eq!(again.writes, 3, "{reader}");
    }
}

/// In a file without names, the first good row decides how many fields a row has, also after a restart.
///
/// Spec: INPUT-04
#[test]
fn a_row_of_another_length_is_bad_after_a_restart_too() {
    let stage = stage("PlacedDelimited", "header@reader=false", 1);
    stage.write("in-0", "1\n2,x\n3\n");
    let failed = stage.start([("fail.at", "0")]);
    let expected = "in-0:2: the row has 2 fields, but 1 are expected";
    assert!(failed.message.contains(expected), "{}", failed.message);
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert!(again.message.contains(expected), "{}", again.message);
}

/// A compressed file and UTF-16 are decoded again up to the position.
#[test]
fn decoded_content_resumes_too() {
    let text = "id\n1\n2\n3\n4\n5\n6\n7\n";
    let gzip = {
        let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
        stream.finish().unwrap()
    };
    let two_streams = [gzip.clone(), {
        let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut stream, b"8\n").unwrap();
        stream.finish().unwrap()
    }]
    .concat();
    let utf16: Vec<u8> = "\u{FEFF}id\n1\n2\n3\n4\n5\n6\n7\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (name, content, properties, count) in [
        ("in-0.gz", &gzip, "", 7),
        ("in-0", &gzip, "compression@reader=gzip", 7),
        ("in-0.gz", &two_streams, "", 8),
        ("in-0", &utf16, "encoding@reader=utf-16le", 7),
    ] {
        for fail_at in [1, 4, 7] {
            let stage = stage("PlacedDelimited", properties, 2);
            stage.write(name, content);
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
            let output = stage.read("out");
            let ids: Vec<_> = output
                .lines()
                .skip(1)
                .map(|line| line.split(',').next().unwrap())
                .collect();
            let expected: Vec<_> = (1..=count).map(|id| id.to_string()).collect();
            assert_eq!(ids, expected, "{name} {fail_at}");
        }
    }
    let stage = stage("PlacedDelimited", "", 2);
    stage.write("in-0.gz", &gzip[..gzip.len() - 9]);
    let message = stage.fails();
    assert!(message.starts_with("cannot read `in-0.gz`: "), "{message}");
}

/// A file that changed since the checkpoint is not continued at a position that may be another record's.
#[test]
fn a_changed_file_is_an_error() {
    let content = "id\n1\n2\n3\n4\n5\n6\n7\n";
    let failed_stage = || {
        let stage = stage("PlacedDelimited", "", 2);
        stage.write("in-0", content);
        let failed = stage.start([("fail.at", "4")]);
        assert_eq!(failed.status, BatchStatus::Failed);
        (stage, failed)
    };
    let (stage, failed) = failed_stage();
    stage.write("in-0", "id\n1\n2\n3\n44\n5\n6\n7\n");
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Failed);
    let message = again.message.lines().next().unwrap();
    assert_eq!(
        message,
        "cannot resume reading `in-0`: it has changed since the checkpoint: its size was 17 and is 18; if only what \
         follows the last committed record was corrected, launch again with `-if.changed=resume`"
    );
    // The record that failed is corrected.
    let again = stage.restart(&again, [("fail.at", "0"), ("if.changed", "resume")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert!(stage.read("out").contains("\n44,"));

    let (stage, failed) = failed_stage();
    stage.write("in-0", "id\n1\n");
    let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
    assert!(
        again
            .message
            .contains("it ends before byte 7, where reading has to resume"),
        "{}",
        again.message
    );
    fs::remove_file(stage.path().join("in-0")).unwrap();
    let again = stage.restart(&again, [("fail.at", "0")]);
    assert!(again.message.contains("no file matches"), "{}", again.message);

    // Lines before the position have other lengths.
    let (stage, failed) = failed_stage();
    stage.write("in-0", "id\n1\n20\n3\n4\n5\n6\n7\n");
    let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
    assert!(
        again
            .message
            .contains("byte 7, where reading has to resume, is not the beginning of a line"),
        "{}",
        again.message
    );
}

/// New files are read if they come after the position; a file before it is an error.
#[test]
fn files_before_the_position_must_be_the_same() {
    let stage = stage("PlacedDelimited", "", 2);
    stage.write("in-1", "id\n1\n2\n");
    stage.write("in-3", "id\n3\n4\n");
    let failed = stage.start([("fail.at", "3")]);
    stage.write("in-4", "id\n5\n");
    stage.write("in-0", "id\n0\n");
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert!(
        again.message.contains("the files before it have changed"),
        "{}",
        again.message
    );
    fs::remove_file(stage.path().join("in-0")).unwrap();
    let again = stage.restart(&again, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(ids(&stage), "12345");
}

/// Returns the numbers in the output.
fn ids(stage: &Stage) -> String {
    let output = stage.read("out");
    let rows = output.lines().skip(1);
    rows.map(|line| line.split(',').next().unwrap()).collect()
}

/// Returns a job that reads four files and has failed at an item.
fn failed_in_pattern(reader: &str, fail_at: u64) -> (Stage, Ended) {
    let stage = stage(reader, "", 1);
    for (name, content) in [
        ("in-1", "id\n1\n"),
        ("in-2", "id\n2\n3\n"),
        ("in-3", "id\n4\n5\n"),
        ("in-4", "id\n6\n"),
    ] {
        stage.write(name, content);
    }
    let failed = stage.start([("fail.at", fail_at.to_string())]);
    assert_eq!(failed.status, BatchStatus::Failed);
    (stage, failed)
}

/// Changes of a file that was read to its end, appended or edited, would be lost.
///
/// Spec: INPUT-24
#[test]
fn a_change_of_a_file_that_was_read_is_an_error() {
    for (name, content) in [
        ("in-1", "id\n1\n7\n"),
        ("in-1", "id\n8\n"),
        ("in-2", "id\n2\n4\n"),
    ] {
        let (stage, failed) = failed_in_pattern("PlacedDelimited", 5);
        stage.write(name, content);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Failed, "{name}: {content}");
        let expected = format!(
            "cannot resume reading `in-*`: one of the 2 files that were read before the checkpoint has changed since, most \
             recently `{name}`; "
        );
        assert!(again.message.starts_with(&expected), "{}", again.message);
        // The change is not read, and the next restart knows the file as it is.
        let failed = stage.restart(&again, [("fail.at", "2"), ("if.changed", "resume")]);
        assert!(
            failed.message.contains("stopped by the test"),
            "{}",
            failed.message
        );
        let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "fail")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(ids(&stage), "123456");
    }
    let (stage, failed) = failed_in_pattern("PlacedDelimited", 3);
    stage.write("in-1", "id\n1\n7\n");
    let again = stage.restart(&failed, [("fail.at", "0")]);
    let expected = "cannot resume reading `in-1`: it was read before the checkpoint and has changed since; its changes would not be read; ";
    assert!(again.message.starts_with(expected), "{}", again.message);
}

/// Object stores and some file systems know times to the second only, so several files may be the latest.
///
/// Spec: INPUT-24
#[test]
fn files_that_were_modified_at_the_same_time_are_all_named() {
    let (stage, failed) = failed_in_pattern("PlacedDelimited", 5);
    stage.write("in-1", "id\n1\n7\n");
    for name in ["in-1", "in-2"] {
        let file = fs::File::options().write(true).open(stage.path().join(name));
        file.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let again = stage.restart(&failed, [("fail.at", "0")]);
    let named = "has changed since, most recently `in-1` or `in-2`; its changes";
    assert!(again.message.contains(named), "{}", again.message);
}

/// The records of a file that was still to be read would be lost.
///
/// Spec: INPUT-24
#[test]
fn a_file_that_has_disappeared_is_an_error() {
    let (stage, mut ended) = failed_in_pattern("PlacedDelimited", 5);
    let content = fs::read(stage.path().join("in-4")).unwrap();
    fs::remove_file(stage.path().join("in-4")).unwrap();
    for if_changed in ["fail", "resume"] {
        ended = stage.restart(&ended, [("fail.at", "0"), ("if.changed", if_changed)]);
        let expected = "cannot resume reading `in-*`: there were 4 files before, and there are 3 now: ";
        assert!(ended.message.starts_with(expected), "{}", ended.message);
    }
    stage.write("in-4", content);
    let again = stage.restart(&ended, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(ids(&stage), "123456");
}

/// A reader with the checkpoints of an earlier version.
#[derive(BatchArtifact)]
struct Earlier {
    #[batch_artifact]
    rows: PlacedDelimited,
}

#[item_reader("EarlierDelimited")]
impl Earlier {
    #[open]
    fn open(&mut self, checkpoint: Option<ReadPosition>) -> Result<(), BatchError> {
        self.rows.open(checkpoint)
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<Placed>, BatchError> {
        self.rows.read()
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> ReadPosition {
        ReadPosition {
            contents: None,
            found: None,
            ..self.rows.checkpoint()
        }
    }
}

/// Spec: INPUT-24
#[test]
fn checkpoints_of_an_earlier_version_resume() {
    let (stage, failed) = failed_in_pattern("EarlierDelimited", 5);
    stage.write("in-1", "id\n1\n7\n");
    fs::remove_file(stage.path().join("in-4")).unwrap();
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(ids(&stage), "12345");
}

/// The items of the file are counted once: a restart takes their number from the checkpoint, also if the file has grown.
#[test]
fn items_are_counted_once() {
    let stage = Stage::after_step(
        "createTable",
        "reader=\"PlacedDelimited\" processor=\"PassPlaced\" writer=\"PlacedWriter\" commit-interval=\"2\"",
        "resource=${dir}/in-0\noutput=${dir}/out\nfile.field=file\nline.field=line\nrecord.field=record\nraw.field=raw",
        "",
    );
    stage.write("in-0", "id\n1\n2\n3\n4\n5\n6\n7\n");
    // The checkpoint is JSON in JSON.
    let checkpoints_with_the_count = || {
        stage.number(
            "SELECT COUNT(*) FROM BATCH_STEP_EXECUTION_CONTEXT WHERE SHORT_CONTEXT LIKE '%items__:7%'",
        )
    };
    let failed = stage.start([("fail.at", "4")]);
    assert_eq!(failed.status, BatchStatus::Failed, "{}", failed.message);
    assert_eq!(checkpoints_with_the_count(), 1);
    stage.write("in-0", "id\n1\n2\n3\n4\n5\n6\n7\n8\n");
    let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(again.reads, 6);
    assert_eq!(checkpoints_with_the_count(), 2);
}
