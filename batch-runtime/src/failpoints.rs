//! Planted faults, which tests must detect. Compiled by `--cfg batch_failpoints` only, and enabled by the environment
//! variable `BATCH_FAILPOINTS`.

/// A fault that a test can enable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The data is committed in a separate transaction before the checkpoint.
    SplitCommit,
    /// A checkpoint is written regardless of the VERSION of the row and the lease holder.
    NoFence,
    /// The reader's checkpoint is taken after the next chunk was read ahead.
    LateCheckpoint,
}

/// Returns whether `fault` is enabled.
pub(crate) fn is_on(fault: Fault) -> bool {
    let name = match fault {
        Fault::SplitCommit => "split-commit",
        Fault::NoFence => "no-fence",
        Fault::LateCheckpoint => "late-checkpoint",
    };
    std::env::var("BATCH_FAILPOINTS").is_ok_and(|value| value == name)
}
