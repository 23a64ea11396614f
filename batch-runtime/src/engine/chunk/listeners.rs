//! The listeners of a chunk step, and how they are called.
// Spec: section 18 of the catalogue, Appendix B.2

use std::any::Any;
use std::sync::Arc;

use super::super::bound::{BoundListener, Listener};
use super::super::call::{Failure, call};
use super::super::listeners::{JobListeners, StepListeners};
use super::rules::FaultRules;
use crate::artifact::{ChunkItems, ContextScope};
use crate::context::StepContext;
use crate::error::BatchError;
use crate::role::{
    CheckpointListener, ChunkListener, ItemProcessListener, ItemReadListener, ItemWriteListener,
    RetryListener, Role, RoleSet, SkipListener,
};

/// The listeners of the step, and the skip and retry listeners of its job.
pub(crate) struct ChunkListeners<'r> {
    step: &'r mut StepListeners,
    job: &'r JobListeners,
    /// The contexts while the step runs, and afterwards.
    contexts: (&'r ContextScope, &'r ContextScope),
    /// The roles that the listeners have.
    roles: RoleSet,
    /// The roles that are called: an event without a listener costs one test.
    active: RoleSet,
}

/// Declares the events of the step's listeners: a method that calls every listener that has the role, and stops at the
/// first that fails.
macro_rules! notify {
    ($($(#[$spec:meta])* $role:ident: $event:ident($($argument:ident: $ty:ty),*);)*) => {
        impl ChunkListeners<'_> {
            $(
                $(#[$spec])*
                pub(super) fn $event(&mut self $(, $argument: $ty)*) -> Result<(), Failure> {
                    if !self.active.contains(Role::$role) {
                        return Ok(());
                    }
                    self.step.each().try_for_each(|listener| {
                        listener.call::<dyn $role>(stringify!($event), |role| role.$event($($argument),*))
                    })
                }
            )*
        }
    };
}

notify! {
    // Spec: JAK-27
    ChunkListener: before_chunk();
    // Spec: JAK-27
    ChunkListener: after_chunk();
    // Spec: JAK-27
    ChunkListener: on_chunk_error(error: &BatchError);
    // Spec: LISTEN-CKPT-02
    CheckpointListener: before_checkpoint();
    // Spec: LISTEN-CKPT-03, LISTEN-CKPT-04
    CheckpointListener: after_checkpoint();
    // Spec: LISTEN-READ-02
    ItemReadListener: before_read();
    // Spec: LISTEN-READ-03
    ItemReadListener: after_read(item: &dyn Any);
    // Spec: LISTEN-READ-04
    ItemReadListener: on_read_error(error: &BatchError);
    // Spec: LISTEN-PROC-02
    ItemProcessListener: before_process(item: &dyn Any);
    // Spec: LISTEN-PROC-03, LISTEN-PROC-04
    ItemProcessListener: after_process(item: &dyn Any, result: Option<&dyn Any>);
    // Spec: LISTEN-PROC-05
    ItemProcessListener: on_process_error(error: &BatchError, item: &dyn Any);
    // Spec: LISTEN-WRITE-02, LISTEN-WRITE-05
    ItemWriteListener: before_write(items: &ChunkItems<'_>);
    // Spec: LISTEN-WRITE-03, LISTEN-WRITE-05
    ItemWriteListener: after_write(items: &ChunkItems<'_>);
    // Spec: LISTEN-WRITE-04, LISTEN-WRITE-05
    ItemWriteListener: on_write_error(error: &BatchError, items: &ChunkItems<'_>);
}

impl<'r> ChunkListeners<'r> {
    /// Creates the listeners. `contexts` are the step's contexts, `after` the contexts after its end.
    pub(crate) fn new(
        step: &'r mut StepListeners,
        of_step: &[Arc<BoundListener>],
        job: &'r JobListeners,
        of_job: &[Arc<BoundListener>],
        contexts: &'r ContextScope,
        after: &'r ContextScope,
    ) -> Self {
        let all = of_step.iter().chain(of_job);
        let roles: RoleSet = all
            .flat_map(|listener| &listener.roles)
            .map(|bound| bound.registration.role())
            .collect();
        Self {
            step,
            job,
            contexts: (contexts, after),
            roles,
            active: roles,
        }
    }

    /// Calls no listener while `is_silent`: an interval that is replayed was announced when the destination has committed it.
    // Spec: MARK-15
    pub(super) fn set_silent(&mut self, is_silent: bool) {
        self.active = if is_silent { RoleSet::default() } else { self.roles };
    }

    /// Returns whether a listener or the policy wants single items, so that reading and processing are observed.
    pub(super) fn need_single_items(&self, rules: &FaultRules) -> bool {
        let has = |role| self.active.contains(role);
        rules.has_policy
            || has(Role::ItemReadListener)
            || has(Role::ItemProcessListener)
            || has(Role::SkipListener)
            || (rules.retry_input && has(Role::RetryListener))
    }

    /// Calls the skip listeners of the job, then of the step.
    // Spec: LISTEN-SKIP-05, D-53
    pub(super) fn on_skip(
        &mut self,
        method: &'static str,
        notify: &mut dyn FnMut(&mut dyn SkipListener) -> Result<(), BatchError>,
    ) -> Result<(), Failure> {
        if !self.active.contains(Role::SkipListener) {
            return Ok(());
        }
        self.each(&mut |listener| listener.call::<dyn SkipListener>(method, |role| notify(role)))
    }

    /// Calls the retry listeners in the transaction that failed. Returns `true` if one of them threw, which forces a rollback,
    /// unless that error fails the step.
    // Spec: LISTEN-RETRY-03, LISTEN-RETRY-04
    pub(super) fn before_rollback(
        &mut self,
        method: &'static str,
        context: &StepContext,
        notify: &mut dyn FnMut(&mut dyn RetryListener) -> Result<(), BatchError>,
    ) -> Result<bool, Failure> {
        let Err(failure) = self.on_retry(method, notify) else {
            return Ok(false);
        };
        let Some(error) = failure.exception.as_ref().filter(|error| !error.fails_the_step()) else {
            return Err(failure);
        };
        context.set_exception(Arc::clone(error));
        tracing::warn!(message = failure.message, "the whole chunk is retried");
        Ok(true)
    }

    /// Calls the retry listeners of the job, then of the step, all of them even if one fails. Returns the first error.
    // Spec: LISTEN-RETRY-11, D-53
    pub(super) fn on_retry(
        &mut self,
        method: &'static str,
        notify: &mut dyn FnMut(&mut dyn RetryListener) -> Result<(), BatchError>,
    ) -> Result<(), Failure> {
        if !self.active.contains(Role::RetryListener) {
            return Ok(());
        }
        let mut first = Ok(());
        let _ = self.each(&mut |listener| {
            if let Some((bound, role)) = listener.cast::<dyn RetryListener>()
                && let Err(error) = call(|| notify(role))
                && first.is_ok()
            {
                first = Err(Failure::thrown(bound, method, error));
            }
            Ok(())
        });
        first
    }

    /// Calls `visit` for every listener that may have a skip or retry role.
    fn each(&mut self, visit: &mut dyn FnMut(&mut Listener) -> Result<(), Failure>) -> Result<(), Failure> {
        let (contexts, after) = self.contexts;
        self.job.each_within(contexts, after, &mut *visit)?;
        self.step.each().try_for_each(visit)
    }
}
