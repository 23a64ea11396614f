//! The handling of an error: the decision, also of a skip policy, with its events and pauses.
// Spec: FAULT-04

use std::ops::RangeInclusive;
use std::time::Duration;

use super::super::body::StepEnv;
use super::super::bound::Bound;
use super::super::call::Failure;
use super::super::elements::BoundChunk;
use super::interval_state::RolledBack;
use super::rules::{Budget, Decision, Fault};
use crate::artifact::{ContextScope, FailedItem};
use crate::back_off::BackOff;
use crate::observer::ItemPhase;
use crate::role::SkipPolicy;

/// The inputs of an interval that fail the step. They count from 1, including skipped ones.
pub(super) struct FailedInputs {
    pub(super) inputs: RangeInclusive<usize>,
    /// The number of inputs of the interval that the reader has skipped.
    pub(super) skipped: usize,
}

/// Decides about the errors of a step, and publishes what it decides.
pub(super) struct Faults<'a> {
    pub(super) chunk: &'a BoundChunk,
    pub(super) contexts: ContextScope,
    /// The inputs that have failed the step.
    pub(super) failed: Option<FailedInputs>,
    pub(super) env: StepEnv<'a>,
    pub(super) policy: Option<Policy>,
    pub(super) budget: Budget,
}

impl Faults<'_> {
    /// Decides about an error.
    ///
    /// # Errors
    /// The `failure` of the step, with remarks, if the error is neither retried nor skipped; or the failure of the policy.
    pub(super) fn decide(
        &mut self,
        fault: &Fault<'_>,
        failure: impl FnOnce() -> Failure,
    ) -> Result<Decision, Failure> {
        let (rules, phase, error) = (&self.chunk.faults, fault.phase, fault.error);
        let is_skippable = match &mut self.policy {
            None => rules.skippable.includes(error),
            // The policy decides about one item, which the search has to find first.
            Some(_) if rules.is_searched(fault) => !error.fails_the_step(),
            Some(policy) => policy.is_skippable(&FailedItem::new(
                phase,
                error,
                fault.item,
                self.budget.all_skips(),
            ))?,
        };
        let artifact = match phase {
            ItemPhase::Read => &self.chunk.reader,
            ItemPhase::Process => self.chunk.last_input(),
            ItemPhase::Write => &self.chunk.writer,
        };
        let shown = || artifact.shown(error);
        let decided = rules.decide(fault, is_skippable, &mut self.budget, shown);
        let decision = decided.map_err(|remarks| remarks.iter().fold(failure(), Failure::because))?;
        match decision {
            Decision::Retry | Decision::Search { is_retry: true } => self.env.events.retried(phase, shown),
            Decision::Skip => self.env.events.skipped(phase, shown),
            Decision::Search { is_retry: false } => {}
        }
        Ok(decision)
    }

    /// Prepares the retry of a call of the reader or processor, which have taken `touched` items: the call is repeated, unless it
    /// needs a rollback. A listener may have `forced` one.
    // Spec: JAK-31, FAULT-05
    pub(super) fn repeat(
        &mut self,
        fault: &Fault<'_>,
        touched: usize,
        forced: bool,
    ) -> Result<(), RolledBack> {
        let repeats = match fault.phase {
            ItemPhase::Read => self.chunk.faults.repeats_reader,
            ItemPhase::Process | ItemPhase::Write => self.chunk.faults.repeats_processor,
        };
        if forced || !repeats || !self.chunk.faults.no_rollback.includes(fault.error) {
            return Err(self.read_again(touched));
        }
        let pause = self.budget.call_pause(fault, self.chunk.faults.back_off);
        let stopped = RolledBack::Stopped { open: true };
        self.pause(pause).then_some(()).ok_or(stopped)
    }

    /// Rolls the interval back, whose `touched` items are read again from the checkpoint.
    pub(super) fn read_again(&mut self, touched: usize) -> RolledBack {
        if self.chunk.faults.retry_one_by_one {
            // The items of an earlier, longer failure that are not committed yet are still read one by one.
            self.budget.one_by_one = self.budget.one_by_one.max(touched);
        }
        RolledBack::ReadAgain
    }

    /// Pauses before a retry, to relieve an overloaded system. Returns `false` after a stop request.
    // Spec: CHUNK-RETRY-16, D-07
    pub(super) fn pause_before_retry(&mut self, back_off: BackOff) -> bool {
        let pause = self.budget.pause(back_off);
        self.pause(pause)
    }

    fn pause(&self, pause: Option<Duration>) -> bool {
        if let Some(pause) = pause {
            self.env.worker.pause(pause);
        }
        !self.env.worker.stop_requested()
    }
}

/// A policy that decides which errors are skipped, in place of their classes.
pub(super) struct Policy {
    bound: Bound,
    policy: Box<dyn SkipPolicy>,
}

impl Policy {
    pub(super) fn make(bound: &Bound, contexts: &ContextScope) -> Result<Self, Failure> {
        Ok(Self {
            bound: bound.clone(),
            policy: bound.skip_policy(contexts)?,
        })
    }

    /// Returns whether an error is skippable. The policy is not asked about one that fails the step.
    pub(super) fn is_skippable(&mut self, failed: &FailedItem<'_>) -> Result<bool, Failure> {
        if failed.error().fails_the_step() {
            return Ok(false);
        }
        let policy = &mut self.policy;
        let asked = self.bound.call("should_skip", || policy.should_skip(failed));
        asked.map_err(|failure| {
            let error = self.bound.shown(failed.error());
            failure.because(format_args!("it was asked about: {error}"))
        })
    }
}
