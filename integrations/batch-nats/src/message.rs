//! Messages between coordinators and workers.

use batch_runtime::StepExecutionId;
use batch_runtime::partition::{CollectedPayload, DeclinedPartition};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A report of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Collected(CollectedPayload),
    Ended(Vec<StepExecutionId>),
    Declined(StepExecutionId, DeclinedPartition),
}

/// A piece of a report: servers limit the size of a message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Identifies the report within its job execution.
    pub(crate) report: String,
    /// The number of the piece, from 0, and how many there are.
    pub(crate) number: usize,
    pub(crate) count: usize,
    pub(crate) text: String,
}

/// The most bytes of a message's text. JSON may write them with twice as many; a server accepts 1 MiB by default.
const PIECE: usize = 400 * 1024;

/// Returns the messages of a report.
pub(crate) fn pieces(id: &str, report: &Report) -> Result<Vec<Bytes>, serde_json::Error> {
    let text = serde_json::to_string(report)?;
    let pieces = cut(&text, PIECE);
    let count = pieces.len();
    let piece = |(number, text): (usize, &str)| {
        let piece = Piece {
            report: id.to_owned(),
            number,
            count,
            text: text.to_owned(),
        };
        Ok(serde_json::to_vec(&piece)?.into())
    };
    pieces.into_iter().enumerate().map(piece).collect()
}

/// Cuts a text into pieces of at most `bytes` bytes, at least one.
fn cut(text: &str, bytes: usize) -> Vec<&str> {
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
#[allow(clippy::unwrap_used, reason = "a test may panic")]
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

    #[test]
    fn a_long_report_has_several_pieces() {
        let ids: Vec<_> = (0..100_000).map(StepExecutionId).collect();
        let pieces = pieces("0-ended", &Report::Ended(ids.clone())).unwrap();
        let pieces: Vec<Piece> = pieces
            .iter()
            .map(|piece| serde_json::from_slice(piece).unwrap())
            .collect();
        assert_eq!(pieces.len(), 2);
        let read: Vec<_> = pieces.iter().map(|piece| (piece.number, piece.count)).collect();
        assert_eq!(read, [(0, 2), (1, 2)]);
        let text: String = pieces.into_iter().map(|piece| piece.text).collect();
        assert!(matches!(serde_json::from_str(&text), Ok(Report::Ended(read)) if read == ids));
    }
}
