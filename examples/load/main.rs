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

use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;
// Links the artifacts that the job names.
use {batch_batchlets as _, batch_items as _};

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("load"))
        .system_property("data", data_folder())
        .main()
}
