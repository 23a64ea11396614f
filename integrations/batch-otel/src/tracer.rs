//! The spans of jobs, made from the events of an observer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use batch_runtime::execution::StepCounters;
use batch_runtime::observer::{ItemPhase, JobEvent, JobEventKind, ObservedJob, ObservedStep, StepBody};
use batch_runtime::{BatchStatus, JobExecutionId, Timestamp};
use opentelemetry::trace::{
    Event, Link, Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, TraceFlags,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{
    Config, IdGenerator, RandomIdGenerator, SamplingDecision, SdkTracer, SdkTracerProvider, ShouldSample,
    Span,
};

use crate::attributes as names;
use crate::ids;
use crate::known::{Execution, Known};

/// Makes spans from events.
pub(crate) struct Tracer {
    tracer: SdkTracer,
    sampler: Box<dyn ShouldSample>,
    /// The span that started this process.
    parent: Context,
    known: Arc<Known>,
    open: Mutex<Open>,
}

/// The spans that have not ended, by the addresses of their jobs and steps: ids are not unique, if there are several runtimes, or if a step
/// runs again because its worker has lost it.
#[derive(Default)]
struct Open {
    jobs: HashMap<usize, JobSpan>,
    steps: HashMap<usize, StepSpan>,
}

struct JobSpan {
    /// Keeps its address.
    _job: Arc<ObservedJob>,
    /// Events before it has started.
    early: Vec<Event>,
    /// `None` until then.
    span: Option<Span>,
}

struct StepSpan {
    job: Arc<ObservedJob>,
    step: Arc<ObservedStep>,
    span: Span,
    chunk: Chunk,
}

fn key<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of).addr()
}

/// The chunk that a step processes.
struct Chunk {
    since: SystemTime,
    events: Vec<Event>,
    /// The counters at its last rollback, with the error.
    rolled_back: Option<String>,
}

impl Chunk {
    fn new(since: SystemTime) -> Self {
        Self {
            since,
            events: Vec::new(),
            rolled_back: None,
        }
    }
}

impl Tracer {
    pub(crate) fn new(provider: &SdkTracerProvider, parent: Option<SpanContext>, known: Arc<Known>) -> Self {
        let scope = opentelemetry::InstrumentationScope::builder("batch-runtime")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Self {
            tracer: provider.tracer_with_scope(scope),
            sampler: Config::default().sampler,
            parent: parent.map_or_else(Context::new, |parent| below(&parent)),
            known,
            open: Mutex::default(),
        }
    }

    /// Returns the context of the span that the job execution will have.
    pub(crate) fn trace_job(&self, job: &str) -> String {
        let random = RandomIdGenerator::default();
        let parent = self.parent.span().span_context().clone();
        let trace = match parent.is_valid() {
            true => parent.trace_id(),
            false => random.new_trace_id(),
        };
        // As the tracer decides when the job starts.
        let (name, parent) = (span_of_job(job), Some(&self.parent));
        let sampled = self
            .sampler
            .should_sample(parent, trace, &name, &SpanKind::Internal, &[], &[]);
        let is_sampled = sampled.decision == SamplingDecision::RecordAndSample;
        let flags = TraceFlags::default().with_sampled(is_sampled);
        ids::traceparent(trace, random.new_span_id(), flags)
    }

    pub(crate) fn on_event(&self, event: &JobEvent) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = time(event.at);
        match &event.kind {
            JobEventKind::JobStarted => self.start_job(&mut open, event),
            JobEventKind::JobEnded(end) => {
                let message = (end.status == BatchStatus::Failed).then_some(&*end.exit_message);
                let attributes = [
                    KeyValue::new(names::JOB_STATUS, end.status.as_str()),
                    KeyValue::new(names::JOB_EXIT_STATUS, end.exit_status.clone()),
                ];
                self.end_job(&mut open, event, attributes, message);
            }
            JobEventKind::JobLost { cause } => {
                let lost = [KeyValue::new(names::JOB_STATUS, "lost")];
                self.end_job(&mut open, event, lost, Some(cause));
            }
            JobEventKind::TookOver { dead } => {
                // Mostly before the job has started.
                open.job(event);
                open.add(event, Event::new(names::TAKEOVER, at, execution(*dead), 0));
            }
            JobEventKind::WaitsForTurn { before } => {
                open.add(event, Event::new(names::WAIT, at, execution(*before), 0));
            }
            JobEventKind::TurnTaken => open.add(event, Event::new(names::TURN, at, Vec::new(), 0)),
            JobEventKind::StopRequested { cause } => {
                open.add(event, Event::new(names::STOP, at, message(cause.as_deref()), 0));
            }
            JobEventKind::LeaseLost { cause } => {
                open.add(event, Event::new(names::LEASE_LOST, at, message(Some(cause)), 0));
            }
            JobEventKind::EventsDropped { count } => {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                let count = vec![KeyValue::new(names::EVENTS, count)];
                open.add(event, Event::new(names::EVENTS_DROPPED, at, count, 0));
            }
            _ => {
                if let Some(step) = &event.step {
                    self.on_step_event(&mut open, event, step);
                }
            }
        }
    }

    fn on_step_event(&self, open: &mut Open, event: &JobEvent, step: &Arc<ObservedStep>) {
        let at = time(event.at);
        let at_step = key(step);
        match &event.kind {
            JobEventKind::StepStarted { .. } => {
                let started = self.start_step(open, event, step);
                open.steps.insert(at_step, started);
            }
            JobEventKind::StepEnded(end) => {
                let Some(mut ended) = open.steps.remove(&at_step) else {
                    return;
                };
                ended.span.set_attributes([
                    KeyValue::new(names::STEP_STATUS, end.status.as_str()),
                    KeyValue::new(names::STEP_EXIT_STATUS, end.exit_status.clone()),
                ]);
                if step.body == StepBody::Chunk {
                    ended.span.set_attributes(names::items_of_step(&end.counters));
                }
                let message = (end.status == BatchStatus::Failed).then_some(&*end.exit_message);
                self.end_step(ended, at, message.map(|message| ("FAILED", message)));
            }
            JobEventKind::StepLost => {
                if let Some(lost) = open.steps.remove(&at_step) {
                    self.end_step(lost, at, Some(("lost", "this process does not run it any more")));
                }
            }
            _ => {
                if let Some(running) = open.steps.get_mut(&at_step) {
                    self.on_chunk_event(running, at, &event.kind);
                }
            }
        }
    }

    fn on_chunk_event(&self, running: &mut StepSpan, at: SystemTime, kind: &JobEventKind) {
        let chunk = &mut running.chunk;
        match kind {
            JobEventKind::ItemSkipped { phase, error } => {
                chunk
                    .events
                    .push(Event::new(names::SKIP, at, failed_item(*phase, error), 0));
            }
            JobEventKind::ItemRetried { phase, error } => {
                chunk
                    .events
                    .push(Event::new(names::RETRY, at, failed_item(*phase, error), 0));
            }
            JobEventKind::ChunkRolledBack { error, .. } => {
                chunk
                    .events
                    .push(Event::new(names::ROLLBACK, at, message(error.as_deref()), 0));
                chunk.rolled_back = Some(error.clone().unwrap_or_default());
            }
            JobEventKind::ChunkCommitted { before, counters, .. } => {
                self.end_chunk(running, at, Some((before, counters)));
            }
            _ => {}
        }
    }

    fn start_job(&self, open: &mut Open, event: &JobEvent) {
        let Some(own) = ids::parsed_stored(event.job.trace.context.as_deref()) else {
            return;
        };
        let attributes = [
            KeyValue::new(names::JOB_NAME, event.job.job.clone()),
            KeyValue::new(names::JOB_INSTANCE, event.job.instance.0),
            KeyValue::new(names::JOB_EXECUTION, event.job.execution.0),
        ];
        let previous = ids::parsed_stored(event.job.trace.previous.as_deref());
        let early = std::mem::take(&mut open.job(event).early);
        let first = early.first().map(|early| early.timestamp);
        let builder = SpanBuilder::from_name(span_of_job(&event.job.job))
            .with_kind(SpanKind::Internal)
            // No event is before its span.
            .with_start_time(first.unwrap_or_else(|| time(event.at)))
            .with_attributes(attributes)
            .with_events(early)
            .with_links(
                previous
                    .map(|previous| Link::new(previous, Vec::new(), 0))
                    .into_iter()
                    .collect(),
            );
        let span = ids::with_ids(own.trace_id(), own.span_id(), || {
            self.tracer.build_with_context(builder, &self.parent)
        });
        let job = Execution::Job(event.job.execution.0);
        self.known.insert(job, span.span_context().clone());
        open.job(event).span = Some(span);
    }

    /// Ends a job, and its steps whose ends this process has not seen.
    fn end_job(
        &self,
        open: &mut Open,
        event: &JobEvent,
        attributes: impl IntoIterator<Item = KeyValue>,
        error: Option<&str>,
    ) {
        let at = time(event.at);
        for (_, left) in open
            .steps
            .extract_if(|_, step| Arc::ptr_eq(&step.job, &event.job))
        {
            self.end_step(left, at, Some(("lost", "its end was not observed")));
        }
        let job = open.jobs.remove(&key(&event.job));
        let Some(mut span) = job.and_then(|job| job.span) else {
            return;
        };
        span.set_attributes(attributes);
        if let Some(message) = error {
            let is_lost = matches!(event.kind, JobEventKind::JobLost { .. });
            fail(&mut span, if is_lost { "lost" } else { "FAILED" }, message);
        }
        span.end_with_timestamp(at);
    }

    fn start_step(&self, open: &Open, event: &JobEvent, step: &Arc<ObservedStep>) -> StepSpan {
        let at = time(event.at);
        let kind = if step.is_partition { "partition" } else { "step" };
        let mut attributes = vec![
            KeyValue::new(names::JOB_NAME, event.job.job.clone()),
            KeyValue::new(names::JOB_EXECUTION, event.job.execution.0),
            KeyValue::new(names::STEP_NAME, step.step.clone()),
            KeyValue::new(names::STEP_EXECUTION, step.execution.0),
        ];
        if step.is_partition {
            attributes.push(KeyValue::new(names::PARTITION_NAME, step.name.clone()));
        }
        let builder = SpanBuilder::from_name(format!("{kind} {}", step.step))
            .with_kind(SpanKind::Internal)
            .with_start_time(at)
            .with_attributes(attributes);
        let job = open.context_of_job(event);
        let parent = self.parent_of(open, event, step, job.as_ref());
        let start = || self.tracer.build_with_context(builder, &parent);
        let span = match job.filter(|_| step.body == StepBody::Partitions) {
            Some(job) => ids::with_ids(job.trace_id(), ids::span_of_step(&job, &step.name), start),
            None => start(),
        };
        let execution = Execution::Step(step.execution.0);
        self.known.insert(execution, span.span_context().clone());
        StepSpan {
            job: Arc::clone(&event.job),
            step: Arc::clone(step),
            span,
            chunk: Chunk::new(at),
        }
    }

    /// Returns the context of the span above a step: of the innermost element around it that this process runs, else of the step or job
    /// whose coordinator is another process.
    fn parent_of(
        &self,
        open: &Open,
        event: &JobEvent,
        step: &ObservedStep,
        job: Option<&SpanContext>,
    ) -> Context {
        let around = open
            .steps
            .values()
            .filter(|running| Arc::ptr_eq(&running.job, &event.job) && is_around(&running.step, step));
        if let Some(innermost) = around.max_by_key(|running| running.step.name.len()) {
            return below(innermost.span.span_context());
        }
        let Some(job) = job else {
            return self.parent.clone();
        };
        let is_of_step = step.is_partition && step.body != StepBody::Flow;
        match step.name.rsplit_once(':') {
            Some((of, _)) if is_of_step => below(&ids::remote_step(job, of)),
            _ => below(job),
        }
    }

    fn end_step(&self, mut ended: StepSpan, at: SystemTime, error: Option<(&'static str, &str)>) {
        // A chunk that is not committed is shown if something has happened in it.
        if !ended.chunk.events.is_empty() {
            self.end_chunk(&mut ended, at, None);
        }
        if let Some((kind, message)) = error {
            fail(&mut ended.span, kind, message);
        }
        ended.span.end_with_timestamp(at);
    }

    fn end_chunk(
        &self,
        running: &mut StepSpan,
        at: SystemTime,
        committed: Option<(&StepCounters, &StepCounters)>,
    ) {
        let chunk = std::mem::replace(&mut running.chunk, Chunk::new(at));
        let mut attributes = Vec::new();
        if let Some((before, after)) = committed {
            attributes.extend(names::items_of_chunk(before, after));
            attributes.push(KeyValue::new(names::CHUNK_NUMBER, after.commits));
        }
        let builder = SpanBuilder::from_name(format!("chunk {}", running.step.step))
            .with_kind(SpanKind::Internal)
            .with_start_time(chunk.since)
            .with_attributes(attributes)
            .with_events(chunk.events);
        let parent = below(running.span.span_context());
        let mut span = self.tracer.build_with_context(builder, &parent);
        if let (None, Some(message)) = (committed, &chunk.rolled_back) {
            fail(&mut span, "rolled_back", message);
        }
        span.end_with_timestamp(at);
    }
}

impl Open {
    /// Returns the entry of a job.
    fn job(&mut self, event: &JobEvent) -> &mut JobSpan {
        self.jobs.entry(key(&event.job)).or_insert_with(|| JobSpan {
            _job: Arc::clone(&event.job),
            early: Vec::new(),
            span: None,
        })
    }

    /// Adds an event to a job or, if another process coordinates it, to the partitions that this one runs.
    fn add(&mut self, event: &JobEvent, happened: Event) {
        if let Some(job) = self.jobs.get_mut(&key(&event.job)) {
            match &mut job.span {
                Some(span) => add(span, happened),
                None => job.early.push(happened),
            }
            return;
        }
        let is_of_job = |step: &&mut StepSpan| Arc::ptr_eq(&step.job, &event.job);
        for step in self.steps.values_mut().filter(is_of_job) {
            add(&mut step.span, happened.clone());
        }
    }

    /// Returns the context of the job execution: of its span, or as its coordinator has passed it on.
    fn context_of_job(&self, event: &JobEvent) -> Option<SpanContext> {
        let job = self.jobs.get(&key(&event.job));
        match job.and_then(|job| job.span.as_ref()) {
            Some(span) => Some(span.span_context().clone()),
            None => ids::parsed_stored(event.job.trace.context.as_deref()),
        }
    }
}

/// Returns whether a running step, or partition of a flow, contains a step or partition.
fn is_around(outer: &ObservedStep, inner: &ObservedStep) -> bool {
    let Some(rest) = inner.name.strip_prefix(&*outer.name) else {
        return false;
    };
    match outer.body {
        StepBody::Flow => rest.starts_with('/'),
        StepBody::Partitions => {
            let number = rest.strip_prefix(':').unwrap_or_default();
            inner.is_partition && !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        }
        _ => false,
    }
}

fn span_of_job(job: &str) -> String {
    format!("job {job}")
}

fn below(parent: &SpanContext) -> Context {
    Context::new().with_remote_span_context(parent.clone())
}

fn add(span: &mut Span, event: Event) {
    span.add_event_with_timestamp(event.name, event.timestamp, event.attributes);
}

fn fail(span: &mut Span, kind: &'static str, message: &str) {
    span.set_attribute(KeyValue::new(names::ERROR_TYPE, kind));
    span.set_status(Status::error(message.to_owned()));
}

fn execution(id: JobExecutionId) -> Vec<KeyValue> {
    vec![KeyValue::new(names::JOB_EXECUTION, id.0)]
}

fn message(error: Option<&str>) -> Vec<KeyValue> {
    let message = error.map(|error| KeyValue::new(names::EXCEPTION_MESSAGE, error.to_owned()));
    message.into_iter().collect()
}

fn failed_item(phase: ItemPhase, error: &str) -> Vec<KeyValue> {
    let phase = match phase {
        ItemPhase::Read => "read",
        ItemPhase::Process => "process",
        ItemPhase::Write => "write",
    };
    let mut attributes = message(Some(error));
    attributes.push(KeyValue::new(names::ITEM_PHASE, phase));
    attributes
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use batch_runtime::observer::JobObserver;
    use batch_runtime::prelude::*;
    use opentelemetry::trace::SpanId;
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::trace::{SpanData, SpanExporter};

    use super::*;
    use crate::ids::Ids;

    #[derive(BatchArtifact)]
    struct Task;

    #[batchlet]
    impl Task {
        #[process]
        fn run(&self) -> String {
            "DONE".into()
        }
        #[cancel]
        fn cancel(&self) {}
    }

    #[derive(Clone, Debug, Default)]
    struct Exported(Arc<Mutex<Vec<SpanData>>>);

    impl SpanExporter for Exported {
        async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
            self.0.lock().unwrap().append(&mut batch);
            Ok(())
        }
    }

    /// Both runtimes start their jobs before either goes on.
    static BOTH: Barrier = Barrier::new(2);

    struct Traced(Arc<Tracer>);

    impl JobObserver for Traced {
        fn on_event(&self, event: &JobEvent) {
            self.0.on_event(event);
            if matches!(event.kind, JobEventKind::JobStarted) {
                BOTH.wait();
            }
        }
        fn trace_job(&self, job: &str) -> Option<String> {
            Some(self.0.trace_job(job))
        }
    }

    /// Both runtimes have an execution 1, at the same time.
    // Spec: OTEL-02
    #[test]
    fn jobs_of_several_runtimes_are_apart() {
        let exported = Exported::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exported.clone())
            .with_id_generator(Ids::default())
            .build();
        let tracer = Arc::new(Tracer::new(&provider, None, Arc::default()));
        let folder = tempfile::tempdir().unwrap();
        let job = r#"<job id="job"><step id="one"><batchlet ref="Task"/></step></job>"#;
        std::fs::write(folder.path().join("job.xml"), job).unwrap();
        let runtimes = [(); 2].map(|()| {
            let builder = batch_runtime::BatchRuntime::builder()
                .repository("memory:")
                .job_path(folder.path().display().to_string())
                .observer(Traced(Arc::clone(&tracer)));
            builder.build().unwrap().job_operator()
        });
        let none = || batch_runtime::JobParameters::new();
        let executions = runtimes
            .each_ref()
            .map(|operator| operator.start("job", none()).unwrap());
        assert_eq!(executions[0], executions[1]);
        for (operator, execution) in runtimes.iter().zip(executions) {
            operator.wait(execution).unwrap();
            operator.flush_observers();
        }
        let spans = exported.0.lock().unwrap();
        let (jobs, steps): (Vec<_>, Vec<_>) = spans
            .iter()
            .partition(|span| span.parent_span_id == SpanId::INVALID);
        assert_eq!((jobs.len(), steps.len()), (2, 2), "{spans:#?}");
        for job in jobs {
            let (trace, id) = (job.span_context.trace_id(), job.span_context.span_id());
            let is_child =
                |step: &&&SpanData| step.span_context.trace_id() == trace && step.parent_span_id == id;
            assert_eq!(steps.iter().filter(is_child).count(), 1, "{spans:#?}");
            let ended = KeyValue::new(names::JOB_STATUS, "COMPLETED");
            assert!(job.attributes.contains(&ended), "{job:#?}");
        }
    }
}
