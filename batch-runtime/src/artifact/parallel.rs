//! The roles around partitions and splits: partition algorithm, logical transaction, collector, analyzer.

use std::any::Any;
use std::fmt;

use super::item::ItemType;
use crate::error::BatchError;
use crate::plan::PartitionPlan;

use crate::checkpoint::Externalizable;

/// `#[partition_algorithm]`. Spec: PALG-02
pub trait PartitionAlgorithm: Send {
    /// `#[calculate_partitions]`. Spec: PALG-04
    ///
    /// # Errors
    /// The artifact's error; the step or flow then ends FAILED.
    fn calculate_partitions(&mut self) -> Result<PartitionPlan, BatchError>;
}

/// `#[logical_tx]`. Spec: LTX-06
pub trait LogicalTX: Send {
    /// `#[logical_tx_begin]`. Spec: LTX-07
    ///
    /// # Errors
    /// The artifact's error, which rolls back. Spec: LTX-13
    fn logical_tx_begin(&mut self) -> Result<(), BatchError>;

    /// `#[logical_tx_before_completion]`. Spec: LTX-08
    ///
    /// # Errors
    /// The artifact's error, which rolls back. Spec: LTX-13
    fn logical_tx_before_completion(&mut self) -> Result<(), BatchError>;

    /// `#[logical_tx_rollback]`. Spec: LTX-09
    ///
    /// # Errors
    /// The artifact's error; the rollback stays owed. Spec: LTX-22
    fn logical_tx_rollback(&mut self) -> Result<(), BatchError>;

    /// `#[logical_tx_after_completion]`: `status` is `COMMIT` or `ROLLBACK`. Spec: LTX-17, LTX-18
    ///
    /// # Errors
    /// The artifact's error; the element then ends FAILED.
    fn logical_tx_after_completion(&mut self, status: &str) -> Result<(), BatchError>;

    /// Whether there is a `#[logical_tx_rollback]` method, which compensates. Spec: D-48
    fn compensates() -> bool
    where
        Self: Sized;
}

/// What a collector sends to the analyzer. Not persisted. Spec: SUBJOB-17
pub struct CollectorData {
    value: Box<dyn Any + Send>,
    type_name: &'static str,
}

impl CollectorData {
    /// Wraps a payload.
    pub fn new<P: Externalizable>(payload: P) -> Self {
        Self {
            value: Box::new(payload),
            type_name: std::any::type_name::<P>(),
        }
    }

    /// The payload as the type that the analyzer's method names.
    ///
    /// # Errors
    /// When it is of another type.
    ///
    /// Spec: PALG-11
    pub fn take<P: Externalizable>(self) -> Result<P, BatchError> {
        let Self { value, type_name } = self;
        value.downcast().map(|payload| *payload).map_err(|_| {
            let asked = std::any::type_name::<P>();
            BatchError::msg(format!(
                "the collector sent a `{type_name}`, the analyzer takes a `{asked}`"
            ))
        })
    }
}

impl fmt::Debug for CollectorData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CollectorData({})", self.type_name)
    }
}

/// `#[sub_job_collector]`. Spec: PALG-05
pub trait SubJobCollector: Send {
    /// `#[collect_sub_job_data]`; `None` sends nothing. Spec: PALG-06, SUBJOB-15
    ///
    /// # Errors
    /// The artifact's error, which rolls back. Spec: LTX-14
    fn collect_sub_job_data(&mut self) -> Result<Option<CollectorData>, BatchError>;

    /// The type of the payloads. Spec: PALG-11
    fn payload_type() -> ItemType
    where
        Self: Sized;
}

/// `#[sub_job_analyzer]`. Spec: PALG-07
pub trait SubJobAnalyzer: Send {
    /// `#[analyze_collector_data]`. Spec: PALG-08
    ///
    /// # Errors
    /// The artifact's error, which rolls back. Spec: LTX-15
    fn analyze_collector_data(&mut self, data: CollectorData) -> Result<(), BatchError>;

    /// `#[analyze_exit_status]`. Spec: PALG-09
    ///
    /// # Errors
    /// The artifact's error, which rolls back. Spec: LTX-15
    fn analyze_exit_status(&mut self, status: &str) -> Result<(), BatchError>;

    /// The type of the payloads that it takes; `None` without an `#[analyze_collector_data]` method. Spec: PALG-11
    fn payload_type() -> Option<ItemType>
    where
        Self: Sized;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: PALG-11
    #[test]
    fn a_payload_of_another_type_is_an_error_that_names_both() {
        assert_eq!(CollectorData::new(7_u32).take::<u32>().unwrap(), 7);
        let error = CollectorData::new(7_u32)
            .take::<String>()
            .unwrap_err()
            .to_string();
        assert!(error.contains("`u32`") && error.contains("String"), "{error}");
    }
}
