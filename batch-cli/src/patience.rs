//! Prints what a slow command waits for.

use std::fmt::Display;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::print::errln;

/// The time before it is printed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does some work. If that takes longer than two seconds, prints `waiting for ..`: the command does not hang.
// Spec: CLI-12
pub(crate) fn waiting_for<T>(what: impl Display, work: impl FnOnce() -> T) -> T {
    let note = format!("waiting for {what}");
    let (working, has_ended) = channel::<()>();
    // Without a thread, nothing is printed.
    let _ = thread::Builder::new().spawn(move || {
        if has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            errln!("{note}");
        }
    });
    let result = work();
    drop(working);
    result
}
