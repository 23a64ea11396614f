//! From step to step: a decision, two flows at the same time, and a stop until somebody has approved.
//!
//! ```text
//! cargo run --example flow -- launch flow day=2026-11-20
//! cargo run --example flow -- launch flow day=2026-11-20 -approved.by=Ada
//! ```
//!
//! The first launch stops at the approval, since the orders of the day are worth more than `approval.limit`. The second goes
//! on from there: `-approved.by` is no part of the instance's identity, so it is the same instance.

mod approval;
mod orders;
mod papers;

use std::process::ExitCode;

use batch_cli::Cli;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/flow"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        .main()
}
