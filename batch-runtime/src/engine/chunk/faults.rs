//! Which exceptions a chunk step skips and retries, and how often.
//!
//! Spec: CHUNK-SKIP-01 to CHUNK-SKIP-08, CHUNK-RETRY-01 to CHUNK-RETRY-06, CHUNK-NORB-01 to CHUNK-NORB-05, D-07, D-08

use crate::artifact::ExceptionFilter;
use crate::error::BatchError;

/// The rules of a chunk, as its Job XML gives them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultRules {
    pub(crate) skippable: ExceptionFilter,
    /// Most skips of a step execution; `None`: no limit.
    pub(crate) skip_limit: Option<u32>,
    pub(crate) retryable: ExceptionFilter,
    /// Most retries of a step execution; `None`: no limit.
    pub(crate) retry_limit: Option<u32>,
    pub(crate) no_rollback: ExceptionFilter,
}

impl FaultRules {
    /// Whether a failed write may be handled at all: then the items of an interval are kept until its commit.
    pub(crate) fn handle_writes(&self) -> bool {
        !self.skippable.is_empty() || !self.retryable.is_empty()
    }

    /// Whether a retryable exception keeps the transaction. Spec: CHUNK-NORB-02, CHUNK-NORB-03
    pub(super) fn keeps_transaction(&self, error: &BatchError) -> bool {
        self.no_rollback.includes(error)
    }

    /// Whether some exception may keep the transaction.
    pub(super) fn may_keep_transaction(&self) -> bool {
        !self.no_rollback.is_empty()
    }
}

/// Whether an exception may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    Yes,
    /// It is not skippable.
    No,
    /// It is, and the limit is used up. Spec: CHUNK-SKIP-07
    LimitReached(u32),
}

/// What a step execution has used of its limits. Not reset by a rollback.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    pub(super) retries: u32,
    /// Rollbacks and retries since the last commit.
    pub(super) attempts: u32,
    /// Connections lost since the last commit.
    pub(super) losses: u32,
}

/// A chunk that costs the connection each time, as one that is too large for the database, is not tried for ever.
const MOST_LOSSES: u32 = 3;

impl Budget {
    /// Whether the step goes on after it has lost its connection to the database; if so it counts.
    pub(super) fn resume(&mut self) -> bool {
        self.losses += 1;
        self.losses <= MOST_LOSSES
    }
}

impl FaultRules {
    /// `skips` are those of the step execution so far.
    pub(super) fn skip(&self, error: &BatchError, skips: u64) -> Skip {
        if !self.skippable.includes(error) {
            return Skip::No;
        }
        match self.skip_limit {
            Some(limit) if skips >= u64::from(limit) => Skip::LimitReached(limit),
            _ => Skip::Yes,
        }
    }

    /// Whether the exception is retried; if so it counts. Spec: CHUNK-RETRY-04, CHUNK-RETRY-05, CHUNK-RETRY-06
    pub(super) fn retry(&self, error: &BatchError, budget: &mut Budget) -> bool {
        let allowed = self.retry_limit.is_none_or(|limit| budget.retries < limit);
        let retried = allowed && self.retryable.includes(error);
        budget.retries = budget.retries.saturating_add(u32::from(retried));
        retried
    }

    /// The limit, if only that keeps the exception from being retried. Spec: CHUNK-RETRY-05
    pub(super) fn used_up(&self, error: &BatchError, budget: &Budget) -> Option<u32> {
        let limit = self.retry_limit.filter(|limit| budget.retries >= *limit)?;
        self.retryable.includes(error).then_some(limit)
    }
}
