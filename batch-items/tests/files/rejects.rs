//! The files of rejected items.

use std::{fmt, fs};

use batch_items::{DelimitedItemReader, Record, RejectListener};
use batch_runtime::prelude::*;
use batch_runtime::{BatchException, BatchStatus};
use batch_testing::{JobRun, JobTest, WrittenItems, always_fails_at};
use serde::{Deserialize, Serialize};

use super::stage::Stage;

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Payment {
    id: u64,
    amount: i64,
    line: u64,
    raw: String,
}

#[item_reader("Payments")]
type Payments = DelimitedItemReader<Payment>;

#[skip_listener("Rejects")]
#[checkpoint_listener("Rejects")]
type Rejects = RejectListener<Payment>;

#[derive(Debug, BatchException)]
#[batch_exception(class = "test.Bad")]
struct Bad(String);

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Bad {}

#[derive(Debug, BatchException)]
#[batch_exception(class = "test.Retried")]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped by the test")
    }
}

impl std::error::Error for Broken {}

/// Throws [`Bad`] for a negative amount, and fails at the item `fail.at`, the first time by an error that can be retried.
#[derive(BatchArtifact)]
struct Check {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
    #[batch_property(name = "fails", value = "for ever")]
    fails: String,
    failed: bool,
}

#[item_processor]
impl Check {
    #[process_item]
    fn process(&mut self, payment: Payment) -> Result<Option<Payment>, BatchError> {
        if payment.id == self.fail_at && !std::mem::replace(&mut self.failed, self.fails == "once") {
            return Err(Broken.into());
        }
        if payment.amount < 0 {
            return Err(Bad(format!("payment {} is negative", payment.id)).into());
        }
        Ok(Some(payment))
    }
}

/// Throws [`Bad`] at the id 6.
#[derive(BatchArtifact)]
struct Bookings;

#[item_writer]
impl Bookings {
    #[open]
    fn open(&self, _: Option<()>) {}

    #[get_checkpoint_info]
    fn checkpoint(&self) {}

    #[write_items]
    fn write(&self, payments: &[Payment], _: &mut ChunkTransaction) -> Result<(), Bad> {
        if payments.iter().any(|payment| payment.id == 6) {
            return Err(Bad("account 6 is closed".into()));
        }
        Ok(())
    }
}

/// Rejects of each phase; the second and last rows cannot be read.
const INPUT: &str = "id,amount\n1,10\n2,\"1\n0\"\n3,-1\n4,20\n5,20\n6,30\n7,-2\n8,5\n9,\"é\"\n";
const SKIP: &str = "<skippable-exception-classes><include class=\"RecordError\"/><include class=\"test.Bad\"/>\
                    </skippable-exception-classes>\
                    <retryable-exception-classes><include class=\"test.Retried\"/></retryable-exception-classes>";
const PLACES: &str = "line.field@reader=line\nraw.field@reader=raw";
const RAW: &str = "<property name=\"line.field\" value=\"line\"/><property name=\"raw.field\" value=\"raw\"/>\
                   <property name=\"rejects.raw\" value=\"${dir}/raw.csv\"/>\
                   <property name=\"rejects.raw.header\" value=\"id,amount\"/>";
const CHUNK: &str = "reader=\"Payments\" processor=\"Check\" writer=\"Bookings\" retry-limit=\"2\"";

fn listener(output: &str, more: &str) -> String {
    format!(
        "<properties><property name=\"batch.retry.input\" value=\"true\"/></properties>\
         <listeners><listener ref=\"Rejects\"><properties>\
         <property name=\"rejects.output\" value=\"${{dir}}/{output}\"/>{more}</properties></listener></listeners>"
    )
}

fn stage(commit_interval: u32, properties: &str, output: &str) -> Stage {
    let stage = Stage::with_listeners(
        &listener(output, RAW),
        &format!("{CHUNK} commit-interval=\"{commit_interval}\""),
        &format!("resource=${{dir}}/in.csv\n{PLACES}\n{properties}"),
        SKIP,
    );
    stage.write("in.csv", INPUT);
    stage
}

/// The report names the place, the record and the error of each skip, in the order of the skips; the file of raw records can be
/// launched again.
#[test]
fn each_skip_is_a_line() {
    let stage = stage(4, "", "rejects.jsonl");
    assert_eq!(stage.completes().skips, 5);
    let lines = r#"{"skip":1,"instance":1,"step":"copy","phase":"read","error":"in.csv:3: field `amount` (number 2): invalid value \"1\\n0\": expected i64","resource":"in.csv","line":3,"field":"amount","value":"1\n0","raw":"2,\"1\n0\"","raw_end":18}
{"skip":2,"instance":1,"step":"copy","phase":"process","error":"payment 3 is negative","line":5,"raw":"3,-1","item":{"id":3,"amount":-1,"line":5,"raw":"3,-1"},"raw_end":23}
{"skip":3,"instance":1,"step":"copy","phase":"process","error":"payment 7 is negative","line":9,"raw":"7,-2","item":{"id":7,"amount":-2,"line":9,"raw":"7,-2"},"raw_end":28}
{"skip":4,"instance":1,"step":"copy","phase":"read","error":"in.csv:11: field `amount` (number 2): invalid value \"é\": expected i64","resource":"in.csv","line":11,"field":"amount","value":"é","raw":"9,\"é\"","raw_end":35}
{"skip":5,"instance":1,"step":"copy","phase":"write","error":"account 6 is closed","line":8,"raw":"6,30","item":{"id":6,"amount":30,"line":8,"raw":"6,30"},"raw_end":40}
"#;
    assert_eq!(stage.read_relative("rejects.jsonl"), lines);
    assert_eq!(
        stage.read("raw.csv"),
        "id,amount\n2,\"1\n0\"\n3,-1\n7,-2\n9,\"é\"\n6,30\n"
    );

    let stage = self::stage(4, "", "out/rejects.csv");
    stage.completes();
    let rows = r#"skip,instance,step,phase,error,resource,line,field,value,raw,raw_end,item
1,1,copy,read,"in.csv:3: field `amount` (number 2): invalid value ""1\n0"": expected i64",in.csv,3,amount,"1
0","2,""1
0""",18,
2,1,copy,process,payment 3 is negative,,5,,,"3,-1",23,"{""id"":3,""amount"":-1,""line"":5,""raw"":""3,-1""}"
3,1,copy,process,payment 7 is negative,,9,,,"7,-2",28,"{""id"":7,""amount"":-2,""line"":9,""raw"":""7,-2""}"
4,1,copy,read,"in.csv:11: field `amount` (number 2): invalid value ""é"": expected i64",in.csv,11,amount,é,"9,""é""",35,
5,1,copy,write,account 6 is closed,,8,,,"6,30",40,"{""id"":6,""amount"":30,""line"":8,""raw"":""6,30""}"
"#;
    assert_eq!(stage.read_relative("out/rejects.csv"), rows);
}

/// The file of raw records, corrected, is the input of another launch.
///
/// Spec: LOSS-07
#[test]
fn no_record_is_missing_among_the_raw_ones() {
    let known = "<property name=\"raw.field\" value=\"raw\"/>";
    assert!(RAW.contains(known));
    let stage = Stage::with_listeners(
        &listener("rejects.jsonl", &RAW.replace(known, "")),
        &format!("{CHUNK} commit-interval=\"4\""),
        &format!("resource=${{dir}}/in.csv\n{PLACES}"),
        SKIP,
    );
    stage.write("in.csv", INPUT);
    let message = stage.fails();
    assert!(message.contains("set `raw.field` of the reader"), "{message}");
    let left = stage.read_relative("rejects.jsonl.uncommitted");
    assert!(left.contains("payment 3 is negative"), "{left}");
    stage.write("in.csv", "id,amount\n6,30\n");
    let message = stage.fails();
    assert!(
        message.contains("on_skip_in_write") && message.contains("set `raw.field`"),
        "{message}"
    );
    // The text of a record that cannot be read is known.
    stage.write("in.csv", "id,amount\n1,10\n2,many\n");
    assert_eq!(stage.completes().skips, 1);
    assert_eq!(stage.read("raw.csv"), "id,amount\n2,many\n");
}

/// Whichever item the job fails at, and whatever the interval, the restart leaves the same files as an undisturbed run.
#[test]
fn a_restart_reports_each_skip_once() {
    for output in ["rejects.jsonl", "rejects.csv"] {
        for commit_interval in 1..5 {
            let undisturbed = stage(commit_interval, "", output);
            undisturbed.completes();
            for fail_at in [1, 3, 4, 5, 7, 8] {
                let stage = stage(commit_interval, "", output);
                let failed = stage.start([("fail.at", fail_at.to_string())]);
                assert_eq!(failed.status, BatchStatus::Failed);
                // What a crash in the middle of a line leaves.
                let mut torn = fs::read(stage.path().join(output)).unwrap_or_default();
                torn.extend_from_slice(match (output, torn.is_empty()) {
                    ("rejects.jsonl", _) => b"{\"skip\":1".as_slice(),
                    (_, true) => b"skip,inst",
                    (_, false) => b"9,1,co",
                });
                stage.write(output, torn);
                let ended = stage.restart(&failed, [("fail.at", "0")]);
                assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
                for name in [output, "raw.csv"] {
                    assert_eq!(
                        stage.read_relative(name),
                        undisturbed.read_relative(name),
                        "{commit_interval}, {fail_at}"
                    );
                }
            }
        }
    }
}

/// An interval that is rolled back and read again reports its skips again; the files have them once.
#[test]
fn skips_of_a_rolled_back_interval_are_reported_once() {
    let properties = "fail.at=4\nfails=once";
    let stage = stage(10, properties, "rejects.jsonl");
    let undisturbed = self::stage(10, "", "rejects.jsonl");
    undisturbed.completes();
    assert_eq!(stage.completes().skips, 5);
    assert_eq!(
        stage.read_relative("rejects.jsonl"),
        undisturbed.read_relative("rejects.jsonl")
    );
}

/// A chunk with more bad records than the limit is rolled back. Its rejects are left in another file, once each, until the step runs again.
#[test]
fn rejects_of_a_failed_step_are_left() {
    for output in ["rejects.jsonl", "rejects.csv"] {
        let undisturbed = stage(10, "", output);
        undisturbed.completes();
        let stage = stage(10, "", output);
        let failed = stage.start([("fail.at", "8")]);
        assert_eq!(failed.status, BatchStatus::Failed);
        assert!(!stage.path().join(output).exists());
        let left = format!("{output}.uncommitted");
        let text = stage.read_relative(&left);
        for (phase, times) in [("read", 1), ("process", 2), ("write", 0)] {
            let (csv, json) = (format!(",copy,{phase},"), format!("\"phase\":\"{phase}\""));
            assert_eq!(
                text.matches(&csv).count() + text.matches(&json).count(),
                times,
                "{text}"
            );
        }
        let ended = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
        assert!(!stage.path().join(&left).exists());
        assert_eq!(stage.read_relative(output), undisturbed.read_relative(output));
        // The file of another instance stays.
        let others = text
            .replace("\"instance\":1", "\"instance\":9")
            .replace(",1,copy", ",9,copy");
        stage.write(&left, &others);
        assert_eq!(stage.start([("fail.at", "8")]).status, BatchStatus::Failed);
        assert_eq!(stage.read_relative(&left), others);
        fs::remove_file(stage.path().join(output)).unwrap();
        fs::remove_file(stage.path().join("raw.csv")).unwrap();
        stage.completes();
        assert_eq!(stage.read_relative(&left), others);
    }
}

/// Without a skip there is no file. The files of others are an error: rejects of another instance that are not corrected yet, or the input
/// itself; they would be taken for the result.
#[test]
fn files_of_others_are_not_lost() {
    let stage = stage(4, "", "rejects.jsonl");
    stage.write("in.csv", "id,amount\n1,1\n");
    stage.completes();
    assert!(!stage.path().join("rejects.jsonl").exists() && !stage.path().join("raw.csv").exists());
    for name in ["rejects.jsonl", "raw.csv"] {
        for content in [
            "{\"skip\":1,\"instance\":9,\"step\":\"copy\"}\n",
            "id,amount\n1,1\n",
        ] {
            for input in ["id,amount\n1,1\n", INPUT] {
                stage.write("in.csv", input);
                stage.write(name, content);
                let message = stage.fails();
                let expected = format!(
                    "`{name}` exists and does not belong to step `copy` of this job instance; give the file another name"
                );
                assert!(message.contains(&expected), "{message}");
                assert_eq!(stage.read(name), content);
            }
            fs::remove_file(stage.path().join(name)).unwrap();
        }
    }
    let overwrite = "<property name=\"rejects.if.exists\" value=\"overwrite\"/>";
    let stage = Stage::with_listeners(
        &listener("rejects.jsonl", &format!("{RAW}{overwrite}")),
        CHUNK,
        &format!("resource=${{dir}}/in.csv\n{PLACES}"),
        SKIP,
    );
    stage.write("in.csv", INPUT);
    for name in ["rejects.jsonl", "raw.csv"] {
        stage.write(name, "old\n");
    }
    stage.completes();
    assert!(!stage.read("rejects.jsonl").contains("old") && !stage.read("raw.csv").contains("old"));
    for names in [&["rejects.jsonl", "raw.csv"][..], &["raw.csv"]] {
        stage.write("in.csv", "id,amount\n1,1\n");
        names.iter().for_each(|name| stage.write(name, "old\n"));
        stage.completes();
        let exists = |name: &str| stage.path().join(name).exists();
        assert!(!exists("rejects.jsonl") && !exists("raw.csv"), "{names:?}");
    }
}

/// An instance that is resumed does not add its rejects to the rejects of another one.
#[test]
fn another_instance_in_between_is_an_error() {
    let stage = stage(1, "", "rejects.jsonl");
    let failed = stage.start([("fail.at", "4")]);
    fs::remove_file(stage.path().join("rejects.jsonl")).unwrap();
    fs::remove_file(stage.path().join("raw.csv")).unwrap();
    stage.completes();
    let others = stage.read("rejects.jsonl");
    let ended = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(ended.status, BatchStatus::Failed);
    let expected = "`rejects.jsonl` does not belong to the 2 rejects that this job instance has committed; restore the file";
    assert!(ended.message.contains(expected), "{}", ended.message);
    assert_eq!(stage.read("rejects.jsonl"), others);
}

/// Two steps or partitions cannot write the same file, and a report that was moved away alone is an error.
#[test]
fn bad_files_are_errors() {
    let stage = stage(4, "", "rejects.jsonl");
    let locked = fs::File::create(stage.path().join("rejects.jsonl")).unwrap();
    locked.lock().unwrap();
    assert!(stage.fails().contains(
        "cannot write rejects to `rejects.jsonl`: another step or partition writes its rejects to it; give each a different file"
    ));
    drop(locked);
    let stage = self::stage(1, "", "x://user:secret@host/rejects.jsonl");
    let message = stage.fails();
    assert!(
        message.contains("`rejects.output` is a URL; rejects are written to local files: set it to a path"),
        "{message}"
    );
    let stage = self::stage(1, "", "rejects.jsonl");
    let failed = stage.start([("fail.at", "4")]);
    fs::remove_file(stage.path().join("rejects.jsonl")).unwrap();
    let ended = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(ended.status, BatchStatus::Failed);
    assert!(
        ended
            .message
            .contains("`rejects.jsonl` has 0 of the 2 rejects that this job instance has committed"),
        "{}",
        ended.message
    );
}

/// A listener of the job is not called at checkpoints, so the loader rejects it.
#[test]
fn a_listener_of_the_job_is_an_error() {
    let listeners = listener("rejects.jsonl", "");
    let (_, listeners) = listeners.split_once("</properties>").unwrap();
    let chunk = format!("{CHUNK} commit-interval=\"1\"");
    let stage = Stage::with_job_listeners(
        listeners,
        &chunk,
        &format!("resource=${{dir}}/in.csv\n{PLACES}"),
        SKIP,
    );
    stage.write("in.csv", INPUT);
    let message = stage.rejected();
    assert!(
        message.contains("no `StepContext` is in scope when `Rejects` is created"),
        "{message}"
    );
    assert!(message.contains("help: name it in a step"), "{message}");
}

#[skip_listener("SkipsOnly")]
type SkipsOnly = RejectListener<Payment>;

#[checkpoint_listener("CheckpointsOnly")]
type CheckpointsOnly = RejectListener<Payment>;

/// A type that is registered for skips or for checkpoints alone would lose its rejects: the job does not start.
///
/// Spec: LOSS-07
#[test]
fn a_listener_without_one_of_its_roles_is_an_error() {
    for (name, missing) in [
        ("SkipsOnly", "checkpoint_listener"),
        ("CheckpointsOnly", "skip_listener"),
    ] {
        let listeners = listener("rejects.jsonl", "").replace("Rejects", name);
        let properties = format!("resource=${{dir}}/in.csv\n{PLACES}");
        let stage = Stage::with_listeners(&listeners, CHUNK, &properties, SKIP);
        stage.write("in.csv", INPUT);
        let message = stage.rejected();
        let remedy = format!("register it by `#[{missing}(\"{name}\")]` too");
        assert!(
            message.contains("ART0030")
                && message.contains("would lose rejects")
                && message.contains(&remedy),
            "{message}"
        );
    }
}

/// A misspelt field would leave the records out of the file that is corrected and launched again.
#[test]
fn a_field_that_the_items_do_not_have_is_an_error() {
    let properties = format!("resource=${{dir}}/in.csv\n{PLACES}");
    let listeners = listener("rejects.jsonl", &RAW.replace("value=\"raw\"", "value=\"txt\""));
    let stage = Stage::with_listeners(&listeners, CHUNK, &properties, SKIP);
    stage.write("in.csv", INPUT);
    let message = stage.fails();
    assert!(
        message
            .contains("the items have no field `txt`, which the property `raw.field` of the listener names"),
        "{message}"
    );
}

/// A file of raw records that another step writes is not removed.
#[test]
fn raw_records_of_a_running_step_are_not_removed() {
    let overwrite = "<property name=\"rejects.if.exists\" value=\"overwrite\"/>";
    let properties = format!("resource=${{dir}}/in.csv\n{PLACES}");
    let listeners = listener("rejects.jsonl", &format!("{RAW}{overwrite}"));
    let stage = Stage::with_listeners(&listeners, CHUNK, &properties, SKIP);
    stage.write("in.csv", "id,amount\n1,1\n");
    stage.write("raw.csv", "id,amount\n9,9\n");
    let other = fs::File::open(stage.path().join("raw.csv")).unwrap();
    other.lock().unwrap();
    let message = stage.fails();
    assert!(
        message.contains("another step or partition writes its rejects to it"),
        "{message}"
    );
    assert_eq!(stage.read("raw.csv"), "id,amount\n9,9\n");
}

/// Rows that are longer than a header which lacks a column are no rejects: the file is wrong.
#[test]
fn rows_below_a_wrong_header_are_no_rejects() {
    let stage = stage(4, "", "rejects.jsonl");
    stage.write("in.csv", "id\n1,1\n2,2\n");
    let message = stage.fails();
    assert!(
        message.contains("`in.csv`: it has no column `amount`, but `id`"),
        "{message}"
    );
    assert!(!stage.path().join("rejects.jsonl").exists());
}

/// The files are in UTF-8, whatever the encoding of the input.
#[test]
fn another_encoding_becomes_utf_8() {
    let stage = stage(4, "encoding@reader=windows-1252", "rejects.jsonl");
    stage.write("in.csv", b"id,amount\n1,\xE9\n2,-1\n");
    assert_eq!(stage.completes().skips, 2);
    assert_eq!(stage.read("raw.csv"), "id,amount\n1,\u{e9}\n2,-1\n");
    assert!(stage.read("rejects.jsonl").contains("\"raw\":\"1,\u{e9}\""));
}

/// A quote that is not in order rejects its line alone, with its text, and with every line end; the lines behind it are read.
#[test]
fn a_quote_that_is_not_in_order_rejects_its_line() {
    let input = "id,amount\n1,\"1\"0\"\n2,5\n\n3,\"20\n4,6\n5,\"7\n8,8\n";
    for line_end in ["\n", "\r\n"] {
        let stage = stage(2, "max.record.length@reader=40", "rejects.jsonl");
        stage.write("in.csv", input.replace('\n', line_end));
        let ended = stage.completes();
        assert_eq!((ended.reads, ended.skips), (3, 3));
        assert_eq!(stage.read("raw.csv"), "id,amount\n1,\"1\"0\"\n3,\"20\n5,\"7\n");
        let report = stage.read("rejects.jsonl");
        let lines = [2, 5, 7].map(|line| format!("\"line\":{line},"));
        assert!(
            report
                .lines()
                .zip(lines)
                .all(|(reject, line)| reject.contains(&line)),
            "{report}"
        );
        // One that makes the row too long, too.
        let stage = self::stage(2, "max.record.length@reader=40", "rejects.jsonl");
        let long: String = (10..30).map(|id| format!("{id},1\n")).collect();
        stage.write(
            "in.csv",
            format!("id,amount\n\n9,\"\n{long}").replace('\n', line_end),
        );
        let ended = stage.completes();
        assert_eq!((ended.reads, ended.skips), (20, 1));
        assert_eq!(stage.read("raw.csv"), "id,amount\n9,\"\n");
    }
}

/// Returns a job in the dialect of Jakarta Batch.
fn jakarta(folder: &std::path::Path, step: &str) -> JobTest {
    let file = folder.join("job.xml");
    let job = format!("<job id='j' version='2.0' xmlns='https://jakarta.ee/xml/ns/jakartaee'>{step}</job>");
    fs::write(&file, job).unwrap();
    JobTest::new(file)
}

#[skip_listener("ListRejects")]
#[checkpoint_listener("ListRejects")]
type ListRejects = RejectListener<u64>;

/// Each item of a skipped list is in the rejects, under the number of the skip.
///
/// Spec: JAK-19, INPUT-04
#[test]
fn each_item_of_a_skipped_list_is_a_reject() {
    let folder = tempfile::tempdir().unwrap();
    let rejects = folder.path().join("rejects.csv");
    let step = format!(
        "<step id='s'><listeners><listener ref='ListRejects'><properties><property name='rejects.output' value='{}'/></properties>
           </listener></listeners><chunk item-count='3'><reader ref='Numbers'/><writer ref='Table'/>
           <skippable-exception-classes><include class='SimulatedFailure'/></skippable-exception-classes></chunk></step>",
        rejects.display()
    );
    let written = WrittenItems::<u64>::new();
    jakarta(folder.path(), &step)
        .reader("Numbers", 1..=9_u64)
        .failing_writer("Table", &written, &always_fails_at(5))
        .launch()
        .assert_completed();
    let rejects = fs::read_to_string(rejects).unwrap();
    let items = rejects.lines().skip(1).map(|line| {
        let (skip, _) = line.split_once(',').unwrap();
        let (_, item) = line.rsplit_once(',').unwrap();
        (skip, item)
    });
    assert_eq!(
        items.collect::<Vec<_>>(),
        [("1", "4"), ("1", "5"), ("1", "6")],
        "{rejects}"
    );
    assert_eq!(written.items(), [1, 2, 3, 7, 8, 9]);
}

/// An item without the fields of the input.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Booked {
    id: u64,
}

#[skip_listener("BookedRejects")]
#[checkpoint_listener("BookedRejects")]
type BookedRejects = RejectListener<Booked>;

/// Runs a step that skips its second item in the writer. The listener has a field `raw`.
fn skips_in_write<T>(listener: &str, items: [T; 2]) -> JobRun
where
    T: Clone + PartialEq + fmt::Debug + Send + Sync + 'static,
{
    let folder = tempfile::tempdir().unwrap();
    let step = format!(
        "<step id='s'><listeners><listener ref='{listener}'><properties>
           <property name='rejects.output' value='{}'/><property name='raw.field' value='raw'/></properties></listener></listeners>
           <chunk item-count='1'><reader ref='Items'/><writer ref='Table'/>
           <skippable-exception-classes><include class='SimulatedFailure'/></skippable-exception-classes></chunk></step>",
        folder.path().join("rejects.jsonl").display()
    );
    jakarta(folder.path(), &step)
        .failing_writer("Table", &WrittenItems::new(), &always_fails_at(items[1].clone()))
        .reader("Items", items)
        .launch()
}

/// Records that are written have the fields of the records that were read; items of a type of the program need not.
///
/// Spec: INPUT-04
#[test]
fn records_that_are_skipped_in_the_writer_have_the_fields_of_the_input() {
    skips_in_write("BookedRejects", [1, 2].map(|id| Booked { id })).assert_completed();
    let record = |id: i64| {
        let mut record = Record::new();
        record.set("id", id);
        record
    };
    skips_in_write("recordRejects", [1, 2].map(record))
        .assert_failed("the items have no field `raw`, which the property `raw.field` of the listener names");
}

/// A retry without a rollback would lose a record that the reader has passed. So the chunk is read again, and the record is skipped or the
/// step fails.
///
/// Spec: JAK-31, LOSS-07
#[test]
fn a_retry_without_a_rollback_loses_no_record() {
    let classes = |list: &str| {
        format!("<{list}-exception-classes><include class=\"RecordError\"/></{list}-exception-classes>")
    };
    for skippable in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let property = |name: &str, value: String| {
            format!("<properties><property name=\"{name}\" value=\"{value}\"/></properties>")
        };
        let xml = format!(
            "<job id=\"job\" version=\"2.0\" xmlns=\"https://jakarta.ee/xml/ns/jakartaee\"><step id=\"load\"><listeners>\
             <listener ref=\"recordRejects\">{}</listener></listeners><chunk item-count=\"2\" retry-limit=\"3\">\
             <reader ref=\"csvRecordReader\">{}</reader><writer ref=\"recordCsvWriter\">{}</writer>{}{}{}</chunk></step></job>",
            property("rejects.output", path("rejects.csv")),
            property("resource", path("in.csv")),
            property("output", path("out.csv")),
            if skippable {
                classes("skippable")
            } else {
                String::new()
            },
            classes("retryable"),
            classes("no-rollback"),
        );
        fs::write(path("job.xml"), xml).unwrap();
        fs::write(path("in.csv"), "id,v\n1,a\n2,b,c\n3,c\n").unwrap();
        let runtime = batch_runtime::BatchRuntime::builder()
            .job_path(folder.path().display().to_string())
            .repository("memory:")
            .build()
            .unwrap();
        let operator = runtime.job_operator();
        let ended = operator.wait(operator.start("job", ()).unwrap()).unwrap();
        if skippable {
            assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
            assert_eq!(fs::read_to_string(path("out.csv")).unwrap(), "id,v\n1,a\n3,c\n");
            assert!(
                fs::read_to_string(path("rejects.csv"))
                    .unwrap()
                    .contains("\"2,b,c\"")
            );
        } else {
            assert_eq!(ended.status, BatchStatus::Failed);
            assert!(
                ended.exit_message.contains("the retry-limit of 3 is used up"),
                "{}",
                ended.exit_message
            );
        }
    }
}
