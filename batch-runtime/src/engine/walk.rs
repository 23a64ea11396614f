//! The walk from element to element of a job or flow.
// Spec: SEQ-01 to SEQ-26, FLOW-06 to FLOW-15, D-76

use std::collections::BTreeSet;
use std::sync::Arc;

use super::call::Failure;
use super::elements::{BoundFlow, BoundJob, Element, ElementBody, Elements, PartitionKey};
use super::listeners::JobListeners;
use super::outcome::{ElementEnd, Last, Outcome};
use super::outputs::Lane;
use super::states::States;
use super::threads::{Collecting, Running, Worker};
use crate::artifact::ContextScope;
use crate::context::FlowContext;
use crate::dispatch::Dispatchers;
use crate::job_data::JobData;
use crate::repository::{JobRepository, RepositoryError};
use crate::status::BatchStatus;
use crate::transition::Follow;

/// The data shared by all threads of an execution.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) job: &'a BoundJob,
    pub(crate) repository: &'a dyn JobRepository,
    pub(crate) running: &'a Running,
    pub(crate) listeners: &'a JobListeners,
    /// The contexts of the job outside of all elements.
    pub(crate) outside: &'a ContextScope,
    /// The stored states of parallel elements.
    pub(crate) states: &'a States,
    /// Whether nothing of the job instance has run before: no step has a history.
    pub(crate) is_first: bool,
    /// The most partitions of an element that run at the same time, unless the job or step sets it.
    pub(crate) partition_threads: usize,
    /// Sends partitions to other processes; `None` runs them on threads of this one.
    pub(crate) dispatch: Option<&'a Dispatch>,
}

/// Sends the partitions of an execution to other processes.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) dispatchers: Dispatchers,
    /// Identifies the job to workers.
    pub(crate) fingerprint: String,
    /// The most workers that may die on one partition; 0 is no limit.
    pub(crate) crash_limit: u32,
}

/// The walk of one thread through the elements of a job, flow or split.
#[derive(Clone)]
pub(crate) struct Walk<'a> {
    pub(crate) shared: Shared<'a>,
    pub(crate) worker: Arc<Worker>,
    /// The contexts of the enclosing elements.
    pub(crate) contexts: ContextScope,
    /// The prefix of step names in the repository: the enclosing partitions of flows.
    // Spec: D-75
    pub(crate) prefix: String,
    /// The enclosing partitions, outermost first.
    pub(crate) path: Vec<PartitionKey>,
    /// The enclosing flows of splits and partitions, outermost first.
    pub(super) lanes: Vec<Lane>,
    /// Step executions of job executions before this one do not count: their work was undone.
    // Spec: D-48
    pub(crate) since: Option<i64>,
    /// The collector of the subjob that runs here.
    pub(crate) collecting: Option<Arc<Collecting>>,
    /// The data of the job's context, as this thread sees it.
    pub(crate) data: JobData,
}

/// Returns the data of the job's context.
pub(super) fn data_of(contexts: &ContextScope) -> JobData {
    let job = contexts.job.as_ref();
    job.map(|job| job.data().clone()).unwrap_or_default()
}

/// The end of a walk, and its last element.
pub(crate) struct WalkEnd {
    pub(crate) outcome: Outcome,
    pub(crate) last: Option<Last>,
    /// The position of the element that it ended at.
    pub(crate) at: usize,
}

impl<'a> Walk<'a> {
    /// Creates the walk through the elements of the job.
    pub(crate) fn new(shared: Shared<'a>, worker: &Arc<Worker>) -> Self {
        Self {
            shared,
            worker: Arc::clone(worker),
            contexts: shared.outside.clone(),
            prefix: String::new(),
            path: Vec::new(),
            lanes: Vec::new(),
            since: None,
            collecting: None,
            data: data_of(shared.outside),
        }
    }
}

impl Walk<'_> {
    /// Returns the lanes of a flow or partition of the element here.
    pub(super) fn lanes_with(&self, element: &str, lane: String) -> Vec<Lane> {
        let mut lanes = self.lanes.clone();
        lanes.push((format!("{}{element}", self.prefix), lane));
        lanes
    }

    /// Calls the collector of the subjob, if one runs here. Its payload belongs to the transaction that follows.
    // Spec: SUBJOB-03, SUBJOB-04, SUBJOB-19, SUBJOB-20, SUBJOB-23
    pub(super) fn collect(&self, contexts: &ContextScope) -> Result<(), Failure> {
        match &self.collecting {
            Some(collecting) => collecting.collect(contexts),
            None => Ok(()),
        }
    }

    /// Records the data of the job that no step has committed: of a decider or a listener of the job.
    // Spec: DATA-01
    pub(super) fn save_data(&self) -> Result<(), RepositoryError> {
        let Shared {
            repository, running, ..
        } = self.shared;
        self.data
            .save(|changes| repository.save_job_data(&running.lease, changes))
    }

    /// Walks from the element at `position`, after `last`.
    pub(crate) fn run(
        &self,
        elements: &Elements,
        mut position: usize,
        mut last: Option<Last>,
    ) -> Result<WalkEnd, RepositoryError> {
        let mut visited = BTreeSet::new();
        loop {
            let end = |outcome, last| {
                Ok(WalkEnd {
                    outcome,
                    last,
                    at: position,
                })
            };
            let Some(element) = elements.all.get(position) else {
                let failure = Failure::new("a transition leads to no element; this is a bug of the runtime");
                return end(Outcome::Failed(failure), last);
            };
            if self.worker.stop_requested() {
                return end(Outcome::Stopped, last);
            }
            if !visited.insert(position) {
                return end(Outcome::Failed(second_time(element)), last);
            }
            let ended = self.element(element, last.as_ref())?;
            // A decision has no context: the element before it remains the last one.
            last = ended.last.or(last);
            match ended.follow {
                Follow::Element(next) => {
                    if let Outcome::Failed(failure) = &ended.outcome {
                        tracing::warn!(
                            element = element.id,
                            message = failure.message,
                            "failed; continuing by a transition"
                        );
                    }
                    position = next;
                }
                Follow::Nothing => return end(ended.outcome, last),
                Follow::Terminate(termination) => return end(Outcome::Terminated(termination), last),
                Follow::Unmatched => return end(Outcome::Failed(unmatched(element, last.as_ref())), last),
            }
        }
    }

    fn element(&self, element: &Element, last: Option<&Last>) -> Result<ElementEnd, RepositoryError> {
        match &element.body {
            ElementBody::Step(step) => self.step(element, step),
            ElementBody::Flow(flow) => self.flow(element, flow),
            ElementBody::Split(split) => self.split(element, split),
            ElementBody::Decision(decider) => {
                let ended = self.decide(element, decider, last);
                // Flows and partitions that follow read only what is committed.
                self.save_data()?;
                Ok(ended)
            }
        }
    }

    /// Runs a flow, or its partitions.
    // Spec: FLOW-12 to FLOW-15, FLOW-18, FLOW-19, FPART-09, D-31
    pub(super) fn flow(&self, element: &Element, flow: &BoundFlow) -> Result<ElementEnd, RepositoryError> {
        let Some(partition) = &flow.partition else {
            return self.flow_once(element, &flow.elements);
        };
        let context = FlowContext::new(&element.id);
        let contexts = self.enter_flow(&context);
        let outcome = self.partitions(&element.id, partition, &contexts);
        // After an error, too: the contexts of a worker are a stack.
        self.worker.leave();
        let outcome = match outcome? {
            // A failed flow runs again, and the analyzer would count its payload twice.
            failed @ Outcome::Failed(_) => failed,
            // Called once, at the end of the whole flow. Spec: SUBJOB-24
            other => {
                let collected = self
                    .collecting
                    .as_ref()
                    .map_or(Ok(()), |collecting| collecting.collect_outside(&contexts));
                collected.map_or_else(Outcome::Failed, |()| other)
            }
        };
        Ok(self.leave_flow(element, &context, outcome, None))
    }

    /// Runs the elements of a flow on this thread.
    pub(super) fn flow_once(
        &self,
        element: &Element,
        elements: &Elements,
    ) -> Result<ElementEnd, RepositoryError> {
        let context = FlowContext::new(&element.id);
        let inside = Self {
            contexts: self.enter_flow(&context),
            ..self.clone()
        };
        // A flow without a step is rejected before the job starts.
        let ended = inside.run(elements, elements.first().unwrap_or_default(), None);
        self.worker.leave();
        let ended = ended?;
        let of_last_step = ended.last.as_ref().and_then(Last::exit_status);
        Ok(self.leave_flow(element, &context, ended.outcome, of_last_step))
    }

    fn enter_flow(&self, context: &FlowContext) -> ContextScope {
        context.set_batch_status(BatchStatus::Started);
        self.worker.enter(context.clone());
        ContextScope {
            flow: Some(context.clone()),
            ..self.contexts.clone()
        }
    }

    fn leave_flow(
        &self,
        element: &Element,
        context: &FlowContext,
        outcome: Outcome,
        exit_status: Option<String>,
    ) -> ElementEnd {
        let status = outcome.status();
        let exit_status = context
            .exit_status()
            .or(exit_status)
            .unwrap_or_else(|| status.to_string());
        context.set_batch_status(status);
        context.set_exit_status(Some(&exit_status));
        ElementEnd {
            follow: self.after(element, &outcome, &exit_status),
            outcome,
            last: Some(Last::Flow(context.clone())),
        }
    }

    /// Returns the continuation after a flow or split.
    // Spec: FLOW-06, FLOW-13, SPLIT-08, SPLIT-17
    pub(super) fn after(&self, element: &Element, outcome: &Outcome, exit_status: &str) -> Follow {
        match outcome {
            // The job ends, so nothing follows.
            Outcome::Terminated(_) => Follow::Nothing,
            other => element
                .transitions
                .after(self.shared.job.dialect, other.status(), exit_status),
        }
    }
}

// Spec: SEQ-25, D-76
fn second_time(element: &Element) -> Failure {
    Failure::new(format!(
        "a transition leads to `{}` a second time, but a job execution runs each element once",
        element.id
    ))
}

// Spec: SEQ-21, DEC-15, D-21
fn unmatched(element: &Element, last: Option<&Last>) -> Failure {
    match (&element.body, last.and_then(Last::exit_status)) {
        (ElementBody::Step(_), Some(status)) => Failure::new(format!(
            "the exit status `{status}` of step `{}` matches none of its transition elements",
            element.id
        )),
        _ => Failure::new(format!(
            "the result of decision `{}` matches none of its transition elements",
            element.id
        )),
    }
}
