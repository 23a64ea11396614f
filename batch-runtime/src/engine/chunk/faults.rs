//! The skip and retry rules of a chunk step, and their limits.
// Spec: CHUNK-SKIP-01 to CHUNK-SKIP-08, CHUNK-RETRY-01 to CHUNK-RETRY-06, CHUNK-NORB-01 to CHUNK-NORB-05, D-07, D-08

use std::collections::BTreeMap;

use super::class_limits::{ClassLimit, ClassLimits, UsedLimits};
use super::policy::Policy;
use crate::artifact::{ExceptionFilter, FailedItem, class_of};
use crate::back_off::BackOff;
use crate::engine::call::Failure;
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
    /// True if a policy decides which errors are skippable.
    pub(crate) has_policy: bool,
    /// Maximum number of skips in the instance, for some classes.
    pub(crate) skip_limits: ClassLimits,
    /// Maximum number of retries of a step execution, for some classes.
    pub(crate) retry_limits: ClassLimits,
    /// Maximum number of attempts at an item, including the first; `None`: an item that fails in its retry is skipped if possible.
    pub(crate) max_attempts: Option<u32>,
    pub(crate) back_off: BackOff,
    /// True if errors of the reader and the processor are retried too.
    pub(crate) retry_input: bool,
    /// True if a failed call of the processor is repeated at once, if the error keeps the transaction. False if items are read ahead or
    /// processed by several threads.
    // Spec: JAK-31, FAULT-05
    pub(crate) repeats_processor: bool,
    /// The same for the reader. False in the draft, and for a reader of `batch-items`: it has advanced past the item that failed, so a
    /// repeated call would lose it.
    // Spec: JAK-31, FAULT-05, LOSS-07
    pub(crate) repeats_reader: bool,
    /// True if a retry reads and processes the items again, one by one, instead of keeping them.
    // Spec: JAK-30
    pub(crate) retry_one_by_one: bool,
    /// True if a failed write skips its whole list, in Jakarta Batch.
    pub(crate) failed_write_skips_its_list: bool,
}

impl FaultRules {
    /// Returns whether a failed write may be handled, so that the items of an interval are kept until its commit.
    pub(crate) fn handle_writes(&self) -> bool {
        self.has_policy || !self.skippable.is_empty() || !self.retryable.is_empty()
    }

    /// Returns whether a retryable exception keeps the transaction.
    // Spec: CHUNK-NORB-02, CHUNK-NORB-03
    pub(super) fn keeps_transaction(&self, error: &BatchError) -> bool {
        self.no_rollback.includes(error)
    }

    /// Returns whether any exception may keep the transaction.
    pub(super) fn may_keep_transaction(&self) -> bool {
        !self.no_rollback.is_empty()
    }

    /// Returns whether a failed call of the processor may be repeated without a rollback.
    // Spec: JAK-31, FAULT-05
    pub(crate) fn repeats_calls(&self) -> bool {
        self.retry_input
            && self.repeats_processor
            && self.may_keep_transaction()
            && !self.retryable.is_empty()
    }
}

/// The decision of the skip rules on an exception.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skip<'r> {
    Yes,
    /// It is not skippable.
    No,
    /// It is skippable, but the limit is used up.
    // Spec: CHUNK-SKIP-07
    LimitReached(u32),
    /// It is skippable, but the limit of its class is used up.
    ClassLimitReached(&'r ClassLimit),
}

/// The used part of the limits of a step execution. Not reset by a rollback.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    pub(super) retries: u32,
    /// Those since the last commit.
    pub(super) open_retries: u32,
    /// Rollbacks and retries since the last commit.
    pub(super) attempts: u32,
    /// Connections lost since the last commit.
    pub(super) losses: u32,
    /// How often the inputs have failed that were retried since the last commit: an interval may contain several.
    pub(super) retried_inputs: BTreeMap<InputPlace, u32>,
    /// How often the results have failed that were retried since the last commit, by their number in the interval.
    pub(super) retried_results: BTreeMap<usize, u32>,
    /// The retries by class, if the step limits them.
    retries_by_class: UsedLimits,
    pub(super) skipped: SkippedErrors,
    /// The number of items that are still to be read one by one, after a retry.
    // Spec: JAK-30
    pub(super) one_by_one: usize,
}

/// The number of skips by the class of the error, each with the first text: most of them may have a different cause than the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedErrors {
    committed: SkipsByClass,
    /// Those since the last commit.
    open: SkipsByClass,
}

type SkipsByClass = BTreeMap<&'static str, (u64, String)>;

impl SkippedErrors {
    /// Counts a skip.
    pub(super) fn add(&mut self, error: &BatchError, shown: impl FnOnce() -> String) {
        let class = self.open.entry(class_or_type(error));
        class.or_insert_with(|| (0, shown())).0 += 1;
    }

    /// Forgets those since the last commit: their items are read again.
    pub(super) fn roll_back(&mut self) {
        self.open.clear();
    }

    /// Keeps those since the last commit.
    pub(super) fn commit(&mut self) {
        for (class, (count, first)) in std::mem::take(&mut self.open) {
            self.committed.entry(class).or_insert((0, first)).0 += count;
        }
    }

    /// Returns a remark if errors of another class than this one used more than half of a limit.
    fn remark_on_other_cause(&self, limit: u32, error: &BatchError) -> String {
        let mut all = self.clone();
        all.commit();
        let is_most = |class: &str, count: u64| count > u64::from(limit) / 2 && class != class_or_type(error);
        match all
            .committed
            .iter()
            .find(|(class, (count, _))| is_most(class, *count))
        {
            Some((_, (_, first))) => format!("; most skips had a different cause, for example: {first}"),
            None => String::new(),
        }
    }
}

fn class_or_type(error: &BatchError) -> &'static str {
    class_of(error).unwrap_or_else(|| error.type_name())
}

/// How a failed call of the reader or processor is retried.
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

/// Returns whether a number of retries without a commit is logged: 8, and then twice as many each time.
fn is_logged(retries: u32) -> bool {
    retries >= 8 && retries.is_power_of_two()
}

impl Budget {
    /// Counts a retry. Logs if there are many without a commit: without a limit they may have no end.
    fn count_retry(&mut self, error: &BatchError) {
        self.retries = self.retries.saturating_add(1);
        self.open_retries = self.open_retries.saturating_add(1);
        if is_logged(self.open_retries) {
            tracing::warn!(
                error = error.chain(),
                "{} retries since the last commit of the step; `retry-limit` and `batch.retry.max-attempts` limit them",
                self.open_retries
            );
        }
    }

    /// Returns the failure, with the reason, unless the error is skipped.
    pub(super) fn may_skip(
        &self,
        skip: Skip<'_>,
        error: &BatchError,
        failure: impl FnOnce() -> Failure,
    ) -> Result<(), Failure> {
        match skip {
            Skip::Yes => Ok(()),
            Skip::No => Err(failure()),
            Skip::LimitReached(limit) => Err(failure().because(format_args!(
                "it is skippable, but the skip-limit of {limit} is used up{}",
                self.skipped.remark_on_other_cause(limit, error)
            ))),
            Skip::ClassLimitReached(ClassLimit { class, limit, .. }) => Err(failure().because(format_args!(
                "it is skippable, but the limit of {limit} for `{class}` in `batch.skip.limits` is used up"
            ))),
        }
    }

    /// Counts a lost connection, and returns whether the step resumes.
    pub(super) fn resume(&mut self) -> bool {
        self.losses += 1;
        self.losses <= MAX_LOSSES
    }
}

impl FaultRules {
    /// Decides on a skip; `by_class` is the number of skips of some classes so far.
    ///
    /// # Errors
    /// The failure of the policy.
    pub(super) fn skip(
        &self,
        policy: &mut Option<Policy>,
        failed: &FailedItem<'_>,
        by_class: &UsedLimits,
    ) -> Result<Skip<'_>, Failure> {
        let is_skippable = match policy {
            Some(policy) => policy.is_skippable(failed)?,
            None => self.skippable.includes(failed.error()),
        };
        if !is_skippable {
            return Ok(Skip::No);
        }
        Ok(match self.skip_limit {
            Some(limit) if failed.skips() >= u64::from(limit) => Skip::LimitReached(limit),
            _ => {
                let used_up = self.skip_limits.used_up(failed.error(), by_class);
                used_up.map_or(Skip::Yes, Skip::ClassLimitReached)
            }
        })
    }

    /// Counts a retry, and returns whether the exception is retried.
    // Spec: CHUNK-RETRY-04, CHUNK-RETRY-05, CHUNK-RETRY-06
    pub(super) fn retry(&self, error: &BatchError, budget: &mut Budget) -> bool {
        let allowed = self.retry_limit.is_none_or(|limit| budget.retries < limit)
            && self
                .retry_limits
                .used_up(error, &budget.retries_by_class)
                .is_none();
        let retried = allowed && self.retryable.includes(error);
        if retried {
            budget.count_retry(error);
            self.retry_limits.count(error, &mut budget.retries_by_class);
        }
        retried
    }

    /// Returns whether an item may be retried after `failures` failures. `is_again`: it failed in its retry.
    pub(super) fn has_attempts(&self, failures: u32, is_again: bool, skip: Skip<'_>) -> bool {
        match self.max_attempts {
            Some(most) => failures < most,
            // A retried item is skipped if possible.
            None => !is_again || matches!(skip, Skip::No),
        }
    }

    /// Counts a retry of the reader or processor, and returns how the error is retried: as for a write, a failure during the retry is
    /// skipped if `skip` allows it.
    pub(super) fn retry_input(
        &self,
        error: &BatchError,
        skip: Skip<'_>,
        place: InputPlace,
        budget: &mut Budget,
    ) -> InputRetry {
        let failures = budget.retried_inputs.get(&place).copied().unwrap_or(0) + 1;
        let is_again = budget.one_by_one > 0 || failures > 1;
        let has_attempts = match skip {
            // Spec: CHUNK-RETRY-14
            Skip::LimitReached(_) | Skip::ClassLimitReached(_) if self.max_attempts.is_none() => true,
            skip => self.has_attempts(failures, is_again, skip),
        };
        if !self.retry_input || !has_attempts || !self.retry(error, budget) {
            return InputRetry::No;
        }
        budget.retried_inputs.insert(place, failures);
        let repeats = match place.1 {
            InputCall::Read => self.repeats_reader,
            InputCall::Process => self.repeats_processor,
        };
        if repeats && self.keeps_transaction(error) {
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
        if !self.retryable.includes(error) {
            // Not a question of limits.
        } else if let Some(limit) = self.retry_limits.used_up(error, &budget.retries_by_class) {
            return Some(format!(
                "it is retryable, but the limit of {} for `{}` in `batch.retry.limits` is used up",
                limit.limit, limit.class
            ));
        } else if let Some(most) = self.max_attempts {
            return Some(format!(
                "it is retryable, but `batch.retry.max-attempts` allows only {most}"
            ));
        }
        let unused = |limit: Option<u32>, classes: &ExceptionFilter| limit > Some(0) && classes.is_empty();
        if !self.has_policy && unused(self.skip_limit, &self.skippable) {
            return Some("the `skip-limit` has no effect without `skippable-exception-classes`".into());
        }
        if unused(self.retry_limit, &self.retryable) {
            return Some("the `retry-limit` has no effect without `retryable-exception-classes`".into());
        }
        self.unlisted(error)
    }

    /// Names the class of an error that no list of the step includes: the list may be wrong.
    fn unlisted(&self, error: &BatchError) -> Option<String> {
        let has_lists = !self.skippable.is_empty() || !self.retryable.is_empty();
        if self.has_policy || !has_lists || self.skippable.includes(error) || self.retryable.includes(error) {
            return None;
        }
        let class = class_of(error)?;
        Some(format!("its class `{class}` is neither skippable nor retryable"))
    }

    /// Returns the limit, if it alone prevents a retry of the exception.
    // Spec: CHUNK-RETRY-05
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
        budget.committed(0, 0);
        assert!(budget.resume());
    }

    #[test]
    fn many_retries_without_a_commit_are_logged_ever_more_rarely() {
        let mut budget = Budget::default();
        let error = BatchError::msg("locked");
        let mut logged = |retries| -> Vec<u32> {
            (0..retries)
                .filter_map(|_| {
                    budget.count_retry(&error);
                    Some(budget.open_retries).filter(|retries| is_logged(*retries))
                })
                .collect()
        };
        assert_eq!(logged(40), [8, 16, 32]);
        budget.committed(0, 0);
        assert_eq!(budget.open_retries, 0);
    }
}
