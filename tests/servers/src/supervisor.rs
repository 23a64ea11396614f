//! The shell that starts a server and ends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A shell that starts a server, and waits until its input is closed, which the kernel does when this process dies. Then it ends the server and
/// removes its folder.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shell: Child,
    output: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts the shell. It prints a line that begins with `ready` when the server accepts connections; the rest of the line is returned.
    ///
    /// # Panics
    /// If the server does not start; the message has `missing`, and what the shell has printed.
    pub(crate) fn start(script: &str, missing: &str, configure: impl FnOnce(&mut Command)) -> (Self, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Signals of the terminal are meant for the tests.
        command.process_group(0);
        configure(&mut command);
        let mut shell = command.spawn().expect("a shell");
        let output = BufReader::new(shell.stdout.take().expect("piped"));
        let mut supervisor = Self { shell, output };
        let ready = supervisor.ready(missing);
        (supervisor, ready)
    }

    fn ready(&mut self, missing: &str) -> String {
        let mut line = self.line();
        match line.strip_prefix("ready ") {
            Some(ready) => ready.to_owned(),
            None => {
                self.output.read_to_string(&mut line).expect("readable");
                panic!("the server did not start; {missing}:\n{line}");
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        line.trim_end().to_owned()
    }

    /// Gives an order to the shell, and returns its answer.
    pub(crate) fn order(&mut self, order: &str) -> String {
        self.send(order);
        self.line()
    }

    /// Starts a server again that has crashed.
    ///
    /// # Panics
    /// As `start`.
    pub(crate) fn restart(&mut self, missing: &str) -> String {
        self.send("restart");
        self.ready(missing)
    }

    fn send(&mut self, order: &str) {
        let input = self.shell.stdin.as_mut().expect("piped");
        writeln!(input, "{order}").expect("the supervisor lives");
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.output.read_to_string(&mut String::new());
        let _ = self.shell.wait();
    }
}
