//! Job and step listeners: made once for their scope, called in the order of the Job XML.
//!
//! Spec: D-53

use super::bound::{Bound, BoundListener, Listener};
use super::call::{Failure, call};
use crate::artifact::{ContextScope, JobListener};
use crate::error::BatchError;

fn make<'a>(bound: &'a [BoundListener], contexts: &ContextScope) -> Result<Vec<Listener<'a>>, Failure> {
    bound.iter().map(|listener| listener.make(contexts)).collect()
}

/// The job listeners of a job execution. Spec: LISTEN-JOB-09
pub(crate) struct JobListeners<'a>(Vec<Listener<'a>>);

impl<'a> JobListeners<'a> {
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn make(bound: &'a [BoundListener], contexts: &ContextScope) -> Result<Self, Failure> {
        make(bound, contexts).map(Self)
    }

    fn each(&mut self) -> impl Iterator<Item = (&'a Bound, &mut dyn JobListener)> {
        self.0.iter_mut().filter_map(Listener::as_job_listener)
    }

    /// Stops at the first listener that fails. Spec: LISTEN-JOB-02, STATUS-24
    pub(crate) fn before_job(&mut self) -> Result<(), Failure> {
        self.each().try_for_each(|(bound, listener)| {
            call(|| listener.before_job()).map_err(|error| Failure::thrown(bound, "before_job", error))
        })
    }

    /// Calls every listener, whatever the others do. Spec: LISTEN-JOB-03
    pub(crate) fn after_job(&mut self) -> Result<(), Failure> {
        first_failure(self.each().map(|(bound, listener)| {
            call(|| listener.after_job()).map_err(|error| Failure::thrown(bound, "after_job", error))
        }))
    }

    /// Spec: LISTEN-JOB-04, LISTEN-JOB-06
    pub(crate) fn before_step(&mut self, contexts: &ContextScope) -> Result<(), Failure> {
        self.0.iter_mut().try_for_each(|listener| {
            let bound = bind(listener, contexts);
            let Some((artifact, listener)) = listener.as_job_listener() else {
                return Ok(());
            };
            call(|| bound.and_then(|()| listener.before_step()))
                .map_err(|error| Failure::thrown(artifact, "before_step", error))
        })
    }

    /// `after` are the contexts once the step is over. Calls every listener; `failed` is told of each that fails.
    /// Spec: LISTEN-JOB-05
    pub(crate) fn after_step(
        &mut self,
        contexts: &ContextScope,
        after: &ContextScope,
        failed: &mut dyn FnMut(Failure),
    ) {
        for listener in &mut self.0 {
            let bound = bind(listener, contexts);
            let Some((artifact, role)) = listener.as_job_listener() else {
                continue;
            };
            let result = call(|| bound.and_then(|()| role.after_step()));
            // Also after a panic: the step's context must not outlive the step. Spec: CTX-12
            let left = bind(listener, after);
            if let Err(error) = result.and(left) {
                failed(Failure::thrown(artifact, "after_step", error));
            }
        }
    }
}

fn bind(listener: &mut Listener<'_>, contexts: &ContextScope) -> Result<(), BatchError> {
    call(|| Ok(listener.bind_contexts(contexts)?))
}

/// The step listeners of a step execution.
pub(crate) struct StepListeners<'a>(Vec<Listener<'a>>);

impl<'a> StepListeners<'a> {
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn make(bound: &'a [BoundListener], contexts: &ContextScope) -> Result<Self, Failure> {
        make(bound, contexts).map(Self)
    }

    /// Spec: LISTEN-STEP-02
    pub(crate) fn before_step(&mut self) -> Result<(), Failure> {
        self.0
            .iter_mut()
            .filter_map(Listener::as_step_listener)
            .try_for_each(|(bound, listener)| {
                call(|| listener.before_step()).map_err(|error| Failure::thrown(bound, "before_step", error))
            })
    }

    /// Calls every listener; `failed` is told of each that fails. Spec: LISTEN-STEP-03
    pub(crate) fn after_step(&mut self, failed: &mut dyn FnMut(Failure)) {
        for (bound, listener) in self.0.iter_mut().filter_map(Listener::as_step_listener) {
            if let Err(error) = call(|| listener.after_step()) {
                failed(Failure::thrown(bound, "after_step", error));
            }
        }
    }
}

/// Makes all the calls and returns the first failure; the others are logged.
fn first_failure(calls: impl Iterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
    let mut first = Ok(());
    for failure in calls.filter_map(Result::err) {
        match first {
            Ok(()) => first = Err(failure),
            Err(_) => tracing::error!(message = failure.message, "another listener failed"),
        }
    }
    first
}
