//! The rules that have another answer in the final standard, each in one place. A bound job carries its dialect; the
//! draft's is the only one so far. The order of properties (outer over inner) and the meaning of `*` belong here too, and
//! live where they are applied, in `batch-xml` (`substitute.rs`, `pattern.rs`).

use crate::status::BatchStatus;
use crate::transition::Transition;

/// Whose rules a job follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The draft, as the catalogue reads it.
    #[default]
    Draft,
}

impl Dialect {
    /// Which of the transition elements that match acts: the most specific. The final standard takes the first of the
    /// document. Spec: SEQ-17, SEQ-18, D-19
    pub(crate) fn select<'t>(self, elements: &'t [Transition], exit_status: &str) -> Option<&'t Transition> {
        let Self::Draft = self;
        elements
            .iter()
            .filter(|transition| transition.on.matches(exit_status))
            .min_by_key(|transition| transition.on.specificity())
    }

    /// Whether a step with `next` elements of which none matches fails the job. In the final standard the job ends
    /// COMPLETED. Spec: SEQ-21, D-21
    pub(crate) fn unmatched_step_fails(self) -> bool {
        let Self::Draft = self;
        true
    }

    /// The batch status of a step with the status `own` that a `fail`, `end` or `stop` element ends the job with
    /// `terminated` at. In the final standard it keeps its own. Spec: TERM-08, D-23
    pub(crate) fn terminated_step(self, _own: BatchStatus, terminated: BatchStatus) -> BatchStatus {
        let Self::Draft = self;
        terminated
    }

    /// Whether the other flows of a split are stopped when one fails or ends the job. In the final standard they
    /// complete. Spec: SPLIT-18, D-32
    pub(crate) fn stops_siblings(self) -> bool {
        let Self::Draft = self;
        true
    }

    /// Where a restart begins after a `stop` element that does not say it: at the element that stopped. In the final
    /// standard at the first element. Spec: TERM-09, TERM-11, DEC-16, D-24
    pub(crate) fn restart_after_stop(self, stopped_at: &str) -> Option<&str> {
        let Self::Draft = self;
        Some(stopped_at)
    }

    /// The most starts of a step within one instance. The draft counts restarts, the final standard starts; 0 is no limit.
    /// Spec: JSL-STEP-04, JSL-STEP-07, D-59
    pub(crate) fn most_starts(self, start_limit: u32) -> Option<u32> {
        let Self::Draft = self;
        (start_limit > 0).then(|| start_limit.saturating_add(1))
    }
}
