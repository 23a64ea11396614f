//! The job operator: start, launch, restart, stop and wait for executions, and look at what the repository holds.
//!
//! Spec: OP-01 to OP-36

mod archive;
mod callback;
mod definitions;
mod error;
mod launch;
mod query;
mod recover;
mod stop;

use std::sync::Arc;

pub use archive::Purge;
pub(crate) use callback::Callbacks;
pub use callback::{CallbackId, JobEndCallback};
pub(crate) use definitions::Definitions;
pub use error::{JobOperatorError, StartCause};
pub use recover::{Recovered, Recovery};

use crate::runtime::Inner;

/// Operates the jobs of one runtime. Cheap to clone, usable from several threads at once.
///
/// Spec: OP-01, DOM-20
#[derive(Clone)]
pub struct JobOperator {
    pub(crate) inner: Arc<Inner>,
}

type Result<T> = std::result::Result<T, JobOperatorError>;

impl JobOperator {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}
