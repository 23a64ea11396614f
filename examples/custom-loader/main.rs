//! Artifacts that need more than properties: two of them share a client with its connection and cache. The program's own
//! loader, which batch.xml names, creates them.
//!
//! ```text
//! cargo run --example custom-loader -- launch custom-loader
//! ```

mod clients;
mod invoices;
mod rates;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use batch_cli::Cli;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/custom-loader"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        // Or place the file beside the program, as `META-INF/batch.xml`.
        .batch_xml("batch.xml", include_str!("batch.xml"))
        .main()
}
