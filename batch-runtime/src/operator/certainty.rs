//! The wait for certainty that a process is dead.

use std::thread;
use std::time::Duration;

use super::{JobOperator, Result};
use crate::ids::JobExecutionId;
use crate::repository::HolderState;

/// The interval between polls of the lease.
const LOOK: Duration = Duration::from_millis(250);

impl JobOperator {
    /// Waits if the lease of an execution has expired by the clock of the database, which may have been set, and its process
    /// cannot be checked: until the lease is renewed, or was not renewed for a whole lease time. Returns whether the process may be dead,
    /// so that a request which was rejected because it was alive can be repeated.
    // Spec: OP-35
    pub(super) fn await_certainty(&self, execution: JobExecutionId) -> Result<bool> {
        let mut waited = false;
        loop {
            let remaining = match self.shared.repository.holder_state(execution)? {
                Some(HolderState::Silent { remaining }) => remaining,
                // The lease time may have passed since the request was rejected, on a busy host or with a slow database.
                Some(HolderState::Dead) => return Ok(true),
                Some(HolderState::Alive) | None => return Ok(waited),
            };
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
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::repository::{ClaimRequest, RepositoryConfig, open};
    use crate::runtime::BatchRuntime;

    /// Between the look at a lease that rejects a launch and the next one, the time of the lease may pass.
    // Spec: OP-35
    #[test]
    fn a_request_is_repeated_if_the_process_is_dead_by_now() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/batch.db", folder.path().display());
        let lease = Duration::from_secs(1);
        let dead = open(&url, RepositoryConfig::with_lease(lease)).unwrap();
        let request = ClaimRequest::of_new_instance();
        let execution = dead.claim(&request).unwrap().execution.id;
        drop(dead);
        // Without its lock file only time shows that it is dead.
        std::fs::remove_dir_all(folder.path().join("batch.db-owners")).unwrap();
        let builder = BatchRuntime::builder().repository(&url).lease_time(lease);
        let operator = builder.build().unwrap().job_operator();
        let state = || operator.shared.repository.holder_state(execution).unwrap();
        while state() != Some(HolderState::Dead) {
            thread::yield_now();
        }
        assert!(operator.await_certainty(execution).unwrap());
    }
}
