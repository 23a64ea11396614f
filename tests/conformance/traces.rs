//! Traces of job executions, whose contexts an observer chooses: an extension.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use batch_runtime::observer::{JobEvent, JobObserver, JobTrace};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{assert_completed, job, restart_with};

/// Chooses `job-1`, `job-2` and so on, and records what events have.
#[derive(Clone, Default)]
struct Tracing {
    chosen: Arc<AtomicU32>,
    seen: Arc<Mutex<Vec<(i64, JobTrace)>>>,
}

impl JobObserver for Tracing {
    fn on_event(&self, event: &JobEvent) {
        let seen = (event.job.execution.0, event.job.trace.clone());
        self.seen.lock().unwrap().push(seen);
    }
    fn trace_job(&self, job: &str) -> Option<String> {
        let number = self.chosen.fetch_add(1, Ordering::Relaxed) + 1;
        Some(format!("{job}-{number}"))
    }
}

impl Tracing {
    /// Returns the traces of all executions, each once.
    fn seen(&self, stage: &Stage) -> Vec<String> {
        stage.operator().flush_observers();
        let seen = self.seen.lock().unwrap();
        let shown = |(execution, trace): &(i64, JobTrace)| {
            format!("{execution}: {:?} after {:?}", trace.context, trace.previous)
        };
        let mut seen: Vec<_> = seen.iter().map(shown).collect();
        seen.dedup();
        seen
    }
}

/// The next execution of the instance knows the trace of the one before; executions of other instances do not.
///
/// Spec: OTEL-03
#[test]
fn an_execution_keeps_its_trace() {
    let tracing = Tracing::default();
    let xml = job(r#"<step id="one"><batchlet ref="Task"/></step>"#);
    let stage = Stage::configured(&xml, |builder| {
        // The first observer that traces counts.
        let silent = |_: &JobEvent| {};
        let builder = builder.observer(silent).observer(tracing.clone());
        builder.observer(Tracing::default())
    });
    let failed = stage.start("job", [("fail", "process one")]);
    let failed = restart_with(&stage, failed, [("fail", "process one")]);
    restart_with(&stage, failed, [("fail", "")]);
    stage.start("job", ());
    assert_snapshot!(tracing.seen(&stage).join("\n"), @r#"
    1: Some("job-1") after None
    2: Some("job-2") after Some("job-1")
    3: Some("job-3") after Some("job-2")
    4: Some("job-4") after None
    "#);
}

/// Without an observer that traces, nothing is stored, and the events have no trace.
///
/// Spec: OTEL-03
#[test]
fn an_execution_without_a_tracer_has_no_trace() {
    struct Untraced(Tracing);
    impl JobObserver for Untraced {
        fn on_event(&self, event: &JobEvent) {
            self.0.on_event(event);
        }
    }

    let seen = Tracing::default();
    let xml = job(r#"<step id="one"><batchlet ref="Task"/></step>"#);
    let stage = Stage::configured(&xml, |builder| builder.observer(Untraced(seen.clone())));
    stage.start("job", ());
    assert_eq!(seen.seen(&stage), ["1: None after None"]);
}

/// Spec: OBS-04
#[test]
fn a_tracer_may_panic() {
    struct Falls;
    impl JobObserver for Falls {
        fn on_event(&self, _: &JobEvent) {}
        fn trace_job(&self, _: &str) -> Option<String> {
            panic!("no trace")
        }
    }

    let tracing = Tracing::default();
    let xml = job(r#"<step id="one"><batchlet ref="Task"/></step>"#);
    let stage = Stage::configured(&xml, |builder| builder.observer(Falls).observer(tracing.clone()));
    let execution = stage.start("job", ());
    assert_completed(&stage, execution);
    assert_eq!(tracing.seen(&stage), [r#"1: Some("job-1") after None"#]);
}
