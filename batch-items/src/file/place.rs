//! The place of a record in its file.

/// The place of the next record in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its position in the content, in bytes.
    pub byte: u64,
    /// The number of its line, from 1.
    pub line: u64,
    /// The number of records before it.
    pub record: u64,
    /// The number of elements around it, in formats that nest their records.
    pub depth: u32,
}
