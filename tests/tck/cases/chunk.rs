//! `ChunkTests`: chunks, their checkpoints and their listeners.

use batch_runtime::BatchStatus::{Completed, Failed};

use crate::case::{Case, case};

/// The parameters of the item listeners' job.
const LISTENERS: &str =
    "execution.number=1, readrecord.fail=31, app.arraysize=30, app.writepoints=0,5,10,15,20,25,30";

/// The parameters of the first execution of `chunkrestartCheckpt10`.
const CHECKPOINT_10: &str = "execution.number=1, readrecord.fail=12, app.arraysize=30, app.checkpoint.position=0, \
    app.writepoints=0,10,20,30, app.next.writepoints=10,20,30";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = basics();
    cases.extend(restarts());
    cases.extend(listeners());
    cases
}

fn basics() -> Vec<Case> {
    vec![
        case(
            "ChunkTests.testChunkNoProcessorDefined",
            "chunkNoProcessorDefined",
        )
        .start("execution.number=1, app.checkpoint.position=0, readrecord.fail=40, app.arraysize=30")
        .ends(Completed, "buffer size = 10"),
        case(
            "ChunkTests.testChunkDefaultItemCount",
            "chunksizeDEFAULTcommitIntervalDEFAULT",
        )
        .start("execution.number=1, app.checkpoint.position=0, readrecord.fail=40, app.arraysize=30")
        .ends(Completed, "buffer size = 10"),
        case("ChunkTests.testChunkNullCheckpointInfo", "nullChkPtInfo")
            .start("")
            .ends(
                Completed,
                "checkpointInfo is null in reader.open...checkpointInfo is null in writer.open",
            ),
        case(
            "ChunkTests.testChunkArtifactInstanceUniqueness",
            "uniqueInstanceTest",
        )
        .start("")
        .ends(
            Completed,
            "nullChunkListenerChunkListenerStepListenerStepListenerJobListenerJobListener",
        ),
        case("ChunkTests.testChunkOnErrorListener", "chunkListenerTest")
            .start("execution.number=1, readrecord.fail=5, app.writepoints=0,10, app.arraysize=30")
            .ends(Failed, "Chunk onError invoked"),
    ]
}

fn restarts() -> Vec<Case> {
    vec![
        case("ChunkTests.testChunkRestartItemCount7", "chunkStopOnEndOn")
            .start(
                "execution.number=1, readrecord.fail=12, app.arraysize=30, app.checkpoint.position=0, \
                 app.writepoints=0,7,14,21,28,30, app.next.writepoints=7,14,21,28,30",
            )
            .ends(Failed, "FAILED")
            .restart_with("app.checkpoint.position=7")
            .ends(Completed, "COMPLETED")
            .same_instance(),
        case("ChunkTests.testChunkRestartItemCount10", "chunkrestartCheckpt10")
            .start(CHECKPOINT_10)
            .ends(Failed, "FAILED")
            .restart_with("app.checkpoint.position=10, app.writepoints=0,5,10,15,20,25,30")
            .ends(Completed, "COMPLETED")
            .same_instance(),
        case("ChunkTests.testChunkRestartChunk5", "chunksize5commitinterval3")
            .start(
                "execution.number=1, readrecord.fail=12, app.arraysize=30, app.checkpoint.position=0, \
                 app.writepoints=0,5,10,15,20,25,30, app.next.writepoints=10,15,20,25,30",
            )
            .ends(Failed, "FAILED")
            .restart_with("execution.number=2, app.checkpoint.position=10")
            .ends(Completed, "COMPLETED")
            .same_instance(),
        case(
            "ChunkTests.testChunkRestartCustomCheckpoint",
            "chunkCustomCheckpoint",
        )
        .start(
            "execution.number=1, readrecord.fail=12, app.checkpoint.position=0, app.arraysize=30, \
                 app.writepoints=0,4,9,13,15,20,22,27,30, app.next.writepoints=9,13,15,20,22,27,30",
        )
        .ends(Failed, "FAILED")
        .restart_with("execution.number=2, app.checkpoint.position=9, app.writepoints=9,13,15,20,22,27,30")
        .ends(Completed, "COMPLETED")
        .same_instance(),
        case(
            "ChunkTests.testUserDataIsPersistedAfterCheckpoint",
            "chunkrestartCheckpt10",
        )
        .start(CHECKPOINT_10)
        .ends(Failed, "FAILED")
        .user_data("step1", "execution_number", 1),
    ]
}

fn listeners() -> Vec<Case> {
    vec![
        case("ChunkTests.testChunkItemListeners", "testListeners")
            .start(format!("{LISTENERS}, app.listenertest=READ"))
            .ends(Completed, "MyItemReadListenerImpl: GOOD STATUS")
            .start(format!("{LISTENERS}, app.listenertest=PROCESS"))
            .ends(Completed, "MyItemProcessListenerImpl: GOOD STATUS")
            .start(format!("{LISTENERS}, app.listenertest=WRITE"))
            .ends(Completed, "MyItemWriteListener: GOOD STATUS"),
        case("ChunkTests.testChunkItemListenersOnError", "testListenersOnError")
            .start("read.fail.immediate=true")
            .ends(Failed, "MyItemReadListenerImpl.onReadError")
            .start("process.fail.immediate=true")
            .ends(Failed, "MyItemProcessListenerImpl.onProcessError")
            .start("write.fail.immediate=true")
            .ends(Failed, "MyItemWriteListenerImpl.onWriteError"),
    ]
}
