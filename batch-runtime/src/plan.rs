//! The partition plan: the number of partitions of a step or flow, and their properties.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The partitions of a step or flow. Spec: PPLAN-01 to PPLAN-05
///
/// ```
/// use batch_runtime::PartitionPlan;
/// let halves = [("from", "0"), ("from", "500")];
/// let plan = PartitionPlan::with_properties(halves.map(|pair| [pair]));
/// assert_eq!(plan.sub_job_count(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionPlan {
    sub_job_count: i32,
    sub_job_properties: Option<Vec<BTreeMap<String, String>>>,
}

impl PartitionPlan {
    /// Creates a plan of `count` partitions without properties.
    pub fn new(count: i32) -> Self {
        Self {
            sub_job_count: count,
            sub_job_properties: None,
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
        }
    }

    /// Returns the number of partitions. Spec: PPLAN-01
    pub fn sub_job_count(&self) -> i32 {
        self.sub_job_count
    }

    /// Sets the number of partitions. Spec: PPLAN-01
    pub fn set_sub_job_count(&mut self, count: i32) {
        self.sub_job_count = count;
    }

    /// Returns the properties of each partition; `None` if there are none. Spec: PPLAN-02
    pub fn sub_job_properties(&self) -> Option<&[BTreeMap<String, String>]> {
        self.sub_job_properties.as_deref()
    }

    /// Sets the properties of each partition, which have to match the number of partitions. Spec: PPLAN-02
    pub fn set_sub_job_properties(&mut self, properties: Option<Vec<BTreeMap<String, String>>>) {
        self.sub_job_properties = properties;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: PPLAN-01, PPLAN-02, PPLAN-03, PPLAN-05
    #[test]
    fn a_plan_is_set_read_stored_and_restored() {
        let mut plan = PartitionPlan::new(3);
        assert_eq!((plan.sub_job_count(), plan.sub_job_properties()), (3, None));
        plan.set_sub_job_count(1);
        plan.set_sub_job_properties(Some(vec![BTreeMap::from([("month".into(), "1".into())])]));
        let stored = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<PartitionPlan>(&stored).unwrap(), plan);
    }
}
