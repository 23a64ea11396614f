//! The log, on the standard error, and over OTLP if that is configured.

use std::io::{IsTerminal, stderr};

use tracing::Subscriber;
#[cfg(any(feature = "otlp", feature = "console"))]
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::print::StandardError;
use crate::settings::{LogFormat, Settings};
use crate::telemetry::Telemetry;

/// Installs the logger that the settings configure, unless the program has installed another one before.
pub(crate) fn start(settings: &Settings, telemetry: &Telemetry) {
    let log = tracing_subscriber::fmt()
        .with_max_level(settings.log)
        // It would print them on the standard error, and panic if that fails.
        .log_internal_errors(false)
        .with_writer(|| StandardError);
    let _ = match settings.log_format {
        LogFormat::Text => {
            let is_colored = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            let log = log.with_ansi(is_colored).without_time().with_target(false);
            install(log.finish(), telemetry)
        }
        LogFormat::Json => install(log.json().flatten_event(true).finish(), telemetry),
    };
}

fn install<S>(log: S, telemetry: &Telemetry) -> Result<(), TryInitError>
where
    S: Subscriber + Send + Sync + for<'s> LookupSpan<'s>,
{
    #[cfg(feature = "otlp")]
    let log = log.with(telemetry.otlp.as_ref().and_then(|otlp| otlp.log_layer()));
    #[cfg(feature = "console")]
    let log = log.with(telemetry.lines.clone());
    #[cfg(not(any(feature = "otlp", feature = "console")))]
    let _ = telemetry;
    log.try_init()
}
