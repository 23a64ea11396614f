//! The log of a job, with its spans.
#![cfg(unix)]

use std::fs;

use batch_tests::operated::Operated;
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
