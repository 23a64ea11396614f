//! `ParallelExecutionTests`.

use batch_runtime::BatchStatus::{Completed, Failed, Stopped};

use crate::artifacts::long_running::CREATE_RUNNING;
use crate::case::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = steps();
    cases.extend(artifacts());
    cases.extend(overrides());
    cases
}

fn steps() -> Vec<Case> {
    vec![
        case(
            "ParallelExecutionTests.testInvokeJobWithOnePartitionedStep",
            "job_partitioned_1step",
        )
        .start("")
        .is(Completed),
        case(
            "ParallelExecutionTests.testInvokeJobWithOnePartitionedStepExitStatus",
            "job_partitioned_1step_exitStatusTest",
        )
        .start("sleep.time=2000")
        .is(Completed)
        .steps(1)
        .every_step_exit("STEP EXIT STATUS: 10")
        .every_step(Completed)
        .ends(Completed, "JOB EXIT STATUS: 10"),
        case(
            "ParallelExecutionTests.testStopRunningPartitionedStep",
            "job_batchlet_longrunning_partitioned",
        )
        .sql(&[CREATE_RUNNING])
        .begin("run.indefinitely=true")
        .stop_when_running(4)
        .is(Stopped),
        case(
            "ParallelExecutionTests.testStopRestartRunningPartitionedStep",
            "job_batchlet_longrunning_partitioned",
        )
        .sql(&[CREATE_RUNNING])
        .begin("run.indefinitely=true")
        .stop_when_running(4)
        .is(Stopped)
        .restart("run.indefinitely=false")
        .is(Completed),
        case(
            "ParallelExecutionTests.testInvokeJobSimpleSplit",
            "job_split_batchlet_4steps",
        )
        .start("")
        .ends(Completed, "COMPLETED"),
    ]
}

fn artifacts() -> Vec<Case> {
    vec![
        case(
            "ParallelExecutionTests.testPartitionedPlanCollectorAnalyzerReducerComplete",
            "job_partitioned_artifacts",
        )
        .start("numPartitionsProp=3")
        .ends(Completed, "nullBeginCACACABeforeAfter"),
        case(
            "ParallelExecutionTests.testZeroBasedPartitionedPlanCollectorAnalyzerReducerRollback",
            "job_partitioned_artifacts",
        )
        .start("numPartitionsProp=3, failThisPartition=0")
        .ends(Failed, "nullBeginCACACARollbackAfter"),
        case(
            "ParallelExecutionTests.testPartitionedCollectorAnalyzerReducerChunkRestartItemCount10",
            "chunkrestartPartitionedCheckpt10",
        )
        .start("readrecord.fail=23, app.arraysize=30, app.writepoints=0,10,20,30, app.next.writepoints=20,30")
        .ends(Failed, "nullBeginCACACACACACACACARollbackAfter")
        .restart_with("")
        .ends(Completed, "nullBeginCACACACABeforeAfter")
        .same_instance(),
    ]
}

fn overrides() -> Vec<Case> {
    vec![
        case(
            "ParallelExecutionTests.testPartitionedMapperOverrideFalseOnRestart",
            "job_partitioned_artifacts",
        )
        .start("numPartitionsProp=3, failThisPartition=0, partitionsOverride=false")
        .ends(Failed, "nullBeginCACACARollbackAfter")
        .restart("numPartitionsProp=7, failThisPartition=5, partitionsOverride=false")
        .exit("nullBeginCABeforeAfter"),
        case(
            "ParallelExecutionTests.testPartitionedMapperOverrideTrueDiffPartitionNumOnRestart",
            "job_partitioned_artifacts",
        )
        .start("numPartitionsProp=2, failThisPartition=0, partitionsOverride=false")
        .ends(Failed, "nullBeginCACARollbackAfter")
        .restart("numPartitionsProp=4, failThisPartition=3, partitionsOverride=true")
        .exit("nullBeginCACACACARollbackAfter"),
        case(
            "ParallelExecutionTests.testPartitionedMapperOverrideTrueSamePartitionNumOnRestart",
            "job_partitioned_artifacts",
        )
        .start("numPartitionsProp=3, failThisPartition=0, partitionsOverride=false")
        .ends(Failed, "nullBeginCACACARollbackAfter")
        .restart("numPartitionsProp=3, failThisPartition=1, partitionsOverride=true")
        .exit("nullBeginCACACARollbackAfter"),
    ]
}
