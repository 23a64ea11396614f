//! Servers that fail, hang or die: the job does not notice, and each notification arrives in the end.

use std::process::Stdio;

use batch_tests::http::{ACCEPTS, Manner};
use batch_tests::process;

use crate::program::{Notified, TASK};

const ON: &str = r#"on = ["completed"]"#;

/// The exit code and the statuses are the job's.
///
/// Spec: NOTIFY-03, NOTIFY-04
#[test]
fn what_cannot_be_delivered_stays_until_it_is() {
    for (manner, problem) in [
        (Manner::Responds(503), "responds 503"),
        (Manner::Responds(302), "responds 302"),
        (Manner::Dies, "http://127.0.0.1"),
    ] {
        let notified = Notified::new(TASK, ON, manner);
        let (_, error) = notified.run(0, &["launch", "job", "then=complete"]);
        assert!(
            error.contains("could not be delivered; trying again in"),
            "{error}"
        );
        assert!(!error.contains("token"), "{error}");
        let pending = notified.pending();
        assert_eq!(pending.len(), 1, "{pending:?}");
        let last_error = pending[0]["lastError"].as_str().unwrap();
        assert!(
            last_error.contains(problem) && !last_error.contains("token"),
            "{last_error}"
        );
        notified.receiver.set(ACCEPTS);
        notified.run(0, &["notifications", "--send"]);
        assert!(notified.pending().is_empty());
        let delivered = notified.receiver.received();
        let ids: Vec<_> = delivered.iter().map(|one| one.header("webhook-id")).collect();
        // The process may have tried twice before it ended.
        assert!(ids.len() >= 2 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}

/// The next process that runs any job delivers it.
///
/// Spec: NOTIFY-02, NOTIFY-04
#[test]
fn the_next_process_delivers_what_one_has_left() {
    let notified = Notified::new(TASK, ON, Manner::Dies);
    notified.run(0, &["launch", "job", "then=complete"]);
    notified.receiver.set(ACCEPTS);
    let before = notified.receiver.received().len();
    // While a job runs that has nothing to notify of.
    let mut child = notified.command(&["launch", "job", "then=wait"]).spawn().unwrap();
    let delivered = notified.receiver.wait_for(before + 1);
    assert_eq!(delivered[before].execution(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Before it has work.
///
/// Spec: NOTIFY-04
#[test]
fn a_worker_delivers_what_others_have_left() {
    let notified = Notified::new(TASK, ON, Manner::Dies);
    notified.run(0, &["launch", "job", "then=complete"]);
    notified.receiver.set(ACCEPTS);
    let before = notified.receiver.received().len();
    let mut worker = notified.command(&["worker"]);
    // If the test fails, it must not keep the output of the test open.
    let mut worker = worker
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let delivered = notified.receiver.wait_for(before + 1);
    assert_eq!(delivered[before].execution(), 1);
    process::signal(&worker, "TERM");
    worker.wait().unwrap();
    assert!(notified.pending().is_empty());
}

/// The end of the process waits for the response, but not as long as the request does.
///
/// Spec: NOTIFY-04
#[test]
fn a_server_that_hangs_delays_only_the_end() {
    let notified = Notified::new(TASK, ON, Manner::Hangs);
    let (_, error) = notified.run(0, &["launch", "job", "then=complete"]);
    // It waits once.
    let waits = error
        .matches("the next process that runs jobs delivers them")
        .count();
    assert_eq!(waits, 1, "{error}");
    let pending = notified.pending();
    assert_eq!((pending.len(), &pending[0]["attempts"]), (1, &1.into()));
    notified.receiver.set(ACCEPTS);
    notified.run(0, &["notifications", "--send"]);
    assert!(notified.pending().is_empty());
}

/// Spec: NOTIFY-03
#[test]
fn a_target_that_hangs_does_not_delay_another() {
    let notified = Notified::new(TASK, ON, Manner::Hangs);
    let other = crate::receiver::Receiver::new(ACCEPTS);
    let settings = std::fs::read_to_string(notified.path().join("batch.toml")).unwrap();
    let other_target = format!("[notify.other]\nwebhook = \"{}\"\n{ON}\n", other.url());
    notified.write("batch.toml", &format!("{settings}{other_target}"));
    notified.run(0, &["launch", "job", "then=complete"]);
    assert_eq!(other.received().len(), 1);
    let pending = notified.pending();
    assert_eq!((pending.len(), &pending[0]["target"]), (1, &"ops".into()));
}
