//! `systemCommand`: runs a program.

mod exit_codes;
mod limits;
mod output;
#[cfg(any(not(unix), test))]
mod portable;
#[cfg(unix)]
mod unix;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::str::FromStr;

use batch_runtime::prelude::*;

#[cfg(not(unix))]
use self::portable as platform;
#[cfg(unix)]
use self::unix as platform;

use self::exit_codes::ExitCodes;
use self::limits::{Ending, Limits};
use self::output::{Output, Stream};
use self::words::Environment;
pub(super) use self::words::Words;
use super::cancel::Cancel;
use super::exit::STOPPED;
use batch_items::ResourceError;
use batch_items::duration::Duration;

/// Runs a program and waits for its end. In Job XML: `systemCommand`.
///
/// ```xml
/// <step id="dump">
///   <batchlet ref="systemCommand">
///     <properties>
///       <property name="command" value="pg_dump"/>
///       <property name="arguments" value="--format=custom --file='dumps/the orders.dump' orders"/>
///       <property name="environment" value="PGHOST=db.internal PGPASSWORD=${password}"/>
///       <property name="timeout" value="30m"/>
///       <property name="exit.codes" value="1=NOTHING, 2..9=WARNING"/>
///     </properties>
///   </batchlet>
/// </step>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `command` | required | the program: a name that is looked up in `PATH`, or a path, relative to `directory` |
/// | `arguments` | none | its arguments, see below |
/// | `shell` | `false` | `true` runs `command` as a line of `sh -c` (Windows: `cmd /C`); the arguments are `$1`, `$2` .. |
/// | `directory` | as the process | the directory that the program runs in |
/// | `environment` | none | variables `NAME=value`, written like the arguments, added to the variables of the process |
/// | `timeout` | none | the time after which the program is killed and the step fails |
/// | `kill.after` | `10s` | the time between SIGTERM and SIGKILL |
/// | `exit.codes` | `0=COMPLETED` | the exit status for each exit code, or range of codes, that completes the step |
/// | `log.output` | `true` | whether the output is logged |
///
/// # Arguments
///
/// Blanks separate arguments; `'..'` and `".."` group several words. No other character is special. In a text with line
/// breaks each line is one argument as it is, which suits values that may contain quotes: `value="--title&#10;${title}"`. (XML turns
/// a plain line break in an attribute into a blank.)
///
/// # Exit status
///
/// An exit code that `exit.codes` does not list, except 0, fails the step; so does a signal. The error shows the code and
/// the last 10 lines of standard error; if they are fewer, the last lines of standard output before them.
///
/// # Output
///
/// Each line of the standard output and the standard error is logged at level `info`, with the target `batch.command`. Lines
/// of more than 4096 bytes are cut. Each line is also a [heartbeat](batch_runtime::context::StepContext::heartbeat). The standard
/// input is empty. Neither arguments nor environment appear in the log or in errors; the output is logged as it is, so the program
/// must not print secrets, or `log.output` has to be `false`.
///
/// # Stop
///
/// A stop, or the timeout, sends SIGTERM to the process group of the program. When the program and all processes that share its
/// output have ended, or after `kill.after`, the rest of the group gets SIGKILL. A stopped step has the exit status `STOPPED`. On
/// Windows only the program itself is killed.
///
/// If the program ends by itself, processes that it has left in the background keep running, but their output is closed. If the
/// batch process is killed, the program keeps running, and a restart starts it again.
#[derive(BatchArtifact)]
pub struct SystemCommand {
    #[batch_property(name = "command")]
    command: Program,
    #[batch_property(name = "arguments", value = "")]
    arguments: Words,
    #[batch_property(name = "shell", value = "false")]
    shell: bool,
    #[batch_property(name = "directory")]
    directory: Option<PathBuf>,
    #[batch_property(name = "environment", value = "")]
    environment: Environment,
    #[batch_property(name = "timeout")]
    timeout: Option<Duration>,
    #[batch_property(name = "kill.after", value = "10s")]
    kill_after: Duration,
    #[batch_property(name = "exit.codes")]
    exit_codes: Vec<ExitCodes>,
    #[batch_property(name = "log.output", value = "true")]
    log_output: bool,
    #[batch_context]
    step: StepContext,
    cancel: Cancel,
}

#[batchlet("systemCommand")]
impl SystemCommand {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let name = self.name();
        let log = |stream: Stream, line: &str| {
            self.step.heartbeat();
            if self.log_output {
                tracing::info!(target: "batch.command", command = name, stream = stream.name(), "{line}");
            }
        };
        let mut output = Output::new(&log);
        let limits = Limits {
            timeout: self.timeout.map(Duration::get),
            kill_after: self.kill_after.get(),
        };
        let ran = platform::run(&mut self.command()?, limits, &self.cancel, &mut output);
        let problem = match ran.map_err(|error| self.not_run(error))? {
            Ending::Cancelled => return Ok(STOPPED.into()),
            Ending::TimedOut => "ran longer than its `timeout` and was killed".to_owned(),
            Ending::Exited(status) => match self.exit_status(status) {
                Ok(exit_status) => return Ok(exit_status.to_owned()),
                Err(problem) => problem,
            },
        };
        let tail = output.tail();
        let output = if tail.is_empty() {
            "; it printed nothing"
        } else {
            "; its last output:"
        };
        Err(BatchError::msg(format!(
            "{} {problem}{output}{tail}",
            self.described()
        )))
    }

    #[cancel]
    fn cancel(&self) {
        self.cancel.request();
    }
}

impl SystemCommand {
    /// Returns the name of the program, for the log. A line for a shell may contain anything.
    fn name(&self) -> &str {
        match (self.shell, cfg!(windows)) {
            (false, _) => &self.command.0,
            (true, false) => "sh",
            (true, true) => "cmd",
        }
    }

    fn described(&self) -> String {
        match self.shell {
            true => "the shell command".into(),
            false => format!("command `{}`", self.command.0),
        }
    }

    fn command(&self) -> Result<Command, BatchError> {
        let mut command = match self.shell {
            true => shell(&self.command.0),
            false => Command::new(self.program()?),
        };
        if let Some(directory) = &self.directory {
            if !directory.is_dir() {
                return Err(BatchError::msg(format!(
                    "cannot run {}: its `directory` {} does not exist",
                    self.described(),
                    directory.display()
                )));
            }
            command.current_dir(directory);
        }
        command
            .args(&self.arguments.0)
            .envs(self.environment.0.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    /// Returns the program. A relative path is made absolute, because platforms differ in what it is relative to.
    fn program(&self) -> Result<PathBuf, ResourceError> {
        let program = Path::new(&self.command.0);
        match &self.directory {
            Some(directory) if program.components().count() > 1 => {
                std::path::absolute(directory.join(program)).map_err(|error| self.not_run(error))
            }
            _ => Ok(program.into()),
        }
    }

    fn not_run(&self, error: io::Error) -> ResourceError {
        let action = format!("run {}", self.described());
        match self.command.0.contains(char::is_whitespace) && error.kind() == io::ErrorKind::NotFound {
            true => ResourceError::new(
                action,
                format!("{error}; set its arguments in `arguments`, or `shell` to `true`"),
            ),
            false => ResourceError::new(action, error),
        }
    }

    /// Returns the exit status that `exit.codes` gives the process, or the reason why the step fails.
    fn exit_status(&self, status: ExitStatus) -> Result<&str, String> {
        let Some(code) = status.code() else {
            // The text names the signal.
            return Err(format!("was killed: {status}"));
        };
        ExitCodes::status(&self.exit_codes, code)
            .ok_or_else(|| format!("ended with exit code {code}, which `exit.codes` does not list"))
    }
}

#[cfg(not(windows))]
fn shell(line: &str) -> Command {
    let mut shell = Command::new("sh");
    // The argument after the line is `$0`.
    shell.args(["-c", line, "sh"]);
    shell
}

#[cfg(windows)]
fn shell(line: &str) -> Command {
    use std::os::windows::process::CommandExt;

    let mut shell = Command::new("cmd");
    // As it is: `cmd` does not know the quotes that Rust would add.
    shell.arg("/C").raw_arg(line);
    shell
}

/// The name or path of a program; not empty.
struct Program(String);

impl FromStr for Program {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "" => Err("expected the name or path of a program"),
            program => Ok(Self(program.to_owned())),
        }
    }
}
