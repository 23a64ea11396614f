//! Batchlet steps.
// Spec: Appendix B.3 of the catalogue

use std::sync::Arc;

use super::body::BodyEnd;
use super::bound::Bound;
use super::call::Failure;
use super::threads::Worker;
use crate::artifact::ContextScope;
use crate::role::Batchlet;

/// Runs one batchlet.
pub(crate) struct BatchletRunner<'a> {
    bound: &'a Bound,
    batchlet: Arc<dyn Batchlet>,
    worker: &'a Worker,
}

impl<'a> BatchletRunner<'a> {
    pub(crate) fn make(
        bound: &'a Bound,
        contexts: &ContextScope,
        worker: &'a Worker,
    ) -> Result<Self, Failure> {
        Ok(Self {
            bound,
            batchlet: bound.batchlet(contexts)?.into(),
            worker,
        })
    }

    /// Calls `#[begin_step]`, `#[process]` and `#[end_step]`.
    // Spec: BLET-02, BLET-03, BLET-10
    pub(crate) fn run(&self) -> Result<BodyEnd, Failure> {
        self.bound.call("begin_step", || self.batchlet.begin_step())?;
        let result = self.process();
        if let Err(failure) = self.bound.call("end_step", || self.batchlet.end_step()) {
            // The first failure is recorded. Spec: D-80
            if result.is_ok() {
                return Err(failure);
            }
            tracing::error!(message = failure.message, "#[end_step] failed too");
        }
        result
    }

    fn process(&self) -> Result<BodyEnd, Failure> {
        if !self.worker.enter_batchlet(&self.batchlet) {
            return Ok(BodyEnd::stopped());
        }
        let result = self.bound.call("process", || self.batchlet.process());
        self.worker.leave_batchlet();
        let exit_status = result?;
        if exit_status.is_empty() {
            let message = format!("batchlet `{}` returned an empty exit status", self.bound.name);
            return Err(Failure::new(message));
        }
        let exit_status = Some(exit_status);
        // After a stop, the returned value remains the exit status. Spec: BLET-07
        if self.worker.stop_requested() {
            return Ok(BodyEnd::Stopped { exit_status });
        }
        Ok(BodyEnd::Completed { exit_status })
    }
}
