//! Job and step listeners: made once for their scope, called in the order of the Job XML.
//!
//! Spec: D-53

use super::bound::Bound;
use super::call::{Failure, call};
use crate::artifact::{ContextScope, JobListener, StepListener};
use crate::error::BatchError;

/// The job listeners of a job execution. Spec: LISTEN-JOB-09
pub(crate) struct JobListeners<'a>(Vec<(&'a Bound, Box<dyn JobListener>)>);

impl<'a> JobListeners<'a> {
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn make(bound: &'a [Bound], contexts: &ContextScope) -> Result<Self, Failure> {
        let made = bound
            .iter()
            .map(|listener| match listener.job_listener(contexts) {
                Ok(instance) => Ok((listener, instance)),
                Err(error) => Err(Failure::not_made(listener, &error)),
            });
        made.collect::<Result<_, _>>().map(Self)
    }

    /// Stops at the first listener that fails. Spec: LISTEN-JOB-02, STATUS-24
    pub(crate) fn before_job(&mut self) -> Result<(), Failure> {
        self.0.iter_mut().try_for_each(|(bound, listener)| {
            call(|| listener.before_job()).map_err(|error| Failure::thrown(bound, "before_job", error))
        })
    }

    /// Calls every listener, whatever the others do. Spec: LISTEN-JOB-03
    pub(crate) fn after_job(&mut self) -> Result<(), Failure> {
        first_failure(self.0.iter_mut().map(|(bound, listener)| {
            call(|| listener.after_job()).map_err(|error| Failure::thrown(bound, "after_job", error))
        }))
    }

    /// Spec: LISTEN-JOB-04, LISTEN-JOB-06
    pub(crate) fn before_step(&mut self, contexts: &ContextScope) -> Result<(), Failure> {
        self.0.iter_mut().try_for_each(|(bound, listener)| {
            call(|| bind(listener.as_mut(), contexts).and_then(|()| listener.before_step()))
                .map_err(|error| Failure::thrown(bound, "before_step", error))
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
        for (bound, listener) in &mut self.0 {
            let result = call(|| bind(listener.as_mut(), contexts).and_then(|()| listener.after_step()));
            // Also after a panic: the step's context must not outlive the step. Spec: CTX-12
            let left = call(|| bind(listener.as_mut(), after));
            if let Err(error) = result.and(left) {
                failed(Failure::thrown(bound, "after_step", error));
            }
        }
    }
}

fn bind(listener: &mut dyn JobListener, contexts: &ContextScope) -> Result<(), BatchError> {
    Ok(listener.bind_contexts(contexts)?)
}

/// The step listeners of a step execution.
pub(crate) struct StepListeners<'a>(Vec<(&'a Bound, Box<dyn StepListener>)>);

impl<'a> StepListeners<'a> {
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn make(bound: &'a [Bound], contexts: &ContextScope) -> Result<Self, Failure> {
        let made = bound
            .iter()
            .map(|listener| match listener.step_listener(contexts) {
                Ok(instance) => Ok((listener, instance)),
                Err(error) => Err(Failure::not_made(listener, &error)),
            });
        made.collect::<Result<_, _>>().map(Self)
    }

    /// Spec: LISTEN-STEP-02
    pub(crate) fn before_step(&mut self) -> Result<(), Failure> {
        self.0.iter_mut().try_for_each(|(bound, listener)| {
            call(|| listener.before_step()).map_err(|error| Failure::thrown(bound, "before_step", error))
        })
    }

    /// Calls every listener; `failed` is told of each that fails. Spec: LISTEN-STEP-03
    pub(crate) fn after_step(&mut self, failed: &mut dyn FnMut(Failure)) {
        for (bound, listener) in &mut self.0 {
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
