//! Dirty input: skips bad rows and writes them to a file with line and reason; retries while the ledger is busy.
//!
//! ```text
//! cargo run --example skip-retry -- launch skip-retry
//! ```
//!
//! With `-skip.limit=2` the job fails at the third bad row; the same `launch` with a higher limit resumes after the last
//! commit.

mod booking;
mod errors;
mod reading;
mod rejects;
mod report;

use std::process::ExitCode;

use batch_cli::Cli;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/skip-retry"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        .main()
}
