//! The listeners of a chunk step, told of what happens to its items.
//!
//! Spec: section 18 of the catalogue, Appendix B.2

use std::any::Any;
use std::sync::Arc;

use super::super::bound::{Bound, BoundListener, Listener};
use super::super::call::{Failure, call};
use super::super::listeners::{JobListeners, StepListeners};
use crate::artifact::{ContextScope, Items, RetryListener, Role, SkipListener};
use crate::error::BatchError;

/// Which listeners there are: what nobody hears costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hears {
    pub(super) checkpoint: bool,
    pub(super) read: bool,
    pub(super) process: bool,
    pub(super) write: bool,
    pub(super) skip: bool,
    pub(super) retry: bool,
}

impl Hears {
    fn of(step: &[Arc<BoundListener>], job: &[Arc<BoundListener>]) -> Self {
        let has = |listeners: &[Arc<BoundListener>], role: Role| {
            listeners
                .iter()
                .flat_map(|listener| &listener.roles)
                .any(|bound| bound.registration.role() == role)
        };
        Self {
            checkpoint: has(step, Role::CheckpointListener),
            read: has(step, Role::ItemReadListener),
            process: has(step, Role::ItemProcessListener),
            write: has(step, Role::ItemWriteListener),
            skip: has(step, Role::SkipListener) || has(job, Role::SkipListener),
            retry: has(step, Role::RetryListener) || has(job, Role::RetryListener),
        }
    }

    /// Whether somebody hears of single items: then they are read and processed under observation.
    pub(super) fn single_items(self) -> bool {
        self.read || self.process || self.skip
    }
}

/// The listeners of the step, and those of its job that hear of skips and retries.
pub(crate) struct Listening<'r> {
    step: &'r mut StepListeners,
    job: &'r JobListeners,
    /// While the step runs, and afterwards.
    contexts: (&'r ContextScope, &'r ContextScope),
    pub(super) hears: Hears,
}

/// Calls a method of every listener of the step that has the role; stops at the first that fails.
macro_rules! tell {
    ($self:ident, $cast:ident, $method:ident($($argument:expr),*)) => {
        $self.step.each().try_for_each(|listener| match listener.$cast() {
            Some((bound, role)) => call(|| role.$method($($argument),*))
                .map_err(|error| Failure::thrown(bound, stringify!($method), error)),
            None => Ok(()),
        })
    };
}

impl<'r> Listening<'r> {
    /// `contexts` are those of the step, `after` those once it is over.
    pub(crate) fn new(
        (step, of_step): (&'r mut StepListeners, &[Arc<BoundListener>]),
        (job, of_job): (&'r JobListeners, &[Arc<BoundListener>]),
        (contexts, after): (&'r ContextScope, &'r ContextScope),
    ) -> Self {
        Self {
            step,
            job,
            contexts: (contexts, after),
            hears: Hears::of(of_step, of_job),
        }
    }

    /// Spec: LISTEN-CKPT-02
    pub(super) fn before_checkpoint(&mut self) -> Result<(), Failure> {
        if !self.hears.checkpoint {
            return Ok(());
        }
        tell!(self, as_checkpoint_listener, before_checkpoint())
    }

    /// Spec: LISTEN-CKPT-03, LISTEN-CKPT-04
    pub(super) fn after_checkpoint(&mut self) -> Result<(), Failure> {
        if !self.hears.checkpoint {
            return Ok(());
        }
        tell!(self, as_checkpoint_listener, after_checkpoint())
    }

    /// Spec: LISTEN-READ-02
    pub(super) fn before_read(&mut self) -> Result<(), Failure> {
        if !self.hears.read {
            return Ok(());
        }
        tell!(self, as_item_read_listener, before_read())
    }

    /// Spec: LISTEN-READ-03
    pub(super) fn after_read(&mut self, item: &dyn Any) -> Result<(), Failure> {
        if !self.hears.read {
            return Ok(());
        }
        tell!(self, as_item_read_listener, after_read(item))
    }

    /// Spec: LISTEN-READ-04
    pub(super) fn on_read_error(&mut self, error: &BatchError) -> Result<(), Failure> {
        if !self.hears.read {
            return Ok(());
        }
        tell!(self, as_item_read_listener, on_read_error(error))
    }

    /// Spec: LISTEN-PROC-02
    pub(super) fn before_process(&mut self, item: &dyn Any) -> Result<(), Failure> {
        if !self.hears.process {
            return Ok(());
        }
        tell!(self, as_item_process_listener, before_process(item))
    }

    /// Spec: LISTEN-PROC-03, LISTEN-PROC-04
    pub(super) fn after_process(&mut self, item: &dyn Any, result: Option<&dyn Any>) -> Result<(), Failure> {
        if !self.hears.process {
            return Ok(());
        }
        tell!(self, as_item_process_listener, after_process(item, result))
    }

    /// Spec: LISTEN-PROC-05
    pub(super) fn on_process_error(&mut self, error: &BatchError, item: &dyn Any) -> Result<(), Failure> {
        if !self.hears.process {
            return Ok(());
        }
        tell!(self, as_item_process_listener, on_process_error(error, item))
    }

    /// Spec: LISTEN-WRITE-02, LISTEN-WRITE-05
    pub(super) fn before_write(&mut self, items: &Items<'_>) -> Result<(), Failure> {
        if !self.hears.write {
            return Ok(());
        }
        tell!(self, as_item_write_listener, before_write(items))
    }

    /// Spec: LISTEN-WRITE-03, LISTEN-WRITE-05
    pub(super) fn after_write(&mut self, items: &Items<'_>) -> Result<(), Failure> {
        if !self.hears.write {
            return Ok(());
        }
        tell!(self, as_item_write_listener, after_write(items))
    }

    /// Spec: LISTEN-WRITE-04, LISTEN-WRITE-05
    pub(super) fn on_write_error(&mut self, error: &BatchError, items: &Items<'_>) -> Result<(), Failure> {
        if !self.hears.write {
            return Ok(());
        }
        tell!(self, as_item_write_listener, on_write_error(error, items))
    }

    /// Tells the skip listeners of the job, then those of the step. Spec: LISTEN-SKIP-05, D-53
    pub(super) fn on_skip(
        &mut self,
        method: &'static str,
        tell: &mut dyn FnMut(&mut dyn SkipListener) -> Result<(), BatchError>,
    ) -> Result<(), Failure> {
        if !self.hears.skip {
            return Ok(());
        }
        self.each(&mut |listener| match listener.as_skip_listener() {
            Some((bound, role)) => told(bound, method, call(|| tell(role))),
            None => Ok(()),
        })
    }

    /// Tells the retry listeners of the job, then those of the step: all of them, whatever one of them throws; the first
    /// error counts. Spec: LISTEN-RETRY-11, D-53
    pub(super) fn on_retry(
        &mut self,
        method: &'static str,
        tell: &mut dyn FnMut(&mut dyn RetryListener) -> Result<(), BatchError>,
    ) -> Result<(), Thrown> {
        if !self.hears.retry {
            return Ok(());
        }
        let mut first = Ok(());
        let _ = self.each(&mut |listener| {
            if let Some((bound, role)) = listener.as_retry_listener()
                && let Err(error) = call(|| tell(role))
                && first.is_ok()
            {
                let error = Arc::new(error);
                first = Err(Thrown {
                    failure: Failure::thrown(bound, method, Arc::clone(&error)),
                    error,
                });
            }
            Ok(())
        });
        first
    }

    /// Every listener that may hear of skips and retries.
    fn each(&mut self, tell: &mut dyn FnMut(&mut Listener) -> Result<(), Failure>) -> Result<(), Failure> {
        let (contexts, after) = self.contexts;
        self.job.each_within(contexts, after, &mut *tell)?;
        self.step.each().try_for_each(tell)
    }
}

/// What a retry listener threw: the skip rules ask for the error.
pub(super) struct Thrown {
    pub(super) failure: Failure,
    pub(super) error: Arc<BatchError>,
}

fn told(bound: &Bound, method: &str, result: Result<(), BatchError>) -> Result<(), Failure> {
    result.map_err(|error| Failure::thrown(bound, method, error))
}
