//! A batch runtime for Rust. (The tour follows.)
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod artifact;
#[cfg(feature = "cli")]
pub mod cli;
mod clock;
pub mod context;
mod engine;
mod error;
pub mod execution;
mod ids;
mod job_path;
mod loader;
mod operator;
mod parameters;
pub mod prelude;
pub mod repository;
mod runtime;
#[cfg(feature = "sabotage")]
mod sabotage;
mod status;
mod system_properties;

pub use batch_macros::*;
pub use batch_xml as xml;
pub use clock::{Clock, SystemClock, Timestamp};
pub use engine::Progress;
pub use error::BatchError;
pub use ids::{JobExecutionId, JobInstanceId, StepExecutionId};
pub use operator::{CallbackId, JobEndCallback, JobOperator, JobOperatorError, StartCause};
pub use parameters::{JobParameter, JobParameters, ParameterError, ParameterValue};
pub use runtime::{BatchRuntime, BatchRuntimeBuilder};
pub use status::{BatchStatus, Event, IllegalTransition};

/// What generated code names. Not for users; may change with every release.
#[doc(hidden)]
pub mod __private {
    pub use crate::artifact::*;
    pub use crate::error::BatchError;
    pub use crate::repository::ChunkTransaction;
    pub use inventory;
}
