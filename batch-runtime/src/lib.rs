//! A batch runtime: the programming model of the JSR 352 draft, Spring Batch's job repository, and restart after a
//! `kill -9`.
//!
//! You annotate structs; the annotations register batch artifacts at compile time; a Job XML wires them into jobs. The
//! runtime injects properties and contexts, runs chunks in transactions, and records every execution, so that a job that
//! died resumes from its last committed checkpoint.
//!
//! # Artifacts
//!
//! An artifact has two halves. `#[derive(BatchArtifact)]` on the struct handles the fields: it injects properties and
//! contexts, and creates every other field by `Default`. The attribute on the impl block, such as `#[item_reader]`, handles
//! the methods, which may have any name; each returns its value, or a `Result` of it with any error.
//!
//! ```standalone_crate
//! use batch_runtime::prelude::*;
//!
//! /// Counts up to a limit; a restart resumes after the last committed number.
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
//!     /// Squares an item; `None` would filter it.
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
//! A writer with a second parameter, `tx: &mut ChunkTransaction`, writes in the transaction that commits the checkpoint, so
//! each item takes effect exactly once. Other writers are at-least-once.
//!
//! # Artifact attributes
//!
//! An artifact attribute annotates an impl block or a type alias. On a generic impl block it implements the role without
//! registering it; an alias then registers a concrete type, `#[item_reader("FlightReader")] type FlightReader =
//! CsvItemReader<Flight>;`. The arguments are optional: the name that Job XML uses (default: the identifier of the type or
//! alias), and `class = ".."`, the class name in a batch.xml that was written for Java.
//!
//! A role with one required method, except a reader, can be a function without `self`. Its parameters with `#[batch_property]`,
//! `#[batch_context]` or `#[batch_artifact]` are injected, by value (cloned for each call) or by reference; the others are the method's
//! parameters:
//!
//! ```
//! use batch_runtime::prelude::*;
//!
//! #[decider("Quality")]
//! fn quality(#[batch_property(value = "20")] most: i64, #[batch_context] step: &StepContext) -> &'static str {
//!     if step.counters().skips() > most { "BAD" } else { "GOOD" }
//! }
//! ```
//!
#![cfg_attr(docsrs, feature(doc_cfg))]
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
//! or the type's full path. batch.xml can map it to another type, and a [`BatchArtifactLoader`] creates artifacts that need
//! more than properties. Everything is checked before a job starts, and reported at once with file, line and column;
//! [`check_jobs!`] does the same in a test. [`xml`] is the model, usable alone.
//!
//! # Operator
//!
//! [`BatchRuntime`] holds a repository and a job path; its [`JobOperator`] starts, launches, restarts, stops and waits
//! for executions, and reads the repository. Schedulers call [`JobOperator::launch`], which resumes an interrupted instance.
//! The crate `batch-cli` is a command line for it.
//!
//! # Repository
//!
//! The tables of Spring Batch 4.3, 5 or 6, and those that the runtime adds, on SQLite (feature `sqlite`, enabled by default),
//! PostgreSQL (`postgres`, with the system's libpq) or MySQL and MariaDB (`mysql`, with the system's libmariadb or
//! libmysqlclient); [`BatchRuntimeBuilder::repository`] chooses by the URL. Artifacts can
//! keep their data in the same database: writers through the [`ChunkTransaction`], others through
//! [`JobContext::connect`](context::JobContext::connect).
//!
//! # Modules
//!
//! The root holds what most programs name. [`attributes`] lists the attributes, [`artifacts`](mod@artifacts) what artifacts take and return. [`context`] has the contexts of a running job, [`operator`] what the job operator
//! takes and returns, [`mod@destination`] what writes exactly once beside the repository, [`execution`] the recorded executions, [`parameters`] and [`time`] their values, [`repository`] the
//! databases, [`partition`] the seam for partitions in other processes, [`xml`] the model of Job XML.
//!
//! # Linking
//!
//! Artifacts of another crate are linked only if the program names that crate: `use my_artifacts as _;`.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories; PostgreSQL and MySQL by the client library of the system (`libpq-dev`, `libmariadb-dev`) |
//! | `bundled-postgres`, `bundled-mysql` | the same, with the client library compiled in; `bundled-postgres` needs OpenSSL, `bundled-mysql` cmake |
//! | `anyhow`, `eyre` | exception classes of errors in reports of these crates |
//! | `tokio` | `async` methods of artifacts, and asynchronous calls of the operator |
#![cfg_attr(test, allow(clippy::unwrap_used))]

// The derive names this crate as its users do; the built-in artifact uses it too.
extern crate self as batch_runtime;

mod activity;
mod aliases;
mod artifact;
#[cfg(feature = "tokio")]
mod async_operator;
mod async_runtime;
mod back_off;
mod build_error;
mod check_jobs;
mod checkpoint;
mod clock;
mod connection_string;
pub mod context;
mod context_gate;
mod deadline;
mod dispatch;
mod embed_jobs;
mod engine;
mod entries;
mod error;
pub mod execution;
mod execution_json;
mod exit_codes;
#[cfg(debug_assertions)]
mod failpoints;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod ids;
mod job_data;
mod job_path;
mod keeper;
mod layout;
mod loader;
mod marker;
mod named_database;
pub mod notify;
pub mod observer;
pub mod operator;
mod outage;
mod output_path;
pub mod parameters;
pub mod partition;
mod plan;
mod polling;
pub mod prelude;
mod random;
pub mod repository;
mod role;
mod runtime;
mod secret;
mod status;
mod sync;
mod system_properties;
mod thread;
pub mod time;
mod time_zone;
mod transition;
pub mod url;
pub mod worker;

/// The attributes of artifacts and of their methods, also in the crate root.
pub mod attributes {
    #[doc(inline)]
    pub use crate::role::attributes::*;
}

/// The types that artifacts take and return besides items, and artifact loaders; also in the crate root.
pub mod artifacts {
    pub use crate::artifact::{
        BatchArtifactLoader, BatchException, ChunkItems, FailedItem, LoadedArtifact, PartitionPlan,
        artifact_loader,
    };
    pub use crate::checkpoint::Externalizable;
    pub use crate::error::ConnectionLost;
    pub use crate::output_path::OutputPath;
}

/// Registers a [`DestinationClient`](crate::destination::DestinationClient) by its function.
#[doc(hidden)]
#[macro_export]
macro_rules! destination_client {
    ($forget:expr) => {
        $crate::__private::inventory::submit! { $crate::destination::DestinationClient { forget: $forget } }
    };
}

/// Databases beside the job repository that writers write to exactly once.
pub mod destination {
    #[cfg(feature = "tokio")]
    pub use crate::async_runtime::block_on;
    pub use crate::connection_string::ConnectionString;
    pub use crate::marker::{
        Advance, AnyDestination, ConnectError, Destination, DestinationClient, DestinationReturn, GuardSql,
        Marker, MarkerRow, Markers, SavepointWords, SessionSql, SqlDestination, SqlDialect, SqlValue,
        TransactionEnd, forget_markers,
    };
    pub use crate::named_database::DatabaseName;
    pub use crate::repository::DatabaseDestination;
}

#[doc(inline)]
pub use artifact::BatchArtifact;
pub use batch_xml as xml;
pub use build_error::BuildError;
#[doc(inline)]
pub use embed_jobs::embed_jobs;
pub use error::{BatchError, ConfigurationError};
#[doc(inline)]
pub use operator::JobOperator;
#[doc(inline)]
pub use parameters::JobParameters;
#[doc(inline)]
pub use repository::ChunkTransaction;
pub use runtime::{BatchRuntime, BatchRuntimeBuilder};
pub use status::BatchStatus;

// Documented in their modules, so that the first page shows what most programs name.
#[doc(hidden)]
pub use {
    artifacts::*,
    attributes::*,
    batch_xml::Dialect,
    execution::{JobExecutionId, JobInstanceId, JobName, LaunchId, StepExecutionId},
    operator::JobOperatorError,
    parameters::ParameterValue,
    repository::RepositoryConnection,
    time::Timestamp,
};

/// Items that generated code names. Not for users; may change with every release.
#[doc(hidden)]
pub mod __private {
    pub use crate::artifact::*;
    #[cfg(feature = "tokio")]
    pub use crate::async_runtime::block_on;
    pub use crate::checkpoint::*;
    pub use crate::error::BatchError;
    pub use crate::execution::StepExecution;
    pub use crate::marker::{AnyDestination, DestinationReturn};
    pub use crate::repository::ChunkTransaction;
    pub use crate::role::*;
    pub use crate::status::BatchStatus;
    pub use batch_macros::__role_index as role_index;
    pub use inventory;
}
