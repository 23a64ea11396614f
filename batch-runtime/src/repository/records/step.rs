//! The step executions of a claim: their history, their commits, their end.

use super::claim::{Ending, Lease};
use super::partition::PartitionReport;
use crate::execution::{StepCounters, StepExecution};
use crate::repository::{DataChanges, StepState};
use crate::status::BatchStatus;

/// The end of a step execution, as it is recorded.
#[derive(Debug)]
pub(crate) struct EndOfStep<'a> {
    /// The status, the exit status and the message.
    pub(crate) ending: &'a Ending,
    /// The partition that starts in the same transaction.
    // Spec: D-105
    pub(crate) next: Option<&'a mut StepExecution>,
}

/// What a transaction stores beside the rows of a step execution.
#[derive(Debug, Default)]
pub(crate) struct SideWrites {
    /// The changed data of the job.
    pub(crate) data: DataChanges,
    /// The payloads of a collector, for the coordinator of a partition.
    pub(crate) payloads: Vec<PartitionReport>,
}

impl SideWrites {
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.payloads.is_empty()
    }
}

/// The repository's part of the commit of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkCommit<'a> {
    /// The counters of the step execution, including the chunk.
    pub(crate) counters: StepCounters,
    /// The checkpoints and the user data.
    pub(crate) state: &'a StepState,
    pub(crate) side_writes: &'a SideWrites,
    /// The lease to extend.
    pub(crate) renew: Option<&'a Lease>,
    /// The end of the step execution, if nothing is left to do after this chunk.
    // Spec: D-107
    pub(crate) end: Option<EndOfStep<'a>>,
}

/// The earlier executions of a step within its instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepHistory {
    /// The latest execution of the step.
    pub(crate) last: Option<StepExecution>,
    /// The state that this execution has stored.
    pub(crate) state: StepState,
    /// Whether the latest executions ran in another program, such as Spring Batch, and one of them has commits.
    pub(crate) committed_by_other_program: bool,
    /// The number of chunks committed since the step last completed.
    pub(crate) commits: i64,
    /// How often the step was started.
    pub(crate) starts: u32,
    /// The counters of the executions before the latest one, since the step last completed before it. Zero if the reader has no
    /// position: its input was read again.
    pub(crate) before: StepCounters,
}

impl StepHistory {
    /// Returns the counters that the next execution continues: of all executions since the step last completed before the latest
    /// one, or zero if the reader has no position and reads its input again.
    pub(crate) fn counters(&self) -> StepCounters {
        let last = self.last.as_ref().filter(|_| self.state.has_position());
        let last = last.map_or(StepCounters::default(), |last| last.counters);
        self.before.plus(last)
    }

    /// Returns why a partition cannot be resumed.
    pub(crate) fn cannot_resume(&self) -> Option<String> {
        self.unknown_end().or_else(|| self.lost_checkpoint())
    }

    /// Returns the problem if the last execution is UNKNOWN.
    // Spec: REPO-92
    pub(crate) fn unknown_end(&self) -> Option<String> {
        let last = self
            .last
            .as_ref()
            .filter(|last| last.status == BatchStatus::Unknown)?;
        let execution = last.job_execution_id;
        Some(format!(
            "the status of `{}` in execution {execution} is UNKNOWN: its end could not be recorded, and it may have written what no checkpoint \
             shows; check what it has written, then accept it with `recover --accept-unknown {execution} --reason TEXT`",
            last.step_name
        ))
    }

    /// Returns the problem if chunks were committed, but the checkpoint that they left is lost: to start without it would
    /// process their items again. Another program may keep no checkpoint.
    // Spec: RESTART-17
    pub(crate) fn lost_checkpoint(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        if self.commits == 0 || self.state.of_other_program {
            return None;
        }
        // Each chunk commits both.
        let (lost, consequence) = match (&self.state.reader, &self.state.writer) {
            (None, _) => ("reader", "would be processed again"),
            (_, None) => ("writer", "would be missing in its output"),
            _ => return None,
        };
        Some(format!(
            "step `{}` has committed {} chunks, but the context of its step execution {} has no {lost} checkpoint, so their \
             items {consequence}; restore the row of BATCH_STEP_EXECUTION_CONTEXT from a backup, or abandon the \
             job execution and start a new instance for the rest",
            last.step_name, self.commits, last.id
        ))
    }
}

/// A step execution to insert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewStepExecution<'a> {
    /// The step's name in the repository.
    pub(crate) name: &'a str,
    /// STARTED, or STARTING for a partition until a thread or worker begins it.
    pub(crate) status: BatchStatus,
    /// Earlier job executions do not count, except in the number of starts.
    pub(crate) since: Option<i64>,
    /// Whether nothing of the instance has run before, so that there is no history to read.
    pub(crate) is_first: bool,
}

/// The history of a step before it was inserted, and its execution with its state if it was.
pub(crate) type Inserted = (StepHistory, Option<(StepExecution, StepState)>);
