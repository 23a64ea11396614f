//! The partition plan: the number of partitions of a step or flow, and their properties.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The partitions of a step or flow.
///
/// ```
/// use batch_runtime::PartitionPlan;
/// let halves = [("from", "0"), ("from", "500")];
/// let plan = PartitionPlan::with_properties(halves.map(|pair| [pair]));
/// assert_eq!(plan.sub_job_count(), 2);
/// ```
// Spec: PPLAN-01 to PPLAN-05
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionPlan {
    sub_job_count: i32,
    sub_job_properties: Option<Vec<BTreeMap<String, String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(default, skip)]
    partitions_override: bool,
}

impl PartitionPlan {
    /// Creates a plan of `count` partitions without properties.
    pub fn new(count: i32) -> Self {
        Self {
            sub_job_count: count,
            ..Self::default()
        }
    }

    /// Creates a plan with one partition for each set of properties.
    pub fn with_properties<P, N, V>(partitions: impl IntoIterator<Item = P>) -> Self
    where
        P: IntoIterator<Item = (N, V)>,
        N: Into<String>,
        V: Into<String>,
    {
        let to_map = |properties: P| {
            properties
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        };
        let properties: Vec<_> = partitions.into_iter().map(to_map).collect();
        // Too many partitions for an `i32` are rejected when the plan is used.
        let count = i32::try_from(properties.len()).unwrap_or(-1);
        Self {
            sub_job_count: count,
            sub_job_properties: Some(properties),
            ..Self::default()
        }
    }

    /// Returns the number of partitions.
    // Spec: PPLAN-01
    pub fn sub_job_count(&self) -> i32 {
        self.sub_job_count
    }

    /// Sets the number of partitions.
    // Spec: PPLAN-01
    pub fn set_sub_job_count(&mut self, count: i32) {
        self.sub_job_count = count;
    }

    /// Returns the properties of each partition; `None` if there are none.
    // Spec: PPLAN-02
    pub fn sub_job_properties(&self) -> Option<&[BTreeMap<String, String>]> {
        self.sub_job_properties.as_deref()
    }

    /// Sets the properties of each partition, which have to match the number of partitions.
    // Spec: PPLAN-02
    pub fn set_sub_job_properties(&mut self, properties: Option<Vec<BTreeMap<String, String>>>) {
        self.sub_job_properties = properties;
    }

    /// Returns the maximum number of partitions that run at the same time; `None` leaves it to the runtime.
    pub fn threads(&self) -> Option<u32> {
        self.threads
    }

    /// Sets the maximum number of partitions that run at the same time; 0 means 1. The property `batch.partition.threads` takes
    /// precedence.
    // Spec: JAK-32
    pub fn set_threads(&mut self, threads: Option<u32>) {
        self.threads = threads;
    }

    /// Returns whether the plan replaces the partitions of earlier executions.
    pub fn partitions_override(&self) -> bool {
        self.partitions_override
    }

    /// Sets whether the plan replaces the partitions of earlier executions; the default is `false`. With `true`, a restart ignores
    /// their checkpoints and completed partitions, and starts all partitions of this plan. It applies only if a restart makes a new
    /// plan: in the dialect of Jakarta Batch, or by the property `batch.partition.replan`.
    // Spec: D-50, JAK-32
    pub fn set_partitions_override(&mut self, replaces: bool) {
        self.partitions_override = replaces;
    }

    /// Returns the plan with the number of partitions of an earlier one, and its own properties.
    pub(crate) fn with_count_of(mut self, earlier: &Self) -> Result<Self, String> {
        let count = earlier.sub_job_count;
        if let (Some(properties), Ok(wanted)) = (&mut self.sub_job_properties, usize::try_from(count)) {
            if properties.len() < wanted {
                return Err(format!(
                    "has the properties of {} partitions, but an earlier execution has started {wanted}; plan at least as many, or \
                     call `set_partitions_override(true)` to discard their work",
                    properties.len()
                ));
            }
            properties.truncate(wanted);
        }
        self.sub_job_count = count;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: PPLAN-01, PPLAN-02, PPLAN-03, PPLAN-05
    #[test]
    fn a_plan_is_set_read_stored_and_restored() {
        let mut plan = PartitionPlan::new(3);
        assert_eq!((plan.sub_job_count(), plan.sub_job_properties()), (3, None));
        plan.set_sub_job_count(1);
        plan.set_sub_job_properties(Some(vec![BTreeMap::from([("month".into(), "1".into())])]));
        plan.set_threads(Some(4));
        let stored = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<PartitionPlan>(&stored).unwrap(), plan);
        // As earlier versions have stored it.
        let earlier = r#"{"sub_job_count":2,"sub_job_properties":null}"#;
        assert_eq!(
            serde_json::from_str::<PartitionPlan>(earlier).unwrap(),
            PartitionPlan::new(2)
        );
    }

    // Spec: JAK-32
    #[test]
    fn a_new_plan_keeps_the_number_of_partitions() {
        let plan = |count: u32| PartitionPlan::with_properties((0..count).map(|n| [("n", n.to_string())]));
        assert_eq!(plan(7).with_count_of(&plan(3)), Ok(plan(3)));
        let error = plan(2).with_count_of(&plan(3)).unwrap_err();
        assert!(error.starts_with("has the properties of 2 partitions"), "{error}");
        let without = PartitionPlan::new(9).with_count_of(&plan(3)).unwrap();
        assert_eq!(without, PartitionPlan::new(3));
    }
}
