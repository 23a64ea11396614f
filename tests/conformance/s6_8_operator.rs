//! 6.8: the job operator.

use std::sync::{Arc, Mutex};

use batch_runtime::execution::JobExecution;
use batch_runtime::operator::{CallbackId, StartError};
use batch_runtime::{BatchRuntime, BatchStatus, JobExecutionId, JobInstanceId, JobOperatorError, Timestamp};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{
    Gate, assert_contains, assert_matches, assert_starts, impatient, job, job_execution, refused,
    restart_with, started,
};

const ONE: &str = r#"<step id="one"><batchlet ref="Task"/></step>"#;

/// Queries by ids that do not exist, and by names.
///
/// Spec: OP-02, OP-03, OP-04, OP-05, OP-06, OP-21, OP-22, OP-23, OP-24, OP-31, OP-32
#[test]
fn queries_for_missing_rows() {
    let stage = Stage::new(&job(ONE));
    let operator = stage.operator();
    let (instance, execution) = (JobInstanceId(77), JobExecutionId(77));
    assert_eq!(operator.job_instance(instance).unwrap(), None);
    assert_eq!(operator.job_execution(execution).unwrap(), None);
    let errors = [
        operator.job_executions(instance).unwrap_err(),
        operator.parameters(execution).unwrap_err(),
        operator.step_executions(execution).unwrap_err(),
        operator.restart(execution, ()).unwrap_err(),
        operator.stop(execution).unwrap_err(),
        operator.wait(execution).unwrap_err(),
        operator.job_instance_count("nobody").unwrap_err(),
        operator.job_instances("nobody", 0, 1).unwrap_err(),
        operator.running_executions("nobody").unwrap_err(),
        operator.start("nobody", ()).unwrap_err(),
        operator.start("jobb", ()).unwrap_err(),
    ];
    let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_snapshot!(text.join("\n"), @r"
    unknown job instance 77
    unknown job execution 77
    unknown job execution 77
    unknown job execution 77
    unknown job execution 77
    unknown job execution 77
    unknown job `nobody`
    unknown job `nobody`
    unknown job `nobody`
    unknown job `nobody`; the job path contains `job`
    unknown job `jobb`; did you mean `job`?
    ");
    // A known job that was never started.
    assert_eq!(operator.job_instance_count("job").unwrap(), 0);
    assert_eq!(operator.job_instances("job", 0, 10).unwrap(), []);
    assert_eq!(operator.running_executions("job").unwrap(), []);
    assert!(operator.job_names().unwrap().iter().eq(["job"]));
}

/// Lists are newest first; positions count from 0; a position past the end yields an empty list.
///
/// Spec: OP-02, OP-03, OP-04, OP-22, OP-23, ID-07
#[test]
fn lists_are_newest_first() {
    let stage = Stage::new(&job(ONE));
    let operator = stage.operator();
    for _ in 0..3 {
        stage.start("job", [("fail", "process one")]);
    }
    let all = operator.job_instances("job", 0, 100).unwrap();
    assert!(all.is_sorted_by(|a, b| a.id > b.id) && all.len() == 3, "{all:?}");
    assert_eq!(operator.job_instance_count("job").unwrap(), 3);
    assert_eq!(operator.job_instances("job", 1, 1).unwrap(), all[1..2]);
    assert_eq!(operator.job_instances("job", 2, 5).unwrap(), all[2..]);
    assert_eq!(operator.job_instances("job", 3, 5).unwrap(), []);
    assert_eq!(operator.job_instances("job", 0, 0).unwrap(), []);
    assert_eq!(operator.job_instance(all[0].id).unwrap().as_ref(), Some(&all[0]));
    let first = operator.job_executions(all[0].id).unwrap()[0].id;
    let again = stage.restart(first);
    assert_eq!(stage.executions(all[0].id), [again, first]);
}

/// The values of the returned objects.
///
/// Spec: OP-33, DOM-18, OP-24, ID-01, ID-02
#[test]
fn instances_and_executions_show_their_records() {
    let stage = Stage::new(&job(ONE));
    let operator = stage.operator();
    let execution = job_execution(&stage, stage.start("job", ()));
    assert_eq!(execution.job_name, "job");
    let expected = (BatchStatus::Completed, "COMPLETED");
    assert_eq!((execution.status, &*execution.exit_status), expected);
    let (started, ended) = (execution.started.unwrap(), execution.ended.unwrap());
    assert!(execution.created <= started && started <= ended && ended <= execution.last_updated);
    assert!(execution.created > Timestamp(0));
    let instance = operator.job_instance(execution.instance_id).unwrap().unwrap();
    assert_eq!((instance.id, &*instance.job_name), (execution.instance_id, "job"));
    let step = operator.step_executions(execution.id).unwrap().remove(0);
    assert_eq!((step.job_execution_id, &*step.step_name), (execution.id, "one"));
    assert!(started <= step.started && step.started <= step.ended.unwrap());
    assert_eq!(execution.name(), format!("job:{}:{}", instance.id, execution.id));
    assert!(!execution.name().contains(' '));
}

/// Parameters are returned as they were given; a restart has the parameters of the first execution, overlaid with its own.
///
/// Spec: OP-06, OP-09, OP-13, OP-15, OP-16
#[test]
fn a_restart_overlays_the_first_executions_parameters() {
    let stage = Stage::new(&job(ONE));
    let operator = stage.operator();
    let first = stage.start("job", [("fail", "process one"), ("a", "1")]);
    let second = restart_with(&stage, first, [("a", "2"), ("b", "2")]);
    let third = restart_with(&stage, second, [("c", "3")]);
    let shown = |execution| {
        let parameters = operator.parameters(execution).unwrap();
        let shown = parameters
            .iter()
            .map(|(name, value)| format!("{name}={}", value.value.to_text()));
        shown.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(shown(first), "a=1, fail=process one");
    assert_eq!(shown(second), "a=2, b=2, fail=process one");
    // Not the parameters of the second execution.
    assert_eq!(shown(third), "a=1, c=3, fail=process one");
    assert_eq!(shown(stage.start("job", ())), "");
    // Any execution of the instance can be given.
    let fourth = restart_with(&stage, first, [("fail", "")]);
    let instance = |execution| job_execution(&stage, execution).instance_id;
    assert_eq!(instance(fourth), instance(first));
}

/// `start` returns while the job runs; a running instance cannot be restarted.
///
/// Spec: OP-05, OP-07, OP-10, OP-14, OP-16, OP-34, RESTART-01, DOM-02
#[test]
fn a_running_instance_is_not_restarted() {
    let stage = Stage::new(&job(ONE));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let failed = stage.start("job", [("fail", "process one"), ("hold", "")]);
    let held = [("fail", ""), ("hold", "until opened")];
    let running = operator.restart(failed, held).unwrap();
    gate.pass("held");
    assert_eq!(operator.running_executions("job").unwrap(), [running]);
    assert_eq!(operator.progress(running).unwrap().steps[0].step, "one");
    assert_eq!(operator.progress(failed), None);
    for execution in [failed, running] {
        let error = operator.restart(execution, ()).unwrap_err();
        let JobOperatorError::JobRestart { cause, .. } = error else {
            panic!("{error}")
        };
        assert_matches!(cause, StartError::Running { execution, .. } if execution == running);
    }
    let stopped = operator.stop(failed).unwrap_err();
    assert_matches!(stopped, JobOperatorError::JobExecutionNotRunning(_));
    gate.open("go");
    assert_eq!(operator.wait(running).unwrap().status, BatchStatus::Completed);
}

/// Spec: OP-11, OP-31, RESTART-03, OP-14
#[test]
fn a_rejected_start_creates_no_rows() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="${artifact}"/></step>"#));
    let operator = stage.operator();
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[JSL0041]: the symbol `artifact` has no value
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="${artifact}"/></step>
      |                               ^^^^^^^^^^^ no job parameter, system property or enclosing property has this name
    "#);
    assert_eq!(operator.job_instance_count("job").unwrap(), 0);
    let failed = stage.start("job", [("artifact", "Task"), ("fail", "process one")]);
    let error = operator.restart(failed, [("artifact", "Nobody")]).unwrap_err();
    assert_matches!(
        error,
        JobOperatorError::JobRestart {
            cause: StartError::Definition(_),
            ..
        }
    );
    let instance = job_execution(&stage, failed).instance_id;
    assert_eq!(stage.executions(instance), [failed]);
}

/// A job that is no longer on the job path is still known by name, and cannot be restarted.
///
/// Spec: OP-14, OP-21, OP-32, DOM-20
#[test]
fn a_removed_job_is_known_by_its_executions() {
    let (stage, execution) = started(ONE, [("fail", "process one")]);
    stage.rewrite(r#"<job id="other"><step id="one"><batchlet ref="Task"/></step></job>"#);
    let operator = stage.another_runtime().job_operator();
    assert!(operator.job_names().unwrap().iter().eq(["job", "other"]));
    assert_eq!(operator.job_instance_count("job").unwrap(), 1);
    let error = operator.restart(execution, ()).unwrap_err();
    assert_matches!(&error, JobOperatorError::NoSuchJob { job, .. } if job == "job");
    let error = operator.start("job", ()).unwrap_err();
    assert_matches!(error, JobOperatorError::NoSuchJob { .. });
}

/// The operator is used from several threads, and outlives its runtime's variable.
///
/// Spec: OP-01, DOM-01, DOM-09
#[test]
fn the_operator_is_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let stage = Stage::new(&job(ONE));
    let operator = stage.operator();
    shared(&operator);
    let runs = std::thread::scope(|scope| {
        let run = || {
            let operator = operator.clone();
            let execution = operator.start("job", ()).unwrap();
            operator.wait(execution).unwrap()
        };
        let threads = [(); 4].map(|()| scope.spawn(run));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(runs.iter().all(|run| run.status == BatchStatus::Completed));
    let memory = BatchRuntime::builder()
        .repository("sqlite://:memory:")
        .job_path(stage.path().join("jobs").display().to_string());
    let operator = memory.build().unwrap().job_operator();
    assert_eq!(operator.job_instance_count("job").unwrap(), 0);
}

/// Every callback is called for every execution that ends, even if other callbacks fail, until it is deregistered.
///
/// Spec: OP-27, OP-28, OP-29, OP-30, OP-31
#[test]
fn callbacks_are_called_at_every_end() {
    let stage = impatient(&job(ONE));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let calls = Arc::new(Mutex::new(Vec::new()));
    let callback = |name: &'static str| {
        let calls = Arc::clone(&calls);
        move |execution: &JobExecution| calls.lock().unwrap().push(format!("{name} {}", execution.status))
    };
    let first = operator.register_job_end_callback(callback("first")).unwrap();
    let panics = |_: &JobExecution| panic!("no callback today");
    let broken = operator.register_job_end_callback(panics).unwrap();
    let last = operator.register_job_end_callback(callback("last")).unwrap();
    assert!(first != broken && broken != last && first != last);
    stage.start("job", ());
    let failed = stage.start("job", [("fail", "process one")]);
    operator.deregister_job_end_callback(first).unwrap();
    let held = [("fail", ""), ("hold", "until opened")];
    let stopped = operator.restart(failed, held).unwrap();
    gate.pass("held");
    assert!(!operator.stop(stopped).unwrap());
    gate.open("go");
    operator.wait(stopped).unwrap();
    let expected = [
        "first COMPLETED",
        "last COMPLETED",
        "first FAILED",
        "last FAILED",
        "last STOPPED",
    ];
    assert_eq!(*calls.lock().unwrap(), expected);
    for unknown in [first, CallbackId(77)] {
        let error = operator.deregister_job_end_callback(unknown).unwrap_err();
        assert_matches!(error, JobOperatorError::CallbackDeregistration(id) if id == unknown.0);
    }
}

/// The callback is called after the end is recorded: a stop is then too late, and a wait for the execution returns at once.
///
/// Spec: OP-28, OP-30, STATUS-23
#[test]
fn a_callback_is_called_after_the_end() {
    let stage = Stage::new(&job(ONE));
    let operator = stage.operator();
    let (own, seen) = (operator.clone(), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&seen);
    let callback = move |execution: &JobExecution| {
        let refused = own.stop(execution.id).unwrap_err();
        let waited = own.wait(execution.id).unwrap();
        sink.lock().unwrap().push(format!("{refused}, {}", waited.status));
    };
    operator.register_job_end_callback(callback).unwrap();
    let execution = stage.start("job", ());
    let expected = format!("job execution {execution} is not running, COMPLETED");
    assert_eq!(*seen.lock().unwrap(), [expected]);
}

/// Summaries are one line each and contain the values that the draft's operator shows.
///
/// Spec: OP-19, OP-20, OP-25, OP-26
#[test]
fn summaries_are_one_line() {
    let stage = impatient(&job(ONE));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let unknown = JobExecutionId(77);
    let error = operator.summary(unknown).unwrap_err();
    assert_matches!(error, JobOperatorError::NoSuchJobExecution(id) if id == unknown);
    let error = operator.step_execution_summaries(unknown).unwrap_err();
    assert_matches!(error, JobOperatorError::NoSuchJobExecution(id) if id == unknown);
    assert!(operator.running_job_instances("no such job").unwrap().is_empty());

    let running = operator.start("job", [("hold", "until opened")]).unwrap();
    gate.pass("held");
    let instances = operator.running_job_instances("job").unwrap();
    assert_eq!(
        operator.job_instance(instances[0].id).unwrap().as_slice(),
        instances
    );
    let summary = operator.summary(running).unwrap();
    assert_starts(&summary, "job:1:1 STARTED, exit status UNKNOWN, created 20");
    assert!(summary.ends_with(", not ended"), "{summary}");
    gate.open("go");
    operator.wait(running).unwrap();
    assert!(operator.running_job_instances("job").unwrap().is_empty());
    let summary = operator.summary(running).unwrap();
    assert_contains(&summary, "COMPLETED, exit status COMPLETED");
    assert_contains(&summary, ", ended 20");

    let summaries = operator.step_execution_summaries(running).unwrap();
    let (id, summary) = summaries.first_key_value().unwrap();
    assert_starts(summary, "one COMPLETED, exit status DONE, started 20");
    let counters =
        "read 0, written 0, filtered 0, commits 0, rollbacks 0, read skips 0, process skips 0, write skips 0";
    assert!(summary.ends_with(counters), "{summary}");
    let step = operator.step_execution(running, *id).unwrap().unwrap();
    assert_eq!(step.step_name, "one");
    assert_eq!(operator.step_execution(unknown, *id).unwrap(), None);
}

/// An execution of a complete instance is not abandoned, whichever of its executions completed it.
///
/// Spec: STATUS-23
#[test]
fn an_execution_of_a_complete_instance_cannot_be_abandoned() {
    let stage = Stage::new(&job(ONE));
    let operator = stage.operator();
    let failed = stage.start("job", [("fail", "process one")]);
    restart_with(&stage, failed, [("fail", "")]);
    let error = operator.abandon(failed).unwrap_err();
    assert_matches!(error, JobOperatorError::JobInstanceAlreadyComplete { execution, .. } if execution == failed);
    assert_eq!(job_execution(&stage, failed).status, BatchStatus::Failed);
}
