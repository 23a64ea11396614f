//! `ExecutionTests`, `StepExecutionTests` and `JobExecutableSequenceTests`.

use std::collections::BTreeSet;

use batch_runtime::BatchStatus::{Completed, Failed, Stopped};

use crate::artifacts::values::GOOD;
use crate::case::{Case, case};
use crate::run::expect;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = executions();
    cases.extend(step_executions());
    cases
}

fn executions() -> Vec<Case> {
    vec![
        case(
            "ExecutionTests.testInvokeJobWithOneBatchletStep",
            "job_batchlet_1step",
        )
        .start("")
        .is(Completed),
        case(
            "ExecutionTests.testInvokeJobWithTwoStepSequenceOfBatchlets",
            "job_batchlet_2steps",
        )
        .start("")
        .is(Completed),
        case(
            "ExecutionTests.testInvokeJobWithFourStepSequenceOfBatchlets",
            "job_batchlet_4steps",
        )
        .start("")
        .is(Completed),
        case(
            "ExecutionTests.testInvokeJobWithNextElement",
            "job_batchlet_nextElement",
        )
        .start("")
        .is(Completed),
        case(
            "ExecutionTests.testInvokeJobWithFailElement",
            "job_batchlet_failElement",
        )
        .start("")
        .ends(Failed, "TEST_FAIL"),
        case(
            "ExecutionTests.testInvokeJobWithStopElement",
            "job_batchlet_stopElement",
        )
        .start("")
        .is(Stopped),
        case(
            "ExecutionTests.testInvokeJobWithEndElement",
            "job_batchlet_endElement",
        )
        .start("")
        .ends(Completed, "TEST_ENDED"),
        case("ExecutionTests.testInvokeJobSimpleChunk", "job_chunk_simple")
            .start("")
            .is(Completed),
        case(
            "ExecutionTests.testInvokeJobUsingTCCL",
            "test_artifact_load_classloader",
        )
        .start("")
        .is(Completed),
        case("ExecutionTests.testCheckpoint", "job_chunk_checkpoint")
            .start("")
            .is(Completed),
        case("ExecutionTests.testSimpleFlow", "job_flow_batchlet_4steps")
            .start("")
            .is(Completed),
        case(
            "JobExecutableSequenceTests.testJobExecutableSequenceToUnknown",
            "job_executable_sequence_invalid",
        )
        .start_fails("JSL0012"),
    ]
}

fn step_executions() -> Vec<Case> {
    vec![
        case(
            "StepExecutionTests.testOneStepExecutionStatus",
            "job_batchlet_1step",
        )
        .start("")
        .steps(1)
        .every_step(Completed)
        .is(Completed),
        case(
            "StepExecutionTests.testFourStepExecutionStatus",
            "job_batchlet_4steps",
        )
        .start("")
        .steps(4)
        .every_step(Completed)
        .check("the ids of the step executions differ", |run| {
            let ids: BTreeSet<_> = run.steps()?.into_iter().map(|step| step.id).collect();
            expect("ids", ids.len(), 4)
        })
        .is(Completed),
        case(
            "StepExecutionTests.testFailedStepExecutionStatus",
            "job_batchlet_failElement",
        )
        .start("")
        .steps(1)
        .ends(Failed, "TEST_FAIL"),
        case(
            "StepExecutionTests.testStoppedStepExecutionStatus",
            "job_batchlet_stopElement",
        )
        .start("")
        .steps(1)
        .is(Stopped),
        case(
            "StepExecutionTests.testPersistedStepData",
            "job_batchlet_persistedData",
        )
        .start("force.failure=true")
        .is(Failed)
        .steps(1)
        .every_step(Failed)
        .user_data("step1", "data", 4)
        .restart_with("")
        .steps(1)
        .every_step(Completed)
        .user_data("step1", "data", 5),
        case(
            "StepExecutionTests.testStepExecutionExitStatus",
            "job_batchlet_failElement",
        )
        .start("")
        .steps(1)
        .every_step_exit(GOOD)
        .every_step(Completed)
        .ends(Failed, "TEST_FAIL"),
        case(
            "StepExecutionTests.testStepInFlowStepExecution",
            "flow_transition_to_step",
        )
        .start("")
        .steps(4)
        .every_step_exit(GOOD)
        .every_step(Completed)
        .ends(Completed, "flow1step1, flow1step2, flow1step3, step1"),
        case(
            "StepExecutionTests.testStepInFlowInSplitStepExecution",
            "split_batchlet_4steps",
        )
        .start("")
        .ends(Completed, "COMPLETED")
        .steps(4)
        .every_step_exit(GOOD)
        .every_step(Completed),
    ]
}
