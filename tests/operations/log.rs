//! The log of a job, with its spans.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;
use std::thread;

use batch_tests::database::Outside;
use batch_tests::operated::Operated;
use batch_tests::{deadline, process, sqlite};
use serde_json::Value;

const JOB: &str = r#"<job id="counts">
  <step id="count" next="wait"><chunk reader="Numbers" processor="Same" writer="Nowhere" commit-interval="4"/></step>
  <step id="wait"><batchlet ref="Patient"/></step>
</job>"#;

/// Log lines name the job and step, in fields of stable names.
#[test]
fn log_lines_name_job_and_step() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("counts.xml"), JOB).unwrap();
    fs::write(folder.path().join("go"), "").unwrap();
    let arguments = ["launch", "counts", "--log", "info", "--log-format", "json"];
    let mut job = Operated::run(env!("CARGO_BIN_EXE_operated"), folder.path(), &arguments);
    let ended: Value = serde_json::from_str(&job.until("step ended")).unwrap();
    let fields: Vec<&Value> = ["status", "exit_status", "read", "written", "commits"]
        .map(|field| &ended[field])
        .to_vec();
    assert_eq!(
        serde_json::json!(fields),
        serde_json::json!(["COMPLETED", "COMPLETED", 10, 10, 3])
    );
    let spans = &ended["spans"];
    assert_eq!(
        *spans,
        serde_json::json!([
            {"name": "job", "job": "counts", "instance": 1, "execution": 1},
            {"name": "step", "step": "count", "step_execution": 1},
        ])
    );
    job.until("waiting");
    job.signal("TERM");
    let ended: Value = serde_json::from_str(&job.until("job ended")).unwrap();
    assert_eq!(ended["status"], "STOPPED");
}

/// Launches a job whose output and log go to `output`, and returns the exit code. The process is ended after a minute.
fn launch_with(folder: &Path, output: [Stdio; 2]) -> Option<i32> {
    let [stdout, stderr] = output;
    let mut command = process::command("hello", folder, &["launch", "hello", "--log", "debug"]);
    command.stdout(stdout).stderr(stderr);
    deadline::of_child(&mut command);
    command.status().unwrap().code()
}

/// A log that nothing takes does not stop a job: its end is recorded.
///
/// Spec: LOSS-15
#[test]
fn a_log_that_cannot_be_written_does_not_stop_a_job() {
    let closed = || {
        let (_, writer) = io::pipe().unwrap();
        (
            None,
            [Stdio::from(writer.try_clone().unwrap()), Stdio::from(writer)],
        )
    };
    let full_disk = || {
        let full = File::options().write(true).open("/dev/full").unwrap();
        (None, [Stdio::from(full.try_clone().unwrap()), Stdio::from(full)])
    };
    let stuck = || {
        let (reader, mut writer) = io::pipe().unwrap();
        let filler = writer.try_clone().unwrap();
        // The pipe is full when this thread waits. It ends with the reader.
        thread::spawn(move || while writer.write(&[b'x'; 512]).is_ok() {});
        (Some(reader), [Stdio::null(), Stdio::from(filler)])
    };
    let ways: [&dyn Fn() -> (Option<io::PipeReader>, [Stdio; 2]); 3] = [&closed, &full_disk, &stuck];
    for way in ways {
        let folder = tempfile::tempdir().unwrap();
        let (reader, output) = way();
        assert_eq!(launch_with(folder.path(), output), Some(0));
        drop(reader);
        let mut repository = Outside::Sqlite(sqlite::open(&folder.path().join("batch.db")));
        let completed = "SELECT COUNT(*) FROM BATCH_JOB_EXECUTION WHERE STATUS = 'COMPLETED'";
        assert_eq!(repository.number(completed), 1);
    }
}
