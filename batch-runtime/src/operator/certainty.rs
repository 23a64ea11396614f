//! The wait for certainty that a process is dead.

use std::thread;
use std::time::Duration;

use super::{JobOperator, Result};
use crate::ids::JobExecutionId;
use crate::repository::HolderState;

/// The interval at which the lease is polled.
const LOOK: Duration = Duration::from_millis(250);

impl JobOperator {
    /// Waits if the lease of an execution has expired by the clock of the database, which may have been set, and its process
    /// cannot be checked: until the lease is renewed, or was not renewed for a whole lease time. Returns whether it waited.
    ///
    /// Spec: OP-35
    pub(super) fn await_certainty(&self, execution: JobExecutionId) -> Result<bool> {
        let mut waited = false;
        while let Some(HolderState::Silent { remaining }) = self.shared.repository.holder_state(execution)? {
            if !waited {
                tracing::warn!(
                    %execution,
                    "the lease has expired, and its process cannot be checked from here; watching the lease for {} s",
                    remaining.as_secs_f64().ceil()
                );
            }
            waited = true;
            thread::sleep(remaining.min(LOOK));
        }
        Ok(waited)
    }
}
