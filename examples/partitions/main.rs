//! A partitioned step: loads every month of the flights on its own thread, all of them or none.
//!
//! ```text
//! cargo run --example partitions -- launch partitions
//! ```
//!
//! Kill it while it loads and run the same command again: it deletes the loaded rows, loads all months again, and reports
//! both.

mod all_months;
mod loading;
mod minutes;
mod months;
mod reading;
mod report;
mod route;
mod tables;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("partitions"))
        .system_property("data", data_folder())
        .main()
}
