//! A program that moves rows by a job `move`, killed at random statements of its repository.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::process;
use crate::writing::EVENTS;

/// Launches the job of a folder once the lease of its last process has expired, and kills the process when it has announced this number of
/// statements. Returns whether it has completed the job.
///
/// # Panics
/// If the job fails.
pub fn launch(program: &str, folder: &Path, statements: u64) -> bool {
    loop {
        if let Some(has_ended) = launch_now(program, folder, statements) {
            return has_ended;
        }
    }
}

/// As `launch`; `None` if the lease of the last process has not expired.
fn launch_now(program: &str, folder: &Path, statements: u64) -> Option<bool> {
    let mut command = process::configured_alone(program, folder, &["launch", "move"]);
    let command = command.env(EVENTS, "1").env("BATCH_CRASH_LIMIT", "0");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let output = child.stdout.take().expect("it is piped");
    let lines = BufReader::new(output).lines();
    let announced = lines
        .take(usize::try_from(statements).unwrap_or(usize::MAX))
        .count() as u64;
    if announced == statements {
        child.kill().expect("it is a child");
    }
    let output = child.wait_with_output().expect("it is a child");
    let error = process::text(&output.stderr);
    if error.contains("if its process is dead, its lease expires") {
        return None;
    }
    // Killed between its end and its exit.
    if error.contains("is complete") {
        return Some(true);
    }
    let has_ended = output.status.code().is_some();
    assert!(!has_ended || output.status.success(), "{error}");
    Some(has_ended)
}
