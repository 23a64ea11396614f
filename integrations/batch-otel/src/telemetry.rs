//! `OpenTelemetry`: the providers of the SDK, configured by the environment.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::observer::{JobEvent, JobObserver};
use metrics::Recorder;
use metrics_util::layers::FanoutBuilder;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_appender_tracing::layer::{OpenTelemetryTracingBridge, TracingSpanAttributes};
use opentelemetry_otlp::{ExporterBuildError, LogExporter, MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use thiserror::Error;
use ureq::tls::{PemItem, RootCerts, parse_pem};

use crate::config::{Config, Signal};
use crate::ids::Ids;
use crate::known::Known;
use crate::logs::Correlated;
use crate::metrics::OtelRecorder;
use crate::tracer::Tracer;
use crate::transport::Transport;

/// A layer of a `tracing` subscriber that sends log events.
pub type LogLayer = OpenTelemetryTracingBridge<SdkLoggerProvider, SdkLogger>;

/// Metrics cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the program has installed another recorder of metrics; pass that to `install_metrics_with` instead")]
pub struct MetricsError;

/// Traces, metrics and logs of a process, which go to a collector over OTLP.
///
/// Cheap to clone. As an [observer](batch_runtime::BatchRuntimeBuilder::observer) it traces the jobs of a runtime, and the partitions that
/// a worker runs.
#[derive(Clone)]
pub struct OpenTelemetry {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    traces: Option<(SdkTracerProvider, Tracer)>,
    metrics: Option<SdkMeterProvider>,
    logs: Option<SdkLoggerProvider>,
    problems: Vec<String>,
    logged: OnceLock<()>,
    is_shut_down: AtomicBool,
}

impl OpenTelemetry {
    /// Reads the variables `OTEL_*` and `TRACEPARENT` of the process. Connects to nothing yet.
    ///
    /// A signal is sent if `OTEL_EXPORTER_OTLP_ENDPOINT`, or its own endpoint, is set, unless its exporter, such as `OTEL_TRACES_EXPORTER`,
    /// is `none` or `OTEL_SDK_DISABLED` is `true`. The protocol is `http/protobuf`. What is invalid is ignored: see
    /// [`problems`](Self::problems).
    // Spec: OTEL-01
    pub fn from_env() -> Self {
        let config = Config::read(&|name| std::env::var(name).ok());
        Self {
            inner: Arc::new(Inner::new(config)),
        }
    }

    /// Returns whether anything is sent.
    pub fn is_active(&self) -> bool {
        let Inner {
            traces,
            metrics,
            logs,
            ..
        } = &*self.inner;
        traces.is_some() || metrics.is_some() || logs.is_some()
    }

    /// Returns the problems of the configuration. They are also logged as warnings when a job or partition starts.
    pub fn problems(&self) -> &[String] {
        &self.inner.problems
    }

    /// Returns a layer that sends the records of `tracing`; `None` if logs are not sent. Records of jobs belong to their traces.
    // Spec: OTEL-07
    pub fn log_layer(&self) -> Option<LogLayer> {
        let bridge = LogLayer::builder(self.inner.logs.as_ref()?);
        let bridge = bridge.with_tracing_span_attributes(TracingSpanAttributes::all());
        Some(bridge.build())
    }

    /// Installs a recorder that sends the metrics of the crate `metrics`. Does nothing if metrics are not sent.
    ///
    /// # Errors
    /// If the program has installed a recorder before: use [`install_metrics_with`](Self::install_metrics_with).
    // Spec: OTEL-06
    pub fn install_metrics(&self) -> Result<(), MetricsError> {
        match self.recorder() {
            Some(recorder) => metrics::set_global_recorder(recorder).map_err(|_| MetricsError),
            None => Ok(()),
        }
    }

    /// As [`install_metrics`](Self::install_metrics), and records in `other` too, also if metrics are not sent.
    ///
    /// # Errors
    /// If the program has installed a recorder before.
    // Spec: OTEL-06
    pub fn install_metrics_with(
        &self,
        other: impl Recorder + Send + Sync + 'static,
    ) -> Result<(), MetricsError> {
        let mut all = FanoutBuilder::default().add_recorder(other);
        if let Some(recorder) = self.recorder() {
            all = all.add_recorder(recorder);
        }
        metrics::set_global_recorder(all.build()).map_err(|_| MetricsError)
    }

    fn recorder(&self) -> Option<OtelRecorder> {
        let provider = self.inner.metrics.as_ref()?;
        Some(OtelRecorder::new(provider.meter("batch-runtime")))
    }

    /// Sends the rest, and ends. Waits for the collector up to `limit`; after that it logs a warning and discards the rest.
    /// Call it after [`flush_observers`](batch_runtime::JobOperator::flush_observers), which passes on the last events. A second call does
    /// nothing.
    // Spec: OTEL-08
    pub fn shutdown(&self, limit: Duration) {
        let inner = &self.inner;
        if inner.is_shut_down.swap(true, Ordering::Relaxed) {
            return;
        }
        let until = Instant::now() + limit;
        // The limit is kept below, since the SDK does not keep all of them.
        let longer = limit * 2;
        let mut pending: Vec<(Signal, Box<dyn FnOnce() -> OTelSdkResult + Send>)> = Vec::new();
        if let Some((provider, _)) = &inner.traces {
            let provider = provider.clone();
            pending.push((
                Signal::Traces,
                Box::new(move || provider.shutdown_with_timeout(longer)),
            ));
        }
        if let Some(provider) = inner.metrics.clone() {
            pending.push((
                Signal::Metrics,
                Box::new(move || provider.shutdown_with_timeout(longer)),
            ));
        }
        if let Some(provider) = inner.logs.clone() {
            pending.push((
                Signal::Logs,
                Box::new(move || provider.shutdown_with_timeout(longer)),
            ));
        }
        // Each on a separate thread: none waits for another.
        let pending: Vec<_> = pending
            .into_iter()
            .map(|(signal, shutdown)| {
                let (done, ended) = channel();
                let spawned = thread::Builder::new()
                    .name("batch-otel-shutdown".into())
                    .spawn(move || done.send(shutdown()));
                (signal, spawned.is_ok().then_some(ended))
            })
            .collect();
        for (signal, ended) in pending {
            let left = until.saturating_duration_since(Instant::now());
            let is_sent = ended.is_some_and(|ended| ended.recv_timeout(left).is_ok());
            if !is_sent {
                let signal = signal.as_str();
                tracing::warn!("not all {signal} could be sent in {limit:?}; the rest is lost");
            }
        }
    }
}

impl Inner {
    fn new(mut config: Config) -> Self {
        let roots = match config.certificate.as_deref().map(root_certs).transpose() {
            Ok(roots) => roots,
            Err(problem) => {
                config.problems.push(problem);
                config.signals.clear();
                None
            }
        };
        let mut inner = Self::default();
        let known = Arc::new(Known::default());
        for (signal, timeout) in std::mem::take(&mut config.signals) {
            let transport = Transport::new(signal.as_str(), timeout, roots.clone());
            let built = match signal {
                Signal::Traces => tracer_provider(transport, timeout).map(|provider| {
                    let tracer = Tracer::new(&provider, config.parent.take(), Arc::clone(&known));
                    inner.traces = Some((provider, tracer));
                }),
                Signal::Metrics => {
                    meter_provider(transport, timeout).map(|provider| inner.metrics = Some(provider))
                }
                Signal::Logs => logger_provider(transport, timeout, Arc::clone(&known))
                    .map(|provider| inner.logs = Some(provider)),
            };
            if let Err(error) = built {
                let signal = signal.as_str();
                config.problems.push(format!("no {signal} are sent: {error}"));
            }
        }
        inner.problems = config.problems;
        inner
    }

    /// Logs the problems once. Not when they are found: the program may not have installed its logger yet.
    fn log_problems(&self) {
        self.logged.get_or_init(|| {
            self.problems
                .iter()
                .for_each(|problem| tracing::warn!("{problem}"))
        });
    }
}

impl JobObserver for OpenTelemetry {
    fn on_event(&self, event: &JobEvent) {
        self.inner.log_problems();
        if let Some((_, tracer)) = &self.inner.traces {
            tracer.on_event(event);
        }
    }

    fn trace_job(&self, job: &str) -> Option<String> {
        self.inner.log_problems();
        let (_, tracer) = self.inner.traces.as_ref()?;
        Some(tracer.trace_job(job))
    }
}

impl fmt::Debug for OpenTelemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The providers contain headers, which may be secret.
        f.debug_struct("OpenTelemetry")
            .field("is_active", &self.is_active())
            .finish_non_exhaustive()
    }
}

fn tracer_provider(transport: Transport, timeout: Duration) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = SpanExporter::builder().with_http();
    let exporter = with(exporter, transport, timeout).build()?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_id_generator(Ids::default())
        .with_resource(resource());
    Ok(provider.build())
}

fn meter_provider(transport: Transport, timeout: Duration) -> Result<SdkMeterProvider, ExporterBuildError> {
    let exporter = MetricExporter::builder().with_http();
    let exporter = with(exporter, transport, timeout).build()?;
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(exporter)
        .with_resource(resource());
    Ok(provider.build())
}

fn logger_provider(
    transport: Transport,
    timeout: Duration,
    known: Arc<Known>,
) -> Result<SdkLoggerProvider, ExporterBuildError> {
    let exporter = LogExporter::builder().with_http();
    let exporter = with(exporter, transport, timeout).build()?;
    let provider = SdkLoggerProvider::builder()
        .with_batch_exporter(Correlated { exporter, known })
        .with_resource(resource());
    Ok(provider.build())
}

/// Applies the variables that all signals share.
fn with<B: WithHttpConfig + opentelemetry_otlp::WithExportConfig>(
    exporter: B,
    transport: Transport,
    timeout: Duration,
) -> B {
    exporter.with_timeout(timeout).with_http_client(transport)
}

/// Returns the resource of the variables, whose service is the program by default.
fn resource() -> Resource {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_stem());
    let program = program.map(|name| name.to_string_lossy().into_owned());
    let detected = Resource::builder().build();
    let is_named = detected
        .get(&"service.name".into())
        .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    let mut resource =
        Resource::builder().with_attribute(KeyValue::new("process.pid", i64::from(std::process::id())));
    if let Some(program) = program.filter(|_| !is_named) {
        resource = resource.with_attribute(KeyValue::new("service.name", program));
    }
    resource.build()
}

/// Reads the certificates of a PEM file.
fn root_certs(path: &str) -> Result<RootCerts, String> {
    let problem = |error: &dyn fmt::Display| {
        format!("nothing is sent: cannot read OTEL_EXPORTER_OTLP_CERTIFICATE=`{path}`: {error}")
    };
    let text = std::fs::read(path).map_err(|error| problem(&error))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| problem(&error))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(problem(&"it contains no certificate in PEM"));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}
