//! Dirty input: skips bad rows and reports them with line and reason; retries while the ledger is busy.
//!
//! ```text
//! cargo run --example skip-retry -- launch skip-retry
//! ```
//!
//! The rejected rows are in `rejected-payments.csv`. Correct them there, and book them alone:
//!
//! ```text
//! cargo run --example skip-retry -- launch skip-retry payments.file=rejected-payments.csv rejects.file=again.csv rejects.rows=again-payments.csv
//! ```
//!
//! With `-skip.limit=2` the job fails at the third bad row; the same `launch` with a higher limit resumes after the last
//! commit.

mod booking;
mod errors;
mod payments;
mod report;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("skip-retry"))
        .system_property("data", data_folder())
        .main()
}
