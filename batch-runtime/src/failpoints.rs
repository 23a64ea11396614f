//! Planted faults, which tests must detect. Only debug builds contain them; the environment variable `BATCH_FAILPOINTS` enables one.

use std::sync::LazyLock;

/// A fault that a test can enable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The data is committed in a separate transaction before the checkpoint.
    SplitCommit,
    /// A checkpoint is written regardless of the VERSION of the row and the lease holder.
    NoFence,
    /// The reader's checkpoint is taken after the next chunk was read ahead.
    LateCheckpoint,
    /// The repository commits before the destination.
    RepositoryFirst,
    /// The repository catches up with a marker without its counters.
    NoCounters,
    /// The items are committed before the marker of their destination.
    SplitMarker,
    /// The fence of a marker is not compared.
    NoMarkerFence,
}

static ENABLED: LazyLock<Option<Fault>> =
    LazyLock::new(|| match std::env::var("BATCH_FAILPOINTS").as_deref() {
        Ok("split-commit") => Some(Fault::SplitCommit),
        Ok("no-fence") => Some(Fault::NoFence),
        Ok("late-checkpoint") => Some(Fault::LateCheckpoint),
        Ok("repository-first") => Some(Fault::RepositoryFirst),
        Ok("no-counters") => Some(Fault::NoCounters),
        Ok("split-marker") => Some(Fault::SplitMarker),
        Ok("no-marker-fence") => Some(Fault::NoMarkerFence),
        _ => None,
    });

/// Returns whether a fault is enabled.
pub(crate) fn is_on(fault: Fault) -> bool {
    *ENABLED == Some(fault)
}
