//! The ends of elements: their outcomes, and the element that a decider sees.

use super::call::Failure;
use crate::context::{FlowContext, SplitContext, StepContext};
use crate::status::BatchStatus;
use crate::transition::{Follow, Termination};

/// The end of a sequence of elements.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Completed,
    Failed(Failure),
    Stopped,
    /// A `fail`, `end` or `stop` element ended the job.
    // Spec: TERM-14
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

    /// Returns the exit status that the element which ended the job has set.
    pub(crate) fn exit_status(&self) -> Option<&str> {
        match self {
            Self::Terminated(termination) => termination.exit_status.as_deref(),
            _ => None,
        }
    }
}

/// The element executed last, for a decider: its context has its final statuses.
// Spec: DEC-12, DEC-13
#[derive(Clone, Debug)]
pub(crate) enum Last {
    Step(StepContext),
    Flow(FlowContext),
    Split(SplitContext),
}

impl Last {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Step(context) => context.id(),
            Self::Flow(context) => context.id(),
            Self::Split(context) => context.id(),
        }
    }

    pub(crate) fn exit_status(&self) -> Option<String> {
        match self {
            Self::Step(context) => context.exit_status(),
            Self::Flow(context) => context.exit_status(),
            Self::Split(context) => context.exit_status(),
        }
    }
}

/// The end of one element.
pub(crate) struct ElementEnd {
    /// The outcome of the walk, if no element follows.
    pub(crate) outcome: Outcome,
    pub(crate) follow: Follow,
    /// `None` for a decision.
    pub(crate) last: Option<Last>,
}

impl ElementEnd {
    /// Ends the walk before the element has run.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self {
            outcome: Outcome::Failed(failure),
            follow: Follow::Nothing,
            last: None,
        }
    }
}
