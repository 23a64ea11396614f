//! Partitioned steps and flows: their plan, their partitions, their end.
//!
//! `supervisor.rs` runs on the thread of the element and submits partitions, whose rows `prepare.rs` creates, to a
//! `Placement`: `placement.rs` has the workers, `local.rs` the threads of this process. `reopen.rs` submits those again whose worker is
//! lost; `run.rs` runs one partition, in any process; `next.rs` starts the next one of a thread; `remote.rs` is the entry of a worker process,
//! whose collectors send by `payloads.rs`.
// Spec: PART-01 to PART-34, FPART-01 to FPART-11, PALG-01, PALG-03, PPLAN-04, D-34, D-48 to D-50, D-67, D-75

mod deaths;
mod local;
mod monitor;
mod next;
mod payloads;
mod placement;
mod plan;
mod prepare;
mod remote;
mod reopen;
mod run;
mod supervisor;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Mutex;

pub(crate) use remote::RemotePartition;
pub(super) use run::contexts_of_subjob;

use super::call::Failure;
use super::elements::BoundPartition;
use super::outcome::Outcome;
use super::outputs::{Inputs, Outputs};
use super::threads::lock;
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::dispatch::PartitionTicket;
use crate::execution::{StepCounters, StepExecution};
use crate::ids::StepExecutionId;
use crate::plan::PartitionPlan;
use crate::repository::{RepositoryError, StepState};

/// A partitioned element, with the environment of its partitions.
pub(super) struct PartitionedElement<'p> {
    pub(super) walk: &'p Walk<'p>,
    /// The id of the element.
    pub(super) id: &'p str,
    /// Its name in the repository: the names of the enclosing partitions, then its id.
    // Spec: D-75
    pub(super) key: &'p str,
    pub(super) bound: &'p BoundPartition,
    pub(super) plan: &'p PartitionPlan,
    /// The first job execution whose step executions count.
    pub(super) since: Option<i64>,
    /// The contexts of the element.
    pub(super) contexts: &'p ContextScope,
    /// The numbers of the partitions that were prepared, by their rows.
    numbers: Mutex<BTreeMap<StepExecutionId, u32>>,
    /// Those that this process runs, until they begin.
    prepared: Mutex<BTreeMap<StepExecutionId, Prepared>>,
    /// The prepared partitions that are not submitted yet.
    ready: Mutex<VecDeque<PartitionTicket>>,
    /// The ends of partitions that ran in this process.
    ended_here: Mutex<BTreeMap<StepExecutionId, EndedHere>>,
}

/// The end of a partition, with its exit status.
type Ended = Result<(Outcome, String), RepositoryError>;

/// The end of a partition that ran in this process.
struct EndedHere {
    ended: Ended,
    /// The partition that has started with it, on the same thread.
    next: Option<PartitionTicket>,
}

impl From<Ended> for EndedHere {
    fn from(ended: Ended) -> Self {
        Self { ended, next: None }
    }
}

/// A partition whose row exists.
#[derive(Clone)]
struct Prepared {
    number: u32,
    row: StepExecution,
    state: StepState,
    /// The counters of its earlier executions.
    earlier: StepCounters,
}

impl<'p> PartitionedElement<'p> {
    pub(super) fn new(
        walk: &'p Walk<'p>,
        id: &'p str,
        key: &'p str,
        bound: &'p BoundPartition,
        plan: &'p PartitionPlan,
        contexts: &'p ContextScope,
    ) -> Self {
        Self {
            walk,
            id,
            key,
            bound,
            plan,
            // A rollback of an enclosing element has undone this work, too, so the later one counts.
            since: walk.state_of(key).since.max(walk.since),
            contexts,
            numbers: Mutex::default(),
            prepared: Mutex::default(),
            ready: Mutex::default(),
            ended_here: Mutex::default(),
        }
    }

    /// Returns the number of partitions.
    fn planned(&self) -> u32 {
        u32::try_from(self.plan.sub_job_count()).unwrap_or(0)
    }

    /// Returns a failure if two partitions have the same output or the same input, even if one of them is complete.
    // Spec: LOSS-03
    fn shared_data(&self) -> Option<Failure> {
        let (mut outputs, mut inputs) = (Outputs::default(), Inputs::default());
        for number in 1..=self.planned() {
            // A partition that cannot be bound fails when it starts.
            let Ok(body) = self.bound.binder.bind(&self.path_to(number)) else {
                continue;
            };
            let body = &body.element.body;
            let has_outputs = outputs.add(&format!("partition {number}"), body);
            match has_outputs.and_then(|has_outputs| Ok(inputs.add(number, body)? || has_outputs)) {
                Ok(true) => {}
                // The other partitions have the same artifacts.
                Ok(false) => return None,
                Err(problem) => {
                    return Some(Failure::new(format!(
                        "the plan of `{}` is wrong: {problem}",
                        self.id
                    )));
                }
            }
        }
        None
    }

    /// Returns the number of a partition, or 0 if it is unknown.
    fn number_of(&self, row: StepExecutionId) -> u32 {
        lock(&self.numbers).get(&row).copied().unwrap_or(0)
    }

    /// Returns a failure that names the partition.
    fn failed(&self, number: impl fmt::Display, failure: Failure) -> Outcome {
        Outcome::Failed(failure.because(format_args!("in partition {number} of `{}`", self.id)))
    }
}
