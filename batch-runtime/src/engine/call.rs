//! Calls of artifacts. A panic becomes an error of the call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::error::BatchError;
use crate::repository::RepositoryError;
use crate::secret::Secrets;

/// The failure of a step or job.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The text of EXIT_MESSAGE: the cause first, then its place.
    // Spec: STATUS-27
    pub(crate) message: String,
    /// The exception, if an artifact threw one.
    pub(crate) exception: Option<Arc<BatchError>>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exception: None,
        }
    }

    /// Adds a remark.
    pub(crate) fn because(mut self, remark: impl std::fmt::Display) -> Self {
        self.message = format!("{}\n{remark}", self.message);
        self
    }

    /// Adds the number of the failed item, from 1, and the step or partition that counts it.
    pub(crate) fn at_item(self, number: u64, step: &str) -> Self {
        self.because(format_args!("at item {number} of `{step}`"))
    }

    /// Creates the failure for a panic of code that belongs to no method of an artifact, such as the `Drop` of an item or error.
    pub(crate) fn panicked_outside(step: &str, secrets: &Secrets, panic: BatchError) -> Self {
        let message = format!(
            "{}\noutside of the artifacts' methods in step `{step}`, for example in the `Drop` of an item",
            secrets.hidden(panic.chain())
        );
        Self {
            message,
            exception: Some(Arc::new(panic)),
        }
    }
}

/// Calls an artifact, and turns a panic into an error.
// Spec: CHUNK-EXC-03
pub(crate) fn call<T>(artifact: impl FnOnce() -> Result<T, BatchError>) -> Result<T, BatchError> {
    catch_unwind(AssertUnwindSafe(artifact)).unwrap_or_else(|payload| Err(BatchError::from_panic(payload)))
}

/// Drops an artifact that is no longer needed. A panic of its `Drop` must not end the job.
// Spec: CHUNK-EXC-03
pub(crate) fn discard<T>(artifact: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(artifact))) {
        tracing::error!(
            error = BatchError::from_panic(panic).chain(),
            "the destructor of an artifact panicked"
        );
    }
}

/// The reason why the body of a step ended early.
#[derive(Debug)]
pub(crate) enum Interrupt {
    /// The step fails; the failure is recorded.
    Failed(Failure),
    /// Another runtime has taken over, so nothing may be recorded.
    Fenced(RepositoryError),
}

impl From<Failure> for Interrupt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<RepositoryError> for Interrupt {
    fn from(error: RepositoryError) -> Self {
        match error {
            RepositoryError::Fenced { .. } => Self::Fenced(error),
            other => Self::Failed(Failure::of_repository(other)),
        }
    }
}

impl Failure {
    /// Creates the failure for an error of the repository that does not keep this runtime from recording it.
    pub(crate) fn of_repository(error: RepositoryError) -> Self {
        Self {
            message: error.to_string(),
            exception: Some(Arc::new(error.into())),
        }
    }
}
