//! Partitioned steps are one run, wherever their partitions run.

use std::process::Stdio;

use batch_tests::process;
use insta::assert_snapshot;

use crate::program::{CREATE, Tracked};
use crate::shown::lines;

const LOAD: &str = r#"<properties><property name="batch.partition.threads" value="1"/></properties>
<step id="load">
  <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordTableWriter" commit-interval="2"><properties>
    <property name="table" value="payment"/>
  </properties></chunk>
  <partition instances="2"><properties>
    <property name="resource.1" value="a.csv"/><property name="resource.2" value="b.csv"/>
  </properties></partition>
</step>"#;

fn job() -> Tracked {
    let (properties, step) = LOAD.split_once('\n').unwrap();
    Tracked::new(&format!("{properties}{CREATE}{step}"))
        .with_payments("a.csv", 1..=3)
        .with_payments("b.csv", 4..=8)
}

/// Spec: LIN-05, LIN-06
#[test]
fn partitions_are_in_the_run_of_their_step() {
    let tracked = job();
    tracked.launch(0, &[]);
    let events = tracked.receiver.events();
    assert_snapshot!(lines(&events[3..], &tracked.path()), @r#"
    START #1 job.load parent=#2:job root=#2:job
    RUNNING #1 job.load parent=#2:job root=#2:job
      <- file /a.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    COMPLETE #1 job.load parent=#2:job root=#2:job
      <- file /a.csv 3 rows
      <- file /b.csv 5 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 8 rows
    COMPLETE #2 job
    "#);
}

/// A worker names the datasets of its partitions, in the run of the coordinator's step.
///
/// Spec: LIN-05
#[test]
fn workers_send_the_datasets_of_their_partitions() {
    let tracked = job();
    let mut worker = tracked.command(&["worker", "--slots", "1"]);
    let parent = "airflow/of.worker/f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11";
    let worker = worker
        .env("OPENLINEAGE_PARENT_ID", parent)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    tracked.launch(0, &[("BATCH_DISPATCH", "repository")]);
    process::signal(&worker, "TERM");
    process::ended(0, &worker.wait_with_output().unwrap());
    // The events of two processes arrive in any order.
    let mut events = tracked.receiver.events();
    events.sort_by_key(|event| (event["eventType"] != "RUNNING", event["inputs"].to_string()));
    let shown = lines(&events, &tracked.path());
    assert!(!shown.contains("of.worker"), "{shown}");
    assert_snapshot!(shown, @r#"
    RUNNING #1 job.load parent=#2:job
      <- file /a.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    RUNNING #1 job.load parent=#2:job
      <- file /b.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    START #2 job
    START #3 job.create parent=#2:job root=#2:job
    COMPLETE #3 job.create parent=#2:job root=#2:job
    START #1 job.load parent=#2:job root=#2:job
    COMPLETE #1 job.load parent=#2:job root=#2:job
    COMPLETE #2 job
    "#);
}
