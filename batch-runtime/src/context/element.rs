//! The state and methods that all contexts share: statuses and transient user data.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::checkpoint::UserDataError;
use crate::status::BatchStatus;

/// No user code runs under these locks, so a panicking artifact cannot leave the state inconsistent.
pub(super) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Statuses and transient user data of a running element.
pub(super) struct ElementState {
    pub(super) batch_status: BatchStatus,
    pub(super) exit_status: Option<String>,
    pub(super) transient: Option<Transient>,
}

pub(super) struct Transient {
    value: Arc<dyn Any + Send + Sync>,
    type_name: &'static str,
}

impl Default for ElementState {
    fn default() -> Self {
        Self {
            batch_status: BatchStatus::Starting,
            exit_status: None,
            transient: None,
        }
    }
}

impl ElementState {
    pub(super) fn set_transient<T: Send + Sync + 'static>(&mut self, value: T) {
        self.transient = Some(Transient {
            value: Arc::new(value),
            type_name: std::any::type_name::<T>(),
        });
    }

    pub(super) fn transient<T: Send + Sync + 'static>(&self) -> Result<Option<Arc<T>>, UserDataError> {
        let Some(stored) = &self.transient else {
            return Ok(None);
        };
        Arc::clone(&stored.value)
            .downcast()
            .map(Some)
            .map_err(|_| UserDataError::new::<T>(stored.type_name))
    }
}

macro_rules! element_methods {
    ($element:literal) => {
        #[doc = concat!("Returns the ", $element, "'s current batch status.")]
        pub fn batch_status(&self) -> BatchStatus {
            lock(&self.0.element).batch_status
        }

        /// Returns the value of `set_exit_status`, without the default.
        pub fn exit_status(&self) -> Option<String> {
            let _ = context_gate::wait();
            lock(&self.0.element).exit_status.clone()
        }

        #[doc = concat!("Sets the exit status that the ", $element, " ends with; the last call wins.")]
        /// `None` restores the default, the batch status.
        pub fn set_exit_status(&self, status: Option<&str>) {
            if context_gate::wait() {
                lock(&self.0.element).exit_status = status.map(str::to_owned);
            }
        }

        #[doc = concat!("Returns the value stored by `set_transient_user_data`, kept until the ", $element, " ends.")]
        ///
        /// # Errors
        /// When a value of another type is stored.
        pub fn transient_user_data<T: Send + Sync + 'static>(&self) -> Result<Option<Arc<T>>, UserDataError> {
            let _ = context_gate::wait();
            lock(&self.0.element).transient()
        }

        /// Stores a user's value for the other artifacts of the same context. Not persisted.
        pub fn set_transient_user_data<T: Send + Sync + 'static>(&self, value: T) {
            if context_gate::wait() {
                lock(&self.0.element).set_transient(value);
            }
        }
    };
}

/// A context that shows a stop request as STOPPING.
pub(crate) trait ShowsStop: Send {
    fn show_stop(&self);
}

macro_rules! shows_stop {
    ($context:ident) => {
        impl ShowsStop for $context {
            fn show_stop(&self) {
                let status = &mut lock(&self.0.element).batch_status;
                if let Some(stopping) = status.after_stop_request() {
                    *status = stopping;
                }
            }
        }

        impl $context {
            pub(crate) fn set_batch_status(&self, status: BatchStatus) {
                lock(&self.0.element).batch_status = status;
            }
        }
    };
}

macro_rules! ended {
    ($context:ident) => {
        impl $context {
            /// Sets the final statuses, for a decider.
            pub(crate) fn ended(self, status: BatchStatus, exit_status: &str) -> Self {
                self.set_batch_status(status);
                self.set_exit_status(Some(exit_status));
                self
            }
        }
    };
}

pub(super) use {element_methods, ended, shows_stop};
