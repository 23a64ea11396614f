//! The limits of a step, an extension: its time, the time between signs of life, the size of its checkpoints.

use std::time::{Duration, Instant};

use super::call::Failure;
use super::threads::{Exceeded, Worker};
use crate::checkpoint::CheckpointInfo;
use crate::context::StepContext;
use crate::observer::StepBody;

/// The limits of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepLimits {
    /// The time that the step may take, with all its partitions.
    pub(crate) timeout: Option<Duration>,
    /// The time without a commit or a call of `StepContext::heartbeat`.
    pub(crate) heartbeat: Option<Duration>,
    /// The size of a checkpoint of the reader or writer, and of the persistent user data, as JSON.
    pub(crate) checkpoint_bytes: usize,
}

impl Default for StepLimits {
    fn default() -> Self {
        Self {
            timeout: None,
            heartbeat: None,
            checkpoint_bytes: 1 << 20,
        }
    }
}

impl StepLimits {
    /// Returns the limits of each partition of the step.
    pub(crate) fn of_partition(self) -> Self {
        Self {
            timeout: None,
            ..self
        }
    }

    /// Watches the time of the step `id` that starts on `worker`.
    pub(super) fn watch(self, id: &str, context: &StepContext, body: StepBody, worker: &Worker) {
        if let Some(limit) = self.timeout
            && let Some(at) = Instant::now().checked_add(limit)
        {
            let message = format!("step `{id}` exceeded its timeout of {limit:?}");
            worker.add_limit(move || (at <= Instant::now()).then(|| Exceeded::new(message.clone())));
        }
        // The partitions show that they are alive.
        let Some(limit) = self.heartbeat.filter(|_| body != StepBody::Partitions) else {
            return;
        };
        let is_chunk = body == StepBody::Chunk;
        let mut silence = Silence::since(Instant::now(), context.clone());
        worker.add_limit(move || {
            (silence.at(Instant::now()) >= limit).then(|| {
                let context = &silence.step;
                let activity = if is_chunk {
                    format!(" {}", context.activity())
                } else {
                    String::new()
                };
                let message = format!(
                    "step `{}` exceeded its heartbeat of {limit:?}: it neither committed nor called \
                     `StepContext::heartbeat()`{activity}; call it more often, or raise `batch.step.heartbeat`",
                    context.id()
                );
                Exceeded {
                    message,
                    silent_step: Some(context.id().to_owned()),
                }
            })
        });
    }
}

/// The time since a step last showed that it is alive.
struct Silence {
    step: StepContext,
    since: Instant,
    /// The number of heartbeats at that time.
    beats: u64,
}

impl Silence {
    fn since(now: Instant, step: StepContext) -> Self {
        let beats = step.beats();
        Self {
            step,
            since: now,
            beats,
        }
    }

    /// Returns its length now.
    fn at(&mut self, now: Instant) -> Duration {
        let beats = self.step.beats();
        if beats != self.beats {
            (self.since, self.beats) = (now, beats);
        }
        now.duration_since(self.since)
    }
}

/// Fails if a checkpoint is larger than the limit.
pub(super) fn check_size(
    of: &str,
    artifact: &str,
    checkpoint: &CheckpointInfo,
    limit: usize,
) -> Result<(), Failure> {
    match checkpoint.too_large(limit) {
        None => Ok(()),
        Some(problem) => Err(Failure::new(format!(
            "the checkpoint of {of} `{artifact}` {problem}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StepExecutionId;

    /// A step may take longer than its heartbeat if it shows that it is alive.
    // Spec: BLET-06
    #[test]
    fn each_heartbeat_begins_the_time_again() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let step = StepContext::new("step", StepExecutionId(1), Default::default(), None);
        let mut silence = Silence::since(begin, step.clone());
        assert_eq!(silence.at(after(5)), Duration::from_secs(5));
        step.heartbeat();
        assert_eq!(silence.at(after(6)), Duration::ZERO);
        assert_eq!(silence.at(after(9)), Duration::from_secs(3));
    }
}
