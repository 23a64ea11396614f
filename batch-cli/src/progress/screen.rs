//! Lines at the bottom of a terminal that stay there while the job prints.
//!
//! A job, its libraries and the log print from any thread, without going through this crate. A progress bar that is drawn at
//! the cursor, as `indicatif` does, would erase what they print between two redraws. So the lines are outside of what scrolls:
//! the terminal scrolls only the region above them, and each redraw is one write that leaves the cursor where it was. A process
//! that is killed leaves the lines; the next one that draws removes them, as does `reset`.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr};

/// Minimum height of a terminal that shows progress.
const LEAST_HEIGHT: u16 = 6;

/// The bottom of the terminal that the standard error is connected to.
pub(super) struct Screen {
    /// Lines and columns at the last redraw.
    size: (u16, u16),
    /// The lines at the bottom.
    drawn: Vec<String>,
}

impl Screen {
    /// Returns the screen; `None` without a terminal, or on one without control sequences.
    pub(super) fn of_terminal() -> Option<Self> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if !stderr().is_terminal() || is_dumb {
            return None;
        }
        let size = size()?;
        (size.0 >= LEAST_HEIGHT).then(|| Self {
            size,
            drawn: Vec::new(),
        })
    }

    /// Draws the lines that `lines` returns for a width and a height, which is half of the terminal's.
    pub(super) fn show(&mut self, lines: impl FnOnce(usize, usize) -> Vec<String>) {
        let size = size().unwrap_or(self.size);
        let mut text = String::new();
        if size != self.size {
            text += &self.removed();
            self.size = size;
        }
        let (height, width) = size;
        if height < LEAST_HEIGHT {
            return put(&text);
        }
        let lines = lines(usize::from(width), usize::from(height / 2));
        if lines.is_empty() {
            text += &self.removed();
        } else if lines != self.drawn {
            text += &self.drawing(lines);
        }
        put(&text);
    }

    /// Returns the control sequences that draw the lines and limit scrolling to the region above them.
    fn drawing(&mut self, lines: Vec<String>) -> String {
        let (height, before) = (self.size.0, count(&self.drawn));
        let now = count(&lines).min(height - 1);
        let mut text = String::new();
        if now > before {
            // Moves the text above up. A vertical tab keeps the column; a line feed might not.
            let more = now - before;
            let _ = write!(text, "{}\x1b[{more}A", "\x0b".repeat(usize::from(more)));
        }
        text += SAVE;
        if now != before {
            let _ = write!(text, "\x1b[1;{}r", height - now);
        }
        for row in (height - before.max(now) + 1)..=(height - now) {
            let _ = write!(text, "\x1b[{row};1H\x1b[2K");
        }
        text += "\x1b[?7l";
        for (row, line) in (height - now + 1..).zip(&lines) {
            let _ = write!(text, "\x1b[{row};1H{line}\x1b[K");
        }
        text += "\x1b[?7h";
        text += RESTORE;
        self.drawn = lines;
        text
    }

    /// Returns the control sequences that remove the lines. Nothing else is below the cursor.
    fn removed(&mut self) -> String {
        if std::mem::take(&mut self.drawn).is_empty() {
            return String::new();
        }
        format!("{SAVE}\x1b[r{RESTORE}\x1b[J")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        put(&self.removed());
    }
}

/// The control sequences that save and restore the cursor.
const SAVE: &str = "\x1b7";
const RESTORE: &str = "\x1b8";

/// Writes in one call, so that no output of another thread comes in between.
fn put(text: &str) {
    // There is no other place to report a failure.
    let _ = stderr().write_all(text.as_bytes());
}

fn count(lines: &[String]) -> u16 {
    u16::try_from(lines.len()).unwrap_or(u16::MAX)
}

/// Returns lines and columns; `None` if unknown.
#[cfg(unix)]
fn size() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(stderr()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

#[cfg(not(unix))]
fn size() -> Option<(u16, u16)> {
    None
}
