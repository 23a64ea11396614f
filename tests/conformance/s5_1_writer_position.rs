//! 5.1.1.3: writers whose checkpoint is a position, and the end of their output.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use batch_runtime::prelude::*;
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{assert_contains, calls, restart_with, tree};
use super::faults::{FaultLog, RULES, faulty_job, run};

/// Writes lines to `out.part`, which `finish` renames to `out`. A failed call leaves nothing.
#[derive(BatchArtifact)]
struct FileOut {
    #[batch_artifact]
    log: FaultLog,
    #[batch_property(name = "folder")]
    folder: PathBuf,
    file: Option<File>,
    length: u64,
}

#[item_writer]
impl FileOut {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) -> Result<(), BatchError> {
        self.length = checkpoint.unwrap_or(0);
        self.log.record(format!("open writer at {}", self.length))?;
        let path = self.folder.join("out.part");
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(path)?;
        file.set_len(self.length)?;
        self.file = Some(file);
        Ok(())
    }
    #[write_items]
    fn write(&mut self, items: &[String]) -> Result<(), BatchError> {
        let call = format!("write {}", items.join(" "));
        self.log.record_items(&call, items)?;
        let file = self.file.as_mut().expect("an open file");
        file.seek(SeekFrom::Start(self.length))?;
        let lines: String = items.iter().map(|item| format!("{item}\n")).collect();
        file.write_all(lines.as_bytes())?;
        self.length += lines.len() as u64;
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> Result<u64, BatchError> {
        self.log.record("checkpoint writer")?;
        Ok(self.length)
    }
    #[finish]
    fn finish(&mut self) -> Result<(), BatchError> {
        self.log.record("finish")?;
        fs::rename(self.folder.join("out.part"), self.folder.join("out"))?;
        Ok(())
    }
    #[close]
    fn close(&mut self) {
        self.log.say("close writer");
        self.file = None;
    }
}

fn output(stage: &Stage) -> String {
    let text = fs::read_to_string(stage.path().join("out")).unwrap();
    text.lines().collect::<Vec<_>>().join(" ")
}

/// However the items of an interval are written again, the output holds each committed item once: the writer is reopened
/// at its last checkpoint after each rollback.
///
/// Spec: CHUNK-RETRY-07, CHUNK-RETRY-11, CHUNK-SKIP-11, JSL-CHUNK-16, JSL-CHUNK-17, WRITE-05, D-12, D-13
#[test]
fn a_position_follows_each_rollback() {
    for attributes in [
        "commit-interval=\"4\"",
        "commit-interval=\"4\" chunk-size=\"3\"",
        "commit-interval=\"6\" chunk-size=\"2\" buffer-reads=\"false\"",
    ] {
        for (faults, expected) in [
            ("has n6: Retry x1", "n1 n2 n3 n4 n5 n6 n7 n8"),
            ("has n6: @Retry x1", "n1 n2 n3 n4 n5 n6 n7 n8"),
            ("has n6: Soft x1", "n1 n2 n3 n4 n5 n6 n7 n8"),
            ("has n6: Skip", "n1 n2 n3 n4 n5 n7 n8"),
            ("has n1: Skip; has n8: @Skip", "n2 n3 n4 n5 n6 n7"),
            ("has n3: Retry x3; has n7: Retry x2", "n1 n2 n3 n4 n5 n6 n7 n8"),
        ] {
            let stage = Stage::new(&faulty_job("", "FileOut", attributes, RULES));
            let story = run(&stage, faults, "8", &[]);
            assert_contains(&story, "job job COMPLETED");
            assert_eq!(output(&stage), expected, "{attributes} {faults}");
        }
    }
}

/// A rollback closes the writer and opens it at the last checkpoint; the reader is left alone.
///
/// Spec: D-12, D-80
#[test]
fn a_rollback_reopens_the_writer() {
    let stage = Stage::new(&faulty_job("", "FileOut", "commit-interval=\"2\"", RULES));
    let words = ["open", "write", "close", "finish"];
    assert_snapshot!(run(&stage, "has n4: @Retry x1", "4", &words), @r"
    job job COMPLETED
      step copy COMPLETED read 4 write 4 commit 3 rollback 1
    open reader at 0 · open writer at 0 · write n1 n2 · write n3 n4 !@Retry · close writer
    open writer at 6 · write n3 · write n4 · finish · close writer · close reader
    ");
}

/// A writer is finished once all items are committed. If that fails, the step fails, and the restart does it again; a
/// stop leaves it to the restart.
///
/// Spec: D-96, CHUNK-LOOP-13
#[test]
fn finish_follows_the_last_commit() {
    let stage = Stage::new(&faulty_job("", "FileOut", "", RULES));
    let execution = stage.start("job", [("faults", "finish: Fatal"), ("items", "2")]);
    let first = tree(&stage, execution) + &calls(&stage, &["open", "write", "finish", "close"]);
    let again = restart_with(&stage, execution, [("faults", ""), ("items", "2")]);
    let second = tree(&stage, again) + &calls(&stage, &["open", "write", "finish", "close"]);
    assert_snapshot!(format!("{first}\n--\n{second}"), @r"
    job job FAILED | Fatal | thrown by #[finish] of item writer `FileOut`
      step copy FAILED read 2 write 2 commit 1 | the job's message
    open reader at 0 · open writer at 0 · write n1 n2 · finish !Fatal · close writer · close reader
    --
    job job COMPLETED
      step copy COMPLETED commit 1
    open reader at 2 · open writer at 6 · finish · close writer · close reader
    ");
    assert_eq!(output(&stage), "n1 n2");
}

/// A step that fails earlier does not finish its writer.
///
/// Spec: D-96
#[test]
fn a_failed_step_does_not_finish() {
    let stage = Stage::new(&faulty_job("", "FileOut", "commit-interval=\"1\"", RULES));
    let execution = stage.start("job", [("faults", "read 2: Fatal"), ("items", "2")]);
    assert_eq!(calls(&stage, &["finish"]), "");
    assert!(!stage.path().join("out").exists());
    restart_with(&stage, execution, [("faults", ""), ("items", "2")]);
    assert_eq!(output(&stage), "n1 n2");
}
