//! The skip and retry rules of a chunk step, and their limits.
//!
//! Spec: CHUNK-SKIP-01 to CHUNK-SKIP-08, CHUNK-RETRY-01 to CHUNK-RETRY-06, CHUNK-NORB-01 to CHUNK-NORB-05, D-07, D-08

use std::collections::BTreeSet;

use crate::artifact::ExceptionFilter;
use crate::error::BatchError;

/// The rules of a chunk, from its Job XML.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultRules {
    pub(crate) skippable: ExceptionFilter,
    /// Maximum number of skips of the step in its instance; `None` is unlimited.
    pub(crate) skip_limit: Option<u32>,
    pub(crate) retryable: ExceptionFilter,
    /// Maximum number of retries of a step execution; `None` is unlimited.
    pub(crate) retry_limit: Option<u32>,
    pub(crate) no_rollback: ExceptionFilter,
    /// True if errors of the reader and the processor are retried too.
    pub(crate) retry_input: bool,
    /// True if a retry reads and processes the items again, one by one, instead of keeping them. Spec: JAK-30
    pub(crate) retry_one_by_one: bool,
    /// True if a failed write skips its whole list, in Jakarta Batch.
    pub(crate) failed_write_skips_its_list: bool,
}

impl FaultRules {
    /// Returns whether a failed write may be handled, so that the items of an interval are kept until its commit.
    pub(crate) fn handle_writes(&self) -> bool {
        !self.skippable.is_empty() || !self.retryable.is_empty()
    }

    /// Returns whether a retryable exception keeps the transaction. Spec: CHUNK-NORB-02, CHUNK-NORB-03
    pub(super) fn keeps_transaction(&self, error: &BatchError) -> bool {
        self.no_rollback.includes(error)
    }

    /// Returns whether any exception may keep the transaction.
    pub(super) fn may_keep_transaction(&self) -> bool {
        !self.no_rollback.is_empty()
    }

    /// Returns whether a failed call of the reader or processor may be repeated without a rollback. Spec: JAK-31
    pub(crate) fn repeats_calls(&self) -> bool {
        self.retry_input && self.retry_one_by_one && self.may_keep_transaction() && !self.retryable.is_empty()
    }
}

/// The decision of the skip rules on an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    Yes,
    /// It is not skippable.
    No,
    /// It is skippable, but the limit is used up. Spec: CHUNK-SKIP-07
    LimitReached(u32),
}

/// The used part of the limits of a step execution. Not reset by a rollback.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    pub(super) retries: u32,
    /// Rollbacks and retries since the last commit.
    pub(super) attempts: u32,
    /// Connections lost since the last commit.
    pub(super) losses: u32,
    /// The inputs that were retried since the last commit: an interval may contain several.
    pub(super) retried_inputs: BTreeSet<InputPlace>,
    /// The number of items that are still to be read one by one, after a retry. Spec: JAK-30
    pub(super) one_by_one: usize,
}

/// The way in which a failed call of the reader or processor is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputRetry {
    No,
    /// The call is repeated in the same transaction.
    Call,
    /// The chunk is rolled back, and its items are read again.
    Reread,
}

/// The place of a call in the input: the number of items read or skipped since the last commit.
pub(super) type InputPlace = (usize, InputCall);

/// A call that takes an item of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InputCall {
    Read,
    Process,
}

/// Limits the retries of a chunk that loses the connection each time, for example because it is too large.
const MAX_LOSSES: u32 = 3;

impl Budget {
    /// Counts a lost connection, and returns whether the step resumes.
    pub(super) fn resume(&mut self) -> bool {
        self.losses += 1;
        self.losses <= MAX_LOSSES
    }
}

impl FaultRules {
    /// Decides on a skip; `skips` is the number of skips of the step so far.
    pub(super) fn skip(&self, error: &BatchError, skips: u64) -> Skip {
        if !self.skippable.includes(error) {
            return Skip::No;
        }
        match self.skip_limit {
            Some(limit) if skips >= u64::from(limit) => Skip::LimitReached(limit),
            _ => Skip::Yes,
        }
    }

    /// Counts a retry, and returns whether the exception is retried. Spec: CHUNK-RETRY-04, CHUNK-RETRY-05, CHUNK-RETRY-06
    pub(super) fn retry(&self, error: &BatchError, budget: &mut Budget) -> bool {
        let allowed = self.retry_limit.is_none_or(|limit| budget.retries < limit);
        let retried = allowed && self.retryable.includes(error);
        budget.retries = budget.retries.saturating_add(u32::from(retried));
        retried
    }

    /// Counts a retry of the reader or processor, and returns how the error is retried: as for a write, a failure during the retry is
    /// skipped if `skip` allows it.
    pub(super) fn retry_input(
        &self,
        error: &BatchError,
        skip: Skip,
        place: InputPlace,
        budget: &mut Budget,
    ) -> InputRetry {
        let is_again = budget.one_by_one > 0 || budget.retried_inputs.contains(&place);
        if !self.retry_input || (is_again && skip == Skip::Yes) || !self.retry(error, budget) {
            return InputRetry::No;
        }
        budget.retried_inputs.insert(place);
        if self.retry_one_by_one && self.keeps_transaction(error) {
            InputRetry::Call
        } else {
            InputRetry::Reread
        }
    }

    /// Explains why an error of the reader or processor fails the step although the rules seem to handle it.
    pub(super) fn remark_on_input(&self, error: &BatchError, budget: &Budget) -> Option<String> {
        if !self.retry_input && self.retryable.includes(error) {
            return Some(
                "it is retryable, but only writes are retried; set the property `batch.retry.input` of the step to `true` to \
                 retry the reader and the processor too"
                    .into(),
            );
        }
        self.remark(error, budget)
    }

    /// Explains why an error fails the step although the rules seem to handle it.
    pub(super) fn remark(&self, error: &BatchError, budget: &Budget) -> Option<String> {
        if let Some(limit) = self.used_up(error, budget) {
            return Some(format!(
                "it is retryable, but the retry-limit of {limit} is used up"
            ));
        }
        let unused = |limit: Option<u32>, classes: &ExceptionFilter| limit > Some(0) && classes.is_empty();
        if unused(self.skip_limit, &self.skippable) {
            return Some("the `skip-limit` has no effect without `skippable-exception-classes`".into());
        }
        unused(self.retry_limit, &self.retryable)
            .then(|| "the `retry-limit` has no effect without `retryable-exception-classes`".into())
    }

    /// Returns the limit, if it alone prevents a retry of the exception. Spec: CHUNK-RETRY-05
    fn used_up(&self, error: &BatchError, budget: &Budget) -> Option<u32> {
        let limit = self.retry_limit.filter(|limit| budget.retries >= *limit)?;
        self.retryable.includes(error).then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk that loses the connection each time ends the step.
    #[test]
    fn lost_connections_are_limited_until_the_next_commit() {
        let mut budget = Budget::default();
        let mut resumed = || [(); 4].map(|()| budget.resume());
        assert_eq!(resumed(), [true, true, true, false]);
        budget.committed(0);
        assert!(budget.resume());
    }
}
