//! Steps that tests insert, regardless of the step's history.

use super::{Lease, NewStepExecution, StepState, StepStore};
use crate::execution::StepExecution;
use crate::repository::Result;
use crate::status::BatchStatus;

/// Inserts step executions.
pub(crate) trait InsertStep: StepStore {
    /// Inserts the execution of a step in status STARTING.
    fn create_step(&self, lease: &Lease, name: &str, state: &StepState) -> Result<StepExecution> {
        self.insert_with_status(lease, name, state, BatchStatus::Starting)
    }

    /// Inserts the execution of a step.
    fn insert_with_status(
        &self,
        lease: &Lease,
        name: &str,
        state: &StepState,
        status: BatchStatus,
    ) -> Result<StepExecution> {
        let new = NewStepExecution {
            name,
            status,
            since: None,
            is_first: false,
        };
        let (_, inserted) = self.insert_step(lease, &new, &|_| Some(state.clone()))?;
        Ok(inserted.expect("it was decided to insert it").0)
    }
}

impl<S: StepStore + ?Sized> InsertStep for S {}
