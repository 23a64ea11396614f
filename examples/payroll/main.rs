//! A Jakarta Batch job with artifacts in Rust: `payroll.xml` is a file of the final standard, and the artifacts have the names that
//! it uses.
//!
//! ```text
//! cargo run --example payroll -- launch payroll month=2026-10
//! cargo run --example payroll -- launch payroll month=2026-10 -budget=31000
//! ```
//!
//! The first launch writes the payslips, finds that the budget is too small, and stops. The second one has a larger budget: the
//! steps that are complete do not run again, the decision does.

mod hours;
mod payslips;

use std::process::ExitCode;

use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("payroll"))
        .system_property("data", data_folder())
        .main()
}

#[cfg(test)]
mod tests;
