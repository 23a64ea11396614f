//! The tree of spans: of a job with all that has spans and events, of a killed process and its restart.

use std::fs;
use std::process::Stdio;

use batch_tests::process::{self, spawn_until};
use insta::assert_snapshot;

use crate::program::Traced;
use crate::tree::{attribute, hex, traces};

const JOB: &str = r#"<job id="job">
  <properties><property name="batch.partition.threads" value="1"/></properties>
  <step id="prepare" next="load"><batchlet ref="Task"/></step>
  <step id="load" next="each">
    <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="2" skip-limit="1" retry-limit="1">
      <skippable-exception-classes><include class="Refused"/></skippable-exception-classes>
      <retryable-exception-classes><include class="Busy"/></retryable-exception-classes>
    </chunk>
    <partition instances="2"><properties>
      <property name="refused.1" value="2"/><property name="busy.2" value="4"/>
      <property name="refused.2" value="0"/><property name="busy.1" value="0"/>
    </properties></partition>
  </step>
  <flow id="each" next="last">
    <step id="inner"><batchlet ref="Task"/></step>
    <partition instances="2"/>
  </flow>
  <step id="last"><batchlet ref="Task"><properties><property name="then" value="no space left"/></properties></batchlet></step>
</job>"#;

/// Every step, partition and chunk is a span below its parent; skips, retries and rollbacks are events of their chunks.
///
/// Spec: OTEL-02
#[test]
fn a_job_is_a_tree() {
    let traced = Traced::new(JOB);
    traced.launch(1, &[]);
    assert_snapshot!(traces(&traced.receiver.received().spans()), @r#"
    job job [error.type=FAILED execution.id=1 exit_status=FAILED instance.id=1 name=job status=FAILED]
      ! 2 no space left
      step prepare [execution.id=1 exit_status=DONE name=prepare status=COMPLETED]
      step load [execution.id=2 exit_status=COMPLETED name=load status=COMPLETED]
        partition load [execution.id=3 exit_status=COMPLETED items.read=5 items.skipped=1 items.written=4 name=load partition.name=load:1 status=COMPLETED]
          chunk load [items.read=2 items.skipped=1 items.written=1 number=1]
            * batch.item.skip [exception.message=refused item.phase=process]
          chunk load [items.read=2 items.written=2 number=2]
          chunk load [items.read=1 items.written=1 number=3]
        partition load [execution.id=4 exit_status=COMPLETED items.read=5 items.written=5 name=load partition.name=load:2 status=COMPLETED]
          chunk load [items.read=2 items.written=2 number=1]
          chunk load [items.read=2 items.written=2 number=2]
            * batch.item.retry [exception.message=busy item.phase=write]
            * batch.chunk.rollback [exception.message=busy]
          chunk load [items.read=1 items.written=1 number=3]
      step last [error.type=FAILED execution.id=9 exit_status=FAILED name=last status=FAILED]
        ! 2 no space left
      partition each [execution.id=5 exit_status=DONE name=each partition.name=each:1 status=COMPLETED]
        step inner [execution.id=7 exit_status=DONE name=inner status=COMPLETED]
      partition each [execution.id=6 exit_status=DONE name=each partition.name=each:2 status=COMPLETED]
        step inner [execution.id=8 exit_status=DONE name=inner status=COMPLETED]
    "#);
}

/// The chunks of a process that is killed have arrived; the restart has a new trace, which links to that one.
///
/// Spec: OTEL-03
#[test]
fn a_restart_links_to_the_killed_execution() {
    let traced = Traced::new(
        r#"<job id="job"><step id="load">
             <properties><property name="hold" value="5"/></properties>
             <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="2"/>
           </step></job>"#,
    );
    let mut command = traced.command(&["launch", "job"]);
    command.env("OTEL_BSP_SCHEDULE_DELAY", "50").stdin(Stdio::null());
    let mut killed = spawn_until(command, "waiting");
    traced.receiver.until(|received| received.spans().len() >= 2);
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().code(), None, "it ends by the signal");
    fs::write(traced.path().join("go"), "").unwrap();
    traced.launch(0, &[]);

    let spans = traced.receiver.received().spans();
    assert_snapshot!(traces(&spans), @r#"
    ?
      chunk load [items.read=2 items.written=2 number=1]
      chunk load [items.read=2 items.written=2 number=2]
    ---
    job job [execution.id=2 exit_status=COMPLETED instance.id=1 name=job status=COMPLETED]
      * batch.job.takeover [job.execution.id=1]
      -> another trace []
      step load [execution.id=2 exit_status=COMPLETED items.read=1 items.written=1 name=load status=COMPLETED]
        chunk load [items.read=1 items.written=1 number=1]
    "#);
    let chunk = &spans[0];
    let job = spans.iter().find(|span| span.name == "job job").unwrap();
    let [link] = &job.links[..] else { panic!("{job:?}") };
    assert_eq!(link.trace_id, chunk.trace_id);
    assert_ne!(link.trace_id, job.trace_id);
    assert_eq!(
        traced.stored_trace(1),
        format!("00-{}-{}-01", hex(&link.trace_id), hex(&link.span_id))
    );
    assert_eq!(
        traced.stored_trace(2),
        format!("00-{}-{}-01", hex(&job.trace_id), hex(&job.span_id))
    );
    assert_eq!(attribute(&job.attributes, "batch.job.execution.id").unwrap(), "2");
}

/// A process that receives SIGTERM ends its spans.
///
/// Spec: OTEL-02
#[test]
fn a_stop_is_an_event() {
    let traced = Traced::new(
        r#"<job id="job"><step id="load">
             <properties><property name="hold" value="5"/></properties>
             <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="2"/>
           </step></job>"#,
    );
    let mut command = traced.command(&["launch", "job"]);
    command.stdin(Stdio::null());
    let stopped = spawn_until(command, "waiting");
    process::signal(&stopped, "TERM");
    process::ended(3, &stopped.wait_with_output().unwrap());
    assert_snapshot!(traces(&traced.receiver.received().spans()), @r#"
    job job [execution.id=1 exit_status=STOPPED instance.id=1 name=job status=STOPPED]
      * batch.job.stop []
      step load [execution.id=1 exit_status=STOPPED items.read=5 items.written=5 name=load status=STOPPED]
        chunk load [items.read=2 items.written=2 number=1]
        chunk load [items.read=2 items.written=2 number=2]
        chunk load [items.read=1 items.written=1 number=3]
    "#);
}

/// A job that waits for its turn reports which execution it waits for, and when it has the turn.
///
/// Spec: OTEL-02, TURN-03
#[test]
fn the_wait_for_a_turn_is_an_event() {
    let traced = Traced::new(
        r#"<job id="job"><properties><property name="batch.job.concurrency" value="queue"/></properties>
           <step id="load">
             <properties><property name="hold" value="2"/></properties>
             <chunk reader="Numbers" processor="Choosy" writer="Moody" commit-interval="2"/>
           </step></job>"#,
    );
    let mut first = traced.command(&["launch", "job", "run=1"]);
    first.stdin(Stdio::null()).env("OTEL_SDK_DISABLED", "true");
    let mut first = spawn_until(first, "waiting");
    let mut second = traced.command(&["launch", "job", "run=2"]);
    second.stdin(Stdio::null());
    let second = spawn_until(second, "waits for execution 1");
    fs::write(traced.path().join("go"), "").unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    process::ended(0, &second.wait_with_output().unwrap());
    let spans = traces(&traced.receiver.received().spans());
    let job: Vec<_> = spans.lines().take(4).map(str::trim).collect();
    assert_eq!(
        job,
        [
            "job job [execution.id=2 exit_status=COMPLETED instance.id=2 name=job status=COMPLETED]",
            "* batch.job.wait [job.execution.id=1]",
            "* batch.job.takeover [job.execution.id=1]",
            "* batch.job.turn []",
        ]
    );
}

/// The span that started the process is the parent.
///
/// Spec: OTEL-05
#[test]
fn traceparent_is_the_parent() {
    let traced = Traced::new(r#"<job id="job"><step id="only"><batchlet ref="Task"/></step></job>"#);
    traced.launch(
        0,
        &[
            (
                "TRACEPARENT",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ),
            ("TRACESTATE", "vendor=1"),
        ],
    );
    let spans = traced.receiver.received().spans();
    assert_snapshot!(traces(&spans), @r#"
    ?
      job job [execution.id=1 exit_status=COMPLETED instance.id=1 name=job status=COMPLETED]
        step only [execution.id=1 exit_status=DONE name=only status=COMPLETED]
    "#);
    let job = spans.iter().find(|span| span.name == "job job").unwrap();
    assert_eq!(hex(&job.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&job.parent_span_id), "b7ad6b7169203331");
    assert_eq!(job.trace_state, "vendor=1");
}

/// Spec: OTEL-05
#[test]
fn a_malformed_traceparent_is_ignored_with_a_warning() {
    let traced = Traced::new(r#"<job id="job"><step id="only"><batchlet ref="Task"/></step></job>"#);
    let error = traced.launch(0, &[("TRACEPARENT", "00-secret\u{7}")]);
    let warnings: Vec<_> = error.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(
        warnings,
        [
            " WARN ignoring TRACEPARENT=`00-secret\\u{7}`: expected `00-TRACE-SPAN-FLAGS` with 32, 16 and 2 lowercase hexadecimal digits; \
             jobs start traces of their own"
        ]
    );
    let spans = traced.receiver.received().spans();
    let job = spans.iter().find(|span| span.name == "job job").unwrap();
    assert!(job.parent_span_id.is_empty());
}
