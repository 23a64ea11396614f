//! Says what a command waits for that takes long.

use std::fmt::Display;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::print::errln;

/// The time until it is said.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does some work. If that takes longer than two seconds, prints `waiting for ..`, so that nobody takes the command for hung.
// Spec: CLI-12
pub(crate) fn waiting_for<T>(what: impl Display, work: impl FnOnce() -> T) -> T {
    let note = format!("waiting for {what}");
    let (working, has_ended) = channel::<()>();
    thread::spawn(move || {
        if has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            errln!("{note}");
        }
    });
    let result = work();
    drop(working);
    result
}
