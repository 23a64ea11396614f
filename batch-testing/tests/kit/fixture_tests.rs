//! Executions that a test invents.

use batch_runtime::execution::StepCounters;
use batch_runtime::operator::Purge;
use batch_runtime::{BatchRuntime, BatchStatus, JobOperator, Timestamp};
use batch_testing::{ExecutionFixture, InstanceFixture};

fn operator() -> JobOperator {
    let runtime = BatchRuntime::builder().repository("sqlite://:memory:");
    runtime.build().unwrap().job_operator()
}

fn began() -> Timestamp {
    "2026-11-23T22:00".parse().unwrap()
}

#[test]
fn an_execution_may_have_any_status() {
    let operator = operator();
    for status in BatchStatus::ALL {
        let execution = ExecutionFixture::new(status, began()).message("a message").step(
            "load",
            status,
            StepCounters {
                reads: 7,
                ..StepCounters::default()
            },
        );
        let instance = InstanceFixture::new("payroll")
            .parameters([("status", status.to_string())])
            .execution(execution);
        let id = instance.insert(&operator).unwrap()[0];
        let found = operator.job_execution(id).unwrap().unwrap();
        assert_eq!((found.status, found.ended.is_some()), (status, status.is_final()));
        assert_eq!(
            (found.started, found.exit_message.as_str()),
            (Some(began()), "a message")
        );
        let steps = operator.step_executions(id).unwrap();
        assert_eq!((steps[0].status, steps[0].counters.reads), (status, 7));
        let parameters = operator.parameters(id).unwrap();
        assert_eq!(parameters.get("status"), Some(status.to_string()));
    }
    let error = InstanceFixture::new("").insert(&operator).unwrap_err();
    assert!(error.to_string().contains("job"), "{error}");
}

/// The operator's commands work on them as on executions that ran.
#[test]
fn programs_can_work_on_fixtures() {
    let operator = operator();
    let ids = InstanceFixture::new("payroll")
        .execution(ExecutionFixture::new(BatchStatus::Failed, began()))
        .execution(ExecutionFixture::new(BatchStatus::Started, began()))
        .insert(&operator)
        .unwrap();
    // It has no lease, so it is not known to be dead.
    assert!(operator.dead_executions().unwrap().is_empty());
    operator.declare_dead(ids[1]).unwrap();
    let found = operator.job_execution(ids[1]).unwrap().unwrap();
    assert_eq!(found.status, BatchStatus::Failed);

    InstanceFixture::new("report")
        .execution(ExecutionFixture::new(BatchStatus::Completed, began()).exit_status("EMPTY"))
        .insert(&operator)
        .unwrap();
    let purged = operator.purge(&Purge::default(), None).unwrap();
    assert_eq!(purged, 1);
    assert_eq!(operator.job_execution(ids[1]).unwrap().unwrap().id, ids[1]);
}
