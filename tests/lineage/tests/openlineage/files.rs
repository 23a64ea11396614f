//! The datasets of batchlets for files, and of rejects.

use std::fs;

use insta::assert_snapshot;

use crate::program::{CREATE, Tracked};
use crate::shown::lines;

fn step(id: &str, next: &str, batchlet: &str, properties: &[(&str, &str)]) -> String {
    let properties: String = properties
        .iter()
        .map(|(name, value)| format!(r#"<property name="{name}" value="{value}"/>"#))
        .collect();
    format!(
        r#"<step id="{id}"{next}><batchlet ref="{batchlet}"><properties>{properties}</properties></batchlet></step>"#
    )
}

/// Returns the datasets of each step, in the event that ends it.
fn used(tracked: &Tracked) -> String {
    let mut events = tracked.receiver.events();
    events.retain(|event| event["eventType"] == "COMPLETE" && event["job"]["name"] != "job");
    events
        .iter_mut()
        .for_each(|event| event["run"]["facets"]["parent"] = serde_json::Value::Null);
    lines(&events, &tracked.path())
}

/// Spec: LIN-02
#[test]
fn batchlets_for_files_name_them() {
    let steps = [
        step(
            "copy",
            r#" next="compress""#,
            "copyFiles",
            &[("resource", "in/*.csv"), ("target", "copied/")],
        ),
        step(
            "compress",
            r#" next="sums""#,
            "compressFiles",
            &[("resource", "copied/a.csv")],
        ),
        step(
            "sums",
            r#" next="verify""#,
            "checksumFiles",
            &[("resource", "copied/*.csv"), ("target", "SUMS")],
        ),
        step(
            "verify",
            r#" next="each""#,
            "checksumFiles",
            &[("mode", "verify"), ("resource", "SUMS")],
        ),
        step(
            "each",
            r#" next="move""#,
            "checksumFiles",
            &[("resource", "copied/b.csv")],
        ),
        step(
            "move",
            r#" next="delete""#,
            "moveFiles",
            &[("resource", "copied/a.csv"), ("target", "moved.csv")],
        ),
        step("delete", "", "deleteFiles", &[("resource", "moved.csv")]),
    ];
    let tracked = Tracked::new(&steps.concat());
    fs::create_dir(tracked.path().join("in")).unwrap();
    let tracked = tracked
        .with_payments("in/a.csv", 1..=2)
        .with_payments("in/b.csv", 3..=4);
    tracked.launch(0, &[]);
    assert_snapshot!(used(&tracked), @r#"
    COMPLETE #1 job.copy
      <- file /in/a.csv
      <- file /in/b.csv
      -> file /copied/a.csv
      -> file /copied/b.csv
    COMPLETE #2 job.compress
      <- file /copied/a.csv
      -> file /copied/a.csv.gz
    COMPLETE #3 job.sums
      <- file /copied/a.csv
      <- file /copied/b.csv
      -> file /SUMS
    COMPLETE #4 job.verify
      <- file /SUMS
      <- file /copied/a.csv
      <- file /copied/b.csv
    COMPLETE #5 job.each
      <- file /copied/b.csv
      -> file /copied/b.csv.sha256
    COMPLETE #6 job.move
      <- file /copied/a.csv
      -> file /moved.csv
    COMPLETE #7 job.delete
    "#);
}

/// Of more than 100 files their folders are named.
///
/// Spec: LIN-02
#[test]
fn of_many_files_the_folders_are_named() {
    let copy = [("resource", "in/*.txt"), ("target", "out")];
    let steps = [
        step("copy", r#" next="beside""#, "copyFiles", &copy),
        step("beside", "", "compressFiles", &copy[..1]),
    ];
    let tracked = Tracked::new(&steps.concat());
    fs::create_dir(tracked.path().join("in")).unwrap();
    for number in 0..101 {
        fs::write(tracked.path().join(format!("in/{number}.txt")), "").unwrap();
    }
    tracked.launch(0, &[]);
    assert_snapshot!(used(&tracked), @r#"
    COMPLETE #1 job.copy
      <- file /in
      -> file /out
    COMPLETE #2 job.beside
      <- file /in
      -> file /in
    "#);
}

/// The files of rejects are outputs, and the rows that the step writes are not theirs.
///
/// Spec: LIN-02, LIN-06
#[test]
fn rejects_are_named() {
    let load = r#"<step id="load">
      <listeners><listener ref="recordRejects"><properties>
        <property name="rejects.output" value="rejects.jsonl"/><property name="rejects.raw" value="rejected.csv"/>
      </properties></listener></listeners>
      <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordTableWriter" commit-interval="2" skip-limit="9"><properties>
        <property name="resource" value="in.csv"/><property name="types" value="id=int"/><property name="table" value="payment"/>
      </properties>
      <skippable-exception-classes><include class="RecordError"/></skippable-exception-classes></chunk>
    </step>"#;
    let tracked = Tracked::new(&format!("{CREATE}{load}"));
    fs::write(tracked.path().join("in.csv"), "id,amount\n1,1\n2\n3,3\n").unwrap();
    tracked.launch(0, &[]);
    assert_snapshot!(used(&tracked), @r#"
    COMPLETE #1 job.create
    COMPLETE #2 job.load
      <- file /in.csv 2 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 2 rows
      -> file /rejects.jsonl
      -> file /rejected.csv
    "#);
    // Without a reject there is no file. The rejects of the first instance have been dealt with.
    for file in ["rejects.jsonl", "rejected.csv"] {
        fs::remove_file(tracked.path().join(file)).unwrap();
    }
    fs::write(tracked.path().join("in.csv"), "id,amount\n4,4\n").unwrap();
    let before = tracked.receiver.events().len();
    tracked.run(0, &["start", "job"], &[]);
    let shown = lines(&tracked.receiver.events()[before..], &tracked.path());
    assert!(!shown.contains("reject"), "{shown}");
}
