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

use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("custom-loader"))
        .system_property("data", data_folder())
        // Or place the file beside the program, as `META-INF/batch.xml`.
        .configure(|runtime| runtime.batch_xml("batch.xml", include_str!("batch.xml")))
        .main()
}
