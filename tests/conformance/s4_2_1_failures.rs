//! 4.2.1: chunk steps whose artifacts fail.

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{
    assert_completed, assert_failed, assert_starts, calls, chunk_job, first_step_execution, job,
    job_execution, restart_with, story, tree, wrapped,
};
use super::faults::{lines, make_table};

/// Returns the result of `start` with this parameter: the tree, and the calls from the failing one on.
fn failing(stage: &Stage, parameter: &str, call: &str) -> String {
    let execution = stage.start("job", [(parameter, call), ("items", "4")]);
    let log = stage.log();
    let from = log.iter().position(|logged| logged == call).unwrap();
    format!("== {call}\n{}{}\n", tree(stage, execution), wrapped(&log[from..]))
}

const SECOND_INTERVAL: &[&str] = &[
    "read 4",
    "process 4",
    "write n3 n4",
    "checkpoint reader at 4",
    "checkpoint writer at 4",
];

/// When anything fails in the second interval, its transaction is rolled back, reader and writer are closed, and the
/// first interval stays.
///
/// Spec: CHUNK-LOOP-13, CHUNK-LOOP-14, STATUS-12, STATUS-15, STATUS-25, STATUS-27, STATUS-03, ART-06, READ-05, WRITE-06
#[test]
fn an_error_rolls_back_to_the_last_checkpoint() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let mut text = String::new();
    for call in SECOND_INTERVAL.iter().chain(&["read the end"]) {
        text += &failing(&stage, "fail", call);
    }
    assert_snapshot!(text);
}

/// A panic is an error of the artifact that panicked: the step fails, the runtime continues.
///
/// Spec: CHUNK-EXC-03, CHUNK-LOOP-13, CHUNK-LOOP-14, STATUS-25
#[test]
fn a_panic_fails_the_step_and_nothing_else() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let mut text = String::new();
    let opens = ["open reader at the beginning", "open writer at the beginning"];
    for call in opens.iter().chain(SECOND_INTERVAL) {
        text += &failing(&stage, "panic", call);
    }
    assert_snapshot!(text);
    assert_completed(&stage, stage.start("job", ()));
}

/// A reader that fails to open is not closed, and the writer is not opened; the restart starts from the beginning.
///
/// Spec: CHUNK-LOOP-01, CHUNK-LOOP-14, STATUS-25, RESTART-07
#[test]
fn a_reader_that_fails_to_open() {
    let stage = Stage::new(&chunk_job(""));
    let execution = stage.start("job", [("fail", "open reader at the beginning"), ("items", "1")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job FAILED | cannot open reader at the beginning | thrown by #[open] of item reader `Numbers`
      step copy FAILED | the job's message
    open reader at the beginning
    ");
    let again = restart_with(&stage, execution, [("fail", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step copy COMPLETED read 1 write 1 commit 1
    open reader at the beginning · open writer at the beginning · read 1 · process 1 · read the end
    write n1 · checkpoint reader at 1 · checkpoint writer at 1 · close writer · close reader
    ");
}

/// If the writer fails to open, the open reader is closed.
///
/// Spec: CHUNK-LOOP-14, STATUS-25
#[test]
fn a_writer_that_fails_to_open() {
    let stage = Stage::new(&chunk_job(""));
    let execution = stage.start("job", [("fail", "open writer at the beginning"), ("items", "1")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job FAILED | cannot open writer at the beginning | thrown by #[open] of item writer `Lines`
      step copy FAILED | the job's message
    open reader at the beginning · open writer at the beginning · close reader
    ");
    let again = restart_with(&stage, execution, [("fail", "")]);
    assert_completed(&stage, again);
}

/// An error of `#[close]` is logged; it does not fail the step, keep the other artifact open, or hide the first error.
///
/// Spec: CHUNK-LOOP-14
#[test]
fn an_error_of_close_changes_nothing() {
    let stage = Stage::new(&chunk_job(""));
    for parameter in ["fail", "panic"] {
        let execution = stage.start("job", [(parameter, "close writer;close reader"), ("items", "1")]);
        let expected = "job job COMPLETED\n  step copy COMPLETED read 1 write 1 commit 1\n";
        assert_eq!(tree(&stage, execution), expected);
        assert_eq!(calls(&stage, &["close"]), "close writer · close reader");
    }
    let execution = stage.start("job", [("fail", "read 1;close writer;close reader")]);
    let message = first_step_execution(&stage, execution).exit_message.clone();
    assert_starts(&message, "cannot read 1\n");
}

/// Rows written through the chunk transaction are committed and rolled back with the checkpoint.
///
/// Spec: CHUNK-LOOP-12, CHUNK-LOOP-13, JSL-CHUNK-26, JSL-CHUNK-27, DOM-24, DOM-25
#[test]
fn the_chunks_transaction_holds_the_writers_work() {
    let stage = Stage::new(&job(
        r#"<step id="copy"><chunk reader="Numbers" processor="Labels" writer="TableLines" commit-interval="4"
            chunk-size="2"/></step>"#,
    ));
    make_table(&stage);
    let mut execution = stage.start("job", [("items", "9"), ("fail", "write n7 n8")]);
    assert_eq!(lines(&stage), "n1 n2 n3 n4");
    execution = restart_with(&stage, execution, [("fail", "checkpoint writer at 8")]);
    assert_eq!(lines(&stage), "n1 n2 n3 n4");
    execution = restart_with(&stage, execution, [("fail", ""), ("panic", "read 9")]);
    assert_eq!(lines(&stage), "n1 n2 n3 n4 n5 n6 n7 n8");
    restart_with(&stage, execution, [("fail", "")]);
    assert_eq!(lines(&stage), "n1 n2 n3 n4 n5 n6 n7 n8 n9");
}

/// An item that panics when it is dropped, if it is the one.
struct Fragile {
    number: u32,
    breaks: bool,
}

impl Drop for Fragile {
    fn drop(&mut self) {
        let holds = !self.breaks || std::thread::panicking();
        assert!(holds, "item {} broke", self.number);
    }
}

/// The payload of a panic, which panics too when it is dropped.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the payload broke");
    }
}

#[derive(BatchArtifact)]
struct Fragiles {
    #[batch_property(name = "breaks")]
    breaks: Option<u32>,
    last: u32,
}

#[item_reader("Fragiles")]
impl Fragiles {
    #[open]
    fn open(&mut self, checkpoint: Option<u32>) {
        self.last = checkpoint.unwrap_or(0);
    }
    #[read_item]
    fn read(&mut self) -> Option<Fragile> {
        self.last += 1;
        let (number, breaks) = (self.last, self.breaks == Some(self.last));
        (number <= 4).then_some(Fragile { number, breaks })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u32 {
        self.last
    }
}

#[item_processor("Hands")]
fn hands(item: &Fragile, #[batch_property] payload: Option<u32>) -> Option<u32> {
    if payload == Some(item.number) {
        std::panic::panic_any(Payload);
    }
    Some(item.number)
}

#[item_writer("Floor")]
fn floor(_numbers: &[u32]) {}

/// A panic in the `Drop` of an item, or of the payload of another panic, fails the step with its cause; the restart resumes.
///
/// Spec: CHUNK-EXC-03, STATUS-25, RESTART-08
#[test]
fn a_panic_while_something_is_dropped_fails_the_step() {
    let stage = Stage::new(&job(
        r#"<step id="copy"><chunk reader="Fragiles" processor="Hands" writer="Floor" commit-interval="2"/></step>"#,
    ));
    for (parameter, cause) in [
        ("breaks", "item 3 broke"),
        ("payload", "a value that is not a string"),
    ] {
        let failed = stage.start("job", [(parameter, "3")]);
        assert_failed(&stage, failed, cause);
        let message = job_execution(&stage, failed).exit_message;
        assert!(!message.contains("please report"), "{message}");
        let step = &first_step_execution(&stage, failed);
        let expected = (BatchStatus::Failed, 2);
        assert_eq!((step.status, step.counters.reads), expected, "{parameter}");
        let again = restart_with(&stage, failed, [(parameter, "0")]);
        assert_completed(&stage, again);
        assert_eq!(first_step_execution(&stage, again).counters.reads, 2);
    }
}
