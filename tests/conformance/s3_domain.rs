//! 3: jobs, instances, executions, steps.

use batch_runtime::BatchStatus;
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{
    Gate, assert_completed, calls, chunk_job, job, job_execution, restart_with, started, tree,
};

const TWO: &str =
    r#"<step id="one" next="two"><batchlet ref="Task"/></step><step id="two"><batchlet ref="Task"/></step>"#;

/// Every start creates a new instance with an execution, for any parameters; only a restart adds an execution.
///
/// Spec: DOM-01, DOM-05, DOM-07, DOM-10, DOM-11, DOM-12, DOM-13, DOM-14, DOM-20, DOM-31, ID-01, ID-02, ID-03, ID-04,
/// Spec: ID-05, ID-06, ID-07, OP-07, OP-12, OP-16
#[test]
fn a_start_makes_an_instance_and_a_restart_an_execution() {
    let stage = Stage::new(&job(TWO));
    let operator = stage.operator();
    let first = stage.start("job", [("fail", "process one")]);
    let second = stage.start("job", [("fail", "process one")]);
    let third = restart_with(&stage, first, [("fail", "")]);
    let execution = |id| job_execution(&stage, id);
    let (a, b) = (execution(first).instance_id, execution(second).instance_id);
    assert_eq!(execution(third).instance_id, a, "a restart stays in its instance");
    assert!(a < b && first < second && second < third);
    assert_eq!(stage.executions(a), [third, first]);
    assert_eq!(stage.executions(b), [second]);
    let instances = operator.job_instances("job", 0, 9).unwrap();
    assert!(instances.iter().map(|instance| instance.id).eq([b, a]));
    assert_ne!(instances[0].job_key, instances[1].job_key);
    assert_eq!(execution(third).name(), format!("job:{a}:{third}"));
    // The last execution makes the instance complete; the earlier one is unchanged.
    assert_eq!(execution(first).status, BatchStatus::Failed);
    assert_eq!(execution(third).status, BatchStatus::Completed);
    assert!(operator.restart(first, ()).is_err());
}

/// A new instance starts from the beginning, even after another instance with the same parameters.
///
/// Spec: DOM-05, DOM-06, DOM-07, DOM-08
#[test]
fn instances_do_not_share_state() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let first = stage.start("job", [("fail", "read 4")]);
    stage.log();
    stage.start("job", [("fail", "read 4")]);
    assert_snapshot!(calls(&stage, &["open"]), @"open reader at the beginning · open writer at the beginning");
    stage.restart(first);
    assert_eq!(calls(&stage, &["open"]), "open reader at 2 · open writer at 2");
}

/// Two instances of one job with equal parameters run at the same time.
///
/// Spec: DOM-09, OP-10, OP-05, DOM-01
#[test]
fn two_instances_run_at_the_same_time() {
    let stage = Stage::new(&job(TWO));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let hold = [("hold", "until opened")];
    let first = operator.start("job", hold).unwrap();
    let start = || stage.operator().start("job", hold).unwrap();
    let second = std::thread::scope(|scope| scope.spawn(start).join().unwrap());
    gate.pass("held");
    assert_eq!(operator.running_executions("job").unwrap(), [second, first]);
    gate.open("go");
    for execution in [first, second] {
        operator.wait(execution).unwrap();
        assert_completed(&stage, execution);
    }
    assert_eq!(operator.running_executions("job").unwrap(), []);
}

/// A step that does not start has no step execution: after a failure, after a stop, and when a restart skips it.
///
/// Spec: DOM-15, DOM-16, DOM-17, DOM-18, STATUS-15, RESTART-05, JSL-STEP-09
#[test]
fn only_started_steps_have_executions() {
    let (stage, first) = started(TWO, [("fail", "process one")]);
    let second = restart_with(&stage, first, [("fail", "process two")]);
    let third = restart_with(&stage, second, [("fail", "")]);
    assert_snapshot!(format!("{}{}{}", tree(&stage, first), tree(&stage, second), tree(&stage, third)), @r"
    job job FAILED | cannot process one | thrown by #[process] of batchlet `Task`
      step one FAILED | the job's message
    job job FAILED | cannot process two | thrown by #[process] of batchlet `Task`
      step one COMPLETED DONE
      step two FAILED | the job's message
    job job COMPLETED
      step two COMPLETED DONE
    ");
    let of = |execution| stage.operator().step_executions(execution).unwrap();
    let (a, b) = (of(second).remove(1), of(third).remove(0));
    assert_eq!((a.step_name.as_str(), b.step_name.as_str()), ("two", "two"));
    assert_ne!(a.id, b.id, "each attempt has an execution of its own");
    assert_eq!((a.job_execution_id, b.job_execution_id), (second, third));
    assert!(b.ended.unwrap() >= b.started);
}

/// Spec: DOM-13, OP-14, RESTART-01
#[test]
fn a_complete_instance_does_not_run_again() {
    let (stage, execution) = started(TWO, ());
    let refused = stage.operator().restart(execution, ()).unwrap_err();
    assert_snapshot!(refused, @"this instance of job `job` is complete (execution 1 ended COMPLETED); use other parameters for another instance, or `start`, which always creates a new one");
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 1);
}
