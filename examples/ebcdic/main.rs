//! A file format of your own: records of the mainframe, in EBCDIC, with packed decimals and without line ends.
//!
//! ```text
//! cargo run --example ebcdic -- launch bookings
//! ```
//!
//! `layout.rs` decodes a record. `format.rs` makes it a format of files, which the reader of this library reads with checkpoints, compressed
//! or not, one or many, from a disk or an object store.

mod format;
mod layout;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

// Links the batchlets that the job names.
use batch_batchlets as _;
use batch_cli::{Cli, embed_jobs};
use batch_examples::data_folder;

fn main() -> ExitCode {
    Cli::new()
        .jobs(embed_jobs!("ebcdic"))
        .system_property("data", data_folder())
        .main()
}
