//! The steps that do not run because of their history.
// Spec: JSL-STEP-04, JSL-STEP-05, RESTART-17, D-59

use super::call::Failure;
use super::elements::BoundBody;
use super::step::StepRunner;
use crate::repository::{ElementState, StepHistory};
use crate::status::BatchStatus;

impl StepRunner<'_> {
    // Spec: JSL-STEP-04, JSL-STEP-05, D-59
    pub(super) fn start_limit_reached(&self, history: &StepHistory) -> Option<Failure> {
        let most = self.step.max_starts?;
        (history.starts >= most).then(|| {
            let (step, job, starts) = (self.id, &self.walk.shared.job.id, history.starts);
            Failure::new(format!(
                "step `{step}` of job `{job}` was started {starts} times in this job instance, as often as its start-limit \
                 allows; increase the start-limit in the Job XML to restart it"
            ))
        })
    }

    /// Rejects a step whose partition was added to or removed from the Job XML since it ran: its progress is stored
    /// under other names, so committed work would be repeated.
    pub(super) fn partitioned_differently(
        &self,
        history: &StepHistory,
        kept: &ElementState,
    ) -> Option<Failure> {
        let was_partitioned =
            kept.plan.is_some() && self.walk.since.is_none_or(|since| kept.planned >= since);
        let was_whole = history.state.reader.is_some() || history.state.writer.is_some();
        let (then, now) = match self.is_partitioned() {
            false if was_partitioned => ("had partitions", "none"),
            true if was_whole && !was_partitioned => ("had no partitions", "some"),
            _ => return None,
        };
        Some(Failure::new(format!(
            "step `{}` {then} when it ran before in this job instance, but has {now} now, so its committed work would be \
             repeated; start a new instance, or restart with the previous Job XML",
            self.id
        )))
    }

    /// Rejects a chunk step whose checkpoint is lost.
    // Spec: RESTART-17
    pub(super) fn lost_checkpoint(&self, history: &StepHistory) -> Option<Failure> {
        let is_chunk = matches!(self.step.body, BoundBody::Chunk(_));
        is_chunk
            .then(|| history.lost_checkpoint())
            .flatten()
            .map(Failure::new)
    }

    /// Rejects a chunk step that Spring Batch has partly committed: only its own readers understand their
    /// checkpoints, so committed work would be repeated. A context without entries means that an operator has deleted
    /// them to allow it.
    // Spec: RESTART-17
    pub(super) fn started_by_other_program(&self, history: &StepHistory) -> Option<Failure> {
        // The committed work of a partitioned step is in the rows of its partitions.
        let may_have_committed = match self.step.body {
            BoundBody::Chunk(_) => history.committed_by_other_program,
            BoundBody::Partitioned(_) => history.state.of_other_program,
            BoundBody::Batchlet(_) => false,
        };
        let last = history.last.as_ref()?;
        // A complete step has no rest that its position would be needed for.
        if !may_have_committed || last.status == BatchStatus::Completed {
            return None;
        }
        // A checkpoint of this runtime is older than the other program's commits.
        let own_checkpoint = history.state.reader.is_some().then_some("batch.stepType");
        let key = history
            .state
            .other_entries
            .keys()
            .next()
            .map(String::as_str)
            .or(own_checkpoint)?;
        Some(Failure::new(format!(
            "another program, such as Spring Batch, has started step `{}` and committed part of it; its position \
             is in the context under its own keys (`{key}`), so this runtime would write everything again; complete the step \
             with that program, or start a new instance for the rest",
            self.id
        )))
    }
}
