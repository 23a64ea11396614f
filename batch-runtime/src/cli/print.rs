//! Printing for people and pipes. A reader that went away (`| head`) or a full disk must not end the program, whose exit
//! code tells how the job ended.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

/// Prints a line on the standard output.
pub(super) fn out(text: impl Display) {
    match writeln!(stdout(), "{text}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => err(format_args!(
            "error: cannot write to the standard output: {error}"
        )),
    }
}

/// Prints a line on the standard error.
pub(super) fn err(text: impl Display) {
    // There is nobody left to tell.
    let _ = writeln!(stderr(), "{text}");
}
