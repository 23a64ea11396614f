//! Job end callbacks.
// Spec: OP-27 to OP-30, D-68

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::{JobOperator, JobOperatorError, Result};
use crate::execution::JobExecution;

/// A function that is called for every job execution of the runtime that ends, after its end is recorded.
pub trait JobEndCallback: Send + Sync {
    /// Handles the end of `execution`: COMPLETED, FAILED or STOPPED. Called on the job's thread.
    fn job_ended(&self, execution: &JobExecution);
}

impl<F: Fn(&JobExecution) + Send + Sync> JobEndCallback for F {
    fn job_ended(&self, execution: &JobExecution) {
        self(execution);
    }
}

/// The id of a registered callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallbackId(pub u64);

#[derive(Default)]
pub(crate) struct Callbacks {
    registered: Mutex<Registered>,
}

#[derive(Default)]
struct Registered {
    last: u64,
    callbacks: BTreeMap<u64, Arc<dyn JobEndCallback>>,
}

impl Callbacks {
    /// Calls all callbacks. A panic of one does not affect the others.
    pub(crate) fn job_ended(&self, execution: &JobExecution) {
        let callbacks: Vec<_> = self
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .callbacks
            .values()
            .cloned()
            .collect();
        for callback in callbacks {
            if catch_unwind(AssertUnwindSafe(|| callback.job_ended(execution))).is_err() {
                tracing::error!(execution = %execution.id, "a job end callback panicked");
            }
        }
    }
}

impl JobOperator {
    /// Registers a callback for the end of every job execution of this runtime.
    ///
    /// # Errors
    /// `CallbackRegistration` when all ids are used.
    // Spec: OP-27
    pub fn register_job_end_callback(&self, callback: impl JobEndCallback + 'static) -> Result<CallbackId> {
        let mut registered = self
            .shared
            .callbacks
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let id = registered
            .last
            .checked_add(1)
            .ok_or_else(|| JobOperatorError::CallbackRegistration("no id is left".into()))?;
        registered.last = id;
        registered.callbacks.insert(id, Arc::new(callback));
        Ok(CallbackId(id))
    }

    /// Removes a callback: it is not called again.
    ///
    /// # Errors
    /// `CallbackDeregistration` when there is no such callback.
    // Spec: OP-29
    pub fn deregister_job_end_callback(&self, id: CallbackId) -> Result<()> {
        let mut registered = self
            .shared
            .callbacks
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        registered
            .callbacks
            .remove(&id.0)
            .map(drop)
            .ok_or(JobOperatorError::CallbackDeregistration(id.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BatchRuntime;

    /// An id identifies one callback for the life of the runtime, also after it was deregistered.
    // Spec: OP-27, OP-31
    #[test]
    fn an_id_is_not_used_again() {
        let runtime = BatchRuntime::builder().repository("memory:").build().unwrap();
        let operator = runtime.job_operator();
        let register = || operator.register_job_end_callback(|_: &JobExecution| {});
        let first = register().unwrap();
        operator.deregister_job_end_callback(first).unwrap();
        assert_ne!(register().unwrap(), first);
        operator.shared.callbacks.registered.lock().unwrap().last = u64::MAX;
        for _ in 0..2 {
            let error = register().unwrap_err();
            assert!(
                matches!(&error, JobOperatorError::CallbackRegistration(cause) if cause == "no id is left"),
                "{error}"
            );
        }
    }
}
