//! Batchlets for the steps around the work on items. They are registered under the names below, once the program names
//! this crate: `use batch_batchlets as _;`.
//!
//! | name in Job XML | the step |
//! |---|---|
//! | `systemCommand` | [runs a program](SystemCommand) |
//! | `sqlScript` | [executes SQL](SqlScript) on the repository's database |
//! | `copyFiles` | [copies files](CopyFiles) |
//! | `moveFiles` | [moves files](MoveFiles) |
//! | `deleteFiles` | [deletes files](DeleteFiles) |
//! | `compressFiles` | [compresses files](CompressFiles) |
//! | `checksumFiles` | [writes or verifies checksums](ChecksumFiles) |
//! | `waitForFile` | [waits for files](WaitForFile) |
//! | `runJob` | [runs another job](RunJob) |
//! | `httpCall` | calls a service by HTTP (`HttpCall`); needs the feature `http` |
//!
//! Durations in their properties are `500ms`, `90s`, `10m`, `2h`, `1d`, or a number of seconds.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of `sqlScript`, as of `batch-runtime` |
//! | `zstd` | compression of files by zstd |
//! | `http` | the batchlet `httpCall` |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cancel;
mod command;
mod files;
#[cfg(feature = "http")]
mod http;
mod job;
mod publish;
mod sql;
mod wait;

pub use command::SystemCommand;
pub use files::{ChecksumFiles, CompressFiles, CopyFiles, DeleteFiles, MoveFiles};
#[cfg(feature = "http")]
pub use http::HttpCall;
pub use job::RunJob;
pub use sql::SqlScript;
pub use wait::WaitForFile;
