//! The log, on the standard error.

use std::io::{IsTerminal, stderr};

use crate::settings::{LogFormat, Settings};

/// Installs the logger that the settings configure, unless the program has installed another one before.
pub(crate) fn start(settings: &Settings) {
    let log = tracing_subscriber::fmt()
        .with_max_level(settings.log)
        .with_writer(stderr);
    let _ = match settings.log_format {
        LogFormat::Text => log
            .with_ansi(stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
            .without_time()
            .with_target(false)
            .try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}
