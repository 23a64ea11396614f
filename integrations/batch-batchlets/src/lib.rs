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
//! # Exit statuses
//!
//! A batchlet that has done its work ends COMPLETED, so that `<next on="COMPLETED">` follows it. The number of files, and the status code
//! of `httpCall`, are in the exit description of the step: `3 files`, `HTTP 204`. Outcomes that properties allow have their own statuses:
//!
//! | exit status | |
//! |---|---|
//! | `TIMEOUT` | of `waitForFile` with `if.timeout` = `continue` |
//! | `STATEMENTS FAILED` | of `sqlScript` with `on.error` = `continue`, if statements have failed |
//! | the names in `exit.codes` | of `systemCommand`, for exit codes |
//! | the names in `expected.status` | of `httpCall`, for status codes; the first entry with the code wins |
//! | the exit status of the nested job | of `runJob` |
//! | `STOPPED` | of all, after a stop |
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
mod exit;
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
