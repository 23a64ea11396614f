//! Prints lines. A closed pipe (`| head`) or a full disk must not end the program, whose exit code reports how the job ended.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use batch_runtime::xml::is_unprintable;

/// Formats and prints a line on the standard output.
macro_rules! outln {
    ($($text:tt)*) => {
        $crate::print::out(format_args!($($text)*))
    };
}

/// Formats and prints a line on the standard error.
macro_rules! errln {
    ($($text:tt)*) => {
        $crate::print::err(format_args!($($text)*))
    };
}

pub(crate) use {errln, outln};

/// Prints lines on the standard output. Names and messages come from job files, parameters, archives and other programs, so
/// nothing is printed that a terminal would interpret.
pub(crate) fn out(text: impl Display) {
    match writeln!(stdout(), "{}", printable(&text.to_string())) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => errln!("error: cannot write to the standard output: {error}"),
    }
}

/// Prints lines on the standard error.
pub(crate) fn err(text: impl Display) {
    let _ = StandardError.write(format!("{}\n", printable(&text.to_string())).as_bytes());
}

/// The standard error for log and messages. A write neither fails, because there is no other place to report that, nor waits long for a pipe
/// or terminal that takes nothing: a job would wait with it.
pub(crate) struct StandardError;

/// The longest wait for a pipe or terminal.
const PATIENCE: Duration = Duration::from_secs(1);

/// A pipe that can be written takes at least this many bytes at once.
const PIPE: usize = 4096;

/// The number of texts that were dropped since the standard error has taken none.
static DROPPED: AtomicU64 = AtomicU64::new(0);

impl Write for StandardError {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let patience = match DROPPED.load(Ordering::Relaxed) {
            0 => PATIENCE,
            _ => Duration::ZERO,
        };
        if !is_writable(patience) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return Ok(text.len());
        }
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let note = format!(
                "warning: {dropped} messages are missing here, because the standard error took nothing\n"
            );
            let _ = stderr().write_all(note.as_bytes());
        }
        for (index, part) in text.chunks(PIPE).enumerate() {
            if index > 0 && !is_writable(PATIENCE) {
                DROPPED.fetch_add(1, Ordering::Relaxed);
                break;
            }
            let _ = stderr().write_all(part);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether the standard error takes something, or reports an error at once.
#[cfg(unix)]
fn is_writable(patience: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Ok(patience) = Timespec::try_from(patience) else {
        return true;
    };
    let stderr = stderr();
    poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&patience)) != Ok(0)
}

#[cfg(not(unix))]
fn is_writable(_patience: Duration) -> bool {
    true
}

/// Replaces characters that a terminal or a page would interpret, except line breaks and tabs.
pub(crate) fn printable(text: &str) -> String {
    let replace = |c: char| match c {
        '\n' | '\t' => c,
        c if is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(replace).collect()
}

/// Cuts a text to `width` characters; the last one of a cut text is an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Escapes control characters, which a terminal would interpret.
pub(crate) fn visible(text: &str) -> String {
    text.escape_debug()
        .to_string()
        .replace("\\'", "'")
        .replace("\\\"", "\"")
}
