//! What a step is doing, for messages about one that hangs.

/// The phase of a chunk step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Activity {
    Starting,
    Reading,
    Writing,
    Committing,
}

impl Activity {
    /// Returns the description of a stored phase.
    pub(crate) fn describe(stored: u8) -> &'static str {
        let activities = [
            (Self::Starting, "while opening its artifacts"),
            (Self::Reading, "while reading or processing items"),
            (Self::Writing, "while writing items"),
            (Self::Committing, "while committing"),
        ];
        let found = activities.iter().find(|(one, _)| *one as u8 == stored);
        found.map_or("", |(_, text)| text)
    }
}
