//! `ContextAndListenerTests`, `ContextsGetIdTests`, `ExecuteTests`, and the properties of the contexts.

use batch_runtime::BatchStatus::{Completed, Failed};

use crate::case::{Case, case};
use crate::run::expect;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = contexts();
    cases.extend(isolation());
    cases.extend(properties());
    cases
}

fn contexts() -> Vec<Case> {
    vec![
        case(
            "ContextAndListenerTests.testExamineJobContextInArtifact",
            "JobContextTestBatchlet",
        )
        .start("app.timeinterval=10")
        .is(Completed)
        .check("the exit status has the ids", |run| {
            let execution = run.execution()?;
            let expected = format!(
                "JobName=job1;JobInstanceId={};JobExecutionId={}",
                execution.instance_id, execution.id
            );
            expect("exit status", execution.exit_status, expected)
        }),
        case(
            "ContextAndListenerTests.testExamineStepContextInArtifact",
            "StepContextTestBatchlet",
        )
        .start("app.timeinterval=10")
        .steps(1)
        .is(Completed)
        .check("the exit status has the ids", |run| {
            let expected = format!("StepName=step1;StepExecutionId={}", run.steps()?[0].id);
            expect("exit status", run.execution()?.exit_status, expected)
        }),
        case(
            "ContextAndListenerTests.testOneArtifactIsJobAndStepListener",
            "oneArtifactIsJobAndStepListener",
        )
        .start("app.timeinterval=10")
        .ends(
            Completed,
            "BeforeJobBeforeStepUnusedExitStatusForPartitionsAfterStep\
             BeforeStepUnusedExitStatusForPartitionsAfterStepAfterJob",
        ),
        case(
            "ContextAndListenerTests.testgetException",
            "job_chunk_getException",
        )
        .start("")
        .ends(Failed, "MyChunkListener: found instanceof MyParentException"),
        case(
            "ContextAndListenerTests.testgetExceptionListenerBased",
            "job_chunk_getExceptionListeners",
        )
        .start("")
        .ends(Failed, "MyChunkListener: found instanceof MyParentException"),
        case(
            "ContextsGetIdTests.testJobContextGetId",
            "contexts_getid_jobcontext",
        )
        .start("")
        .ends(Completed, "job1"),
        case(
            "ContextsGetIdTests.testStepContextGetId",
            "contexts_getid_stepcontext",
        )
        .start("")
        .ends(Completed, "step1"),
        case("ExecuteTests.testMyStepContextBatchlet", "test_batchlet_stepCtx")
            .start("")
            .ends(Completed, "JOB: VERY GOOD INVOCATION"),
    ]
}

fn isolation() -> Vec<Case> {
    vec![
        case(
            "ContextAndListenerTests.testJobContextIsUniqueForMainThreadAndPartitions",
            "job_partitioned_1step",
        )
        .start("")
        .ends(Completed, "COMPLETED"),
        case(
            "ContextAndListenerTests.testJobContextIsUniqueForMainThreadAndFlowsInSplits",
            "job_split_batchlet_4steps",
        )
        .start("")
        .ends(Completed, "COMPLETED"),
        case(
            "ContextAndListenerTests.testStepContextIsUniqueForMainThreadAndPartitions",
            "job_partitioned_1step",
        )
        .start("")
        .is(Completed)
        .every_step_exit("COMPLETED"),
    ]
}

fn properties() -> Vec<Case> {
    vec![
        case(
            "JobLevelPropertiesTests.testJobLevelPropertiesCount",
            "job_level_properties_count",
        )
        .start("com.ibm.jbatch.tck.tests.jslxml.JobLevelPropertiesTests.parm1=should.not.appear.in.job.context.properties")
        .ends(Completed, "VERY GOOD INVOCATION"),
        case(
            "JobLevelPropertiesTests.testJobLevelPropertiesPropertyValue",
            "job_level_properties_value",
        )
        .start("")
        .ends(Completed, "bar"),
        case(
            "JobLevelPropertiesTests.testJobLevelPropertiesShouldNotBeAvailableThroughStepContext",
            "job_level_properties_scope",
        )
        .start("")
        .ends(Completed, "COMPLETED"),
        // The TCK builds the parameters too, and does not pass them.
        case(
            "StepLevelPropertiesTests.testStepLevelPropertiesCount",
            "step_level_properties_count",
        )
        .start("com.ibm.jbatch.tck.tests.jslxml.StepLevelPropertiesTests.parm1=should.not.appear.in.step.context.properties")
        .ends(Completed, "VERY GOOD INVOCATION"),
        case(
            "StepLevelPropertiesTests.testStepLevelPropertiesPropertyValue",
            "step_level_properties_value",
        )
        .start("")
        .ends(Completed, "bar"),
        case(
            "StepLevelPropertiesTests.testStepLevelPropertiesShouldNotBeAvailableThroughJobContext",
            "step_level_properties_scope",
        )
        .start("")
        .ends(Completed, "COMPLETED"),
    ]
}
