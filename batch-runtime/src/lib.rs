//! A batch runtime: the programming model of the JSR 352 draft, Spring Batch's job repository, and restart after a
//! `kill -9`.
//!
//! A user annotates structs; the annotations register batch artifacts at compile time; a Job XML wires them into jobs.
//! The runtime injects properties and contexts, runs chunks in transactions, and records every execution, so that a job
//! that died goes on where its last committed checkpoint left it.
//!
//! # Artifacts
//!
//! An artifact has two halves. `#[derive(BatchArtifact)]` on the struct sees the fields: properties and contexts are
//! injected, every other field is made by its `Default`. The attribute on the impl block, such as `#[item_reader]`, sees
//! the methods, whose names are free; each may return its value or a `Result` of it with any error.
//!
//! ```standalone_crate
//! use batch_runtime::prelude::*;
//!
//! /// Counts up to a limit; a restart goes on after the last number that was committed.
//! #[derive(BatchArtifact)]
//! struct Numbers {
//!     #[batch_property(name = "limit", value = "10")]
//!     limit: u64,
//!     next: u64,
//! }
//!
//! #[item_reader("Numbers")]
//! impl Numbers {
//!     #[open]
//!     fn open(&mut self, checkpoint: Option<u64>) {
//!         self.next = checkpoint.unwrap_or(0);
//!     }
//!     #[read_item]
//!     fn read(&mut self) -> Option<u64> {
//!         (self.next < self.limit).then(|| {
//!             self.next += 1;
//!             self.next
//!         })
//!     }
//!     #[get_checkpoint_info]
//!     fn checkpoint(&mut self) -> u64 {
//!         self.next
//!     }
//! }
//!
//! #[derive(BatchArtifact)]
//! struct Squares {}
//!
//! #[item_processor("Squares")]
//! impl Squares {
//!     /// `None` would filter the item.
//!     #[process_item]
//!     fn square(&mut self, number: &u64) -> Result<Option<u64>, BatchError> {
//!         Ok(Some(number.checked_mul(*number).ok_or_else(|| BatchError::msg("too large"))?))
//!     }
//! }
//!
//! #[derive(BatchArtifact)]
//! struct Print {}
//!
//! #[item_writer("Print")]
//! impl Print {
//!     #[open]
//!     fn open(&mut self, _checkpoint: Option<()>) {}
//!     #[write_items]
//!     fn write(&mut self, squares: &[u64]) {
//!         println!("{squares:?}");
//!     }
//!     #[get_checkpoint_info]
//!     fn checkpoint(&mut self) {}
//! }
//!
//! # // The job below, run by the operator of the next section.
//! # let folder = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("squares.xml"), r#"<job id="squares">
//! #   <step id="print"><chunk reader="Numbers" processor="Squares" writer="Print" commit-interval="4"/></step>
//! # </job>"#)?;
//! # let runtime = batch_runtime::BatchRuntime::builder()
//! #     .job_path(folder.path().display().to_string()).repository("sqlite://:memory:").build()?;
//! let operator = runtime.job_operator();
//! let execution = operator.launch("squares", [("limit", "9")])?;
//! let ended = operator.wait(execution)?;
//! assert_eq!(ended.status, batch_runtime::BatchStatus::Completed);
//! assert_eq!(operator.step_executions(execution)?[0].counters.writes, 9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A writer that adds a second parameter, `tx: &mut ChunkTransaction`, writes in the transaction that commits the
//! checkpoint: each item then has its effect exactly once, whatever happens. Other writers are at-least-once.
//!
//! # Artifact attributes
//!
//! An artifact attribute is on an impl block, or on a type alias: a generic impl block implements its role and registers
//! nothing, and an alias registers a concrete type, `#[item_reader("FlightReader")] type FlightReader =
//! CsvItemReader<Flight>;`. The arguments are optional: the name that Job XML uses (default: the identifier of the type or
//! alias), and `class = ".."`, the class name in a batch.xml that was written for Java.
//!
#![doc = batch_macros::__role_index!()]
//!
//! # Job XML
//!
//! ```xml
//! <job id="squares">
//!   <step id="print">
//!     <chunk reader="Numbers" processor="Squares" writer="Print" commit-interval="4"/>
//!   </step>
//! </job>
//! ```
//!
//! A `ref` (and `reader`, `processor`, `writer`) is the name in the annotation, the type's identifier where there is none,
//! or the type's full path. batch.xml may say otherwise, and a [`BatchArtifactLoader`] makes artifacts that need more than
//! properties. [`check_jobs!`] makes a test that all jobs of a crate fit its artifacts. Everything is checked before a job starts, and reported at once with file, line and column.
//! [`xml`] is the model, usable alone.
//!
//! # Operator
//!
//! [`BatchRuntime`] holds a repository and a job path; its [`JobOperator`] starts, launches, restarts, stops and waits
//! for executions and reads what the repository holds. [`JobOperator::launch`] is what a scheduler calls: the same call
//! again continues what was interrupted. The crate `batch-cli` makes a command line of it.
//!
//! # Repository
//!
//! The six tables of Spring Batch 4.3, and one that says who runs what, on SQLite (feature `sqlite`, a default one),
//! PostgreSQL (`postgres`, with the system's libpq) or MySQL and MariaDB (`mysql`, with the system's libmariadb or
//! libmysqlclient); [`BatchRuntimeBuilder::repository`] chooses by the URL. Artifacts keep data
//! of their own in the same database: writers through the [`ChunkTransaction`], others through
//! [`JobContext::connect`](context::JobContext::connect).
//!
//! # Linking
//!
//! Artifacts of another crate are found only if the program names that crate: `use my_artifacts as _;`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

// The derive names this crate as its users do; the built-in artifact uses it too.
extern crate self as batch_runtime;

mod artifact;
mod check_jobs;
mod checkpoint;
mod clock;
pub mod context;
mod dispatch;
mod engine;
mod error;
pub mod execution;
mod exit_codes;
#[cfg(batch_failpoints)]
mod failpoints;
mod ids;
mod job_path;
mod loader;
pub mod operator;
mod parameters;
pub mod partition;
mod plan;
pub mod prelude;
pub mod repository;
mod role;
mod runtime;
mod secret;
mod status;
mod system_properties;
mod time_zone;
mod transition;

#[doc(inline)]
pub use artifact::{
    BatchArtifact, BatchArtifactLoader, BatchException, Items, LoadedArtifact, PartitionPlan, artifact_loader,
};
pub use batch_xml as xml;
pub use batch_xml::Dialect;
pub use checkpoint::Externalizable;
pub use clock::{Clock, SystemClock, Timestamp, TimestampError};
pub use engine::{PartitionProgress, Progress, StepProgress};
pub use error::BatchError;
pub use ids::{JobExecutionId, JobInstanceId, StepExecutionId};
pub use job_path::JobPathReport;
pub use operator::{CallbackId, JobEndCallback, JobOperator, JobOperatorError, StartError};
pub use parameters::{JobParameter, JobParameters, ParameterError, ParameterValue};
pub use repository::{ChunkTransaction, ExecutionFilter, RepositoryConnection, RepositoryError};
#[doc(inline)]
pub use role::attributes::*;
pub use runtime::{BatchRuntime, BatchRuntimeBuilder, BuildError};
pub use secret::{SecretError, SecretReference, SecretReferenceError};
pub use status::{BatchStatus, Event, IllegalTransition};
pub use time_zone::{TimeZone, TimeZoneError};

/// What generated code names. Not for users; may change with every release.
#[doc(hidden)]
pub mod __private {
    pub use crate::artifact::*;
    pub use crate::checkpoint::*;
    pub use crate::error::BatchError;
    pub use crate::repository::ChunkTransaction;
    pub use crate::role::*;
    pub use batch_macros::__role_index as role_index;
    pub use inventory;
}
