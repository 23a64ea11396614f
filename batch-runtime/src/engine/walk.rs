//! The walk from element to element: of a job, and of a flow.
//!
//! Spec: SEQ-01 to SEQ-26, FLOW-06 to FLOW-15, D-76

use std::collections::BTreeSet;
use std::sync::Arc;

use super::call::Failure;
use super::elements::{BoundJob, Element, ElementBody, Elements};
use super::listeners::JobListeners;
use super::running::Running;
use super::step::StepRunner;
use super::worker::Worker;
use crate::artifact::ContextScope;
use crate::context::{FlowContext, SplitContext, StepContext};
use crate::repository::{JobRepository, RepositoryError};
use crate::status::BatchStatus;
use crate::transition::{Follow, Termination};

/// What all threads of an execution have in common.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) job: &'a BoundJob,
    pub(crate) repository: &'a dyn JobRepository,
    pub(crate) running: &'a Running,
    pub(crate) listeners: &'a JobListeners,
    /// The contexts of the job outside of every element.
    pub(crate) outside: &'a ContextScope,
}

/// One thread's way through the elements of a job, flow or split.
#[derive(Clone)]
pub(crate) struct Walk<'a> {
    pub(crate) shared: Shared<'a>,
    pub(crate) worker: Arc<Worker>,
    /// The contexts of the elements around.
    pub(crate) contexts: ContextScope,
}

/// How a sequence of elements ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Completed,
    Failed(Failure),
    Stopped,
    /// A `fail`, `end` or `stop` element ended the job. Spec: TERM-14
    Terminated(Termination),
}

impl Outcome {
    pub(crate) fn status(&self) -> BatchStatus {
        match self {
            Self::Completed => BatchStatus::Completed,
            Self::Failed(_) => BatchStatus::Failed,
            Self::Stopped => BatchStatus::Stopped,
            Self::Terminated(termination) => termination.status,
        }
    }
}

/// The element that was executed last, as a decider sees it: its context holds its final statuses. Spec: DEC-12, DEC-13
#[derive(Clone, Debug)]
pub(crate) enum Last {
    Step(StepContext),
    Flow(FlowContext),
    Split(SplitContext),
}

impl Last {
    pub(crate) fn exit_status(&self) -> Option<String> {
        match self {
            Self::Step(context) => context.exit_status(),
            Self::Flow(context) => context.exit_status(),
            Self::Split(context) => context.exit_status(),
        }
    }
}

/// How a walk ended, and after which element.
pub(crate) struct WalkEnd {
    pub(crate) outcome: Outcome,
    pub(crate) last: Option<Last>,
    /// The position of the element at which it ended.
    pub(crate) at: usize,
}

/// How one element ended.
pub(super) struct ElementEnd {
    /// What makes the walk end here, if nothing follows.
    pub(super) outcome: Outcome,
    pub(super) follow: Follow,
    /// None for a decision.
    pub(super) last: Option<Last>,
}

impl<'a> Walk<'a> {
    /// Walks from the element at `position`, after `last`.
    pub(crate) fn run(
        &self,
        elements: &'a Elements,
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
                let failure = Failure::new("a transition leads to no element: a fault of the runtime");
                return end(Outcome::Failed(failure), last);
            };
            if self.worker.stop_requested() {
                return end(Outcome::Stopped, last);
            }
            if !visited.insert(position) {
                return end(Outcome::Failed(second_time(element)), last);
            }
            let ended = self.element(element, last.as_ref())?;
            last = ended.last.or(last);
            match ended.follow {
                Follow::Element(next) => {
                    if let Outcome::Failed(failure) = &ended.outcome {
                        tracing::warn!(
                            element = element.id,
                            message = failure.message,
                            "failed; a transition leads on"
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

    fn element(&self, element: &'a Element, last: Option<&Last>) -> Result<ElementEnd, RepositoryError> {
        match &element.body {
            ElementBody::Step(step) => {
                let runner = StepRunner {
                    id: &element.id,
                    step,
                    transitions: &element.transitions,
                    walk: self,
                };
                runner.run()
            }
            ElementBody::Flow(elements) => self.flow(element, elements),
            ElementBody::Split(elements) => self.split(element, elements),
            ElementBody::Decision(decider) => Ok(self.decide(element, decider, last)),
        }
    }

    /// Runs a flow as a unit. Spec: FLOW-12 to FLOW-15, FLOW-18, FLOW-19, D-31
    pub(super) fn flow(
        &self,
        element: &'a Element,
        elements: &'a Elements,
    ) -> Result<ElementEnd, RepositoryError> {
        let context = FlowContext::new(&element.id);
        context.set_batch_status(BatchStatus::Started);
        self.worker.enter(context.clone());
        let inside = Self {
            contexts: ContextScope {
                flow: Some(context.clone()),
                ..self.contexts.clone()
            },
            ..self.clone()
        };
        // A flow without a step is refused before the job starts.
        let ended = inside.run(elements, elements.first().unwrap_or_default(), None);
        self.worker.leave();
        let ended = ended?;
        let status = ended.outcome.status();
        let of_last_step = ended.last.as_ref().and_then(Last::exit_status);
        let exit_status = context
            .exit_status()
            .or(of_last_step)
            .unwrap_or_else(|| status.to_string());
        context.set_batch_status(status);
        context.set_exit_status(Some(&exit_status));
        let follow = self.after(element, &ended.outcome, &exit_status);
        Ok(ElementEnd {
            outcome: ended.outcome,
            follow,
            last: Some(Last::Flow(context)),
        })
    }

    /// What follows a flow or split. Spec: FLOW-06, FLOW-13, SPLIT-08, SPLIT-17
    pub(super) fn after(&self, element: &Element, outcome: &Outcome, exit_status: &str) -> Follow {
        match outcome {
            // Nothing follows: the job ends.
            Outcome::Terminated(_) => Follow::Nothing,
            other => element
                .transitions
                .after(self.shared.job.dialect, other.status(), exit_status),
        }
    }
}

/// Spec: SEQ-25, D-76
fn second_time(element: &Element) -> Failure {
    Failure::new(format!(
        "a transition leads to `{}` a second time; an element is executed once in a job execution",
        element.id
    ))
}

/// Spec: SEQ-21, DEC-15, D-21
fn unmatched(element: &Element, last: Option<&Last>) -> Failure {
    match (&element.body, last.and_then(Last::exit_status)) {
        (ElementBody::Step(_), Some(status)) => Failure::new(format!(
            "the exit status `{status}` of step `{}` matches none of its transition elements",
            element.id
        )),
        _ => Failure::new(format!(
            "what decision `{}` decided matches none of its transition elements",
            element.id
        )),
    }
}
