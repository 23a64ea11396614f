//! Traces, metrics and logs over OTLP: feature `otlp`. Without it nothing is sent.

#[cfg(feature = "otlp")]
use std::time::Duration;

#[cfg(feature = "otlp")]
use batch_otel::OpenTelemetry;
use batch_runtime::BatchRuntimeBuilder;

/// The time that the end of the process waits for the collector.
#[cfg(feature = "otlp")]
const LAST_EXPORT: Duration = Duration::from_secs(5);

/// The telemetry of the process.
#[derive(Clone, Default)]
pub(crate) struct Telemetry {
    /// `None` if the environment does not mention it.
    #[cfg(feature = "otlp")]
    pub(crate) otlp: Option<OpenTelemetry>,
}

#[cfg(feature = "otlp")]
impl Telemetry {
    /// Starts to send what the environment configures.
    pub(crate) fn start() -> Self {
        let otlp = OpenTelemetry::from_env();
        let is_mentioned = otlp.is_active() || !otlp.problems().is_empty();
        Self {
            otlp: is_mentioned.then_some(otlp),
        }
    }

    /// Observes the jobs of a runtime.
    pub(crate) fn observe(&self, runtime: BatchRuntimeBuilder) -> BatchRuntimeBuilder {
        match &self.otlp {
            Some(otlp) => runtime.observer(otlp.clone()),
            None => runtime,
        }
    }

    /// Sends the rest when the jobs have ended.
    pub(crate) fn end(&self) {
        if let Some(otlp) = &self.otlp {
            otlp.shutdown(LAST_EXPORT);
        }
    }
}

#[cfg(not(feature = "otlp"))]
impl Telemetry {
    pub(crate) fn start() -> Self {
        Self::default()
    }

    pub(crate) fn observe(&self, runtime: BatchRuntimeBuilder) -> BatchRuntimeBuilder {
        runtime
    }

    pub(crate) fn end(&self) {}
}
