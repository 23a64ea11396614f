//! Runs a command on platforms without process groups. Kills only the process itself.

use std::io::{self, Read};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::limits::{Ending, Limits};
use super::output::{Output, Stream};
use crate::cancel::Cancel;

/// The interval of checks for the end of the process.
const POLL: Duration = Duration::from_millis(50);

/// The parts that are read after the end of the process: a process that it left behind may write on.
const LAST_PARTS: usize = 64;

/// Bytes of a stream.
type Part = (Stream, Vec<u8>);

/// Runs a command whose output is piped, until it ends, exceeds its time, or is cancelled.
///
/// # Errors
/// When it cannot be started or observed.
pub(super) fn run(
    command: &mut Command,
    limits: Limits,
    cancel: &Cancel,
    output: &mut Output<'_>,
) -> io::Result<Ending> {
    let deadline = limits.timeout.and_then(|time| Instant::now().checked_add(time));
    let mut child = command.spawn()?;
    let (sender, parts) = sync_channel(16);
    forward(child.stdout.take(), Stream::Stdout, &sender);
    forward(child.stderr.take(), Stream::Stderr, &sender);
    drop(sender);
    let mut killed_by = None;
    let status = loop {
        read(&parts, output);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if killed_by.is_none() {
            let is_late = deadline.is_some_and(|deadline| deadline <= Instant::now());
            killed_by = match (cancel.is_requested(), is_late) {
                (true, _) => Some(Ending::Cancelled),
                (false, true) => Some(Ending::TimedOut),
                (false, false) => continue,
            };
            child.kill()?;
        }
    };
    for _ in 0..LAST_PARTS {
        let Ok((stream, bytes)) = parts.recv_timeout(20 * POLL) else {
            break;
        };
        output.push(stream, &bytes);
    }
    output.finish();
    Ok(killed_by.unwrap_or(Ending::Exited(status)))
}

/// Sends the bytes of a pipe to the channel, on a thread that ends with the pipe.
fn forward(pipe: Option<impl Read + Send + 'static>, stream: Stream, sender: &SyncSender<Part>) {
    let Some(mut pipe) = pipe else { return };
    let sender = sender.clone();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if sender.send((stream, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
}

/// Reads what arrives within an interval.
fn read(parts: &Receiver<Part>, output: &mut Output<'_>) {
    let end = Instant::now() + POLL;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match parts.recv_timeout(left) {
            Ok((stream, bytes)) => output.push(stream, &bytes),
            Err(RecvTimeoutError::Disconnected) => return thread::sleep(left),
            Err(RecvTimeoutError::Timeout) => return,
        }
        if left.is_zero() {
            return;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Stdio;

    use super::*;

    /// Runs a line of the shell. Returns its end and its last output.
    fn run_line(line: &str, timeout: Option<Duration>, cancel: &Cancel) -> (Ending, String) {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut output = Output::new(&|_, _| ());
        let limits = Limits {
            timeout,
            kill_after: Duration::ZERO,
        };
        let ending = run(&mut command, limits, cancel, &mut output).unwrap();
        (ending, output.tail())
    }

    #[test]
    fn a_command_ends_by_itself_or_is_killed() {
        let cancel = Cancel::default();
        let (ending, tail) = run_line("echo one; echo two >&2; exit 3", None, &cancel);
        assert!(matches!(ending, Ending::Exited(status) if status.code() == Some(3)));
        assert!(tail.contains("\none") && tail.contains("\ntwo"), "{tail}");
        let (ending, _) = run_line("exec sleep 1000", Some(Duration::ZERO), &cancel);
        assert_eq!(ending, Ending::TimedOut);
        cancel.request();
        let (ending, _) = run_line("exec sleep 1000", None, &cancel);
        assert_eq!(ending, Ending::Cancelled);
    }
}
