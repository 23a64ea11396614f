//! Servers that cannot be reached, hang, reject or fail for a while: the job does not notice.

use std::net::TcpListener;

use batch_tests::http::Manner;
use batch_tests::process;

use crate::program::Tracked;

const JOB: &str = r#"<step id="only"><batchlet ref="Task"/></step>"#;

fn warnings(error: &str) -> Vec<&str> {
    let warnings = error
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("WARN "));
    warnings.collect()
}

/// One warning, for any number of events and attempts; and one about lost events.
///
/// Spec: LIN-09
#[test]
fn a_server_that_cannot_be_reached_is_a_warning() {
    let tracked = Tracked::new(JOB);
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://user:secret@127.0.0.1:{port}");
    let error = tracked.launch(0, &[("OPENLINEAGE_URL", &url), ("OPENLINEAGE_API_KEY", "secret")]);
    let [unreachable, lost] = warnings(&error)[..] else {
        panic!("{error}")
    };
    let start = format!("cannot send lineage events to http://127.0.0.1:{port}/api/v1/lineage: ");
    assert!(unreachable.starts_with(&start), "{error}");
    assert!(unreachable.ends_with("; check OPENLINEAGE_URL"), "{error}");
    assert_eq!(lost, "4 lineage events could not be sent, and are lost");
    assert!(!error.contains("secret"), "{error}");
}

/// The process ends although no response comes: neither the job nor its result waits.
///
/// Spec: LIN-08, LIN-09
#[test]
fn a_server_that_hangs_delays_only_the_end() {
    let tracked = Tracked::with(JOB, Manner::Hangs);
    // Longer than any test: the process does not wait for its own requests.
    let error = tracked.launch(0, &[("OPENLINEAGE__TRANSPORT__TIMEOUT", "3600")]);
    assert_eq!(
        warnings(&error),
        ["4 lineage events could not be sent, and are lost"],
        "{error}"
    );
}

/// A request that the server rejects is not repeated.
///
/// Spec: LIN-08, LIN-09
#[test]
fn a_server_that_rejects_is_a_warning() {
    let tracked = Tracked::with(JOB, Manner::Responds(401));
    let error = tracked.launch(0, &[]);
    assert!(
        warnings(&error)[0].contains("it responds 401 Unauthorized"),
        "{error}"
    );
    assert!(tracked.receiver.heads().len() <= 4);
}

/// Spec: LIN-08
#[test]
fn a_server_that_fails_for_a_moment_gets_all_events() {
    let tracked = Tracked::with(JOB, Manner::FailsFirst(2));
    let error = tracked.launch(0, &[]);
    assert_eq!(warnings(&error), [""; 0], "{error}");
    let events = tracked.receiver.events();
    let kinds = events.iter().map(|event| event["eventType"].as_str().unwrap());
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        ["START", "START", "COMPLETE", "COMPLETE"]
    );
    assert_eq!(tracked.receiver.heads().len(), 6);
}

/// The exit code of a failed job is its own.
///
/// Spec: LIN-09
#[test]
fn a_failed_job_fails_as_without_lineage() {
    let job = JOB.replace(
        "/></step>",
        r#"><properties><property name="fail" value="no"/></properties></batchlet></step>"#,
    );
    let tracked = Tracked::with(&job, Manner::Hangs);
    let mut command = tracked.command(&["launch", "job"]);
    command.env("OPENLINEAGE__TRANSPORT__TIMEOUT", "3600");
    process::ended(1, &command.output().unwrap());
}
