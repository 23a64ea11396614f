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

/// A page that asks before an action is not shown if the state of the execution does not permit it: the reason is, as of the action itself.
///
/// Spec: CON-15
#[test]
fn what_is_not_possible_is_said_at_once() {
    let scene = Scene::new();
    let job = r#"<job id="once" restartable="false"><step id="one">
        <chunk reader="Numbers" processor="Check" writer="Nowhere"/></step></job>"#;
    fs::write(scene.path().join("jobs/once.xml"), job).unwrap();
    for arguments in [
        ["nightly", "day=1", "count=30"],
        ["nightly", "day=2", "fail.at=3"],
        ["once", "day=1", "fail.at=3"],
    ] {
        scene.run(&[&["launch"], &arguments[..]].concat());
    }
    let served = scene.serve(&[]);
    let gate = scene.path().join("gate").display().to_string();
    let body = format!(r#"{{"parameters": ["day=3", "gate={gate}"]}}"#);
    let json = [("content-type", "application/json")];
    let (status, running) = served.send("POST", "/api/v1/jobs/nightly/launch", &json, &body);
    assert_eq!((status, running.as_str()), (201, "{\"execution\":4}"));
    scene.add_execution_of_spring_batch();
    let all = ["stop", "restart", "abandon", "declare-dead"];
    for (execution, possible, reasons) in [
        (
            1,
            vec!["abandon"],
            ["is not running", "is complete", "", "is not running"],
        ),
        (
            2,
            vec!["restart", "abandon"],
            ["is not running", "", "", "is not running"],
        ),
        (
            3,
            vec!["abandon"],
            ["is not running", "it is not restartable", "", "is not running"],
        ),
        (
            4,
            vec!["stop"],
            [
                "",
                "is running (owner ",
                "is running (owner ",
                "is running (owner ",
            ],
        ),
        (
            70,
            vec!["stop", "declare-dead"],
            ["", "unknown job `springJob`", "recover --declare-dead 70", ""],
        ),
        (99, vec![], ["unknown job execution 99"; 4]),
    ] {
        for (action, reason) in all.into_iter().zip(reasons) {
            let path = format!("/executions/{execution}/do/{action}");
            let (status, page) = served.get(&path);
            let asks = page.contains(&format!("action=\"{path}\""));
            assert_eq!(
                (status == 200, asks),
                (possible.contains(&action), status == 200),
                "{path}: {page}"
            );
            if status != 200 {
                // As the action itself would.
                let api = format!("/api/v1/executions/{execution}/{action}");
                let (found, done) = served.send("POST", &api, &json, "{}");
                assert_eq!(status, found, "{path}: {page}\n{done}");
                assert!(page.contains(reason), "{path}: {page}");
                assert!(done.contains(reason), "{path}: {done}");
            }
        }
    }
    fs::write(gate, "").unwrap();
}
