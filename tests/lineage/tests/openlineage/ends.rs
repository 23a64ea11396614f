//! Runs that fail or are stopped.

use std::process::Stdio;

use batch_tests::process::{self, spawn_until};
use insta::assert_snapshot;

use crate::program::{CREATE, Tracked};
use crate::shown::lines;

pub(crate) const LOAD: &str = r#"<step id="load">
  <chunk reader="csvRecordReader" processor="Hold" writer="recordTableWriter" commit-interval="2"><properties>
    <property name="resource" value="in.csv"/><property name="table" value="payment"/><property name="hold" value="4"/>
  </properties></chunk>
</step>"#;

pub(crate) fn held() -> Tracked {
    Tracked::new(&format!("{CREATE}{LOAD}")).with_payments("in.csv", 1..=5)
}

/// Spec: LIN-03
#[test]
fn a_failure_has_its_message() {
    let tracked = Tracked::new(
        r#"<step id="only">
             <batchlet ref="Task"><properties><property name="fail" value="no space left"/></properties></batchlet>
           </step>"#,
    );
    tracked.launch(1, &[]);
    assert_snapshot!(lines(&tracked.receiver.events(), &tracked.path()), @r#"
    START #1 job
    START #2 job.only parent=#1:job root=#1:job
    FAIL #2 job.only parent=#1:job root=#1:job error="no space left"
    FAIL #1 job error="no space left"
    "#);
}

/// Neither messages nor datasets contain the secrets of a job.
///
/// Spec: LIN-09
#[test]
fn events_contain_no_secrets() {
    let tracked = Tracked::new(
        r#"<step id="only"><batchlet ref="Task"><properties>
             <property name="dataset" value="orders?key=${key}"/>
             <property name="fail" value="key ${key} is rejected"/>
           </properties></batchlet></step>"#,
    );
    let mut command = tracked.command(&["launch", "job", "key(secret)=env:API_KEY"]);
    let output = command.env("API_KEY", "hidden-value").output().unwrap();
    process::ended(1, &output);
    let shown = lines(&tracked.receiver.events(), &tracked.path());
    assert!(!shown.contains("hidden-value"), "{shown}");
    assert_snapshot!(shown, @r#"
    START #1 job
    START #2 job.only parent=#1:job root=#1:job
    FAIL #2 job.only parent=#1:job root=#1:job error="key {secret:env:API_KEY} is rejected"
      -> api orders?key={secret:env:API_KEY}
    FAIL #1 job error="key {secret:env:API_KEY} is rejected"
    "#);
}

/// Spec: LIN-03
#[test]
fn a_stop_aborts() {
    let tracked = held();
    let mut command = tracked.command(&["launch", "job"]);
    command.stdin(Stdio::null());
    let stopped = spawn_until(command, "waiting");
    process::signal(&stopped, "TERM");
    process::ended(3, &stopped.wait_with_output().unwrap());
    let events = tracked.receiver.events();
    assert_snapshot!(lines(&events[3..], &tracked.path()), @r#"
    START #1 job.load parent=#2:job root=#2:job
    RUNNING #1 job.load parent=#2:job root=#2:job
      <- file /in.csv
      -> sqlite:///batch.db payment (id INTEGER, amount REAL)
    ABORT #1 job.load parent=#2:job root=#2:job
      <- file /in.csv 4 rows
      -> sqlite:///batch.db payment (id INTEGER, amount REAL) 4 rows
    ABORT #2 job
    "#);
}
