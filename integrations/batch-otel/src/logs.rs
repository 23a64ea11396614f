//! Log records get the spans of the executions that they name.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Key;
use opentelemetry::logs::{AnyValue, LogRecord, Severity};
use opentelemetry_otlp::LogExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, SdkLogRecord};

use crate::known::{Execution, Known};

/// The fields of the runtime's logs that name a job execution and a step execution.
const JOB_EXECUTION: &str = "execution";
const STEP_EXECUTION: &str = "step_execution";

/// Adds the context of its span to each record. It does so at the export, when the observer has seen the start of the execution, which is
/// logged before.
#[derive(Debug)]
pub(crate) struct Correlated {
    pub(crate) exporter: LogExporter,
    pub(crate) known: Arc<Known>,
}

impl Correlated {
    fn correlated(&self, record: &SdkLogRecord) -> SdkLogRecord {
        let mut record = record.clone();
        if record.trace_context().is_some() {
            return record;
        }
        let id = |name: &str| {
            let mut found = record
                .attributes_iter()
                .filter(|(key, _)| *key == Key::new(name.to_owned()));
            match found.next() {
                Some((_, AnyValue::Int(id))) => Some(*id),
                _ => None,
            }
        };
        let step = id(STEP_EXECUTION).and_then(|id| self.known.get(Execution::Step(id)));
        let job = || id(JOB_EXECUTION).and_then(|id| self.known.get(Execution::Job(id)));
        if let Some(span) = step.or_else(job) {
            record.set_trace_context(span.trace_id(), span.span_id(), Some(span.trace_flags()));
        }
        record
    }
}

impl opentelemetry_sdk::logs::LogExporter for Correlated {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let records: Vec<_> = batch
            .iter()
            .map(|(record, scope)| (self.correlated(record), scope))
            .collect();
        let records: Vec<_> = records.iter().map(|(record, scope)| (record, *scope)).collect();
        self.exporter.export(LogBatch::new(&records)).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn event_enabled(&self, level: Severity, target: &str, name: Option<&str>) -> bool {
        self.exporter.event_enabled(level, target, name)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
