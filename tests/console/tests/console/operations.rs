//! Operations whose clients do not wait, and those that take long.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::thread;

use diesel::prelude::*;

use crate::program::{Scene, form_token, until};

/// A tab that is closed, or a proxy that gives up, hides nothing from the audit log.
///
/// Spec: CON-12
#[test]
fn an_operation_is_recorded_although_its_client_has_gone() {
    let scene = Scene::new();
    scene.configure("[console]\naudit-file = \"audit.jsonl\"\n");
    let served = scene.serve(&[]);
    let token = form_token(&served.get("/jobs/nightly").1);
    // One waits for its response.
    let launched = served.post(
        "/jobs/nightly/launch",
        "/jobs/nightly",
        &[("action", "launch"), ("p.count", "0")],
    );
    assert_eq!(launched.0, 303);
    let address = served.url.trim_start_matches("http://");
    for day in 1..=20 {
        let body = format!("form={token}&action=launch&p.count=0&more=day%3D{day}");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST /jobs/nightly/launch HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
    }
    // As many launches are recorded as have happened; the last clients may have gone before their requests were read.
    until("every launch is recorded", || {
        let log = fs::read_to_string(scene.path().join("audit.jsonl")).unwrap();
        let recorded = log.matches("\"outcome\":\"execution ").count();
        let (_, launched) = served.get("/api/v1/executions");
        let launched = launched.matches("\"job\":").count();
        (launched > 0 && recorded == launched).then_some(())
    });
}

/// Restarts wait until the process of an execution is certainly dead. Pages are served meanwhile.
///
/// Spec: CON-03, CON-09
#[test]
fn waiting_restarts_hold_no_page_up() {
    const OPERATIONS: usize = 8;
    let scene = Scene::new();
    scene.kill_at_gate("day=1");
    // The process was on another host, so that only time shows whether it renews its lease.
    diesel::sql_query("UPDATE BATCH_JOB_INSTANCE_LEASE SET OWNER = 'elsewhere/1/0/locked', EXPIRES_AT = 1")
        .execute(&mut scene.connect())
        .unwrap();
    let served = scene.serve(&[]);
    let json = [("content-type", "application/json")];
    thread::scope(|scope| {
        let restart = || served.send("POST", "/api/v1/executions/1/restart", &json, "{}");
        let all: Vec<_> = (0..=OPERATIONS).map(|_| scope.spawn(restart)).collect();
        // The one that finds no place is rejected, while the others still wait.
        until("an operation is rejected", || {
            all.iter().any(|one| one.is_finished()).then_some(())
        });
        for path in ["/health", "/", "/executions/1"] {
            assert_eq!(served.get(path).0, 200, "{path}");
        }
        assert_eq!(all.iter().filter(|one| one.is_finished()).count(), 1);
        let answers: Vec<(u16, String)> = all.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(
            answers.iter().filter(|(status, _)| *status == 200).count(),
            1,
            "{answers:?}"
        );
        let (_, busy) = answers.iter().find(|(status, _)| *status == 503).unwrap();
        assert!(
            busy.contains("operations such as restarts are still running"),
            "{busy}"
        );
    });
}
