//! The operations on remote launches.

use std::time::Duration;

use crate::ids::{JobExecutionId, LaunchId};
use crate::repository::records::{ClaimRequest, LaunchPhase, LaunchRow, TakenLaunch, WithdrawOutcome};
use crate::repository::{ClaimError, Result};

/// The remote launches, one row each. A launch belongs to the worker that has taken it until the registration of that worker expires; the
/// lease of the instance decides which process runs it.
pub(crate) trait LaunchStore: Send + Sync {
    /// Queues the launch of an instance, unless the instance cannot run now. If it is queued already, replaces that launch; if a worker
    /// runs it, returns it.
    fn submit_launch(
        &self,
        request: &ClaimRequest<'_>,
        queue: &str,
        fingerprint: &str,
    ) -> Result<LaunchId, ClaimError>;

    /// Takes at most `count` launches from a queue, the oldest first: those that are queued, and those whose worker is dead; but none of the
    /// fingerprints in `except`.
    fn take_launches(&self, queue: &str, count: u32, except: &[String]) -> Result<Vec<TakenLaunch>>;

    /// Queues a launch of this worker again, for any worker after `wait`. Returns `false` if it is not this worker's any more; if its job
    /// execution still runs here, also if that is requested to stop.
    fn requeue_launch(
        &self,
        launch: LaunchId,
        wait: Duration,
        message: &str,
        is_running: bool,
    ) -> Result<bool>;

    /// Records how a launch of this worker ended. Has no effect if it is not this worker's any more.
    fn end_launch(
        &self,
        launch: LaunchId,
        phase: LaunchPhase,
        execution: Option<JobExecutionId>,
        message: &str,
    ) -> Result<()>;

    /// Withdraws a launch that no worker runs.
    fn withdraw_launch(&self, launch: LaunchId) -> Result<WithdrawOutcome>;

    /// Returns the launches, by id.
    fn launches(&self) -> Result<Vec<LaunchRow>>;
}
