//! Partitions in worker processes belong to the trace of their job.

use std::process::Stdio;

use batch_tests::process;
use insta::assert_snapshot;

use crate::program::Traced;
use crate::tree::{attribute, traces};

const JOB: &str = r#"<job id="job">
  <step id="load" next="each">
    <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="4"/>
    <partition instances="2"/>
  </step>
  <flow id="each">
    <step id="inner"><batchlet ref="Task"/><partition instances="1"/></step>
    <partition instances="2"/>
  </flow>
</job>"#;

/// The spans of a worker are below the step of the coordinator, in its trace.
///
/// Spec: OTEL-04
#[test]
fn partitions_of_workers_are_in_the_trace_of_their_job() {
    let traced = Traced::new(JOB);
    let mut worker = traced.command(&["worker", "--slots", "1"]);
    // Not used: the job's trace counts.
    worker.env(
        "TRACEPARENT",
        "00-11111111111111111111111111111111-1111111111111111-01",
    );
    let worker = worker
        .env("OTEL_SERVICE_NAME", "worker")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    traced.launch(
        0,
        &[
            ("BATCH_DISPATCH", "repository"),
            ("OTEL_SERVICE_NAME", "coordinator"),
        ],
    );
    process::signal(&worker, "TERM");
    process::ended(0, &worker.wait_with_output().unwrap());

    let received = traced.receiver.received();
    assert_snapshot!(traces(&received.spans()), @r#"
    job job [execution.id=1 exit_status=COMPLETED instance.id=1 name=job status=COMPLETED]
      step load [execution.id=1 exit_status=COMPLETED name=load status=COMPLETED]
        partition load [execution.id=2 exit_status=COMPLETED items.read=5 items.written=5 name=load partition.name=load:1 status=COMPLETED]
          chunk load [items.read=4 items.written=4 number=1]
          chunk load [items.read=1 items.written=1 number=2]
        partition load [execution.id=3 exit_status=COMPLETED items.read=5 items.written=5 name=load partition.name=load:2 status=COMPLETED]
          chunk load [items.read=4 items.written=4 number=1]
          chunk load [items.read=1 items.written=1 number=2]
      partition each [execution.id=4 exit_status=COMPLETED name=each partition.name=each:1 status=COMPLETED]
        step inner [execution.id=6 exit_status=COMPLETED name=inner status=COMPLETED]
          partition inner [execution.id=7 exit_status=DONE name=inner partition.name=each:1/inner:1 status=COMPLETED]
      partition each [execution.id=5 exit_status=COMPLETED name=each partition.name=each:2 status=COMPLETED]
        step inner [execution.id=8 exit_status=COMPLETED name=inner status=COMPLETED]
          partition inner [execution.id=9 exit_status=DONE name=inner partition.name=each:2/inner:1 status=COMPLETED]
    "#);
    let mut by_service = Vec::new();
    for resource in &received.traces {
        let service = attribute(&resource.resource.as_ref().unwrap().attributes, "service.name").unwrap();
        let spans = resource.scope_spans.iter().flat_map(|scope| &scope.spans);
        by_service.extend(spans.map(|span| format!("{service}: {}", span.name)));
    }
    by_service.sort();
    by_service.dedup();
    assert_snapshot!(by_service.join("\n"), @r#"
    coordinator: job job
    coordinator: step load
    worker: chunk load
    worker: partition each
    worker: partition inner
    worker: partition load
    worker: step inner
    "#);
}
