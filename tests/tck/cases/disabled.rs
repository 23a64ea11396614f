//! The methods that the TCK lists and does not run, without the method of `CDITests`.

use batch_runtime::BatchStatus::{Completed, Failed};

use crate::case::{Case, case};
use crate::run::{Run, expect};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = chunks();
    cases.extend(parallel());
    cases
}

fn chunks() -> Vec<Case> {
    vec![
        case(
            "ChunkTests.testChunkSkipMultipleExceptions",
            "chunkSkipMultipleExceptions",
        )
        .start("execution.number=1, readrecord.fail=1,3, app.arraysize=30")
        .ends(Failed, "MySkipReadListener: GOOD STATUS"),
        case(
            "ChunkTests.testChunkRetryMultipleExceptions",
            "chunkRetryMultipleExceptions",
        )
        .start("execution.number=1, readrecord.fail=1,3,5, app.arraysize=30")
        .ends(Failed, "MyMultipleExceptionsRetryReadListener: GOOD STATUS"),
        case(
            "ExecutionTests.testInvokeJobChunkWithFullAttributes",
            "job_chunk_full_attributes",
        )
        .start("")
        .is(Completed),
        case("ListenerOnErrorTests.testOnWriteErrorItems", "listenerOnError")
            .start("write.fail=true")
            .ends(Failed, "[10, 12, 14, 16, 18]"),
        case("ListenerOnErrorTests.testOnProcessErrorItems", "listenerOnError")
            .start("process.fail=true")
            .ends(Failed, "8"),
    ]
}

fn parallel() -> Vec<Case> {
    vec![
        case(
            "ParallelContextPropagationTests.testPartitionContextPropagation",
            "partitionCtxPropagation",
        )
        .start("")
        .is(Completed)
        .steps(1)
        .check("each partition has the ids of the step", |run| {
            let expected = format!("null{}", ids(run, 0)?.repeat(3));
            expect("exit status", run.execution()?.exit_status, expected)
        }),
        case(
            "ParallelContextPropagationTests.testSplitFlowContextPropagation",
            "splitFlowCtxPropagation",
        )
        .start("")
        .is(Completed)
        .steps(2)
        .check("each flow has the ids of its step", |run| {
            for (index, step) in run.steps()?.into_iter().enumerate() {
                expect(
                    "exit status",
                    step.exit_status,
                    format!("null{}", ids(run, index)?),
                )?;
            }
            Ok(())
        }),
        case(
            "PartitionRerunTests.testRerunPartitionAndBatchlet",
            "partitionRerun",
        )
        .start("force.failure=true, force.failure2=false")
        .check("two partitions sent the id of the step", |run| sent(run, 2))
        .is(Failed)
        .restart("force.failure=false, force.failure2=true")
        .check("one partition sent the id of the step", |run| sent(run, 1))
        .is(Failed)
        .restart("force.failure=false, force.failure2=false")
        .is(Completed)
        .check("three partitions sent the id of the step", |run| sent(run, 3)),
    ]
}

/// Returns the ids of a step execution as the artifacts report them.
fn ids(run: &Run, step: usize) -> Result<String, String> {
    let execution = run.execution()?;
    let step = run.steps()?.remove(step);
    Ok(format!(
        ":J{}I{}S{}",
        execution.id, execution.instance_id, step.id
    ))
}

/// Checks that this number of partitions have sent the id of the step execution.
fn sent(run: &Run, partitions: usize) -> Result<(), String> {
    let steps = run.steps()?;
    let step = steps.iter().find(|step| step.step_name == "step1");
    let id = step.ok_or("step1 has not run")?.id.to_string();
    let expected = format!("{id},").repeat(partitions);
    expect("exit status", run.execution()?.exit_status, expected)
}
