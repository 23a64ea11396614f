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

use batch_cli::Cli;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/flow"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        .main()
}
