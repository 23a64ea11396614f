//! Values in HTML: escaped texts, and the CSS class of a status.

use std::fmt::{self, Write as _};

use batch_runtime::BatchStatus;
use batch_runtime::xml::is_unprintable;

/// Text with the characters escaped that HTML interprets.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\n' | '\t' => f.write_char(character)?,
                character if is_unprintable(character) => f.write_char(char::REPLACEMENT_CHARACTER)?,
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// Returns the CSS class of a status.
pub(super) fn class(status: BatchStatus) -> &'static str {
    match status {
        BatchStatus::Completed => "completed",
        BatchStatus::Failed | BatchStatus::Unknown => "failed",
        BatchStatus::Stopped | BatchStatus::Stopping | BatchStatus::Abandoned => "stopped",
        BatchStatus::Starting | BatchStatus::Started => "running",
    }
}
