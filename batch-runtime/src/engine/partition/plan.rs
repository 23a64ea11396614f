//! The plan of a partitioned element.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifact::ContextScope;
use crate::engine::bound::Bound;
use crate::engine::call::{Failure, discard};
use crate::engine::elements::{BoundPartition, Replan};
use crate::engine::outcome::Outcome;
use crate::engine::walk::Walk;
use crate::execution::StepExecution;
use crate::plan::PartitionPlan;
use crate::repository::RepositoryError;
use crate::status::BatchStatus;

/// The properties of one partition.
type Properties = BTreeMap<String, String>;

impl Walk<'_> {
    /// Returns the stored plan, or else the algorithm's plan, or else the plan of the Job XML. Stores it before anything runs.
    // Spec: PART-18, PART-20 to PART-24, PART-30, D-49, D-50, D-101, JAK-32
    pub(super) fn plan(
        &self,
        key: &str,
        partition: &BoundPartition,
        contexts: &ContextScope,
    ) -> Result<Result<PartitionPlan, Failure>, RepositoryError> {
        let stored = self.state_of(key);
        // A plan within an element whose work was undone does not count. Spec: D-48
        let is_valid = self.since.is_none_or(|since| stored.planned >= since);
        let algorithm = partition.algorithm.as_ref().map(|bound| bound.name.as_str());
        let earlier = stored.plan.as_ref().filter(|_| is_valid);
        if let Some(plan) = earlier {
            let is_same_kind = stored.algorithm.is_some() == algorithm.is_some();
            // Another worker resumes the partition around it.
            let is_resumed = stored.planned == self.shared.running.lease.execution_id.0;
            let is_kept = algorithm.is_none() || partition.replan == Replan::No || is_resumed;
            match changed(plan, partition, is_same_kind) {
                Some(change) => return Ok(Err(cannot_reuse(&change))),
                None if is_kept => return Ok(checked(plan.clone(), "the stored plan has")),
                None => {}
            }
        }
        let plan = match &partition.algorithm {
            None => Ok(partition.plan_of_xml()),
            Some(bound) => planned_by(bound, contexts),
        };
        if let (Ok(plan), Some(_)) = (&plan, &partition.algorithm) {
            warn_of_missing(key, plan, &partition.required);
        }
        let replaces = |plan: &PartitionPlan| plan.partitions_override() || partition.replan == Replan::All;
        let replaces = earlier.is_some() && plan.as_ref().is_ok_and(replaces);
        let plan = match earlier.filter(|_| !replaces) {
            None => plan,
            Some(earlier) => plan.and_then(|plan| with_count_of(earlier, plan, key)),
        };
        if let (Ok(plan), Some(earlier), Replan::SafeProperties, false) =
            (&plan, earlier, partition.replan, replaces)
            && let Some(failure) = self.replaced_input(key, earlier, plan)?
        {
            return Ok(Err(failure));
        }
        if let Ok(plan) = &plan {
            let this = self.shared.running.lease.execution_id.0;
            // Before a partition has a row: a restart has to find the plan that its checkpoints belong to.
            self.save_state(key, |state| {
                state.plan = Some(plan.clone());
                state.planned = this;
                state.algorithm = algorithm.map(str::to_owned);
                // Checkpoints of the earlier plan belong to other properties.
                if replaces {
                    state.since = Some(this);
                }
            })?;
        }
        Ok(plan)
    }

    /// Returns a failure if a partition is complete, or has a checkpoint, and the new plan changes its properties: records of its new input
    /// would be skipped, and the rest of its old input would be processed by no partition, or by another one.
    // Spec: D-101
    fn replaced_input(
        &self,
        key: &str,
        earlier: &PartitionPlan,
        plan: &PartitionPlan,
    ) -> Result<Option<Failure>, RepositoryError> {
        let lease = &self.shared.running.lease;
        let since = self.state_of(key).since.max(self.since);
        for number in 1..=usize::try_from(plan.sub_job_count()).unwrap_or(0) {
            let Some(change) = changed_property(properties_of(earlier, number), properties_of(plan, number))
            else {
                continue;
            };
            let name = format!("{key}:{number}");
            let history = self
                .shared
                .repository
                .step_history(lease.instance_id, &name, since)?;
            let is_complete = |last: &StepExecution| last.status == BatchStatus::Completed;
            let work = if history.last.as_ref().is_some_and(is_complete) {
                "is complete"
            } else if history.commits > 0 && history.state.has_position() {
                "has a checkpoint"
            } else {
                continue;
            };
            return Ok(Some(Failure::new(format!(
                "partition {number} of `{key}` {work}, but the new plan of its partition algorithm gives it other properties ({change}), \
                 so records would be lost or processed twice; restart with `-batch.partition.replan=no` to run the earlier plan, `all` to \
                 start all partitions anew, or `properties` if what the partition has done counts for the new properties"
            ))));
        }
        Ok(None)
    }
}

impl Walk<'_> {
    /// Adds a remark to the failure of partitions whose properties an algorithm has planned in an earlier execution.
    // Spec: D-50
    pub(super) fn explained(&self, key: &str, outcome: Outcome) -> Outcome {
        let stored = self.state_of(key);
        let is_kept =
            stored.algorithm.is_some() && stored.planned != self.shared.running.lease.execution_id.0;
        match outcome {
            Outcome::Failed(failure) if is_kept => Outcome::Failed(failure.because(format_args!(
                "the partitions have the properties that execution {} has planned; if these are the cause, restart with \
                 `batch.partition.replan=properties` to plan them again",
                stored.planned
            ))),
            outcome => outcome,
        }
    }
}

/// Returns the properties of a partition, counted from 1; `None` if the plan has none.
fn properties_of(plan: &PartitionPlan, number: usize) -> Option<&Properties> {
    plan.sub_job_properties()?.get(number - 1)
}

/// Returns the first property that differs, with both values.
fn changed_property(then: Option<&Properties>, now: Option<&Properties>) -> Option<String> {
    let names: BTreeSet<&String> = then.into_iter().chain(now).flat_map(BTreeMap::keys).collect();
    let value = |of: Option<&Properties>, name: &String| of.and_then(|of| of.get(name)).cloned();
    let mut values = names
        .into_iter()
        .map(|name| (name, value(then, name), value(now, name)));
    let (name, then, now) = values.find(|(_, then, now)| then != now)?;
    let shown = |value: Option<String>| value.map_or("none".to_owned(), |value| format!("{value:?}"));
    Some(format!("`{name}` was {}, and is {} now", shown(then), shown(now)))
}

/// Returns the change of the Job XML that prevents the stored plan from being used.
// Spec: PART-30
fn changed(plan: &PartitionPlan, partition: &BoundPartition, is_same_kind: bool) -> Option<String> {
    if !is_same_kind {
        return Some("an algorithm has been added or removed".to_owned());
    }
    let (then, now) = (plan.sub_job_count(), partition.instances);
    let is_other_count = partition.algorithm.is_none() && i64::from(then) != i64::from(now);
    // In the dialect of Jakarta Batch, the number is remembered.
    (is_other_count && partition.replan == Replan::No)
        .then(|| format!("there were {then} partitions, and the Job XML has {now} now"))
}

fn cannot_reuse(change: &str) -> Failure {
    Failure::new(format!(
        "cannot reuse the partitions of an earlier execution: {change}, so its committed work belongs to other partitions; \
         start a new instance, or restart with the previous Job XML"
    ))
}

fn planned_by(bound: &Bound, contexts: &ContextScope) -> Result<PartitionPlan, Failure> {
    let mut algorithm = bound.partition_algorithm(contexts)?;
    let planned = bound.call("calculate_partitions", || algorithm.calculate_partitions());
    discard(algorithm);
    checked(planned?, "the partition algorithm has planned")
}

/// Returns the plan of a restart with the number of partitions of the earlier one.
// Spec: JAK-32
fn with_count_of(earlier: &PartitionPlan, plan: PartitionPlan, key: &str) -> Result<PartitionPlan, Failure> {
    let (planned, kept) = (plan.sub_job_count(), earlier.sub_job_count());
    if planned > kept {
        tracing::warn!(
            "the partition algorithm of `{key}` has planned {planned} partitions for this restart; only the first {kept} run, as many as \
             in the earlier execution"
        );
    }
    let plan = plan.with_count_of(earlier);
    plan.map_err(|problem| Failure::new(format!("the plan of the partition algorithm {problem}")))
}

/// Warns about properties that no partition has, although the Job XML uses them: they are empty there.
// Spec: JAK-45
fn warn_of_missing(key: &str, plan: &PartitionPlan, required: &BTreeSet<String>) {
    let properties = plan.sub_job_properties().unwrap_or_default();
    let planned: BTreeSet<&str> = properties
        .iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    for name in required.iter().filter(|name| !planned.contains(name.as_str())) {
        tracing::warn!(
            ?planned,
            "the partitions of `{key}` use the property `{name}` of their plan, and the partition algorithm has given it to none of them"
        );
    }
}

/// Checks that the counts of a plan fit together.
// Spec: PART-23, PART-24, D-49
fn checked(plan: PartitionPlan, origin: &str) -> Result<PartitionPlan, Failure> {
    let count = plan.sub_job_count();
    let problem = match (
        usize::try_from(count),
        plan.sub_job_properties().map(<[BTreeMap<_, _>]>::len),
    ) {
        (Err(_), _) => format!("{count} partitions"),
        (Ok(count), Some(properties)) if properties != count => {
            format!("{count} partitions, and the properties of {properties}")
        }
        _ => return Ok(plan),
    };
    Err(Failure::new(format!("{origin} {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: PART-23, PART-24
    #[test]
    fn counts_of_a_plan_fit_together() {
        let with_properties = |sets: usize| {
            let mut plan = PartitionPlan::new(2);
            plan.set_sub_job_properties(Some(vec![BTreeMap::new(); sets]));
            checked(plan, "the algorithm has planned").map_err(|failure| failure.message)
        };
        assert!(with_properties(2).is_ok());
        for sets in [0, 1, 3] {
            assert_eq!(
                with_properties(sets).unwrap_err(),
                format!("the algorithm has planned 2 partitions, and the properties of {sets}")
            );
        }
        assert!(checked(PartitionPlan::new(-1), "").is_err());
    }
}
