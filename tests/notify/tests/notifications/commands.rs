//! Targets that are commands, and the command `notifications`.

use std::fs;

use batch_tests::http::{ACCEPTS, Manner};
use batch_tests::process;
use serde_json::Value;

use crate::program::{Notified, TASK};

/// Returns a folder whose only target is a shell script.
fn with_script(script: &str) -> Notified {
    let notified = Notified::new(TASK, "", ACCEPTS);
    notified.write(
        "batch.toml",
        &format!("[notify.script]\ncommand = [\"sh\", \"-c\", '''{script}''']\non = [\"failed\"]\n"),
    );
    notified
}

/// Spec: NOTIFY-05
#[test]
fn a_command_gets_the_event() {
    let notified = with_script(
        r#"cat > event.json; echo "$NOTIFICATION_EVENT $NOTIFICATION_JOB $NOTIFICATION_EXECUTION $NOTIFICATION_STATUS" > variables"#,
    );
    notified.run(1, &["launch", "job", "then=no"]);
    let read = |file: &str| fs::read_to_string(notified.path().join(file)).unwrap();
    assert_eq!(read("variables"), "failed job 1 FAILED\n");
    let event: Value = serde_json::from_str(&read("event.json")).unwrap();
    assert_eq!(
        (&event["type"], &event["data"]["execution"]),
        (&"batch.failed".into(), &1.into())
    );
    assert!(notified.pending().is_empty());
}

/// Spec: NOTIFY-04
#[test]
fn a_command_that_fails_is_repeated() {
    let notified = with_script("test -e fixed");
    notified.run(1, &["launch", "job", "then=no"]);
    let pending = notified.pending();
    assert_eq!(pending[0]["lastError"], "`sh` failed: exit status: 1");
    notified.write("fixed", "");
    notified.run(0, &["notifications", "--send"]);
    assert!(notified.pending().is_empty());
}

/// Spec: NOTIFY-08
#[test]
fn a_target_can_be_tested() {
    let notified = Notified::new(TASK, r#"on = ["failed"]"#, ACCEPTS);
    let (out, _) = notified.run(0, &["notifications", "--test"]);
    assert_eq!(out, "ops: delivered\n");
    assert_eq!(notified.receiver.received()[0].kind(), "test");
    notified.receiver.set(Manner::Responds(401));
    let (_, error) = notified.run(1, &["notifications", "--test", "ops"]);
    assert!(
        error.contains("cannot notify `ops`: http://127.0.0.1") && error.contains("responds 401"),
        "{error}"
    );
    let (_, error) = notified.run(2, &["notifications", "--test", "opps"]);
    assert!(
        error.contains("unknown notification target `opps`; did you mean `ops`?"),
        "{error}"
    );
    // A new installation names a repository that does not exist yet.
    notified.receiver.set(Manner::Responds(200));
    let named = ["--repository", "sqlite://new.db", "notifications", "--test"];
    assert_eq!(notified.run(0, &named).0, "ops: delivered\n");
    for repository in ["batch.db", "new.db"] {
        assert!(
            !notified.path().join(repository).exists(),
            "no repository is created"
        );
    }
}

/// Spec: NOTIFY-08
#[test]
fn what_waits_is_listed() {
    let notified = with_script("false");
    notified.run(1, &["launch", "job", "then=no"]);
    let (out, _) = notified.run(0, &["notifications"]);
    let lines: Vec<&str> = out.lines().collect();
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(words[..4], ["script", "failed", "job", "1"], "{out}");
    // It is listed too by a process without the target.
    notified.write("batch.toml", "");
    assert_eq!(notified.pending().len(), 1);
    let (_, error) = notified.run(0, &["notifications", "--send"]);
    assert!(
        error.contains("note: this program has no target `script`"),
        "{error}"
    );
    let output = notified.command(&["notifications", "--test"]).output().unwrap();
    let (_, error) = process::ended(2, &output);
    assert!(
        error.contains("there is no notification target; add one to `[notify]` in batch.toml"),
        "{error}"
    );
}
