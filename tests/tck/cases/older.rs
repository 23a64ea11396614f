//! Nine of the ten methods that only the TCK of JSR 352 1.1 has (<https://github.com/WASdev/standards.jsr352.tck>), on jobs that the
//! current TCK does not use.

use batch_runtime::BatchStatus::{Completed, Failed, Stopped};

use crate::case::{Case, case};
use crate::run::{Run, expect};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = limits();
    cases.extend(deciders());
    cases.extend(others());
    cases
}

fn limits() -> Vec<Case> {
    let by_all = "throw.reader.exception.for.these.items=0, throw.processor.exception.for.these.items=1, \
        throw.writer.exception.for.these.items=2";
    vec![
        case("ChunkTests.testChunkRetryLimit0", "chunkRetryLimitTest")
            .start("retry.limit=0, throw.reader.exception.for.these.items=0")
            .ends(Failed, "BasicReaderException:Item#0"),
        case(
            "ChunkTests.testChunkRetryLimitExceededByRPWCombo",
            "chunkRetryLimitTest",
        )
        .start(format!("retry.limit=2, {by_all}"))
        .ends(Failed, "BasicWriterException:Item#2"),
        case("ChunkTests.testChunkSkipLimit0", "chunkSkipLimitTest")
            .start("skip.limit=0, throw.reader.exception.for.these.items=0")
            .ends(Failed, "BasicReaderException:Item#0"),
        case(
            "ChunkTests.testChunkSkipLimitExceededByRPWCombo",
            "chunkSkipLimitTest",
        )
        .start(format!("skip.limit=2, {by_all}"))
        .ends(Failed, "BasicWriterException:Item#2"),
        case("ChunkTests.testChunkSkipWriteVerify", "chunkSkipVerifyTest")
            .start("app.arraysize=30")
            .ends(
                Completed,
                "VerifySkipWriteListener: GOOD STATUS, GOOD OBJS PASSED IN",
            ),
    ]
}

fn deciders() -> Vec<Case> {
    let flows = "split1flow1step1.allow.start.if.complete";
    let other = "split1flow2step1.allow.start.if.complete";
    vec![
        case(
            "DeciderTests.testDeciderReceivesCorrectStepExecutionAfterStep",
            "decider_receives_correct_step_execution_after_step",
        )
        .start("allow.start.if.complete=false, decider.stop.on=*")
        .is(Stopped)
        .check("the decider got this execution", |run| {
            decided(run, &[("step1", 0)])
        })
        .restart_with("")
        .is(Stopped)
        .check("the decider got the first execution", |run| {
            decided(run, &[("step1", 0)])
        })
        .restart_with("allow.start.if.complete=true, decider.stop.on=NONE")
        .is(Completed)
        .check("the decider got the third execution", |run| {
            decided(run, &[("step1", 2)])
        }),
        case(
            "DeciderTests.testDeciderReceivesCorrectStepExecutionsAfterSplit",
            "decider_receives_correct_step_executions_after_split",
        )
        .start(format!("{flows}=false, {other}=false, decider.stop.on=*"))
        .is(Stopped)
        .check("the decider got both of this execution", |run| {
            after_split(run, 0, 0)
        })
        .restart_with("")
        .is(Stopped)
        .check("the decider got both of the first execution", |run| {
            after_split(run, 0, 0)
        })
        .restart_with(format!("{flows}=true, {other}=true"))
        .is(Stopped)
        .check("the decider got both of the third execution", |run| {
            after_split(run, 2, 2)
        })
        .restart_with(format!("{flows}=false, decider.stop.on=NONE"))
        .is(Completed)
        .check("the decider got one of the third and one of the fourth", |run| {
            after_split(run, 2, 3)
        }),
    ]
}

/// Checks that the decider got the steps of two flows, of the job executions of these numbers.
fn after_split(run: &mut Run, flow1: usize, flow2: usize) -> Result<(), String> {
    decided(run, &[("split1flow1step1", flow1), ("split1flow2step1", flow2)])
}

/// Checks that the decider of the last execution got these steps, each of the job execution of this number.
fn decided(run: &mut Run, steps: &[(&str, usize)]) -> Result<(), String> {
    let mut expected = String::new();
    for (name, execution) in steps {
        let found = run.operator.step_executions(run.executions[*execution]);
        let found = found.map_err(crate::run::text)?;
        let step = found.iter().find(|step| step.step_name == *name);
        let step = step.ok_or_else(|| format!("`{name}` has not run in execution {execution}"))?;
        expected += &format!("{name}:{};", step.id);
    }
    expect("exit status", run.execution()?.exit_status, expected)
}

fn others() -> Vec<Case> {
    vec![
        case(
            "ExecutionTests.testJobWithNoMatchingTransitionElement",
            "job_batchlet_no_matching_element",
        )
        .start("")
        .ends(Completed, "nullUnusedExitStatusForPartitions")
        .steps(1),
        case(
            "ParallelExecutionTests.testPartitionedStepPersistentUserData",
            "partitioned_step_persistent_user_data",
        )
        .start("execution.number=1, number.of.items.to.be.read=3, throw.reader.exception.for.these.items=1")
        .is(Failed)
        .restart("execution.number=2, number.of.items.to.be.read=3, throw.reader.exception.for.these.items=")
        .is(Completed),
    ]
}
