//! Artifacts that need what no property can say: two of them share a client with its connection and cache. A loader of the
//! program's own makes them; batch.xml names it.
//!
//! ```text
//! cargo run --example custom-loader -- launch custom-loader
//! ```

mod clients;
mod invoices;
mod rates;

use std::process::ExitCode;

use batch_cli::Cli;

fn main() -> ExitCode {
    Cli::new()
        .job_path(concat!(env!("CARGO_MANIFEST_DIR"), "/custom-loader"))
        .system_property("data", concat!(env!("CARGO_MANIFEST_DIR"), "/data"))
        // It may also lie beside the program, as `META-INF/batch.xml`.
        .batch_xml("batch.xml", include_str!("batch.xml"))
        .main()
}
