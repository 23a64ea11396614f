//! Observers of running jobs, an extension.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use batch_runtime::observer::{Dataset, DatasetRole, JobEvent, JobEventKind};
use batch_runtime::parameters::ParameterValue;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus, JobParameters};
use batch_tests::fleet::until;
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{Gate, assert_completed, chunk_job, job, restart_with, secret, without_lines};
use super::faults::{RULES, faulty_job, make_table};

/// What an observer has received.
#[derive(Clone, Default)]
struct Received(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Received {
    fn observer(&self) -> impl Fn(&JobEvent) + Send + Sync + 'static {
        let Self(received) = self.clone();
        move |event: &JobEvent| {
            let line = shown(event);
            received.0.lock().unwrap().push(line);
            received.1.notify_all();
        }
    }

    /// Returns the lines up to the `ends`th end of a job, which the observer may still have to receive.
    fn until(&self, ends: usize) -> Vec<String> {
        let is_end = |line: &&String| line.starts_with("job ended");
        self.wait_while(|lines| lines.iter().filter(is_end).count() < ends)
    }

    /// Returns the lines as soon as none is missing.
    fn wait_while(&self, is_missing: impl Fn(&[String]) -> bool) -> Vec<String> {
        let (lines, changed) = &*self.0;
        let limit = Duration::from_secs(120);
        let waited = changed.wait_timeout_while(lines.lock().unwrap(), limit, |lines| is_missing(lines));
        let (lines, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{lines:?}");
        lines.clone()
    }

    /// Returns the lines up to the first end of a job that contain a text.
    fn with(&self, text: &str) -> Vec<String> {
        let mut lines = self.until(1);
        lines.retain(|line| line.contains(text));
        lines
    }

    /// Runs a job of these elements to its end, and returns the lines.
    fn of_job(elements: &str, parameters: impl Into<JobParameters>) -> Vec<String> {
        let (stage, received) = observed(&job(elements));
        stage.start("job", parameters);
        received.until(1)
    }
}

/// Returns a stage with an observer.
fn observed(xml: &str) -> (Stage, Received) {
    let received = Received::default();
    let stage = Stage::configured(xml, |builder| builder.observer(received.observer()));
    (stage, received)
}

/// Returns the position of the first line that contains a text.
#[track_caller]
fn position(lines: &[String], text: &str) -> usize {
    let found = lines.iter().position(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("{text}: {lines:#?}"))
}

fn has_line(lines: &[String], expected: &str) {
    assert!(
        lines.iter().any(|line| line == expected),
        "{expected}: {lines:#?}"
    );
}

fn shown(event: &JobEvent) -> String {
    let place = event.step.as_ref().map_or_else(String::new, |step| {
        let kind = if step.is_partition { "partition" } else { "step" };
        format!("{kind} {}: ", step.name)
    });
    let what = match &event.kind {
        JobEventKind::JobStarted => format!("job started {} {}", event.job.job, event.job.execution),
        JobEventKind::JobEnded(end) => format!("job ended {} {:?}", end.status, end.exit_message),
        JobEventKind::TookOver { dead } => format!("took over {dead}"),
        JobEventKind::JobClosed(closed) => {
            let steps: Vec<_> = closed.steps.iter().map(|step| step.step_name.as_str()).collect();
            format!(
                "closed {} {} {steps:?}",
                event.job.execution, closed.execution.status
            )
        }
        JobEventKind::StopRequested { cause } => format!("stop requested {cause:?}"),
        JobEventKind::StepStarted { earlier } => {
            format!("started after {} items", earlier.reads + earlier.read_skips)
        }
        JobEventKind::StepEnded(end) => format!(
            "ended {} read {} written {} commits {} rollbacks {}",
            end.status, end.counters.reads, end.counters.writes, end.counters.commits, end.counters.rollbacks
        ),
        JobEventKind::PartitionsPlanned { element, planned } => format!("{planned} partitions of {element}"),
        JobEventKind::PartitionEnded {
            element,
            partition,
            status,
        } => format!("partition {partition} of {element} ended {status:?}"),
        JobEventKind::ChunkCommitted { before, counters, .. } => format!(
            "committed {} of {}",
            counters.writes - before.writes,
            counters.writes
        ),
        JobEventKind::ChunkRolledBack { error, .. } => format!("rolled back {error:?}"),
        JobEventKind::ItemSkipped { phase, error } => format!("skipped {phase:?} {error}"),
        JobEventKind::ItemRetried { phase, error } => format!("retried {phase:?} {error}"),
        JobEventKind::EventsDropped { count } => format!("dropped {count}"),
        JobEventKind::DatasetUsed(dataset) => {
            let Dataset {
                role,
                namespace,
                name,
                fields,
                ..
            } = &**dataset;
            format!("dataset {role:?} {namespace} {name} {}", fields.len())
        }
        other => format!("{other:?}"),
    };
    format!("{place}{what}")
}

/// Each chunk, skip, retry and rollback is an event; a restart begins after the items of the checkpoint.
///
/// Spec: OBS-01, OBS-02
#[test]
fn an_observer_sees_chunks_skips_and_retries() {
    let (stage, received) = observed(&faulty_job("", "TableOut", "commit-interval=\"2\"", RULES));
    make_table(&stage);
    let faults = "read 2: Skip; process 4: Skip; has n5: Retry x1; has n7: Fatal";
    let first = stage.start("job", [("faults", faults), ("items", "8")]);
    restart_with(&stage, first, [("faults", "")]);
    assert_snapshot!(without_lines(&received.until(2).join("\n")), @r#"
    job started job 1
    step copy: started after 0 items
    step copy: skipped Read Skip
    step copy: committed 2 of 2
    step copy: skipped Process Skip
    step copy: retried Write Retry
    step copy: rolled back Some("Retry")
    step copy: committed 1 of 3
    step copy: rolled back Some("Fatal\nthrown by #[write_items] of item writer `TableOut` (tests/conformance/faults.rs)\nin the chunk of items 6 to 7 of `copy`\nits class `conformance::faults::Oops::Fatal` is neither skippable nor retryable")
    step copy: ended FAILED read 4 written 3 commits 2 rollbacks 2
    job ended FAILED "Fatal\nthrown by #[write_items] of item writer `TableOut` (tests/conformance/faults.rs)\nin the chunk of items 6 to 7 of `copy`\nits class `conformance::faults::Oops::Fatal` is neither skippable nor retryable"
    job started job 2
    step copy: started after 5 items
    step copy: committed 2 of 2
    step copy: committed 1 of 3
    step copy: ended COMPLETED read 3 written 3 commits 2 rollbacks 0
    job ended COMPLETED ""
    "#);
}

/// An execution reports once which execution it waits for, and again when that changes.
///
/// Spec: OBS-01, TURN-03
#[test]
fn an_observer_sees_the_wait_for_a_turn() {
    let (stage, received) = observed(&job(
        r#"<properties><property name="batch.job.concurrency" value="queue"/></properties>
        <step id="one"><batchlet ref="TurnHolder"/></step>"#,
    ));
    let (gate, operator) = (Gate::at(&stage), stage.operator());
    let begin = |name| operator.launch("job", [("name", name)]).unwrap();
    let waits_for = |execution, before| {
        until("the wait is shown", || {
            (operator.progress(execution)?.waits_for? == before).then_some(())
        });
    };
    let first = begin("a");
    let second = begin("b");
    waits_for(second, first);
    let third = begin("c");
    waits_for(third, first);
    gate.open("a");
    waits_for(third, second);
    gate.open("b");
    gate.open("c");
    let mut turns = received.until(3);
    turns.retain(|line| line.contains("Turn"));
    let taken = turns.extract_if(.., |line| *line == "TurnTaken").count();
    assert_eq!(taken, 2);
    let waits = [1, 1, 2].map(|before| format!("WaitsForTurn {{ before: JobExecutionId({before}) }}"));
    assert_eq!(turns, waits);
}

/// Partitions are planned, start and end, on separate threads.
///
/// Spec: OBS-01, OBS-02
#[test]
fn an_observer_sees_partitions() {
    let lines = Received::of_job(
        r#"<step id="copy"><chunk reader="Numbers" processor="Labels" writer="Lines"/><partition instances="2"/></step>"#,
        (),
    );
    for number in [1, 2] {
        let order = [
            "2 partitions of copy",
            &format!("partition copy:{number}: started"),
            &format!("partition copy:{number}: committed"),
            &format!("partition copy:{number}: ended COMPLETED"),
            "step copy: ended COMPLETED",
        ];
        let order = order.map(|line| position(&lines, line));
        assert!(order.is_sorted(), "{lines:#?}");
        let end = format!("partition {number} of copy ended Some(Completed)");
        position(&lines, &end);
    }
}

/// A request to stop, and a timeout, are events.
///
/// Spec: OBS-01
#[test]
fn an_observer_sees_why_a_job_stops() {
    let (stage, received) = observed(&job(r#"<step id="wait"><batchlet ref="Task"/></step>"#));
    let operator = stage.operator();
    let execution = operator.start("job", [("hold", "until cancelled")]).unwrap();
    Gate::at(&stage).pass("held");
    operator.stop(execution).unwrap();
    assert_eq!(operator.wait(execution).unwrap().status, BatchStatus::Stopped);
    assert_eq!(received.with("stop requested"), ["stop requested None"]);
}

/// Spec: OBS-01
#[test]
fn an_observer_sees_a_timeout() {
    let elements = r#"<properties><property name="batch.job.timeout" value="1"/></properties>
        <step id="wait"><batchlet ref="Task"/></step>"#;
    let lines = Received::of_job(elements, [("hold", "until cancelled")]);
    has_line(&lines, r#"stop requested Some("the job exceeded its timeout")"#);
}

/// A partition of a flow starts and ends like a partition of a step.
///
/// Spec: OBS-01, OBS-02
#[test]
fn an_observer_sees_partitions_of_flows() {
    let lines = Received::of_job(
        r#"<flow id="both"><step id="one"><batchlet ref="Task"/></step><partition instances="2"/></flow>"#,
        (),
    );
    for expected in [
        "2 partitions of both",
        "partition both:1: started after 0 items",
        "step both:1/one: started after 0 items",
        "partition both:2: ended COMPLETED read 0 written 0 commits 0 rollbacks 0",
        "partition 2 of both ended Some(Completed)",
    ] {
        has_line(&lines, expected);
    }
}

/// A runtime that takes an execution over reports that, and how the execution was closed; so does the one that has lost it.
///
/// Spec: OBS-01, OBS-02, OBS-07
#[test]
fn observers_see_a_takeover_and_a_loss() {
    let takes = Received::default();
    let (stage, lost) = observed(&job(r#"<step id="wait"><batchlet ref="Task"/></step>"#));
    let operator = stage.operator();
    let execution = operator.start("job", [("hold", "until opened")]).unwrap();
    Gate::at(&stage).pass("held");
    let dead = "UPDATE BATCH_JOB_INSTANCE_LEASE SET OWNER = 'nobody/1/dead', EXPIRES_AT = 1";
    stage.outside().execute(dead).unwrap();
    let runtime = stage.another_runtime_with(|builder| {
        let builder = builder.observer(takes.observer());
        builder.lease_time(Duration::from_millis(500))
    });
    let other = runtime.job_operator();
    let again = other.restart(execution, [("hold", "")]).unwrap();
    assert_eq!(other.wait(again).unwrap().status, BatchStatus::Completed);
    let expected = [r#"closed 1 FAILED ["wait"]"#, "took over 1", "job started job 2"];
    assert_eq!(takes.until(1)[..3], expected);
    Gate::at(&stage).open("go");
    assert!(operator.wait(execution).is_err());
    drop(operator);
    drop(stage);
    let lines = lost.0.0.lock().unwrap();
    position(&lines, "step wait: StepLost");
    position(&lines, "JobLost { cause: ");
}

/// An observer that blocks does not delay the job; events that do not fit into its queue are dropped, and an event reports how many.
///
/// Spec: OBS-03
#[test]
fn a_slow_observer_loses_events_and_nothing_else() {
    const ITEMS: u64 = 6_000;
    let (gate, dropped) = (Arc::new(Gate::default()), Arc::new(Mutex::new(0)));
    let received = Received::default();
    let (held, lost) = (Arc::clone(&gate), Arc::clone(&dropped));
    let waited = AtomicBool::new(false);
    let seen = received.observer();
    let slow = move |event: &JobEvent| {
        if !waited.swap(true, Ordering::Relaxed) {
            held.hold();
        }
        if let JobEventKind::EventsDropped { count } = event.kind {
            *lost.lock().unwrap() += count;
        } else {
            seen(event);
        }
    };
    let quick = Received::default();
    let stage = Stage::configured(&chunk_job("commit-interval=\"1\""), |builder| {
        builder.observer(slow).observer(quick.observer())
    });
    // It ends while the observer waits in its first event.
    let execution = stage.start("job", [("items", ITEMS.to_string())]);
    assert_completed(&stage, execution);
    let all = quick.until(1).len();
    gate.open("go");
    let lines = received.wait_while(|lines| lines.len() as u64 + *dropped.lock().unwrap() < all as u64);
    assert!(*dropped.lock().unwrap() > 1_000, "{}", lines.len());
}

/// An observer that panics gets the next event; the job and other observers are not affected.
///
/// Spec: OBS-04
#[test]
fn an_observer_may_panic() {
    let received = Received::default();
    let seen = received.observer();
    let panics = move |event: &JobEvent| {
        seen(event);
        panic!("an observer");
    };
    let stage = Stage::configured(&chunk_job(""), |builder| builder.observer(panics));
    assert_completed(&stage, stage.start("job", ()));
    assert!(received.until(1).len() > 3);
}

/// The end of a runtime waits for its observers to receive the last events.
///
/// Spec: OBS-05
#[test]
fn the_last_events_arrive() {
    let stage = Stage::new(&chunk_job(""));
    let received = Received::default();
    let builder = BatchRuntime::builder()
        .repository("memory:")
        .job_path(stage.path().join("jobs").display().to_string())
        .system_property("log", stage.log_name());
    let runtime = builder.observer(received.observer()).build().unwrap();
    let operator = runtime.job_operator();
    let execution = operator.start("job", ()).unwrap();
    operator.wait(execution).unwrap();
    drop((runtime, operator));
    let lines = received.0.0.lock().unwrap();
    let last = lines.last().unwrap();
    assert!(last.starts_with("job ended COMPLETED"), "{lines:?}");
}

/// The errors of skips, rollbacks and ends show no secrets.
///
/// Spec: OBS-06
#[test]
fn an_observer_sees_no_secrets() {
    let policy = r#"<properties><property name="batch.skip.policy" value="Chosen"/></properties>"#;
    for (properties, hiding) in [
        (policy, &["skipped Read"][..]),
        ("", &["rolled back", "job ended FAILED"]),
    ] {
        let xml = format!(
            r#"<step id="copy">{properties}<chunk reader="Numbers" processor="Labels" writer="Lines"/></step>"#
        );
        let (stage, received) = observed(&job(&xml));
        let parameters = JobParameters::new().with_secret("fail", secret(&stage, "read 2"));
        stage.start("job", parameters);
        let lines = received.until(1);
        assert!(lines.iter().all(|line| !line.contains("read 2")), "{lines:#?}");
        for start in hiding {
            let hides_it = |line: &String| line.contains(start) && line.contains("cannot {secret:file:");
            assert!(lines.iter().any(hides_it), "{start}: {lines:#?}");
        }
    }
}

/// A runtime that ends does not wait for ever for an observer that blocks.
///
/// Spec: OBS-05
#[test]
fn the_end_of_a_runtime_does_not_wait_for_ever() {
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let stage = Stage::new(&chunk_job(""));
    let runtime = stage.another_runtime_with(|builder| builder.observer(move |_: &JobEvent| held.pass("go")));
    let operator = runtime.job_operator();
    let execution = operator.start("job", ()).unwrap();
    operator.wait(execution).unwrap();
    drop((operator, runtime));
    gate.open("go");
}

/// Reports a dataset twice, once more with a field, and then many others.
#[batchlet("Reporting")]
fn reporting(
    #[batch_context] step: &StepContext,
    #[batch_context] job: &JobContext,
) -> Result<String, BatchError> {
    let dataset = Dataset::new(DatasetRole::Input, "file", "/in.csv");
    step.report_dataset(dataset.clone());
    step.report_dataset(dataset.clone());
    let fields = [("id".to_owned(), Some("bigint".to_owned()))];
    step.report_dataset(dataset.with_fields(fields));
    for number in 0..1_000 {
        let dataset = Dataset::new(DatasetRole::Output, "file", format!("/{number}"));
        step.report_dataset(dataset);
    }
    Ok(job.repository_url())
}

/// A dataset is reported once, and not for each item; the number of datasets of a step execution is limited.
///
/// Spec: LIN-02
#[test]
fn an_observer_sees_datasets_once() {
    let xml = job(r#"<step id="only"><batchlet ref="Reporting"/></step>"#);
    let (stage, received) = observed(&xml);
    stage.start("job", ());
    let lines = received.with("dataset");
    let expected = [
        "step only: dataset Input file /in.csv 0",
        "step only: dataset Input file /in.csv 1",
        "step only: dataset Output file /0 0",
    ];
    assert_eq!(lines[..3], expected);
    assert_eq!(lines.len(), 256);
    // Without an observer, nothing is reported.
    Stage::new(&xml).start("job", ());
}

/// A nested job shows all jobs around it, from the inner to the outermost; parameters that were written by hand may name a circle.
///
/// Spec: OBS-01, NEST-01
#[test]
fn an_observer_sees_all_outer_jobs() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let seeing = Arc::clone(&seen);
    let step = r#"<step id="one"><batchlet ref="Task"/></step>"#;
    let stage = Stage::configured(&job(step), |builder| {
        builder.observer(move |event: &JobEvent| {
            if let JobEventKind::JobStarted = event.kind {
                let outer = event.job.outer.as_deref();
                let outer = std::iter::successors(outer, |outer| outer.job.outer.as_deref());
                let outer = outer.map(|outer| format!("{} of {}", outer.step, outer.job.instance));
                seeing.lock().unwrap().push(outer.collect::<Vec<_>>().join(", "));
            }
        })
    });
    let gate = Gate::at(&stage);
    let start = |run: &str, instance: i64| {
        let parameters = JobParameters::from([("run", run), ("hold", "until opened")])
            .with_parameter("parent.instance", ParameterValue::Long(instance), true)
            .with("parent.step", format!("step {run}"));
        stage.operator().start("job", parameters).unwrap()
    };
    let executions = [start("1", 3), start("2", 1), start("3", 2)];
    gate.open("go");
    for execution in executions {
        stage.operator().wait(execution).unwrap();
    }
    stage.operator().flush_observers();
    let mut seen = seen.lock().unwrap().clone();
    // The jobs start on separate threads, in any order.
    seen.sort_by_key(String::len);
    assert_eq!(seen, ["", "step 2 of 1", "step 3 of 2, step 2 of 1, step 1 of 3"]);
}

/// After the end of a job, a program flushes the observers to be sure that they have received it.
///
/// Spec: OBS-05
#[test]
fn flushing_waits_for_a_slow_observer() {
    let ended: Arc<AtomicBool> = Arc::default();
    let seen = Arc::clone(&ended);
    let stage = Stage::configured(&chunk_job(""), |builder| {
        builder.observer(move |event: &JobEvent| {
            std::thread::sleep(Duration::from_millis(50));
            seen.fetch_or(matches!(event.kind, JobEventKind::JobEnded(_)), Ordering::Relaxed);
        })
    });
    stage.start("job", ());
    stage.operator().flush_observers();
    assert!(ended.load(Ordering::Relaxed));
}
