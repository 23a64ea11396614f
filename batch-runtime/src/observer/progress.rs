//! The progress of a running execution.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{JobEvent, JobEventKind, JobObserver, ObservedStep, StepBody};
use crate::execution::StepCounters;
use crate::ids::{JobExecutionId, StepExecutionId};

/// The running time of a step before its remaining time is estimated; an earlier estimate would be a guess.
const ESTIMATED_AFTER: Duration = Duration::from_millis(500);

/// The progress of a running execution, as of the last commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The steps that this execution has started, in the order of their start.
    pub steps: Vec<StepProgress>,
    /// The job execution that it waits for, because the executions of its job run one at a time: the one that has the turn, else one that
    /// waits longer.
    pub waits_for: Option<JobExecutionId>,
}

impl Progress {
    /// Returns how much of a step is done, from 0 to 1: the share of its items or, if it is partitioned, of its partitions. A running
    /// partition counts by the share of its items. `None` if the total is unknown.
    // Spec: CON-02
    pub fn share(&self, step: &StepProgress) -> Option<f64> {
        let Some(PartitionProgress { planned, ended }) = step.partitions else {
            return step.share_of_items();
        };
        let is_part = |one: &&StepProgress| one.is_running && one.is_partition_of(&step.step);
        let running = self.steps.iter().filter(is_part);
        let done = f64::from(ended) + running.filter_map(StepProgress::share_of_items).sum::<f64>();
        Some(share(done, f64::from(planned)))
    }
}

/// Returns the share of `all` that is done. A reader may deliver more than it has announced.
fn share(done: f64, all: f64) -> f64 {
    if done >= all { 1.0 } else { done / all }
}

/// The progress of a step or partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepProgress {
    /// The step's name in the repository: `load`, and `load:1` for its first partition.
    pub step: String,
    /// The counters of this execution, as of the last commit.
    pub counters: StepCounters,
    /// The total number of items of the reader, if it reports it ([`get_item_count`](crate::get_item_count)),
    /// including those that earlier executions have read.
    pub item_count: Option<u64>,
    /// The counters of the earlier executions of the step in the instance.
    pub earlier: StepCounters,
    /// The progress of the partitions, for a partitioned step.
    pub partitions: Option<PartitionProgress>,
    /// The running time, so far or in total.
    pub elapsed: Duration,
    /// True until it has ended.
    pub is_running: bool,
}

impl StepProgress {
    /// Returns the number of items read by this execution and earlier ones, including items skipped while reading.
    pub fn items_read(&self) -> u64 {
        items_of(self.counters_of_instance())
    }

    /// Returns the counters of this execution and earlier ones of the instance.
    pub fn counters_of_instance(&self) -> StepCounters {
        self.earlier.plus(self.counters)
    }

    /// Estimates the remaining time from the speed of this execution. Returns `None` if the number of items is unknown, if this execution
    /// has read none, and in the first half second.
    pub fn time_left(&self) -> Option<Duration> {
        let all = self.item_count.filter(|_| self.elapsed >= ESTIMATED_AFTER)?;
        let here = items_of(self.counters);
        let rest = all.saturating_sub(self.items_read());
        Duration::try_from_secs_f64(self.elapsed.as_secs_f64() * rest as f64 / here as f64).ok()
    }

    fn share_of_items(&self) -> Option<f64> {
        Some(share(self.items_read() as f64, self.item_count? as f64))
    }

    /// Returns whether this is a partition of `step`: `load:3` is one of `load`, and `load:3/sort` is a step in it.
    fn is_partition_of(&self, step: &str) -> bool {
        let number = self
            .step
            .strip_prefix(step)
            .and_then(|rest| rest.strip_prefix(':'));
        number.is_some_and(|number| !number.contains('/'))
    }
}

/// The progress of a step's partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionProgress {
    /// The planned number.
    pub planned: u32,
    /// The number of partitions that have ended, with any status, or were complete before.
    pub ended: u32,
}

/// Follows one execution.
#[derive(Default)]
pub(super) struct ProgressObserver(Mutex<Steps>);

#[derive(Default)]
struct Steps {
    all: Vec<Followed>,
    /// The last entry of each: a step that was resumed in this execution has several.
    places: HashMap<StepExecutionId, usize>,
    waits_for: Option<JobExecutionId>,
}

struct Followed {
    started: Instant,
    progress: StepProgress,
}

impl JobObserver for ProgressObserver {
    fn on_event(&self, event: &JobEvent) {
        // Of a partitioned flow, the steps are followed.
        let step = event.step.as_deref().filter(|step| step.body != StepBody::Flow);
        match (&event.kind, step) {
            (JobEventKind::WaitsForTurn { before }, _) => self.followed().waits_for = Some(*before),
            (JobEventKind::TurnTaken, _) => self.followed().waits_for = None,
            (JobEventKind::StepStarted { earlier }, Some(step)) => self.started(step, *earlier),
            (JobEventKind::ItemsCounted { items }, Some(step)) => {
                self.change(step, |followed| followed.progress.item_count = Some(*items));
            }
            (JobEventKind::ChunkCommitted { counters, .. }, Some(step)) => {
                self.change(step, |followed| followed.progress.counters = *counters);
            }
            (JobEventKind::StepEnded(end), Some(step)) => self.change(step, |followed| {
                followed.progress.counters = end.counters;
                followed.progress.elapsed = end.elapsed;
                followed.progress.is_running = false;
            }),
            (JobEventKind::StepLost, Some(step)) => self.change(step, |followed| {
                followed.progress.elapsed = followed.started.elapsed();
                followed.progress.is_running = false;
            }),
            (JobEventKind::PartitionsPlanned { element, planned }, _) => {
                self.change_partitions(element, |partitions| {
                    partitions.planned = *planned;
                    partitions.ended = 0;
                });
            }
            (JobEventKind::PartitionEnded { element, .. }, _) => {
                self.change_partitions(element, |partitions| partitions.ended += 1);
            }
            _ => {}
        }
    }
}

/// Returns the number of items read, including items skipped while reading.
fn items_of(counters: StepCounters) -> u64 {
    u64::try_from(counters.reads + counters.read_skips).unwrap_or(0)
}

impl ProgressObserver {
    fn followed(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, step: &ObservedStep, earlier: StepCounters) {
        let mut steps = self.followed();
        let place = steps.all.len();
        steps.places.insert(step.execution, place);
        steps.all.push(Followed {
            started: Instant::now(),
            progress: StepProgress {
                step: step.name.clone(),
                earlier,
                is_running: true,
                ..StepProgress::default()
            },
        });
    }

    fn change(&self, step: &ObservedStep, change: impl FnOnce(&mut Followed)) {
        let mut steps = self.followed();
        let place = steps.places.get(&step.execution).copied();
        if let Some(found) = place.and_then(|place| steps.all.get_mut(place)) {
            change(found);
        }
    }

    /// Changes the partitions of the last step with this name; partitions of a flow are not shown.
    fn change_partitions(&self, element: &str, change: impl FnOnce(&mut PartitionProgress)) {
        let mut steps = self.followed();
        let found = steps
            .all
            .iter_mut()
            .rev()
            .find(|other| other.progress.step == element);
        if let Some(found) = found {
            change(found.progress.partitions.get_or_insert_default());
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let as_of_now = |followed: &Followed| {
            let mut progress = followed.progress.clone();
            if progress.is_running {
                progress.elapsed = followed.started.elapsed();
            }
            progress
        };
        let followed = self.followed();
        Progress {
            steps: followed.all.iter().map(as_of_now).collect(),
            waits_for: followed.waits_for,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{JobTrace, ObservedJob};
    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::JobInstanceId;

    // Spec: CON-02
    #[test]
    fn the_share_of_a_step_is_that_of_its_items_or_partitions() {
        let step = |name: &str, reads: i64, items: Option<u64>| StepProgress {
            step: name.into(),
            counters: StepCounters {
                reads,
                ..StepCounters::default()
            },
            item_count: items,
            elapsed: Duration::from_secs(10),
            is_running: true,
            ..StepProgress::default()
        };
        let alone = |step: StepProgress| {
            (
                Progress::default().share(&step),
                step.time_left().map(|left| left.as_secs()),
            )
        };
        assert_eq!(alone(step("load", 5, None)), (None, None));
        assert_eq!(alone(step("load", 0, Some(20))), (Some(0.0), None));
        assert_eq!(alone(step("load", 5, Some(20))), (Some(0.25), Some(30)));
        assert_eq!(alone(step("load", 30, Some(20))), (Some(1.0), Some(0)));
        assert_eq!(alone(step("load", 0, Some(0))), (Some(1.0), None));
        // The speed counts this execution alone.
        let mut resumed = step("load", 5, Some(20));
        resumed.earlier.reads = 10;
        assert_eq!(alone(resumed), (Some(0.75), Some(10)));
        let mut early = step("load", 5, Some(20));
        early.elapsed = Duration::from_millis(100);
        assert_eq!(alone(early), (Some(0.25), None));

        let mut whole = step("load", 0, None);
        whole.partitions = Some(PartitionProgress { planned: 4, ended: 1 });
        let mut ended = step("load:1", 9, Some(9));
        ended.is_running = false;
        let parts = [
            ended,
            step("load:2", 1, Some(2)),
            step("load:3/sort", 2, Some(2)),
            step("load2:1", 2, Some(2)),
        ];
        let progress = Progress {
            steps: parts.into(),
            ..Progress::default()
        };
        assert_eq!(progress.share(&whole), Some(0.375));
    }

    /// The steps of a partitioned flow are followed, its partitions are not.
    // Spec: OBS-01
    #[test]
    fn partitions_of_flows_are_no_steps() {
        let progress = ProgressObserver::default();
        for (name, body) in [("both:1", StepBody::Flow), ("both:1/one", StepBody::Batchlet)] {
            progress.on_event(&JobEvent {
                at: Timestamp(0),
                job: Arc::new(ObservedJob {
                    job: "job".into(),
                    instance: JobInstanceId(1),
                    execution: JobExecutionId(1),
                    trace: JobTrace::default(),
                    outer: None,
                }),
                step: Some(Arc::new(ObservedStep {
                    step: "one".into(),
                    name: name.into(),
                    execution: StepExecutionId(1),
                    is_partition: body == StepBody::Flow,
                    body,
                })),
                kind: JobEventKind::StepStarted {
                    earlier: StepCounters::default(),
                },
            });
        }
        let steps = progress.progress().steps;
        let names: Vec<_> = steps.iter().map(|step| step.step.as_str()).collect();
        assert_eq!(names, ["both:1/one"]);
    }
}
