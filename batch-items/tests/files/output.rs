//! Files that are written exactly once.

use std::fs;
use std::io::Read;

use batch_items::file::{FileFrame, FileOutput, OutputPosition};
use batch_items::{
    DelimitedItemWriter, JsonArrayItemWriter, JsonLinesItemWriter, LineItemReader, ResourceError,
    XmlItemWriter,
};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::stage::{Stage, pass};

#[item_reader("NumberReader")]
type NumberReader = LineItemReader<u64>;

pass!(PassNumber: u64);

#[derive(Serialize)]
struct Number {
    number: u64,
}

/// Makes the records of the writers.
#[derive(BatchArtifact)]
struct ToNumber {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
    #[batch_property(name = "above", value = "0")]
    above: u64,
}

#[item_processor("ToNumber")]
impl ToNumber {
    #[process_item]
    fn process(&mut self, number: &u64) -> Result<Option<Number>, BatchError> {
        if *number == self.fail_at {
            return Err(BatchError::msg("stopped by the test"));
        }
        Ok((*number > self.above).then_some(Number { number: *number }))
    }
}

/// The date of the file, and the number and the sum of its numbers.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Totals {
    count: u64,
    sum: u64,
}

impl FileFrame<Number> for Totals {
    fn header(&self) -> Option<String> {
        Some("numbers\n".to_owned())
    }
    fn add(&mut self, number: &Number) {
        self.count += 1;
        self.sum += number.number;
    }
    fn footer(&self) -> Option<String> {
        Some(format!("{} {}\n", self.count, self.sum))
    }
}

#[item_writer("NumberWriter")]
type NumberWriter = DelimitedItemWriter<Number>;
#[item_writer("TotalsWriter")]
type TotalsWriter = DelimitedItemWriter<Number, Totals>;
#[item_writer("ArrayWriter")]
type ArrayWriter = JsonArrayItemWriter<Number>;
#[item_writer("TotalsArrayWriter")]
type TotalsArrayWriter = JsonArrayItemWriter<Number, Totals>;
#[item_writer("TotalsLinesWriter")]
type TotalsLinesWriter = JsonLinesItemWriter<Number, Totals>;
#[item_writer("ElementWriter")]
type ElementWriter = XmlItemWriter<Number>;

fn stage(writer: &str, items: u64, properties: &str) -> Stage {
    let chunk = format!(
        "reader=\"NumberReader\" processor=\"ToNumber\" writer=\"{writer}\" commit-interval=\"3\" chunk-size=\"2\""
    );
    let stage = Stage::new(
        &chunk,
        &format!("resource=${{dir}}/in\noutput@writer=${{dir}}/out.txt\n{properties}"),
    );
    let numbers: String = (1..=items).map(|number| format!("{number}\n")).collect();
    stage.write("in", numbers);
    stage
}

/// Returns the files of the output with their content, without the input.
fn files(stage: &Stage) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(stage.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "in" && name != "jobs")
        .map(|name| (name.clone(), stage.read(&name)))
        .collect();
    files.sort();
    files
}

/// The writers and properties whose output the tests compare.
const WRITERS: &[(&str, &str)] = &[
    ("NumberWriter", ""),
    ("NumberWriter", "header=false\nline.end=crlf"),
    ("NumberWriter", "sync=never"),
    ("NumberWriter", "max.items.per.file=4"),
    ("TotalsWriter", "header=false"),
    ("TotalsWriter", "max.items.per.file=2"),
    ("ArrayWriter", ""),
    ("ArrayWriter", "max.items.per.file=3"),
    ("ElementWriter", "element=n"),
    ("ElementWriter", "element=n\nmax.items.per.file=3"),
];

/// Whichever item a job fails at, the restart ends with the files of an undisturbed run. Before, there is no final file.
#[test]
fn a_restart_ends_with_the_same_files() {
    for (writer, properties) in WRITERS {
        let undisturbed = stage(writer, 10, properties);
        undisturbed.completes();
        let undisturbed = files(&undisturbed);
        for fail_at in 1..=10 {
            let stage = stage(writer, 10, properties);
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            assert_eq!(failed.status, BatchStatus::Failed);
            assert!(
                files(&stage).iter().all(|(name, _)| name.ends_with(".part")),
                "{writer}"
            );
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
            assert_eq!(files(&stage), undisturbed, "{writer} {properties} {fail_at}");
        }
    }
}

#[test]
fn files_have_the_form_of_their_properties() {
    let output = |writer: &str, items, properties: &str| {
        let stage = stage(writer, items, properties);
        stage.completes();
        files(&stage)
    };
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(output("NumberWriter", 2, ""), [file("out.txt", "number\n1\n2\n")]);
    assert_eq!(
        output("NumberWriter", 2, "header=false\nline.end=crlf\nquotes=always"),
        [file("out.txt", "\"1\"\r\n\"2\"\r\n")]
    );
    assert_eq!(
        output("TotalsWriter", 2, ""),
        [file("out.txt", "numbers\nnumber\n1\n2\n2 3\n")]
    );
    assert_eq!(
        output("ArrayWriter", 2, ""),
        [file("out.txt", "[\n{\"number\":1},\n{\"number\":2}\n]\n")]
    );
    assert_eq!(output("ArrayWriter", 0, ""), [file("out.txt", "[\n]\n")]);
    assert_eq!(
        output("TotalsArrayWriter", 1, ""),
        [file("out.txt", "numbers\n[\n{\"number\":1}\n]\n1 1\n")]
    );
    assert_eq!(
        output("TotalsLinesWriter", 1, ""),
        [file("out.txt", "numbers\n{\"number\":1}\n1 1\n")]
    );
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    assert_eq!(
        output("ElementWriter", 2, "element=n\nroot=all of=\"2\""),
        [file(
            "out.txt",
            &format!(
                "{declaration}<all of=\"2\">\n<n><number>1</number></n>\n<n><number>2</number></n>\n</all>\n"
            )
        )]
    );
    assert_eq!(
        output("ElementWriter", 0, "element=n"),
        [file("out.txt", &format!("{declaration}<items>\n</items>\n"))]
    );
    assert_eq!(output("TotalsWriter", 0, ""), [file("out.txt", "numbers\n0 0\n")]);
    assert_eq!(
        output("NumberWriter", 0, "columns=number"),
        [file("out.txt", "number\n")]
    );
    assert_eq!(output("NumberWriter", 0, "if.empty=delete"), []);
    assert_eq!(
        output("TotalsWriter", 5, "max.items.per.file=2\nheader=false"),
        [
            file("out-0001.txt", "numbers\n1\n2\n2 3\n"),
            file("out-0002.txt", "numbers\n3\n4\n2 7\n"),
            file("out-0003.txt", "numbers\n5\n1 5\n"),
        ]
    );
}

/// Each checkpoint ends a compressed stream, so that a file can be truncated to it.
#[test]
fn a_compressed_file_is_truncated_to_its_checkpoint() {
    for fail_at in [2, 5, 9] {
        let stage = stage("NumberWriter", 10, "compression@writer=gzip");
        let failed = stage.start([("fail.at", fail_at.to_string())]);
        assert_eq!(failed.status, BatchStatus::Failed);
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        let mut text = String::new();
        let file = fs::File::open(stage.path().join("out.txt")).unwrap();
        flate2::read::MultiGzDecoder::new(file)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "number\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
    }
}

#[test]
fn an_existing_file_is_replaced_kept_or_continued() {
    let stage_with = |properties: &str| {
        let stage = stage("NumberWriter", 2, properties);
        stage.write("out.txt", "number\n0\n");
        stage
    };
    let replaced = stage_with("");
    replaced.completes();
    assert_eq!(replaced.read("out.txt"), "number\n1\n2\n");
    let continued = stage_with("if.exists=append");
    continued.completes();
    assert_eq!(continued.read("out.txt"), "number\n0\n1\n2\n");
    let kept = stage_with("if.exists=fail");
    let failed = kept.start(());
    assert_eq!((failed.status, failed.writes), (BatchStatus::Failed, 0));
    let message = failed.message;
    assert!(
        message.starts_with("cannot write `out.txt`: it exists already; set `if.exists` to `overwrite`"),
        "{message}"
    );
    assert_eq!(kept.read("out.txt"), "number\n0\n");
    let empty = stage_with("if.empty=delete\nabove=5");
    empty.completes();
    assert_eq!(
        files(&empty),
        [],
        "nothing of an earlier run is left for a later one to find"
    );
    let array = stage("ArrayWriter", 2, "if.exists=append");
    assert!(array.fails().contains("this format cannot be appended to"));
    let elements = stage("ElementWriter", 2, "element=n\nif.exists=append");
    assert!(elements.fails().contains("this format cannot be appended to"));
    let several = stage_with("if.exists=append\nmax.items.per.file=5");
    assert!(
        several
            .fails()
            .contains("cannot be combined with `max.items.per.file`")
    );
}

/// Until the job completes, readers of the old file are not disturbed.
#[test]
fn the_old_file_stays_until_the_step_completes() {
    for properties in ["", "if.exists=append"] {
        let stage = stage("NumberWriter", 10, properties);
        stage.write("out.txt", "number\n0\n");
        let failed = stage.start([("fail.at", "8")]);
        assert_eq!(stage.read("out.txt"), "number\n0\n");
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(
            stage.read("out.txt").lines().count(),
            if properties.is_empty() { 11 } else { 12 }
        );
    }
}

/// A file that is not the one of the checkpoint is never continued.
#[test]
fn a_wrong_part_is_an_error() {
    let failed_stage = || {
        let stage = stage("NumberWriter", 10, "");
        let failed = stage.start([("fail.at", "8")]);
        assert_eq!(stage.read("out.txt.part"), "number\n1\n2\n3\n4\n5\n6\n");
        (stage, failed)
    };
    let message = |stage: &Stage, failed| {
        let again = stage.restart(failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Failed);
        again.message.lines().next().unwrap().to_owned()
    };
    let (stage, failed) = failed_stage();
    stage.write("out.txt.part", "number\n1\n");
    assert_eq!(
        message(&stage, &failed),
        "cannot resume writing `out.txt`: it has 9 bytes, and had 19 at the last checkpoint; restore it, or launch the \
         job with other parameters"
    );
    let (stage, failed) = failed_stage();
    stage.write("out.txt.part", "number\n1\n2\n3\n4\n5\n7\n8\n");
    assert_eq!(
        message(&stage, &failed),
        "cannot resume writing `out.txt`: its content differs from the content at the last checkpoint, perhaps because another job \
         instance writes the same `output`; restore it, or run `abandon` for this execution and `start` the job again"
    );
    let (stage, failed) = failed_stage();
    fs::remove_file(stage.path().join("out.txt.part")).unwrap();
    assert!(message(&stage, &failed).contains("the file of the last checkpoint does not exist any more"));
    // The one of an earlier run.
    stage.write("out.txt", "number\n100\n200\n300\n400\n");
    assert!(message(&stage, &failed).contains("its content differs from the content at the last checkpoint"));
    assert_eq!(stage.read("out.txt"), "number\n100\n200\n300\n400\n");
}

/// What was written after the last checkpoint is removed, also if less is written again.
#[test]
fn a_part_is_truncated_to_the_checkpoint() {
    for (writer, properties) in WRITERS {
        let undisturbed = stage(writer, 10, properties);
        undisturbed.completes();
        let stage = stage(writer, 10, properties);
        let failed = stage.start([("fail.at", "8")]);
        let parts = files(&stage);
        let (last, content) = parts.last().unwrap();
        stage.write(last, content.clone() + &"not committed\n".repeat(99));
        let again = stage.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(files(&stage), files(&undisturbed), "{writer} {properties}");
    }
}

/// The process may die after the file has got its final name, and before the step is recorded as completed.
#[test]
fn a_file_that_was_finished_is_finished_again() {
    for writer in ["NumberWriter", "TotalsWriter"] {
        let undisturbed = stage(writer, 6, "");
        undisturbed.completes();
        let stage = stage(writer, 7, "");
        let failed = stage.start([("fail.at", "7")]);
        assert_eq!(failed.status, BatchStatus::Failed);
        stage.write("in", "1\n2\n3\n4\n5\n6\n");
        fs::rename(stage.path().join("out.txt.part"), stage.path().join("out.txt")).unwrap();
        let again = stage.restart(&failed, [("fail.at", "0"), ("if.changed", "resume")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(files(&stage), files(&undisturbed));
    }
}

/// The same without items, where the output appends: what was finished is not appended to itself.
#[test]
fn an_appended_file_without_items_is_finished_once() {
    let properties = "if.exists=append\nabove=99";
    let stage = stage("TotalsWriter", 4, properties);
    stage.write("out.txt", "before\n");
    let failed = stage.start([("fail.at", "4")]);
    assert_eq!(failed.status, BatchStatus::Failed);
    // As the footer and the renaming leave it.
    stage.write("out.txt", "before\n0 0\n");
    fs::remove_file(stage.path().join("out.txt.part")).unwrap();
    let again = stage.restart(&failed, [("fail.at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
    assert_eq!(
        files(&stage),
        [("out.txt".to_owned(), "before\n0 0\n".to_owned())]
    );
}

#[test]
fn another_process_cannot_write_the_same_file() {
    let stage = stage("NumberWriter", 2, "");
    let part = fs::File::create(stage.path().join("out.txt.part")).unwrap();
    part.lock().unwrap();
    let message = stage.fails();
    assert!(
        message.starts_with("cannot write `out.txt.part`: another execution, partition or writer is writing it; wait for its end"),
        "{message}"
    );
}

#[test]
fn a_target_that_cannot_be_written_is_an_error() {
    let stage = Stage::new(
        "reader=\"NumberReader\" processor=\"PassNumber\" writer=\"PlainWriter\"",
        "resource=${dir}/in\noutput=${dir}",
    );
    stage.write("in", "1\n");
    let message = stage.fails();
    assert!(
        message.contains("it is a directory; name a file in it"),
        "{message}"
    );
    let stage = Stage::new(
        "reader=\"NumberReader\" processor=\"PassNumber\" writer=\"PlainWriter\"",
        "resource=${dir}/in\noutput=${dir}/in/out.txt",
    );
    stage.write("in", "1\n");
    let message = stage.fails();
    assert!(
        message.starts_with("cannot create the directory of `in/out.txt`: "),
        "{message}"
    );
    let stage = Stage::new(
        "reader=\"NumberReader\" processor=\"PassNumber\" writer=\"PlainWriter\"",
        "resource=${dir}/in\noutput=${dir}/a/b/out.txt",
    );
    stage.write("in", "1\n");
    stage.completes();
    assert_eq!(stage.read("a/b/out.txt"), "1\n");
}

/// Wherever a directory is in the way, the step fails with the name of the file; when it is gone, a restart ends with the files
/// of an undisturbed run.
#[test]
fn a_directory_in_the_way_loses_nothing() {
    for (properties, directory, expected) in [
        (
            "",
            "out.txt",
            "cannot write `out.txt`: it is a directory; name a file in it",
        ),
        (
            "",
            "out.txt.part",
            "cannot write `out.txt.part`: it is a directory",
        ),
        (
            "max.items.per.file=4",
            "out-0002.txt.part",
            "cannot delete `out-0002.txt.part`: Is a directory",
        ),
        (
            "max.items.per.file=4",
            "out-0001.txt",
            "cannot write `out-0001.txt`: it is a directory",
        ),
        (
            "max.items.per.file=4",
            "out-0003.txt",
            "cannot write `out-0003.txt`: it is a directory",
        ),
    ] {
        let undisturbed = stage("NumberWriter", 10, properties);
        undisturbed.completes();
        let stage = stage("NumberWriter", 10, properties);
        fs::create_dir(stage.path().join(directory)).unwrap();
        let mut ended = stage.start(());
        for _ in 0..2 {
            assert_eq!(ended.status, BatchStatus::Failed, "{directory}");
            assert!(
                ended.message.starts_with(expected),
                "{directory}: {}",
                ended.message
            );
            ended = stage.restart(&ended, ());
        }
        fs::remove_dir(stage.path().join(directory)).unwrap();
        let again = stage.restart(&ended, ());
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(files(&stage), files(&undisturbed), "{directory}");
    }
}

#[item_writer("PlainWriter")]
type PlainWriter = batch_items::LineItemWriter<u64>;

/// Writes once more after the end.
#[derive(BatchArtifact)]
struct LateWriter {
    #[batch_artifact]
    output: FileOutput,
}

#[item_writer("LateWriter")]
impl LateWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<OutputPosition>) -> Result<(), ResourceError> {
        self.output.open(checkpoint)
    }

    #[write_items]
    fn write(&mut self, numbers: &[Number]) -> Result<(), ResourceError> {
        self.output.write(b"in time\n", numbers.len())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<OutputPosition, ResourceError> {
        self.output.checkpoint()
    }

    #[finish]
    fn finish(&mut self) -> Result<(), ResourceError> {
        self.output.finish()?;
        self.output.write(b"late\n", 1)
    }
}

/// What is written to a complete file would be lost.
///
/// Spec: LOSS-01
#[test]
fn a_complete_file_cannot_be_written() {
    let stage = stage("LateWriter", 1, "");
    let message = stage.fails();
    assert!(message.contains("it is not open"), "{message}");
    assert_eq!(stage.read("out.txt"), "in time\n");
}

/// Closes its file, and opens it twice. A file that it appends to is away meanwhile.
#[derive(BatchArtifact)]
struct ReopeningWriter {
    #[batch_artifact]
    output: FileOutput,
    #[batch_property(name = "path")]
    path: String,
}

#[item_writer("ReopeningWriter")]
impl ReopeningWriter {
    #[open]
    fn open(&mut self, checkpoint: Option<OutputPosition>) -> Result<(), BatchError> {
        self.output.open(checkpoint.clone())?;
        self.output.close();
        fs::File::open(format!("{}.part", self.path))?.try_lock()?;
        self.output.open(checkpoint.clone())?;
        let elsewhere = format!("{}.elsewhere", self.path);
        let moved = fs::rename(&self.path, &elsewhere).is_ok();
        self.output.open(checkpoint)?;
        match moved {
            true => Ok(fs::rename(&elsewhere, &self.path)?),
            false => Ok(()),
        }
    }

    #[write_items]
    fn write(&mut self, numbers: &[Number]) -> Result<(), ResourceError> {
        self.output.write(b"number\n", numbers.len())
    }

    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<OutputPosition, ResourceError> {
        self.output.checkpoint()
    }

    #[finish]
    fn finish(&mut self) -> Result<(), ResourceError> {
        self.output.finish()
    }
}

#[test]
fn a_closed_or_reopened_output_leaves_the_file_free() {
    let stage = stage("ReopeningWriter", 1, "path=${dir}/out.txt");
    stage.completes();
    assert_eq!(stage.read("out.txt"), "number\n");
}

/// The output lacks the content of a file that was away when it was opened again.
///
/// Spec: LOSS-01
#[test]
fn a_file_to_append_to_is_not_replaced_if_it_was_away() {
    let stage = stage("ReopeningWriter", 1, "path=${dir}/out.txt\nif.exists=append");
    stage.write("out.txt", "earlier\n");
    let message = stage.fails();
    assert!(
        message.contains("another program changed it while the step appended to it"),
        "{message}"
    );
    assert_eq!(stage.read("out.txt"), "earlier\n");
}
