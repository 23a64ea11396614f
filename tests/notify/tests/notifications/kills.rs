//! Processes that are killed at random times.

use std::collections::BTreeSet;
use std::env;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use batch_tests::http::{ACCEPTS, Manner};
use batch_tests::random::Random;
use serde_json::Value;

use crate::program::{Notified, TASK};
use crate::receiver::Delivered;

/// Of each end that the repository records, a notification arrives, whenever its process is killed, and although the server fails now and
/// then.
///
/// Spec: NOTIFY-02, NOTIFY-04
#[test]
fn no_end_is_lost() {
    let rounds = match env::var_os("BATCH_TEST_SLOW") {
        Some(_) => 500,
        None => 40,
    };
    let mut random = Random::new("notifications");
    let notified = Notified::new(TASK, r#"on = ["completed", "failed", "taken-over"]"#, ACCEPTS);
    for round in 0..rounds {
        let manner = match random.below(3) {
            0 => Manner::Responds(500),
            1 => Manner::Dies,
            _ => ACCEPTS,
        };
        notified.receiver.set(manner);
        let then = if random.below(2) == 0 { "complete" } else { "no" };
        let mut child = notified
            .command(&[
                "launch",
                "job",
                &format!("round={}", round / 2),
                &format!("-then={then}"),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(random.below(150)));
        let _ = child.kill();
        child.wait().unwrap();
    }
    notified.receiver.set(ACCEPTS);
    notified.run(0, &["launch", "job", "round=last", "-then=complete"]);
    notified.run(0, &["notifications", "--send"]);
    assert!(notified.pending().is_empty());
    let (out, _) = notified.run(0, &["executions", "--limit", "10000", "--json"]);
    let all: Value = serde_json::from_str(&out).unwrap();
    let recorded = all.as_array().unwrap().iter().filter_map(recorded_end);
    let recorded: BTreeSet<(i64, String)> = recorded.collect();
    let delivered: BTreeSet<(i64, String)> = notified.receiver.received().iter().map(of_execution).collect();
    let lost: Vec<_> = recorded.difference(&delivered).collect();
    assert!(lost.is_empty(), "{lost:?} of {recorded:?}");
    assert!(!recorded.is_empty());
}

/// Returns an execution and what has to be notified of it.
fn recorded_end(execution: &Value) -> Option<(i64, String)> {
    let kind = match (execution["status"].as_str()?, execution["exitStatus"].as_str()?) {
        ("COMPLETED", _) => "completed",
        ("FAILED", "CRASHED") => "taken-over",
        ("FAILED", _) => "failed",
        _ => return None,
    };
    Some((execution["execution"].as_i64()?, kind.to_owned()))
}

/// Returns the execution that a notification is about, and its kind.
fn of_execution(delivered: &Delivered) -> (i64, String) {
    let dead = delivered.event()["data"]["deadExecution"].as_i64();
    (dead.unwrap_or_else(|| delivered.execution()), delivered.kind())
}
