//! Loads orders from a CSV file into a table.

mod orders;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

fn main() -> ExitCode {
    batch_cli::Cli::new().job_path("jobs").main()
}
