//! Lineage of batch jobs: [OpenLineage](https://openlineage.io) run events of jobs and steps, with the datasets that steps read and write.
//!
//! [`OpenLineage::from_env`] reads the standard `OPENLINEAGE_*` variables. It is an observer of a runtime:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use batch_lineage::OpenLineage;
//! use batch_runtime::BatchRuntime;
//!
//! let lineage = OpenLineage::from_env();
//! let runtime = BatchRuntime::builder().observer(lineage.clone()).build()?;
//! let operator = runtime.job_operator();
//! let execution = operator.start("flights", ())?;
//! operator.wait(execution)?;
//! operator.flush_observers();
//! lineage.shutdown(Duration::from_secs(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Programs with `batch-cli` have it with its feature `lineage`.
//!
//! # Events
//!
//! | event | of a job execution | of a step execution |
//! |---|---|---|
//! | `START` | it starts to run | it starts to run |
//! | `RUNNING` | - | the first commit with known datasets, then at most one in 30 seconds |
//! | `COMPLETE` | COMPLETED | COMPLETED |
//! | `FAIL` | FAILED, or lost by the process | FAILED, or lost by the process |
//! | `ABORT` | STOPPED, or abandoned after its process died | as the job |
//!
//! The process that closes an execution whose process has died sends its end. The parent of a nested job's run is the run of the step that
//! runs it.
//!
//! The job of OpenLineage is named as the job, or `JOB.STEP`. Partitions belong to the run of their step, also those in worker processes.
//! Facets: `parent`, `processing_engine`, `errorMessage` of a failure; `jobType`; `schema` of datasets whose fields are known; at the end
//! `inputStatistics` and `outputStatistics`.
//!
//! # Failures of the server
//!
//! Nothing here delays a job or changes its result. Events wait in a bounded queue for the thread that sends them; events
//! that do not fit are lost. A request is repeated up to three times; a server that cannot be reached is one warning
//! until it responds again.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories, as of `batch-runtime` |
//! | `bundled-postgres`, `bundled-mysql` | the same, with the client library compiled in |
// Spec: LIN-01 to LIN-11
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod config;
mod event;
mod ids;
mod lineage;
mod parent;
mod runs;
mod sender;
mod steps;
mod transport;

pub use self::lineage::OpenLineage;
