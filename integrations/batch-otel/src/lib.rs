//! Traces, metrics and logs of batch jobs over OTLP, the protocol of OpenTelemetry.
//!
//! [`OpenTelemetry::from_env`] reads the standard `OTEL_*` variables. It is an observer of a runtime, and each execution of a job becomes a
//! trace:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use batch_otel::OpenTelemetry;
//! use batch_runtime::BatchRuntime;
//!
//! let telemetry = OpenTelemetry::from_env();
//! let runtime = BatchRuntime::builder().observer(telemetry.clone()).build()?;
//! let operator = runtime.job_operator();
//! let execution = operator.start("flights", ())?;
//! operator.wait(execution)?;
//! operator.flush_observers();
//! telemetry.shutdown(Duration::from_secs(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`install_metrics`](OpenTelemetry::install_metrics) sends the metrics of the runtime and of the program, and
//! [`log_layer`](OpenTelemetry::log_layer) the records of `tracing`. Programs with `batch-cli` have all three with its feature `otlp`.
//!
//! # Spans
//!
//! | span | parent | attributes |
//! |---|---|---|
//! | `job NAME` | `TRACEPARENT` of the environment, if set | `batch.job.name`, `batch.job.instance.id`, `batch.job.execution.id`, `batch.job.status`, `batch.job.exit_status` |
//! | `step NAME` | the job, or the partition of a flow | `batch.step.name`, `batch.step.execution.id`, `batch.step.status`, `batch.step.exit_status`, `batch.step.items.*` |
//! | `partition NAME` | its step, also in another process | as a step, `batch.partition.name` |
//! | `chunk NAME` | the step or partition | `batch.chunk.items.*`; `batch.chunk.number` of a committed one |
//!
//! A chunk begins at the commit before it. Its events are `batch.item.skip`, `batch.item.retry` and `batch.chunk.rollback`; the events of
//! a job are `batch.job.takeover`, `batch.job.stop`, `batch.job.lease_lost`, and `batch.job.wait` and `batch.job.turn` if it waits for its
//! turn. Errors have the attributes `exception.message` and `error.type` of the semantic conventions. The trace of a restart links to the
//! trace of the execution before. Times have milliseconds.
//!
//! # Failures of the collector
//!
//! Nothing here delays a job or changes its result. Spans and logs wait in bounded queues (`OTEL_BSP_MAX_QUEUE_SIZE`,
//! `OTEL_BLRP_MAX_QUEUE_SIZE`); records that do not fit are dropped. A collector that cannot be reached is logged once as a warning, until
//! it can be reached again.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories, as of `batch-runtime` |
//! | `bundled-postgres`, `bundled-mysql` | the same, with the client library compiled in |
// Spec: OTEL-01 to OTEL-10
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod attributes;
mod config;
mod ids;
mod known;
mod logs;
mod metrics;
mod telemetry;
mod tracer;
mod transport;

pub use self::telemetry::{LogLayer, MetricsError, OpenTelemetry};
