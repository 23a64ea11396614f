//! Lines at the bottom of a terminal that stay there while others print.
//!
//! A job prints what it likes, from whatever thread, and so do the log and the libraries that the job uses: nobody asks us
//! before. So the lines are no part of what scrolls. The terminal is told to scroll only what is above them, and each drawing
//! is one write that leaves the cursor where it was. A process that is killed leaves them; the next one that draws removes
//! them, as does `reset`.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr};

/// A terminal with fewer lines shows none of ours.
const LEAST_HEIGHT: u16 = 6;

/// The end of the terminal at which the standard error is.
pub(super) struct Screen {
    /// Lines and columns when it was drawn last.
    size: (u16, u16),
    /// What stands at the bottom.
    drawn: Vec<String>,
}

impl Screen {
    /// `None` where there is no terminal, or one that can only print.
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

    /// Draws the lines that `of` makes for a width and a height: at most half of the terminal's.
    pub(super) fn show(&mut self, of: impl FnOnce(usize, usize) -> Vec<String>) {
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
        let lines = of(usize::from(width), usize::from(height / 2));
        if lines != self.drawn {
            text += &self.drawing(lines);
        }
        put(&text);
    }

    /// What draws the lines, and has the terminal scroll what is above them.
    fn drawing(&mut self, lines: Vec<String>) -> String {
        let (height, before) = (self.size.0, count(&self.drawn));
        let now = count(&lines).min(height - 1);
        let mut text = String::new();
        if now > before {
            // What stands there moves up. A vertical tab keeps the column, where a line feed might not.
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

    /// What makes the terminal as it was: nothing stands below the cursor but our lines.
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

/// Keeps the cursor, and brings it back.
const SAVE: &str = "\x1b7";
const RESTORE: &str = "\x1b8";

/// In one write, which nobody's comes between.
fn put(text: &str) {
    // There is nobody left to tell.
    let _ = stderr().write_all(text.as_bytes());
}

fn count(lines: &[String]) -> u16 {
    u16::try_from(lines.len()).unwrap_or(u16::MAX)
}

/// Lines and columns; `None` where nobody knows.
#[cfg(unix)]
fn size() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(stderr()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

#[cfg(not(unix))]
fn size() -> Option<(u16, u16)> {
    None
}
