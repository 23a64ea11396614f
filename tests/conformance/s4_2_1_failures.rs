//! 4.2.1: chunk steps whose artifacts fail.

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_tests::stage::Stage;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use insta::assert_snapshot;

use super::artifacts::{
    calls, chunk_job, first_step_execution, job, job_execution, restart_with, story, tree, wrapped,
};

/// Returns the result of `start` with this parameter: the tree, and the calls from the failing one on.
fn failing(stage: &Stage, parameter: &str, call: &str) -> String {
    let execution = stage.start("job", [(parameter, call), ("items", "4")]);
    let log = stage.log();
    let from = log.iter().position(|logged| logged == call).unwrap();
    format!("== {call}\n{}{}\n", tree(stage, execution), wrapped(&log[from..]))
}

/// When anything fails in the second interval, its transaction is rolled back, reader and writer are closed, and the
/// first interval stays.
///
/// Spec: CHUNK-LOOP-13, CHUNK-LOOP-14, STATUS-12, STATUS-15, STATUS-25, STATUS-27, STATUS-03, ART-06, READ-05, WRITE-06
#[test]
fn an_error_rolls_back_to_the_last_checkpoint() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let mut text = String::new();
    for call in [
        "read 4",
        "process 4",
        "write n3 n4",
        "checkpoint reader at 4",
        "checkpoint writer at 4",
        "read the end",
    ] {
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
    for call in [
        "open reader at the beginning",
        "open writer at the beginning",
        "read 4",
        "process 4",
        "write n3 n4",
        "checkpoint reader at 4",
        "checkpoint writer at 4",
    ] {
        text += &failing(&stage, "panic", call);
    }
    assert_snapshot!(text);
    let execution = stage.start("job", ());
    assert_eq!(job_execution(&stage, execution).status, BatchStatus::Completed);
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
    assert_eq!(job_execution(&stage, again).status, BatchStatus::Completed);
}

/// An error of `#[close]` is logged; it does not fail the step, keep the other artifact open, or hide the first error.
///
/// Spec: CHUNK-LOOP-14
#[test]
fn an_error_of_close_changes_nothing() {
    let stage = Stage::new(&chunk_job(""));
    for parameter in ["fail", "panic"] {
        let execution = stage.start("job", [(parameter, "close writer;close reader"), ("items", "1")]);
        assert_eq!(
            tree(&stage, execution),
            "job job COMPLETED\n  step copy COMPLETED read 1 write 1 commit 1\n"
        );
        assert_eq!(calls(&stage, &["close"]), "close writer · close reader");
    }
    let execution = stage.start("job", [("fail", "read 1;close writer;close reader")]);
    let message = first_step_execution(&stage, execution).exit_message.clone();
    assert!(message.starts_with("cannot read 1\n"), "{message}");
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    text: String,
}

fn lines(stage: &Stage) -> String {
    let lines: Vec<Line> = diesel::sql_query("SELECT text FROM line ORDER BY rowid")
        .load(&mut stage.connection())
        .unwrap();
    lines
        .into_iter()
        .map(|line| line.text)
        .collect::<Vec<_>>()
        .join(" ")
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
    stage
        .connection()
        .batch_execute("CREATE TABLE line (text TEXT)")
        .unwrap();
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
        if self.breaks && !std::thread::panicking() {
            panic!("item {} broke", self.number);
        }
    }
}

/// The payload of a panic, which panics too when it is dropped.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the payload broke");
        }
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
        (self.last < 4).then(|| {
            self.last += 1;
            Fragile {
                number: self.last,
                breaks: self.breaks == Some(self.last),
            }
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u32 {
        self.last
    }
}

#[derive(BatchArtifact)]
struct Hands {
    #[batch_property(name = "payload")]
    payload: Option<u32>,
}

#[item_processor("Hands")]
impl Hands {
    #[process_item]
    fn process(&mut self, item: &Fragile) -> Option<u32> {
        if self.payload == Some(item.number) {
            std::panic::panic_any(Payload);
        }
        Some(item.number)
    }
}

#[derive(BatchArtifact)]
struct Floor {}

#[item_writer("Floor")]
impl Floor {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, _numbers: &[u32]) {}
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

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
        let ended = job_execution(&stage, failed);
        assert_eq!(ended.status, BatchStatus::Failed, "{parameter}");
        assert!(
            ended.exit_message.contains(cause),
            "{parameter}: {}",
            ended.exit_message
        );
        assert!(
            !ended.exit_message.contains("please report"),
            "{}",
            ended.exit_message
        );
        let step = &first_step_execution(&stage, failed);
        assert_eq!(
            (step.status, step.counters.reads),
            (BatchStatus::Failed, 2),
            "{parameter}"
        );
        let again = restart_with(&stage, failed, [(parameter, "0")]);
        let ended = job_execution(&stage, again);
        assert_eq!(
            ended.status,
            BatchStatus::Completed,
            "{parameter}: {}",
            ended.exit_message
        );
        assert_eq!(first_step_execution(&stage, again).counters.reads, 2);
    }
}
