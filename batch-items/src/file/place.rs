//! The place of a record in its file.

/// The place of the next record in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub(crate) byte: u64,
    pub(crate) line: u64,
    pub(crate) record: u64,
    /// The number of elements around it, in formats that nest their records.
    pub(crate) depth: u32,
}
