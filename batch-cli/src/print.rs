//! Prints lines. A closed pipe (`| head`) or a full disk must not end the program, whose exit code reports how the job ended.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

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
    // There is no other place to report a failure.
    let _ = writeln!(stderr(), "{}", printable(&text.to_string()));
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
