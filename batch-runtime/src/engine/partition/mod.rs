//! Partitioned steps and flows: their plan, their partitions, their end.
//!
//! `supervisor.rs` runs on the thread of the element and submits partitions, whose rows `prepare.rs` creates, to a channel;
//! `local.rs` is the channel to threads of this process; `run.rs` runs one partition, in any process; `remote.rs` is the entry of a
//! worker process.
//!
//! Spec: PART-01 to PART-34, FPART-01 to FPART-11, PALG-01, PALG-03, PPLAN-04, D-34, D-48 to D-50, D-67, D-75

mod local;
mod lookout;
mod plan;
mod prepare;
mod remote;
mod run;
mod supervisor;

use std::collections::BTreeMap;
use std::sync::Mutex;

pub(crate) use remote::RemotePartition;
pub(super) use run::contexts_of_subjob;

use super::call::Failure;
use super::elements::BoundPartition;
use super::threads::lock;
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::execution::StepCounters;
use crate::ids::StepExecutionId;
use crate::plan::PartitionPlan;
use crate::repository::RepositoryError;

/// A partitioned element, with the environment of its partitions.
pub(super) struct PartitionedElement<'p> {
    pub(super) walk: &'p Walk<'p>,
    /// The id of the element.
    pub(super) id: &'p str,
    /// Its name in the repository: the id after those of the enclosing partitions. Spec: D-75
    pub(super) key: &'p str,
    pub(super) bound: &'p BoundPartition,
    pub(super) plan: &'p PartitionPlan,
    /// The first job execution whose step executions count.
    pub(super) since: Option<i64>,
    /// The contexts of the element.
    pub(super) contexts: &'p ContextScope,
    /// The partitions that were prepared, by their rows.
    prepared: Mutex<BTreeMap<StepExecutionId, Prepared>>,
    /// The failures of partitions that ran in this process, which their rows do not contain.
    ended_here: Mutex<BTreeMap<StepExecutionId, Result<LocalFailure, RepositoryError>>>,
}

/// The failure of a partition that ran in this process, with the artifact's error.
type LocalFailure = Option<Failure>;

/// A partition whose row exists.
#[derive(Clone, Copy)]
struct Prepared {
    number: u32,
    /// The counters of its earlier executions.
    earlier: StepCounters,
}

impl<'p> PartitionedElement<'p> {
    pub(super) fn new(
        walk: &'p Walk<'p>,
        (id, key): (&'p str, &'p str),
        (bound, plan): (&'p BoundPartition, &'p PartitionPlan),
        contexts: &'p ContextScope,
    ) -> Self {
        Self {
            walk,
            id,
            key,
            bound,
            plan,
            since: walk.state_of(key).since.max(walk.since),
            contexts,
            prepared: Mutex::default(),
            ended_here: Mutex::default(),
        }
    }

    /// Returns the number of partitions.
    fn planned(&self) -> u32 {
        u32::try_from(self.plan.sub_job_count()).unwrap_or(0)
    }

    fn prepared(&self, row: StepExecutionId) -> Option<Prepared> {
        lock(&self.prepared).get(&row).copied()
    }
}
