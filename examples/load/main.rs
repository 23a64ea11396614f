//! A job of Job XML alone: it copies a CSV file into a table. There is no Rust type for its rows.
//!
//! ```text
//! cargo run --example load -- launch load
//! cargo run --example load -- launch load file=my-flights.csv
//! ```
//!
//! Kill it while it runs and run the same command again: it resumes after its last commit, and no row is lost or doubled.

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use batch_cli::Cli;
// Links the readers and writers that the job names.
use batch_items as _;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/load"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        .main()
}
