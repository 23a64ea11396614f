//! Planted faults: each breaks one promise, which its checker has to notice.

/// A fault in the artifacts, in the repository's rows, beside a launch, or around the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The writer commits on its own, apart from the checkpoint.
    OutsideOfTransaction,
    /// The checkpoint is one item late.
    LateCheckpoint,
    /// A row is not written.
    LostRow,
    /// A row is written twice.
    DoubledRow,
    /// A reader is not closed.
    NotClosed,
    /// A processor does not return.
    Hang,
    /// A failure has another cause than the planned one.
    OtherCause,
    /// A row of the repository is changed by this statement.
    Row(&'static str),
    /// This statement is executed while a launch waits for its fault.
    Beside(&'static str),
    /// A lock file stays locked.
    Locked,
    /// A session of a server stays open.
    Session,
    /// Each process is started by this shell script; `"$0" "$@"` runs the program.
    Script(&'static str),
    /// What a fault damages before a launch stays whole.
    Undamaged,
}

/// The environment variable with the name of a planted fault.
pub(crate) const PLANT: &str = "TORTURE_PLANT";

const OF_ARTIFACTS: [(Plant, &str); 7] = [
    (Plant::OutsideOfTransaction, "outside"),
    (Plant::LateCheckpoint, "late-checkpoint"),
    (Plant::LostRow, "lost-row"),
    (Plant::DoubledRow, "doubled-row"),
    (Plant::NotClosed, "not-closed"),
    (Plant::Hang, "hang"),
    (Plant::OtherCause, "other-cause"),
];

impl Plant {
    /// Returns the one of this process.
    pub(crate) fn of_this_process() -> Option<Self> {
        let name = std::env::var(PLANT).ok()?;
        let found = OF_ARTIFACTS.iter().find(|(_, known)| *known == name);
        found.map(|(plant, _)| *plant)
    }

    /// Returns its name, if the artifacts plant it.
    pub(crate) fn name(self) -> Option<&'static str> {
        let found = OF_ARTIFACTS.iter().find(|(plant, _)| *plant == self);
        found.map(|(_, name)| *name)
    }
}
