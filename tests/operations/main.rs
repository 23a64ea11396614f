//! Programs as users and operators run them: commands, settings, signals, secrets, terminals, metrics; the examples and
//! the guide.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod command_line;
mod deploy;
mod embedded;
mod endpoint;
mod examples;
mod guide;
mod in_memory;
mod job_tools;
mod log;
#[cfg(target_os = "linux")]
mod memory;
mod nested;
mod nothing_left;
mod operating;
mod schedulers;
mod secrets;
mod settings;
mod shutdown;
mod terminal;
mod upgrade;
#[cfg(unix)]
mod workers;
