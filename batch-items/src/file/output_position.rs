//! The checkpoint of file writers.

use serde::{Deserialize, Serialize};

use super::identity::FileState;

/// The checkpoint of a file writer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPosition {
    /// The number of the file, from 1.
    pub file: u32,
    /// Its length in bytes.
    pub length: u64,
    /// The number of its items.
    pub items: u64,
    /// The CRC-32 of its content.
    pub content: u32,
    /// The files before it, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<CompleteFiles>,
    /// The file that the output appends to, as it was when it was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FileState>,
}

/// The files of an output that were complete at a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteFiles {
    /// The sum of their lengths in bytes.
    pub length: u64,
    /// The CRC-32 of their lengths and of the CRC-32 of their contents, in their order.
    pub content: u32,
}
