//! The log lines of executions that run in this process.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use batch_runtime::time::{Clock, SystemClock};
use batch_runtime::{JobExecutionId, StepExecutionId, Timestamp};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The number of lines that are kept of an execution.
const MAX_LINES: usize = 200;
/// The number of executions whose lines are kept.
const MAX_EXECUTIONS: usize = 200;
/// The longest line, in characters.
const LONGEST: usize = 2_000;
/// The fields of the runtime's spans that name a job execution and a step execution.
const JOB_EXECUTION: &str = "execution";
const STEP_EXECUTION: &str = "step_execution";

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) time: Timestamp,
    pub(crate) level: Level,
    /// The step that logged it; `None` for the job.
    pub(crate) step: Option<StepExecutionId>,
    pub(crate) text: String,
}

/// The last log lines of the latest executions that run in this process: a layer of `tracing-subscriber`. A program adds a clone of it to
/// its subscriber, and gives another to the [`Console`](crate::Console).
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let lines = batch_console::LogLines::new();
/// let subscriber = tracing_subscriber::registry().with(lines.clone());
/// # drop(subscriber);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LogLines(Arc<Mutex<BTreeMap<JobExecutionId, VecDeque<Line>>>>);

impl LogLines {
    /// Creates a layer that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the lines of a job execution; of some of its step executions if they are given.
    pub(crate) fn of(&self, job: JobExecutionId, steps: Option<&[StepExecutionId]>) -> Vec<Line> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_job = lines.get(&job).into_iter().flatten();
        of_job
            .filter(|line| steps.is_none_or(|steps| line.step.is_some_and(|step| steps.contains(&step))))
            .cloned()
            .collect()
    }

    fn add(&self, job: JobExecutionId, line: Line) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_job = lines.entry(job).or_default();
        if of_job.len() == MAX_LINES {
            of_job.pop_front();
        }
        of_job.push_back(line);
        if lines.len() > MAX_EXECUTIONS {
            // The one that has been silent for the longest time.
            let last_line =
                |(_, lines): &(&JobExecutionId, &VecDeque<Line>)| lines.back().map(|line| line.time);
            if let Some(silent) = lines.iter().min_by_key(last_line).map(|(id, _)| *id) {
                lines.remove(&silent);
            }
        }
    }
}

/// The ids in the fields of a span or an event.
#[derive(Clone, Copy, Default)]
struct Ids {
    job: Option<i64>,
    step: Option<i64>,
}

impl Ids {
    fn note(&mut self, field: &Field, id: i64) {
        match field.name() {
            JOB_EXECUTION => self.job = Some(id),
            STEP_EXECUTION => self.step = Some(id),
            _ => {}
        }
    }
}

impl Visit for Ids {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.note(field, i64::try_from(value).unwrap_or(-1));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

/// The text of an event: its message, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a `String` cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            JOB_EXECUTION | STEP_EXECUTION => Ok(()),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut ids = Ids::default();
        attributes.record(&mut ids);
        if let Some(span) = context.span(id)
            && (ids.job.is_some() || ids.step.is_some())
        {
            span.extensions_mut().insert(ids);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut ids = Ids::default();
        event.record(&mut ids);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(of_span) = span.extensions().get::<Ids>() {
                ids.job = ids.job.or(of_span.job);
                ids.step = ids.step.or(of_span.step);
            }
        }
        let Some(job) = ids.job else {
            return;
        };
        let mut text = Text::default();
        event.record(&mut text);
        let text = (text.message + &text.fields)
            .trim_start()
            .chars()
            .take(LONGEST)
            .collect();
        let line = Line {
            time: SystemClock.now(),
            level: *event.metadata().level(),
            step: ids.step.map(StepExecutionId),
            text,
        };
        self.add(JobExecutionId(job), line);
    }
}
