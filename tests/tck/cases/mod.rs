//! The table: one row for each test method, by class. The methods of `CDITests`, and others that inject by CDI, have none.

mod chunk;
mod chunk_faults;
mod chunk_time;
mod context;
mod decider;
mod disabled;
mod execution;
mod job_operator;
mod metrics;
mod older;
mod parallel;
mod properties;
mod restart;
mod transaction;
mod transition;

use crate::case::Case;

/// Returns all rows.
pub(crate) fn all() -> Vec<Case> {
    [
        chunk::cases(),
        chunk_faults::cases(),
        chunk_time::cases(),
        context::cases(),
        decider::cases(),
        disabled::cases(),
        execution::cases(),
        job_operator::cases(),
        metrics::cases(),
        older::cases(),
        parallel::cases(),
        properties::cases(),
        restart::cases(),
        transaction::cases(),
        transition::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
