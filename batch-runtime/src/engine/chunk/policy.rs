//! The skip policy of a step.
// Spec: FAULT-04

use super::super::bound::Bound;
use super::super::call::Failure;
use crate::artifact::{ContextScope, FailedItem};
use crate::role::SkipPolicy;

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
