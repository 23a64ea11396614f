//! A test kit for batch jobs of `batch-runtime`.
//!
//! A [`JobTest`] runs a job, or one of its steps, as it is, on its own database. The [`JobRun`] that it returns is checked by
//! assertions that print the execution if they fail.
//!
//! ```standalone_crate
//! use batch_runtime::prelude::*;
//! use batch_testing::{JobTest, WrittenItems};
//!
//! #[derive(BatchArtifact)]
//! struct Doubled;
//!
//! #[item_processor("Doubled")]
//! impl Doubled {
//!     #[process_item]
//!     fn process(&mut self, number: &u64) -> Option<u64> {
//!         (!number.is_multiple_of(3)).then(|| number * 2)
//!     }
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let job = folder.path().join("double.xml");
//! # std::fs::write(&job, r#"<job id="double"><step id="copy">
//! #   <chunk reader="Numbers" processor="Doubled" writer="Table" commit-interval="2"/></step></job>"#)?;
//! let written = WrittenItems::<u64>::new();
//! let run = JobTest::new(job)
//!     .reader("Numbers", [1_u64, 2, 3, 4])
//!     .writer("Table", &written)
//!     .launch();
//! run.assert_completed();
//! run.step("copy").assert_reads(4).assert_filters(1).assert_writes(3);
//! assert_eq!(written.items(), [2, 4, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of jobs under test, as of `batch-runtime` |
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod artifact_test;
mod clock;
mod database;
mod doubles;
mod faults;
mod fixtures;
mod job_run;
mod job_test;
mod names;
mod sweep;

pub use artifact_test::{ArtifactFailure, ArtifactTest, reader_is_restartable};
pub use clock::TestClock;
pub use database::TestDatabase;
pub use doubles::{SkippedItems, WrittenItems};
pub use faults::{FailsAt, SimulatedFailure, always_fails_at, fails_at};
pub use fixtures::{ExecutionFixture, InstanceFixture};
pub use job_run::{JobRun, StepRun};
pub use job_test::JobTest;
pub use sweep::{CrashSweep, crash_sweep};
