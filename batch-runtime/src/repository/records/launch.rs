//! Launches that wait for a worker.

use crate::ids::{JobExecutionId, LaunchId};
use crate::parameters::JobParameters;
use crate::status::BatchStatus;

/// The state of a launch, as far as its row shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchPhase {
    /// It waits for a worker.
    Queued,
    /// A worker has taken it.
    Taken,
    /// Its job execution has ended.
    Ended,
    /// No worker can run it.
    Rejected,
    /// An operator has withdrawn it.
    Withdrawn,
}

impl LaunchPhase {
    const ALL: [(Self, &str); 5] = [
        (Self::Queued, "QUEUED"),
        (Self::Taken, "TAKEN"),
        (Self::Ended, "ENDED"),
        (Self::Rejected, "REJECTED"),
        (Self::Withdrawn, "WITHDRAWN"),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(phase, _)| *phase == self);
        found.map_or("", |(_, text)| text)
    }

    pub(crate) fn from_repository(text: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, of)| *of == text);
        found.map(|(phase, _)| *phase)
    }
}

/// A launch that this worker has taken.
#[derive(Clone, Debug)]
pub(crate) struct TakenLaunch {
    pub(crate) id: LaunchId,
    pub(crate) job: String,
    /// The parameters; the problem, if they cannot be read.
    pub(crate) parameters: Result<JobParameters, String>,
    pub(crate) fingerprint: String,
}

/// A launch.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRow {
    pub(crate) id: LaunchId,
    pub(crate) job: String,
    pub(crate) queue: String,
    pub(crate) phase: LaunchPhase,
    pub(crate) worker: Option<String>,
    /// False if the registration of the worker has expired.
    pub(crate) is_worker_alive: bool,
    /// The latest job execution, with its status.
    pub(crate) execution: Option<(JobExecutionId, BatchStatus)>,
    pub(crate) message: String,
    /// When it was submitted, by the clock of the database in milliseconds.
    pub(crate) submitted: i64,
}

/// The outcome of withdrawing a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithdrawOutcome {
    Unknown,
    Withdrawn,
    /// It runs as this job execution.
    Runs(JobExecutionId),
    /// It had ended before.
    NotRunning,
}
