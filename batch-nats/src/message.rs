//! Messages between coordinators and workers.

use batch_runtime::StepExecutionId;
use batch_runtime::partition::{CollectedPayload, DeclinedPartition};
use serde::{Deserialize, Serialize};

/// A report of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Collected(CollectedPayload),
    Ended(StepExecutionId),
    Declined(StepExecutionId, DeclinedPartition),
}

/// A piece of a report: servers limit the size of a message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Identifies the report among those of its job execution.
    pub(crate) report: String,
    /// The number of the piece, from 0, and how many there are.
    pub(crate) number: usize,
    pub(crate) count: usize,
    pub(crate) text: String,
}

/// Cuts a text into pieces of at most `bytes` bytes, at least one.
pub(crate) fn cut(text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > bytes {
        let mut end = bytes.max(4);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("", 4), [""]);
        assert_eq!(cut("abcd", 4), ["abcd"]);
        assert_eq!(cut("abcdefg", 4), ["abcd", "efg"]);
        let text = "äöü€𝄞".repeat(9);
        let pieces = cut(&text, 7);
        assert!(pieces.iter().all(|piece| piece.len() <= 7));
        assert_eq!(pieces.concat(), text);
    }
}
