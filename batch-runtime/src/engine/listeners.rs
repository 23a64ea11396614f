//! Job and step listeners: one instance each for their scope, called in the order of the Job XML.
// Spec: D-53

use std::sync::{Arc, Mutex, MutexGuard};

use super::bound::{BoundListener, Listener};
use super::call::{Failure, call};
use super::threads::lock;
use crate::artifact::ContextScope;
use crate::error::BatchError;
use crate::role::{JobListener, StepListener};

fn make(bound: &[Arc<BoundListener>], contexts: &ContextScope) -> Result<Vec<Listener>, Failure> {
    bound
        .iter()
        .map(|listener| Listener::make(listener, contexts))
        .collect()
}

/// The job listeners of a job execution. Several threads call them, one at a time.
// Spec: LISTEN-JOB-09, D-66
#[derive(Default)]
pub(crate) struct JobListeners(Mutex<Vec<Listener>>);

impl JobListeners {
    pub(crate) fn make(bound: &[Arc<BoundListener>], contexts: &ContextScope) -> Result<Self, Failure> {
        make(bound, contexts).map(|made| Self(Mutex::new(made)))
    }

    fn made(&self) -> MutexGuard<'_, Vec<Listener>> {
        lock(&self.0)
    }

    /// Stops at the first listener that fails.
    // Spec: LISTEN-JOB-02, STATUS-24
    pub(crate) fn before_job(&self) -> Result<(), Failure> {
        let mut made = self.made();
        let mut roles = made.iter_mut().filter_map(Listener::cast::<dyn JobListener>);
        roles.try_for_each(|(bound, listener)| bound.call("before_job", || listener.before_job()))
    }

    /// Calls every listener, even if others fail.
    // Spec: LISTEN-JOB-03
    pub(crate) fn after_job(&self) -> Result<(), Failure> {
        let mut made = self.made();
        let roles = made.iter_mut().filter_map(Listener::cast::<dyn JobListener>);
        first_failure(roles.map(|(bound, listener)| bound.call("after_job", || listener.after_job())))
    }

    // Spec: LISTEN-JOB-04, LISTEN-JOB-06
    pub(crate) fn before_step(&self, contexts: &ContextScope, after: &ContextScope) -> Result<(), Failure> {
        self.each_within(contexts, after, &mut |listener| {
            listener.call::<dyn JobListener>("before_step", |role| role.before_step())
        })
    }

    /// Calls every listener, and `failed` for each that fails. `after` are the contexts once the step is over.
    // Spec: LISTEN-JOB-05
    pub(crate) fn after_step(
        &self,
        contexts: &ContextScope,
        after: &ContextScope,
        failed: &mut dyn FnMut(Failure),
    ) {
        let visited = self.each_within(contexts, after, &mut |listener| {
            if let Err(failure) = listener.call::<dyn JobListener>("after_step", |role| role.after_step()) {
                failed(failure);
            }
            Ok(())
        });
        if let Err(failure) = visited {
            failed(failure);
        }
    }

    /// Calls `visit` for each listener, with `contexts` in its fields, and then sets its fields to `after`: the listener
    /// outlives the step, and the next call may come from another thread.
    // Spec: CTX-12, D-66
    pub(crate) fn each_within(
        &self,
        contexts: &ContextScope,
        after: &ContextScope,
        visit: &mut dyn FnMut(&mut Listener) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.made().iter_mut().try_for_each(|listener| {
            let result = bind(listener, contexts).and_then(|()| visit(listener));
            // After an error, too: the fields must not keep the contexts of a step that has ended.
            result.and(bind(listener, after))
        })
    }
}

fn bind(listener: &mut Listener, contexts: &ContextScope) -> Result<(), Failure> {
    let bound = call(|| Ok(listener.bind_contexts(contexts)?));
    bound.map_err(|error: BatchError| Failure::new(error.chain()))
}

/// The step listeners of a step execution.
#[derive(Default)]
pub(crate) struct StepListeners(Vec<Listener>);

impl StepListeners {
    pub(crate) fn make(bound: &[Arc<BoundListener>], contexts: &ContextScope) -> Result<Self, Failure> {
        make(bound, contexts).map(Self)
    }

    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut Listener> {
        self.0.iter_mut()
    }

    // Spec: LISTEN-STEP-02
    pub(crate) fn before_step(&mut self) -> Result<(), Failure> {
        self.0
            .iter_mut()
            .filter_map(Listener::cast::<dyn StepListener>)
            .try_for_each(|(bound, listener)| bound.call("before_step", || listener.before_step()))
    }

    /// Calls every listener, and `failed` for each that fails.
    // Spec: LISTEN-STEP-03
    pub(crate) fn after_step(&mut self, failed: &mut dyn FnMut(Failure)) {
        for (bound, listener) in self.0.iter_mut().filter_map(Listener::cast::<dyn StepListener>) {
            if let Err(failure) = bound.call("after_step", || listener.after_step()) {
                failed(failure);
            }
        }
    }
}

/// Makes all calls, returns the first failure and logs the others.
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
