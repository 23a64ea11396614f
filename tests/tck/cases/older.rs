//! Ten methods that only the TCK of JSR 352 1.1 has (<https://github.com/WASdev/standards.jsr352.tck>), on jobs that the
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
        case("ChunkTests.testChunkRetryLimitExceededByRPWCombo", "chunkRetryLimitTest")
            .start(format!("retry.limit=2, {by_all}"))
            .ends(Failed, "BasicWriterException:Item#2"),
        case("ChunkTests.testChunkSkipLimit0", "chunkSkipLimitTest")
            .start("skip.limit=0, throw.reader.exception.for.these.items=0")
            .ends(Failed, "BasicReaderException:Item#0"),
        case("ChunkTests.testChunkSkipLimitExceededByRPWCombo", "chunkSkipLimitTest")
            .start(format!("skip.limit=2, {by_all}"))
            .ends(Failed, "BasicWriterException:Item#2"),
        case("ChunkTests.testChunkSkipWriteVerify", "chunkSkipVerifyTest")
            .start("app.arraysize=30")
            .ends(Completed, "VerifySkipWriteListener: GOOD STATUS, GOOD OBJS PASSED IN"),
    ]
}

fn deciders() -> Vec<Case> {
    vec![
        case(
            "DeciderTests.testDeciderReceivesCorrectStepExecutionAfterStep",
            "decider_receives_correct_step_execution_after_step",
        )
        .start("allow.start.if.complete=false, decider.stop.on=*")
        .is(Stopped)
        .check("the decider got this execution", |run| decided(run, &[("step1", 0)]))
        .restart("allow.start.if.complete=false, decider.stop.on=NEVER")
        .is(Completed)
        .check("the decider got the first execution", |run| decided(run, &[("step1", 0)]))
        .start("allow.start.if.complete=true, decider.stop.on=*")
        .is(Stopped)
        .restart("allow.start.if.complete=true, decider.stop.on=NEVER")
        .is(Completed)
        .check("the decider got the second execution", |run| decided(run, &[("step1", 3)])),
        case(
            "DeciderTests.testDeciderReceivesCorrectStepExecutionAfterSplit",
            "decider_receives_correct_step_executions_after_split",
        )
        .start("split1flow1step1.allow.start.if.complete=false, split1flow2step1.allow.start.if.complete=true, decider.stop.on=*")
        .is(Stopped)
        .check("the decider got both of this execution", |run| {
            decided(run, &[("split1flow1step1", 0), ("split1flow2step1", 0)])
        })
        .restart("split1flow1step1.allow.start.if.complete=false, split1flow2step1.allow.start.if.complete=true, decider.stop.on=NEVER")
        .is(Completed)
        .check("the decider got one of each execution", |run| {
            decided(run, &[("split1flow1step1", 0), ("split1flow2step1", 1)])
        }),
    ]
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
        .start("execution.number=1, number.of.items.to.be.read=10, throw.reader.exception.for.these.items=5")
        .is(Failed)
        .restart("execution.number=2, number.of.items.to.be.read=10")
        .is(Completed),
        case("PropertySubstitutionTests.testParentPropertyOutOfScope", "job_properties2")
            .start("")
            .property("mySubmittedProp", ""),
    ]
}
