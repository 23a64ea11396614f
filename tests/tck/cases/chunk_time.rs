//! `ChunkTests`: checkpoints after a time. The readers pause 500 ms before each of 30 items.

use batch_runtime::BatchStatus::{Completed, Failed};

use crate::case::{Case, case};

/// The exit status of a chunk that took no longer than a second, or that was the first.
const NO_CHUNK: [&str; 2] = ["TRUE: 0", "TRUE: 1"];

/// The exit status of a chunk of about ten seconds.
const TEN_SECONDS: [&str; 3] = ["TRUE: 9", "TRUE: 10", "TRUE: 11"];

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "ChunkTests.testChunkTimeBasedDefaultCheckpoint",
            "chunkTimeBasedDefaultCheckpoint",
        )
        .slow()
        .start("execution.number=1, readrecord.fail=31, app.arraysize=30, app.sleeptime=500")
        .is(Completed)
        .exit_of(&NO_CHUNK),
        case("ChunkTests.testChunkTimeBasedTimeLimit0", "chunkTimeLimit0")
            .slow()
            .start("execution.number=1, readrecord.fail=31, app.arraysize=30, app.sleeptime=500")
            .is(Completed)
            .exit_of(&NO_CHUNK),
        case(
            "ChunkTests.testChunkTimeBased10Seconds",
            "chunkTimeBasedCheckpoint",
        )
        .slow()
        .start("execution.number=1, readrecord.fail=31, app.arraysize=30, app.sleeptime=500")
        .is(Completed)
        .exit_of(&TEN_SECONDS),
        case(
            "ChunkTests.testChunkRestartTimeBasedCheckpoint",
            "chunkTimeBasedCheckpoint",
        )
        .slow()
        .start("execution.number=1, readrecord.fail=12, app.arraysize=30, app.sleeptime=500")
        .ends(Failed, "FALSE: 0")
        .restart_with("")
        .is(Completed)
        .exit_of(&TEN_SECONDS)
        .same_instance(),
        case(
            "ChunkTests.testChunkRestartTimeBasedDefaultCheckpoint",
            "chunkTimeBasedDefaultCheckpoint",
        )
        .slow()
        .start("execution.number=1, readrecord.fail=2, app.arraysize=30, app.sleeptime=500")
        .ends(Failed, "TRUE: 0")
        .restart_with("")
        .ends(Completed, "TRUE: 0")
        .same_instance(),
    ]
}
