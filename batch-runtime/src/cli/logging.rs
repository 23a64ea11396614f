//! The log, on the standard error.

use std::io::{IsTerminal, stderr};

use tracing::level_filters::LevelFilter;

use super::config::{Config, Setting};

#[derive(Clone, Copy)]
pub(super) enum Format {
    Text,
    Json,
}

/// What is logged.
pub(super) fn level(config: &Config) -> Result<LevelFilter, String> {
    config.word(
        Setting::Log,
        &[
            ("off", LevelFilter::OFF),
            ("error", LevelFilter::ERROR),
            ("warn", LevelFilter::WARN),
            ("info", LevelFilter::INFO),
            ("debug", LevelFilter::DEBUG),
            ("trace", LevelFilter::TRACE),
        ],
    )
}

/// How it is logged.
pub(super) fn format(config: &Config) -> Result<Format, String> {
    config.word(
        Setting::LogFormat,
        &[("text", Format::Text), ("json", Format::Json)],
    )
}

/// Begins to log as the settings say. A program that logs already goes on as it does.
pub(super) fn begin(config: &Config) -> Result<(), String> {
    let (level, format) = (level(config)?, format(config)?);
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(stderr);
    let _ = match format {
        Format::Text => log
            .with_ansi(stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
            .without_time()
            .with_target(false)
            .try_init(),
        Format::Json => log.json().flatten_event(true).try_init(),
    };
    Ok(())
}
