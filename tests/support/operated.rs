//! The program `operated` as a process that is operated while it runs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use crate::deadline;
use crate::process;

/// A process of the program `operated`, with its output.
pub struct Operated {
    child: Child,
    said: BufReader<ChildStderr>,
}

/// Returns a command that runs the program `operated` in a folder.
pub fn command(program: &str, folder: &Path, arguments: &[&str]) -> Command {
    let waited_for = format!("`operated {}` in {}", arguments.join(" "), folder.display());
    deadline::waits_for(move || waited_for.clone());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command
}

impl Operated {
    /// Starts it.
    pub fn run(program: &str, folder: &Path, arguments: &[&str]) -> Self {
        let mut child = command(program, folder, arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, said }
    }

    /// Reads until a line holds `what`; returns `false` if it ends before.
    pub fn says(&mut self, what: &str) -> bool {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            if self.said.read_line(&mut line).unwrap() == 0 {
                return false;
            }
        }
        true
    }

    /// Reads until a line holds `what`; returns that line.
    pub fn until(&mut self, what: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).unwrap();
            assert!(read > 0, "not printed: {what:?}\n{all}");
            if line.contains(what) {
                return line;
            }
            all += &line;
        }
    }

    /// Reads until the program prints where it serves a page, such as `health`; returns the address and port.
    pub fn address_of(&mut self, page: &str) -> String {
        let line = self.until(&format!("{page} at http://"));
        let (_, at) = line.split_once("http://").unwrap();
        at.split('/').next().unwrap().to_owned()
    }

    /// Reads until the lines contain all of `what`, in any order.
    pub fn until_all(&mut self, what: &[&str]) {
        let mut missing = what.to_vec();
        while !missing.is_empty() {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).unwrap();
            assert!(read > 0, "not printed: {missing:?}");
            missing.retain(|what| !line.contains(what));
        }
    }

    /// Sends it a signal: `TERM`, `KILL` ...
    pub fn signal(&self, name: &str) {
        process::signal(&self.child, name);
    }

    /// Waits for its end.
    pub fn ends(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// The process ends even if the test fails.
impl Drop for Operated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
