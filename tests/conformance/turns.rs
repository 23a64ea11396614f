//! Jobs whose executions run one at a time, an extension.

use batch_runtime::operator::StartError;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperatorError};
use batch_tests::fleet::until;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{Gate, assert_matches, job, job_execution, refused, restart_with};

/// Logs its name, and passes the gate of this name.
#[batchlet("TurnHolder")]
fn turn_holder(
    #[batch_property] log: &str,
    #[batch_property] folder: &str,
    #[batch_property] name: &str,
) -> Result<String, BatchError> {
    say(log, name);
    match name {
        "fails" => Err(BatchError::msg("as requested")),
        name => {
            Gate::of(folder).pass(name);
            Ok("DONE".into())
        }
    }
}

fn stage(concurrency: &str) -> Stage {
    Stage::new(&job(&format!(
        r#"<properties><property name="batch.job.concurrency" value="{concurrency}"/></properties>
        <step id="one"><batchlet ref="TurnHolder"/></step>"#
    )))
}

fn begin(stage: &Stage, name: &str) -> JobExecutionId {
    stage.operator().launch("job", [("name", name)]).unwrap()
}

/// Starts an execution that has to wait, and returns it once it waits for another one.
fn queue(stage: &Stage, name: &str, before: JobExecutionId) -> JobExecutionId {
    let execution = begin(stage, name);
    let shown = until("the wait is shown", || {
        stage.operator().progress(execution)?.waits_for
    });
    assert_eq!(shown, before);
    execution
}

/// Executions of a job run in the order of their arrival; one that is stopped while it waits never starts.
///
/// Spec: TURN-01, TURN-02, TURN-03
#[test]
fn executions_wait_for_their_turn() {
    let stage = stage("queue");
    let gate = Gate::at(&stage);
    let operator = stage.operator();
    let first = begin(&stage, "a");
    let second = queue(&stage, "b", first);
    let third = queue(&stage, "c", first);
    let fourth = queue(&stage, "d", first);
    assert_eq!(operator.waits_for(first).unwrap(), None);
    assert_eq!(operator.waits_for(third).unwrap(), Some(first));
    assert_eq!(job_execution(&stage, second).status, BatchStatus::Starting);

    operator.stop(third).unwrap();
    assert_eq!(operator.wait(third).unwrap().status, BatchStatus::Stopped);
    assert!(operator.step_executions(third).unwrap().is_empty());
    assert_eq!(operator.waits_for(third).unwrap(), None);

    for name in ["a", "b", "d", "c"] {
        gate.open(name);
    }
    for execution in [first, second, fourth] {
        assert_eq!(operator.wait(execution).unwrap().status, BatchStatus::Completed);
    }
    restart_with(&stage, third, [("name", "c")]);
    assert_eq!(stage.log(), ["a", "b", "d", "c"]);
}

fn assert_one_at_a_time(cause: StartError, running: JobExecutionId) {
    assert_matches!(cause, StartError::OneAtATime { execution } if execution == running);
}

/// With `one`, a second execution of the job is rejected and leaves nothing in the repository.
///
/// Spec: TURN-01
#[test]
fn a_second_execution_is_rejected() {
    let stage = stage("one");
    let operator = stage.operator();
    let first = begin(&stage, "a");
    match operator.launch("job", [("name", "b")]) {
        Err(JobOperatorError::JobStart { cause, .. }) => assert_one_at_a_time(cause, first),
        other => panic!("{other:?}"),
    }
    assert_snapshot!(refused(&stage, "job", [("name", "b")]), @"cannot start job `job`: its executions run one at a time (`batch.job.concurrency`), and execution 1 has not ended; stop it first, or wait");
    assert_eq!(operator.job_instance_count("job").unwrap(), 1);
    Gate::at(&stage).open("a");
    operator.wait(first).unwrap();

    let failed = begin(&stage, "fails");
    assert_eq!(operator.wait(failed).unwrap().status, BatchStatus::Failed);
    let next = begin(&stage, "b");
    match operator.restart(failed, [("name", "b")]) {
        Err(JobOperatorError::JobRestart { cause, .. }) => assert_one_at_a_time(cause, next),
        other => panic!("{other:?}"),
    }
    Gate::at(&stage).open("b");
    operator.wait(next).unwrap();
    let instance = job_execution(&stage, failed).instance_id;
    assert_eq!(stage.executions(instance), [failed]);
    restart_with(&stage, failed, [("name", "b")]);
}

/// Spec: TURN-01
#[test]
fn other_values_are_reported() {
    assert_snapshot!(refused(&stage("several"), "job", [("name", "a")]), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0012]: invalid value "several" for `batch.job.concurrency`
     --> jobs/job.xml:2:59
      |
    2 | <properties><property name="batch.job.concurrency" value="several"/></properties>
      |                                                           ^^^^^^^ expected `any`, `one` or `queue`
      = help: `batch.job.concurrency` is a property of the runtime
    "#);
}
