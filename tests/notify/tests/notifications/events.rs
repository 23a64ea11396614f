//! What is notified of, and how it looks.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use batch_tests::http::ACCEPTS;
use batch_tests::process;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::program::{Notified, TASK};
use crate::receiver::Delivered;

const ALL: &str = r#"on = ["completed", "stopped", "failed", "taken-over", "overdue", "heartbeat-missed"]"#;

fn kinds(delivered: &[Delivered]) -> Vec<String> {
    delivered.iter().map(Delivered::kind).collect()
}

/// Spec: NOTIFY-01, NOTIFY-05
#[test]
fn an_end_is_a_cloud_event() {
    let notified = Notified::new(TASK, ALL, ACCEPTS);
    notified.run(1, &["launch", "job", "then=no disk", "month=2026-11"]);
    notified.run(0, &["launch", "job", "then=complete"]);
    let delivered = notified.receiver.received();
    assert_eq!(kinds(&delivered), ["failed", "completed"]);
    let failed = &delivered[0];
    assert_eq!(failed.target(), "/hooks/token");
    assert_eq!(failed.header("content-type"), "application/cloudevents+json");
    let mut event = failed.event();
    for field in ["created", "started", "ended"] {
        let time = event["data"].as_object_mut().unwrap().remove(field).unwrap();
        assert!(time.as_str().unwrap().ends_with('Z'), "{field}: {time}");
    }
    let (id, time) = (event["id"].take(), event["time"].take());
    assert_eq!(id.as_str().unwrap(), failed.header("webhook-id"));
    assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
    let message = event["data"]["exitMessage"].take();
    assert!(message.as_str().unwrap().contains("no disk"), "{message}");
    let expected = json!({
        "specversion": "1.0",
        "id": null,
        "source": "/batch/jobs/job",
        "type": "batch.failed",
        "subject": "1",
        "time": null,
        "datacontenttype": "application/json",
        "data": {
            "job": "job",
            "instance": 1,
            "execution": 1,
            "name": "job:1:1",
            "status": "FAILED",
            "exitStatus": "FAILED",
            "exitMessage": null,
            "parameters": { "then": "no disk", "month": "2026-11" },
        },
    });
    assert_eq!(event, expected);
    assert!(notified.pending().is_empty());
}

/// Spec: NOTIFY-05
#[test]
fn a_request_is_signed() {
    const KEY: &[u8] = b"a key of 24 bytes, as is";
    let notified = Notified::new(TASK, "on = [\"completed\"]\nkey = \"env:OPS_KEY\"", ACCEPTS);
    let key = format!("whsec_{}", STANDARD.encode(KEY));
    let mut launch = notified.command(&["launch", "job", "then=complete"]);
    assert!(launch.env("OPS_KEY", key).output().unwrap().status.success());
    let delivered = notified.receiver.received();
    let request = &delivered[0];
    let (id, time) = (request.header("webhook-id"), request.header("webhook-timestamp"));
    let signed = format!("{id}.{time}.{}", request.body());
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).unwrap();
    mac.update(signed.as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(request.header("webhook-signature"), expected);
}

/// A secret parameter is shown as its reference.
///
/// Spec: NOTIFY-06
#[test]
fn secrets_are_not_sent() {
    let notified = Notified::new(TASK, ALL, ACCEPTS);
    let mut launch = notified.command(&["launch", "job", "then(secret)=env:SECRET"]);
    let output = launch.env("SECRET", "hunter2 is wrong").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", process::text(&output.stderr));
    let delivered = notified.receiver.received();
    assert_eq!(
        delivered[0].event()["data"]["parameters"]["then"],
        "secret:env:SECRET"
    );
    assert!(
        !delivered[0].body().contains("hunter2"),
        "{}",
        delivered[0].body()
    );
}

/// Spec: NOTIFY-01, NOTIFY-03
#[test]
fn skips_are_counted_for_each_step() {
    let job = r#"<job id="job"><step id="load">
    <properties><property name="refused" value="1,3,5"/></properties>
    <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="2">
      <skippable-exception-classes><include class="Refused"/></skippable-exception-classes>
    </chunk></step></job>"#;
    let skips = |most: u64| {
        let notified = Notified::new(job, &format!("skipped-more-than = {most}"), ACCEPTS);
        notified.run(0, &["launch", "job"]);
        let delivered = notified.receiver.received();
        delivered
            .iter()
            .map(|one| one.event()["data"].clone())
            .collect::<Vec<Value>>()
    };
    // Of five numbers three are refused, one in each chunk.
    let found = skips(1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["step"], &found[0]["skipped"]),
        (&json!("load"), &json!(2))
    );
    assert!(skips(3).is_empty());
}

/// The process that runs the next execution notifies of the takeover, and not of a failure.
///
/// Spec: NOTIFY-01, NOTIFY-02
#[test]
fn a_takeover_names_the_dead_execution() {
    let notified = Notified::new(TASK, ALL, ACCEPTS);
    // The same identity, other work.
    let mut child = process::spawn_until(notified.command(&["launch", "job", "-then=wait"]), "waiting");
    child.kill().unwrap();
    child.wait().unwrap();
    notified.run(0, &["launch", "job", "-then=complete"]);
    let delivered = notified.receiver.received();
    assert_eq!(kinds(&delivered), ["taken-over", "completed"]);
    let data = &delivered[0].event()["data"];
    assert_eq!(
        (&data["deadExecution"], &data["execution"]),
        (&json!(1), &json!(2))
    );
}

/// The command stores the notification without the key of the target; another process delivers it.
///
/// Spec: NOTIFY-02, NOTIFY-08
#[test]
fn an_operator_that_closes_a_dead_execution_stores_its_notification() {
    for (command, expected) in [
        (&["recover", "--declare-dead", "1"][..], "failed"),
        (&["stop", "1"], "stopped"),
    ] {
        let key = ("OPS_KEY", "a key that is long enough");
        let notified = Notified::new(TASK, &format!("{ALL}\nkey = \"env:OPS_KEY\""), ACCEPTS);
        let mut launch = notified.command(&["launch", "job", "then=wait"]);
        launch.env(key.0, key.1);
        let mut child = process::spawn_until(launch, "waiting");
        child.kill().unwrap();
        child.wait().unwrap();
        notified.run(0, command);
        let pending = notified.pending();
        assert_eq!((pending.len(), &pending[0]["event"]), (1, &json!(expected)));
        let mut send = notified.command(&["notifications", "--send"]);
        assert!(send.env(key.0, key.1).output().unwrap().status.success());
        assert_eq!(kinds(&notified.receiver.received()), [expected]);
    }
}

/// No other execution continues it: it failed.
///
/// Spec: NOTIFY-01, NOTIFY-02
#[test]
fn a_dead_execution_that_nothing_continues_has_failed() {
    let notified = Notified::new(TASK, ALL, ACCEPTS);
    for _ in 0..4 {
        let launch = notified.command(&["launch", "job", "then=wait"]);
        let mut child = process::spawn_until(launch, "waiting");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    notified.run(2, &["launch", "job", "then=wait"]);
    notified.run(0, &["notifications", "--send"]);
    // Notifications of a killed process may arrive twice.
    let delivered = notified.receiver.received().into_iter();
    let by_id: BTreeMap<_, _> = delivered
        .map(|one| (one.header("webhook-id").to_owned(), one.kind()))
        .collect();
    let mut found: Vec<_> = by_id.into_values().collect();
    found.sort();
    assert_eq!(found, ["failed", "taken-over", "taken-over", "taken-over"]);
}

/// Spec: NOTIFY-01
#[test]
fn a_missed_heartbeat_names_the_step() {
    let job = TASK.replace(
        "<batchlet",
        r#"<properties><property name="batch.step.heartbeat" value="1"/></properties><batchlet"#,
    );
    let notified = Notified::new(&job, ALL, ACCEPTS);
    notified.run(1, &["launch", "job", "then=wait"]);
    let delivered = notified.receiver.received();
    let mut found = kinds(&delivered);
    found.sort();
    assert_eq!(found, ["failed", "heartbeat-missed"]);
    let missed = delivered
        .iter()
        .find(|one| one.kind() == "heartbeat-missed")
        .unwrap();
    assert_eq!(missed.event()["data"]["step"], "only");
}

/// The job is notified of while it runs, and not again when it is complete.
///
/// Spec: NOTIFY-07
#[test]
fn a_job_past_its_deadline_is_overdue() {
    let job = |deadline: &str| {
        let property =
            format!(r#"<properties><property name="batch.job.deadline" value="{deadline}"/></properties>"#);
        TASK.replacen("<step", &format!("{property}<step"), 1)
    };
    let notified = Notified::new(&job("2020-01-01"), ALL, ACCEPTS);
    let (_, error) = notified.run(0, &["launch", "job", "then=complete"]);
    assert!(error.contains("is in the past"), "{error}");
    let mut found = kinds(&notified.receiver.received());
    found.sort();
    // If it was sent after the end, the job was complete too late all the same.
    assert_eq!(found, ["completed", "overdue"]);
    let overdue = notified.receiver.received();
    let overdue = overdue
        .iter()
        .find(|one| one.kind() == "overdue")
        .unwrap()
        .event();
    assert_eq!(overdue["time"], "2020-01-01T00:00:00.000Z");

    let notified = Notified::new(&job("1"), ALL, ACCEPTS);
    let mut child = notified.command(&["launch", "job", "then=wait"]).spawn().unwrap();
    let delivered = notified.receiver.wait_for(1);
    assert_eq!(kinds(&delivered), ["overdue"]);
    process::signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert_eq!(kinds(&notified.receiver.received()), ["overdue", "stopped"]);
}

/// Until its deadline it waits in the repository, also when its process has died, and it goes with the end of the job.
///
/// Spec: NOTIFY-07
#[test]
fn a_job_that_is_complete_in_time_is_not_overdue() {
    let property = r#"<properties><property name="batch.job.deadline" value="86400"/></properties>"#;
    let job = TASK.replacen("<step", &format!("{property}<step"), 1);
    let notified = Notified::new(&job, r#"on = ["overdue"]"#, ACCEPTS);
    for (code, then, execution) in [(1, "no", 1), (1, "no", 2)] {
        notified.run(code, &["launch", "job", &format!("-then={then}")]);
        let pending = notified.pending();
        assert_eq!(pending.len(), 1, "{pending:?}");
        assert_eq!(
            (&pending[0]["event"], &pending[0]["execution"]),
            (&json!("overdue"), &json!(execution))
        );
    }
    notified.run(0, &["launch", "job", "-then=complete"]);
    assert!(notified.pending().is_empty());
    assert!(notified.receiver.received().is_empty());
}

/// Spec: NOTIFY-01
#[test]
fn a_target_chooses_jobs_by_patterns() {
    let notified = Notified::new(
        TASK,
        "on = [\"completed\"]\njobs = [\"nightly-*\", \"pay?oll\"]",
        ACCEPTS,
    );
    for id in ["nightly-", "nightly-load", "payroll", "daily", "payoll"] {
        notified.write(
            &format!("{id}.xml"),
            &TASK.replacen("\"job\"", &format!("\"{id}\""), 1),
        );
        notified.run(0, &["launch", id, "then=complete"]);
    }
    let jobs = notified.receiver.received();
    let jobs: Vec<_> = jobs
        .iter()
        .map(|one| one.event()["data"]["job"].clone())
        .collect();
    assert_eq!(jobs, ["nightly-", "nightly-load", "payroll"]);
}
