//! The plan of a partitioned element.

use std::collections::BTreeMap;

use crate::artifact::ContextScope;
use crate::engine::bound::Bound;
use crate::engine::call::{Failure, discard};
use crate::engine::elements::{BoundPartition, Replan};
use crate::engine::walk::Walk;
use crate::plan::PartitionPlan;
use crate::repository::RepositoryError;

impl Walk<'_> {
    /// Returns the stored plan, or else that of the algorithm, or else that of the Job XML. Stores it before anything runs.
    /// Spec: PART-18, PART-20 to PART-24, PART-30, D-49, D-50, JAK-32
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
        let earlier = stored.plan.filter(|_| is_valid);
        if let Some(plan) = &earlier {
            let is_same_kind = stored.algorithm.is_some() == algorithm.is_some();
            let is_kept = algorithm.is_none() || partition.replan == Replan::No;
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
        let replaces = |plan: &PartitionPlan| plan.partitions_override() || partition.replan == Replan::All;
        let replaces = earlier.is_some() && plan.as_ref().is_ok_and(replaces);
        let plan = match earlier.filter(|_| !replaces) {
            None => plan,
            Some(earlier) => plan.and_then(|plan| {
                let kept = plan.with_count_of(&earlier);
                kept.map_err(|problem| Failure::new(format!("the plan of the partition algorithm {problem}")))
            }),
        };
        if let Ok(plan) = &plan {
            let this = self.shared.running.lease.execution_id.0;
            self.save_state(key, |state| {
                state.plan = Some(plan.clone());
                state.planned = this;
                state.algorithm = algorithm.map(str::to_owned);
                if replaces {
                    state.since = Some(this);
                }
            })?;
        }
        Ok(plan)
    }
}

/// Returns the change of the Job XML that prevents the stored plan from being used. Spec: PART-30
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

/// Checks that the counts of a plan fit together. Spec: PART-23, PART-24, D-49
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

    /// Spec: PART-23, PART-24
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
