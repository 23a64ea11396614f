//! The output of a command: lines for the log, and the last ones for the error.

use std::collections::VecDeque;

/// The longest line in the log, in bytes.
const MAX_LINE: usize = 4096;
/// The number of lines that an error shows, and the characters of each.
const TAIL_LINES: usize = 10;
const TAIL_LINE: usize = 200;

/// An output stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Receives the output of one command.
pub(super) struct Output<'a> {
    on_line: &'a dyn Fn(Stream, &str),
    unfinished: [Line; 2],
    /// The last lines of each stream. The order of reading says little about the order of the lines.
    tails: [VecDeque<String>; 2],
}

/// The beginning of a line whose end has not been read.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = MAX_LINE - self.bytes.len();
        self.is_cut |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Returns the line and becomes empty.
    fn take(&mut self) -> String {
        let line = std::mem::take(self);
        let text = String::from_utf8_lossy(&line.bytes);
        // Escape sequences would control the terminal that shows the log.
        let is_shown = |character: &char| *character == '\t' || !character.is_control();
        let mut text: String = text.chars().filter(is_shown).collect();
        if line.is_cut {
            text.push('…');
        }
        text
    }
}

impl<'a> Output<'a> {
    /// Creates an output that calls `on_line` for each line.
    pub(super) fn new(on_line: &'a dyn Fn(Stream, &str)) -> Self {
        Self {
            on_line,
            unfinished: Default::default(),
            tails: Default::default(),
        }
    }

    /// Adds bytes that the command has written.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for line in lines {
            self.unfinished[stream as usize].push(line);
            self.end_line(stream);
        }
        self.unfinished[stream as usize].push(last);
    }

    /// Ends lines that lack a line break.
    pub(super) fn finish(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if !self.unfinished[stream as usize].bytes.is_empty() {
                self.end_line(stream);
            }
        }
    }

    fn end_line(&mut self, stream: Stream) {
        let line = self.unfinished[stream as usize].take();
        (self.on_line)(stream, &line);
        if line.trim().is_empty() {
            return;
        }
        let tail = &mut self.tails[stream as usize];
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(match line.char_indices().nth(TAIL_LINE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        });
    }

    /// Returns the last lines of standard error, each after a line break; before them, lines of standard output if there are few.
    pub(super) fn tail(&self) -> String {
        let [output, errors] = &self.tails;
        let few = TAIL_LINES - errors.len();
        let output = output.iter().skip(output.len().saturating_sub(few));
        output.chain(errors).map(|line| format!("\n{line}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Returns the lines and the tail of an output that arrives in these parts.
    fn lines_and_tail(parts: &[(Stream, &[u8])]) -> (Vec<String>, String) {
        let lines = RefCell::new(Vec::new());
        let on_line = |_: Stream, line: &str| lines.borrow_mut().push(line.to_owned());
        let mut output = Output::new(&on_line);
        for (stream, bytes) in parts {
            output.push(*stream, bytes);
        }
        output.finish();
        let tail = output.tail();
        (lines.into_inner(), tail)
    }

    #[test]
    fn lines_are_joined_per_stream() {
        use Stream::{Stderr, Stdout};
        let parts: [(Stream, &[u8]); 5] = [
            (Stdout, b"on"),
            (Stderr, b"bad\n"),
            (Stdout, b"e\n\ntwo\r\n"),
            (Stdout, b"\x1b[1mbold\xff"),
            (Stderr, b"end"),
        ];
        let (lines, tail) = lines_and_tail(&parts);
        assert_eq!(lines, ["bad", "one", "", "two", "[1mbold\u{fffd}", "end"]);
        assert_eq!(tail, "\none\ntwo\n[1mbold\u{fffd}\nbad\nend");
    }

    #[test]
    fn long_lines_are_cut_and_only_the_last_are_kept() {
        let long = vec![b'x'; 3 * MAX_LINE];
        let (lines, tail) = lines_and_tail(&[(Stream::Stdout, &long), (Stream::Stdout, b"more\nnext\n")]);
        assert_eq!(lines[0].chars().count(), MAX_LINE + 1);
        assert!(lines[0].ends_with("x…"));
        assert_eq!(lines[1], "next");
        assert_eq!(tail, format!("\n{}…\nnext", "x".repeat(TAIL_LINE)));
        let many: String = (1..=30).map(|line| format!("{line}\n")).collect();
        let (_, tail) = lines_and_tail(&[(Stream::Stderr, many.as_bytes())]);
        assert!(tail.starts_with("\n21\n") && tail.ends_with("\n30"), "{tail}");
    }
}
