//! A broken promise.

use std::fmt;

/// The invariants, by the names of the failure model in `docs/internals/reliability.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) enum Invariant {
    /// Each item has its effect once.
    I1,
    /// The counts of each step execution balance.
    I2,
    /// WRITE_COUNT is the number of written rows.
    I3,
    /// COMMIT_COUNT is the number of intervals.
    I4,
    /// VERSION grows by one.
    I5,
    /// Only the edges of the status graph; an ended execution does not change.
    I6,
    /// END_TIME is set exactly for what has ended, and times are in order.
    I7,
    /// One live execution of an instance.
    I8,
    /// A checkpoint never goes back.
    I9,
    /// A fence never goes back, and nothing is written under an old one.
    I10,
    /// Skips are counted exactly.
    I11,
    /// Artifacts are called in order.
    I12,
    /// Nothing is left: locks, sessions.
    I13,
    /// Each launch ends, and after the last fault the instance completes.
    I14,
    /// A failure names its cause.
    I15,
}

impl Invariant {
    pub(crate) const ALL: [Self; 15] = [
        Self::I1,
        Self::I2,
        Self::I3,
        Self::I4,
        Self::I5,
        Self::I6,
        Self::I7,
        Self::I8,
        Self::I9,
        Self::I10,
        Self::I11,
        Self::I12,
        Self::I13,
        Self::I14,
        Self::I15,
    ];
}

#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) invariant: Invariant,
    pub(crate) what: String,
}

impl Violation {
    pub(crate) fn new(invariant: Invariant, what: impl Into<String>) -> Self {
        Self {
            invariant,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.what)
    }
}

pub(crate) type Checked<T = ()> = Result<T, Violation>;
