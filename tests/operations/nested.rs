//! Jobs that run other jobs, as operators see them.
#![cfg(unix)]

use std::fs;
use std::path::Path;

use batch_tests::operated::Operated;
use serde_json::Value;

use crate::operating::{PROGRAM, ends, folder, leave_dead};

/// Writes a job that runs another one.
fn write_runner(folder: &Path, id: &str, runs: &str) {
    let job = format!(
        r#"<job id="{id}"><step id="run"><batchlet ref="runJob"><properties>
          <property name="job" value="{runs}"/></properties></batchlet></step></job>"#
    );
    fs::write(folder.join(format!("{id}.xml")), job).unwrap();
}

/// `show`, reports and drawings name the job that a step has run.
///
/// Spec: NEST-04
#[test]
fn a_nested_job_is_named() {
    let folder = folder();
    write_runner(folder.path(), "outer", "works");
    ends(0, folder.path(), &["launch", "outer"]);
    let (shown, _) = ends(0, folder.path(), &["show", "1"]);
    assert!(shown.contains("step run ran job works: execution 2"), "{shown}");
    let (json, _) = ends(0, folder.path(), &["show", "1", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["steps"][0]["nestedJob"]["execution"], 2, "{json}");
    let (inner, _) = ends(0, folder.path(), &["show", "2"]);
    assert!(
        inner.contains("parent.instance(long)=1") && inner.contains("parent.step=run"),
        "{inner}"
    );
    ends(0, folder.path(), &["show", "1", "--report", "report.md"]);
    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert!(
        report.contains("| Nested job | works, execution 2, by step run |"),
        "{report}"
    );
    let (drawing, _) = ends(0, folder.path(), &["graph", "outer", "--format", "dot"]);
    assert!(drawing.contains("runJob works"), "{drawing}");
}

/// Of a dead nested execution `show` names the outermost job, whose restart resumes it.
///
/// Spec: NEST-04
#[test]
fn a_dead_nested_execution_is_resumed_by_its_outer_job() {
    let folder = folder();
    for (id, runs) in [("top", "outer"), ("outer", "waits")] {
        write_runner(folder.path(), id, runs);
    }
    let advice = |id: &str| {
        let (shown, _) = ends(0, folder.path(), &["show", id]);
        let (_, advice) = shown.split_once("STARTED, but its process is dead: ").unwrap();
        advice.lines().next().unwrap().to_owned()
    };
    leave_dead(folder.path(), "top");
    let by_outer = "to resume it, launch its outer job `top` again, or run `restart 1`";
    assert_eq!(advice("3"), by_outer);
    assert_eq!(advice("2"), by_outer);
    let by_itself = "`launch` or `restart` resumes it";
    assert_eq!(advice("1"), by_itself);
    // The parameters name an instance that is complete, and one that does not exist.
    ends(0, folder.path(), &["launch", "works"]);
    for (outer, id) in [("4", "5"), ("99", "6")] {
        let outer = format!("parent.instance(long)={outer}");
        let launch = ["launch", "waits", &outer, "parent.step=one"];
        let mut process = Operated::run(PROGRAM, folder.path(), &launch);
        process.until("waiting");
        process.signal("KILL");
        process.ends();
        assert_eq!(advice(id), by_itself);
    }
}

/// A cycle of jobs is reported once; no job of it can be started.
///
/// Spec: NEST-05
#[test]
fn a_cycle_of_jobs_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    for (id, runs) in [("first", "second"), ("second", "first")] {
        write_runner(folder.path(), id, runs);
    }
    let (out, err) = ends(2, folder.path(), &["check"]);
    assert_eq!(out, "first: failed\nsecond: failed, as reported before\n");
    let chain = "job `first` would run itself: first runs second runs first";
    assert_eq!(
        (err.matches(chain).count(), err.matches("ART0025").count()),
        (1, 1),
        "{err}"
    );
    let (_, err) = ends(2, folder.path(), &["launch", "second"]);
    assert!(err.contains(chain), "{err}");
}
