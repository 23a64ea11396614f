//! Commands.

use std::error::Error;
use std::fmt;
use std::io::Write;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::notify::{Notification, NotificationChannel};

/// The time limit of the program.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// Starts a program for each notification.
///
/// Its standard input is the [CloudEvent](Notification::to_cloud_event), in one line. The variables `NOTIFICATION_ID`,
/// `NOTIFICATION_EVENT`, `NOTIFICATION_JOB`, `NOTIFICATION_INSTANCE`, `NOTIFICATION_EXECUTION` and `NOTIFICATION_STATUS` hold what a short
/// script needs. The notification has arrived if the program ends with exit code 0 within 30 seconds; then it is killed, but not the
/// programs that it has started. Its output is discarded. It may outlive this process, if that ends first.
// Spec: NOTIFY-05
#[derive(Clone, Debug)]
pub struct Command {
    program: String,
    arguments: Vec<String>,
}

/// A command without a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command names no program; expected the program and its arguments")]
pub struct CommandError;

impl Command {
    /// Creates a command of a program, with its arguments. No shell reads them.
    ///
    /// # Errors
    /// When there is no program.
    pub fn new<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Result<Self, CommandError> {
        let mut words = words.into_iter().map(Into::into);
        let program = words.next().filter(|program| !program.is_empty());
        Ok(Self {
            program: program.ok_or(CommandError)?,
            arguments: words.collect(),
        })
    }
}

/// Writes the program.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)
    }
}

impl NotificationChannel for Command {
    fn send(&self, notification: &Notification) -> Result<(), Box<dyn Error + Send + Sync>> {
        let status = notification.row.as_ref().map(|row| row.status.to_string());
        let started = std::process::Command::new(&self.program)
            .args(&self.arguments)
            .env("NOTIFICATION_ID", &notification.id)
            .env("NOTIFICATION_EVENT", notification.event.as_str())
            .env("NOTIFICATION_JOB", &notification.job)
            .env("NOTIFICATION_INSTANCE", notification.instance.to_string())
            .env("NOTIFICATION_EXECUTION", notification.execution.to_string())
            .env("NOTIFICATION_STATUS", status.unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // If it outlives this process, it must not keep the terminal or pipe of the job open.
            .stderr(Stdio::null())
            .spawn();
        let mut child = started.map_err(|error| format!("cannot start `{self}`: {error}"))?;
        let input = child.stdin.take();
        let event = notification.to_cloud_event();
        // A program that does not read its input would block this thread. It is not waited for: programs that this one has started may keep
        // the input open.
        thread::spawn(move || input.map(|mut input| writeln!(input, "{event}")));
        match wait(&mut child)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("`{self}` failed: {status}").into()),
            None => Err(format!("`{self}` was ended after {TIMEOUT:?}").into()),
        }
    }
}

/// Waits for the end of a program; `None` if it takes too long and is killed.
fn wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
