//! A step in partitions: every month of the flights on a thread of its own, all of them or none.
//!
//! ```text
//! cargo run --example partitions -- launch partitions
//! ```
//!
//! Kill it while it loads and type the same again: what was loaded is deleted first, then all months are loaded anew, and
//! the report says so.

mod all_months;
mod loading;
mod minutes;
mod months;
mod report;
mod route;
mod tables;

use std::process::ExitCode;

use batch_cli::Cli;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/partitions"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        .main()
}
