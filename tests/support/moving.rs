//! A program that moves rows by a job `move`, killed at random statements of its repository.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

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
    let (mut child, _, announced) = run_to(program, folder, statements);
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

/// Starts the job, and reads its output until it has announced this number of statements. Returns how many it has.
fn run_to(program: &str, folder: &Path, statements: u64) -> (Child, BufReader<ChildStdout>, u64) {
    let mut command = process::configured_alone(program, folder, &["launch", "move"]);
    let command = command.env(EVENTS, "1").env("BATCH_CRASH_LIMIT", "0");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let lines = output.by_ref().lines();
    let announced = lines
        .take(usize::try_from(statements).unwrap_or(usize::MAX))
        .count() as u64;
    (child, output, announced)
}

/// Launches the job of a folder, and calls `act` beside it when it has announced this number of statements. Returns whether `act` was called,
/// and whether the job is complete.
pub fn beside(program: &str, folder: &Path, statements: u64, act: impl FnOnce()) -> (bool, bool) {
    let (child, mut output, announced) = run_to(program, folder, statements);
    let is_reached = announced == statements;
    if is_reached {
        act();
    }
    std::io::copy(&mut output, &mut std::io::sink()).expect("the output is readable");
    let output = child.wait_with_output().expect("it is a child");
    let error = process::text(&output.stderr);
    assert!(
        output.status.code().is_some() && !error.contains("panicked"),
        "{error}"
    );
    (
        is_reached,
        output.status.success() || error.contains("is complete"),
    )
}

/// A process that is suspended in the middle of its job.
#[cfg(unix)]
pub struct Suspended {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// Launches the job of a folder, and suspends the process when it has announced this number of statements; `None` if it has ended before.
#[cfg(unix)]
pub fn suspend(program: &str, folder: &Path, statements: u64) -> Option<Suspended> {
    let (mut child, output, announced) = run_to(program, folder, statements);
    if announced == statements {
        process::signal(&child, "STOP");
        return Some(Suspended { child, output });
    }
    child.wait().expect("it is a child");
    None
}

#[cfg(unix)]
impl Suspended {
    /// Lets the process run to its end.
    ///
    /// # Panics
    /// If it panics.
    pub fn wake_up(mut self) {
        process::signal(&self.child, "CONT");
        std::io::copy(&mut self.output, &mut std::io::sink()).expect("the output is readable");
        let output = self.child.wait_with_output().expect("it is a child");
        let error = process::text(&output.stderr);
        assert!(
            output.status.code().is_some() && !error.contains("panicked"),
            "{error}"
        );
    }
}
