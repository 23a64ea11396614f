//! Transitions: a decision, a split of two flows, and a stop until approval.
//!
//! ```text
//! cargo run --example flow -- launch flow day=2026-11-20
//! cargo run --example flow -- launch flow day=2026-11-20 -approved.by=Ada
//! ```
//!
//! The first launch stops at the approval, because the orders of the day are worth more than `approval.limit`. The second
//! resumes the same instance: `-approved.by` does not identify it.

mod approval;
mod orders;
mod papers;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("flow"))
        .system_property("data", data_folder())
        .main()
}
