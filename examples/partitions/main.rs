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

use batch_cli::Cli;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/partitions"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        .main()
}
