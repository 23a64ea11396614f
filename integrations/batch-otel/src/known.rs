//! The spans of the latest executions, for log records that name them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use opentelemetry::trace::SpanContext;

/// The number of spans that are kept.
const KEPT: usize = 4_096;

/// An execution, as the fields of log records name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Execution {
    Job(i64),
    Step(i64),
}

/// The spans of the latest executions.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Spans>);

#[derive(Debug, Default)]
struct Spans {
    by_execution: HashMap<Execution, SpanContext>,
    oldest_first: VecDeque<Execution>,
}

impl Known {
    pub(crate) fn insert(&self, execution: Execution, span: SpanContext) {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.by_execution.insert(execution, span).is_some() {
            return;
        }
        spans.oldest_first.push_back(execution);
        if spans.oldest_first.len() > KEPT
            && let Some(oldest) = spans.oldest_first.pop_front()
        {
            spans.by_execution.remove(&oldest);
        }
    }

    pub(crate) fn get(&self, execution: Execution) -> Option<SpanContext> {
        let spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spans.by_execution.get(&execution).cloned()
    }
}
