//! A job on real data: loads airports and 20,000 flights into a database, then reports the worst delays. The program has two types
//! and a processor; the rest is in `flights.xml`.
//!
//! ```text
//! cargo run --example flights -- launch flights
//! ```
//!
//! Kill it while it runs and run the same command again: it resumes after its last commit, and no flight is lost or doubled.

mod loading;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

// Links the batchlets that the job names.
use batch_batchlets as _;
use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("flights"))
        .system_property("data", data_folder())
        .main()
}
