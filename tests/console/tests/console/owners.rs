//! The processes that have run executions and partitions, after their end.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::{Scene, Served, until};

const SPREAD: &str = r#"<job id="spread"><step id="load">
    <chunk reader="Numbers" processor="Check" writer="Nowhere" commit-interval="10"/>
    <partition instances="2"/></step></job>"#;

fn execution(served: &Served, id: u32) -> Value {
    let (status, text) = served.get(&format!("/api/v1/executions/{id}"));
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the names of the steps and partitions that have an owner, with its number.
fn owners(execution: &Value) -> Vec<(String, String)> {
    let steps = execution["steps"].as_array().unwrap().iter();
    steps
        .filter_map(|step| Some((step["step"].as_str()?.to_owned(), number(step["owner"].as_str()?))))
        .collect()
}

/// Returns the number of a process, from its name as a lease holder.
fn number(owner: &str) -> String {
    owner.split('/').nth(1).unwrap().to_owned()
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Partitions have run in the process of their execution, which is known until another execution of the instance follows; a process
/// that has died is known for ever.
///
/// Spec: CON-14
#[test]
fn the_process_of_an_execution_is_known_after_its_end() {
    let scene = Scene::new();
    fs::write(scene.path().join("jobs/spread.xml"), SPREAD).unwrap();
    let served = scene.serve(&[]);
    let launched = spawn(scene.command(&["launch", "spread", "day=1", "fail.at=25"]));
    let process = launched.id().to_string();
    launched.wait_with_output().unwrap();
    let first = execution(&served, 1);
    assert_eq!(first["status"], "FAILED");
    assert_eq!(
        (&first["owner"], number(first["lastOwner"].as_str().unwrap())),
        (&Value::Null, process.clone())
    );
    let host = first["lastOwner"].as_str().unwrap().split('/').next().unwrap();
    let both = |process: &str| ["load:1", "load:2"].map(|name| (name.to_owned(), process.to_owned()));
    assert_eq!(owners(&first), both(&process));
    for page in ["/executions/1", "/executions/1/steps/1"] {
        let (_, page) = served.get(page);
        assert_eq!(
            page.matches(&format!("<span class=\"faint\">on {host}")).count(),
            2,
            "{page}"
        );
    }
    let (_, page) = served.get("/executions/1");
    assert!(
        page.contains(&format!("<dt>Process</dt><dd>{host}, process {process}</dd>")),
        "{page}"
    );
    // The instance's lease now belongs to the next execution.
    scene.run(&["restart", "1", "fail.at=0"]);
    assert_eq!(
        (
            execution(&served, 1)["lastOwner"].clone(),
            execution(&served, 2)["status"].clone()
        ),
        (Value::Null, "COMPLETED".into())
    );
    assert_eq!(owners(&execution(&served, 1)), []);
    scene.kill_at_gate("day=2");
    scene.run(&["restart", "3", "gate.at=99"]);
    let (_, page) = served.get("/executions/3");
    assert!(
        page.contains("CRASHED") && page.contains("<dt>Process</dt>"),
        "{page}"
    );
}

/// The workers that have run partitions are known after the end of both.
///
/// Spec: CON-14
#[test]
fn the_worker_of_a_partition_is_known_after_its_end() {
    let scene = Scene::new();
    fs::write(scene.path().join("jobs/spread.xml"), SPREAD).unwrap();
    scene.configure("dispatch = \"repository\"\n");
    let served = scene.serve(&[]);
    let mut worker = spawn(scene.command(&["worker", "--slots", "2"]));
    scene.run(&["launch", "spread", "day=1"]);
    until("the job has completed", || {
        (execution(&served, 1)["status"] == "COMPLETED").then_some(())
    });
    let process = worker.id().to_string();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let both = ["load:1", "load:2"].map(|name| (name.to_owned(), process.clone()));
    let ended = execution(&served, 1);
    assert_eq!(owners(&ended), both);
    assert_ne!(
        number(ended["lastOwner"].as_str().unwrap()),
        process,
        "that of the coordinator"
    );
    let (_, page) = served.get("/executions/1/steps/1");
    assert_eq!(
        page.matches(&format!("process {process}</span>")).count(),
        2,
        "{page}"
    );
    // A dead worker runs none of them any more.
    let (_, workers) = served.get("/api/v1/workers");
    assert!(workers.contains("\"partitions\":0"), "{workers}");
}
