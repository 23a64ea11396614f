//! Loads orders from a CSV file into a table.

mod orders;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

// Links `sqlScript`, which the job names.
use batch_batchlets as _;
use batch_cli::{Cli, embed_jobs};

fn main() -> ExitCode {
    Cli::new().jobs(embed_jobs!("jobs")).main()
}
