//! Waiting for a broker, in a step that may be stopped meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::BatchStatus;
use batch_runtime::observer::{Dataset, DatasetRole};
use batch_runtime::prelude::*;

use super::fault::Fault;
use crate::dataset::DatasetName;

/// How often a wait checks whether the step should stop.
pub const POLL: Duration = Duration::from_millis(200);

/// The contexts of a step that waits.
#[derive(BatchArtifact)]
pub struct Waiting {
    #[batch_context]
    /// The context of the job.
    pub job: JobContext,
    #[batch_context]
    /// The context of the step.
    pub step: StepContext,
}

impl Waiting {
    /// Reports a dataset of the step.
    pub fn report(&self, role: DatasetRole, (namespace, name): DatasetName) {
        self.step.report_dataset(Dataset::new(role, namespace, name));
    }

    /// Reports that the step is alive, and returns whether it should stop.
    pub fn is_stopping(&self) -> bool {
        self.step.heartbeat();
        let stopping = BatchStatus::Stopping;
        self.job.batch_status() == stopping || self.step.batch_status() == stopping
    }

    /// Waits for `time`. Returns true, soon, if the step should stop.
    pub fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if self.is_stopping() || left.is_zero() {
                return self.is_stopping();
            }
            thread::sleep(left.min(POLL));
        }
    }
}

/// The attempts to reach a broker, with pauses between them.
pub struct Attempts {
    time: Duration,
    deadline: Instant,
    pause: Duration,
}

impl Attempts {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);

    /// Allows attempts for `time`.
    pub fn new(time: Duration) -> Self {
        Self {
            time,
            deadline: Instant::now() + time,
            pause: Self::FIRST_PAUSE,
        }
    }

    /// Returns the pause before the next attempt; `None` if the time is over.
    pub fn next_pause(&mut self) -> Option<Duration> {
        let pause = self.pause;
        self.pause = (pause * 2).min(Self::LONGEST_PAUSE);
        (Instant::now() + pause < self.deadline).then_some(pause)
    }

    /// Waits before the next attempt, after one that failed with `problem`. Fails if the time is over, or the step has to stop.
    pub fn wait(&mut self, problem: &str, waiting: &Waiting) -> Result<(), Fault> {
        let Some(pause) = self.next_pause() else {
            let seconds = self.time.as_secs();
            return Err(Fault::Permanent(format!(
                "{problem}; the `timeout` of {seconds} s is over"
            )));
        };
        tracing::warn!(target: "batch.queue", problem, "trying again");
        match waiting.pause(pause) {
            true => Err(Fault::Stopped),
            false => Ok(()),
        }
    }
}
