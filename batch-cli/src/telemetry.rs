//! What the process sends about its jobs: traces, metrics and logs over OTLP (feature `otlp`), and OpenLineage events (feature `lineage`).
//! Without the features nothing is sent.

#[cfg(any(feature = "otlp", feature = "lineage"))]
use std::time::Duration;

#[cfg(feature = "lineage")]
use batch_lineage::OpenLineage;
#[cfg(feature = "otlp")]
use batch_otel::OpenTelemetry;
use batch_runtime::BatchRuntimeBuilder;

/// The time that the end of the process waits for a collector.
#[cfg(any(feature = "otlp", feature = "lineage"))]
const LAST_EXPORT: Duration = Duration::from_secs(5);

/// The telemetry of the process.
#[derive(Clone, Default)]
pub(crate) struct Telemetry {
    /// `None` if the environment does not mention it.
    #[cfg(feature = "otlp")]
    pub(crate) otlp: Option<OpenTelemetry>,
    /// `None` if the environment does not mention it.
    #[cfg(feature = "lineage")]
    lineage: Option<OpenLineage>,
    /// The log lines that the console shows.
    #[cfg(feature = "console")]
    pub(crate) lines: Option<batch_console::LogLines>,
}

impl Telemetry {
    /// Starts to send what the environment configures.
    pub(crate) fn start() -> Self {
        #[cfg(feature = "otlp")]
        let otlp = OpenTelemetry::from_env();
        #[cfg(feature = "lineage")]
        let lineage = OpenLineage::from_env();
        Self {
            #[cfg(feature = "otlp")]
            otlp: (otlp.is_active() || !otlp.problems().is_empty()).then_some(otlp),
            #[cfg(feature = "lineage")]
            lineage: (lineage.is_active() || !lineage.problems().is_empty()).then_some(lineage),
            #[cfg(feature = "console")]
            lines: None,
        }
    }

    /// Starts to send the lineage of a command that runs no jobs, but may close jobs of dead processes.
    pub(crate) fn of_closed_jobs() -> Self {
        #[cfg(feature = "lineage")]
        let lineage = OpenLineage::from_env();
        Self {
            #[cfg(feature = "lineage")]
            lineage: lineage.is_active().then_some(lineage),
            #[cfg(feature = "otlp")]
            otlp: None,
            #[cfg(feature = "console")]
            lines: None,
        }
    }

    /// Collects the log lines that the console shows.
    #[cfg(feature = "console")]
    pub(crate) fn with_lines(mut self, if_so: bool) -> Self {
        self.lines = if_so.then(batch_console::LogLines::new);
        self
    }

    /// Observes the jobs of a runtime. The first observer that traces a job gives it its context.
    pub(crate) fn observe(&self, runtime: BatchRuntimeBuilder) -> BatchRuntimeBuilder {
        #[cfg(feature = "otlp")]
        let runtime = match &self.otlp {
            Some(otlp) => runtime.observer(otlp.clone()),
            None => runtime,
        };
        #[cfg(feature = "lineage")]
        let runtime = match &self.lineage {
            Some(lineage) => runtime.observer(lineage.clone()),
            None => runtime,
        };
        runtime
    }

    /// Sends the rest when the jobs have ended.
    pub(crate) fn end(&self) {
        #[cfg(feature = "lineage")]
        if let Some(lineage) = &self.lineage {
            lineage.shutdown(LAST_EXPORT);
        }
        #[cfg(feature = "otlp")]
        if let Some(otlp) = &self.otlp {
            otlp.shutdown(LAST_EXPORT);
        }
    }
}
