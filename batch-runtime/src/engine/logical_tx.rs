//! The logical transaction around the subjobs of an element. Each step is recorded before the call that it announces,
//! so a dead process leaves a pending rollback, but never a pending commit.
// Spec: LTX-07 to LTX-22, D-46, D-48

use super::bound::Bound;
use super::call::{Failure, discard};
use super::outcome::Outcome;
use super::walk::Walk;
use crate::artifact::ContextScope;
use crate::error::BatchError;
use crate::repository::{RepositoryError, TxState};
use crate::role::{Factory, LogicalTX};
use crate::status::BatchStatus;

/// The arguments of `#[logical_tx_after_completion]`.
// Spec: LTX-18
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// The artifact of a running element. One instance, on the thread of the element.
// Spec: LTX-20
struct Transaction<'w, 'a> {
    walk: &'w Walk<'a>,
    key: &'w str,
    bound: &'w Bound,
    artifact: Box<dyn LogicalTX>,
    runs_again: bool,
}

impl Walk<'_> {
    /// Runs `work` within the logical transaction of the element, if it has one. `work` returns the end of the
    /// subjobs, and the worst of their statuses. A committed transaction is skipped if nothing `runs_again`.
    pub(super) fn in_logical_tx(
        &self,
        key: &str,
        bound: Option<&Bound>,
        contexts: &ContextScope,
        runs_again: bool,
        work: impl FnOnce() -> Result<(Outcome, BatchStatus), RepositoryError>,
    ) -> Result<Outcome, RepositoryError> {
        let Some(bound) = bound else {
            return Ok(match self.state_of(key).tx {
                None => work()?.0,
                Some(_) => Outcome::Failed(Failure::new(format!(
                    "the logical transaction of `{key}` is open, but the Job XML no longer has one there; restart with the \
                     previous Job XML to roll it back"
                ))),
            });
        };
        let artifact = match bound.logical_tx(contexts) {
            Ok(artifact) => artifact,
            Err(failure) => return Ok(Outcome::Failed(failure)),
        };
        let mut transaction = Transaction {
            walk: self,
            key,
            bound,
            artifact,
            runs_again,
        };
        let outcome = transaction.run(work);
        discard(transaction.artifact);
        outcome
    }
}

impl Transaction<'_, '_> {
    // Spec: LTX-07, LTX-08, LTX-11, LTX-16, LTX-17, LTX-19, LTX-21
    fn run(
        &mut self,
        work: impl FnOnce() -> Result<(Outcome, BatchStatus), RepositoryError>,
    ) -> Result<Outcome, RepositoryError> {
        match self.walk.state_of(self.key).tx {
            Some(TxState::Begun | TxState::RollingBack) => {
                // Work before this execution was undone; its own work counts.
                let from = self.walk.shared.running.lease.execution_id.0;
                if let Err(failure) = self.roll_back(from)? {
                    return Ok(Outcome::Failed(failure.because(format!(
                        "an earlier execution left the logical transaction of `{}` open, and nothing runs before its \
                         rollback has succeeded, even if there is nothing left to undo",
                        self.key
                    ))));
                }
            }
            // The process died when only this call was left.
            Some(TxState::Committed) => {
                if let failed @ Outcome::Failed(_) = self.finish(Outcome::Completed)? {
                    return Ok(failed);
                }
            }
            None => {}
        }
        if self.is_committed() && !self.runs_again {
            return Ok(work()?.0);
        }
        // Before the call: if the process dies in it, the next execution knows that it has to roll back.
        self.record(Some(TxState::Begun))?;
        if let Err(failure) = self.notify("logical_tx_begin", LogicalTX::logical_tx_begin) {
            return self.undo(Outcome::Failed(failure));
        }
        let (outcome, worst) = work()?;
        // An `end` element completes the job, but the work of the subjobs that it stops is incomplete.
        if worst != BatchStatus::Completed || outcome.status() != BatchStatus::Completed {
            return self.undo(outcome);
        }
        let before = LogicalTX::logical_tx_before_completion;
        if let Err(failure) = self.notify("logical_tx_before_completion", before) {
            return self.undo(Outcome::Failed(failure));
        }
        let this = self.walk.shared.running.lease.execution_id.0;
        // Before the call: if the process dies in it, the call is repeated, and nothing is rolled back.
        self.walk.save_state(self.key, |state| {
            state.tx = Some(TxState::Committed);
            state.committed = Some(this);
        })?;
        self.finish(outcome)
    }

    /// Returns whether an earlier execution committed it, and its work was not undone since.
    // Spec: LTX-17
    fn is_committed(&self) -> bool {
        let committed = self.walk.state_of(self.key).committed;
        committed.is_some_and(|committed| self.walk.since.is_none_or(|since| committed >= since))
    }

    /// Completes the transaction. An error here undoes nothing: everything is complete.
    // Spec: LTX-17, LTX-22
    fn finish(&mut self, outcome: Outcome) -> Result<Outcome, RepositoryError> {
        let completed = self.complete(COMMIT);
        // After an error, too: the call is not repeated by the next execution.
        self.record(None)?;
        Ok(completed.map_or_else(Outcome::Failed, |()| outcome))
    }

    /// Rolls back after subjobs that did not complete.
    fn undo(&mut self, outcome: Outcome) -> Result<Outcome, RepositoryError> {
        // The work of this execution is undone too.
        let from = self.walk.shared.running.lease.execution_id.0.saturating_add(1);
        if let Err(failure) = self.roll_back(from)? {
            // Reported regardless of other failures: the work is not undone.
            let owed = format!(
                "the rollback of the logical transaction of `{}` failed, so its work is not undone; the next \
                 launch or restart calls it again, before anything else, until it succeeds",
                self.key
            );
            return Ok(Outcome::Failed(match outcome {
                Outcome::Failed(first) => first.because(owed).because(failure.message),
                _ => failure.because(owed),
            }));
        }
        Ok(match outcome {
            // A job whose work was undone is not complete.
            Outcome::Terminated(termination) if termination.status == BatchStatus::Completed => {
                Outcome::Failed(Failure::new(format!(
                    "an `end` element within `{}` ended the job before everything in it was complete, so its logical transaction \
                     was rolled back",
                    self.key
                )))
            }
            other => other,
        })
    }

    /// Calls the rollback, which stays pending until it returns. Afterwards, step executions before `from` no longer
    /// count, and a new plan is made, if the dialect requires it.
    // Spec: LTX-09, LTX-10, LTX-22, D-48, JAK-33
    fn roll_back(&mut self, from: i64) -> Result<Result<(), Failure>, RepositoryError> {
        self.record(Some(TxState::RollingBack))?;
        let rolled_back = self.notify("logical_tx_rollback", LogicalTX::logical_tx_rollback);
        if let Err(failure) = self.complete(ROLLBACK) {
            tracing::error!(
                message = failure.message,
                "#[logical_tx_after_completion] failed after a rollback"
            );
        }
        if rolled_back.is_ok() {
            let resets = self.walk.shared.job.dialect.compensation_resets_partitions();
            let compensates = resets
                && matches!(self.bound.registration.factory, Factory::LogicalTX(_, compensates) if compensates());
            self.walk.save_state(self.key, |state| {
                state.tx = None;
                state.committed = None;
                if compensates {
                    state.plan = None;
                    state.since = Some(from);
                }
            })?;
        }
        Ok(rolled_back)
    }

    // Spec: LTX-17, LTX-18
    fn complete(&mut self, status: &str) -> Result<(), Failure> {
        self.notify("logical_tx_after_completion", |artifact| {
            artifact.logical_tx_after_completion(status)
        })
    }

    fn notify(
        &mut self,
        method: &str,
        notify: impl FnOnce(&mut (dyn LogicalTX + 'static)) -> Result<(), BatchError>,
    ) -> Result<(), Failure> {
        self.bound.call(method, || notify(self.artifact.as_mut()))
    }

    fn record(&self, tx: Option<TxState>) -> Result<(), RepositoryError> {
        self.walk.save_state(self.key, |state| state.tx = tx)
    }
}
