//! The smallest complete program: a batchlet, its Job XML, the command line.
//!
//! ```text
//! cargo run --example hello -- start hello name=Ada
//! ```

use std::io::{Write, stdout};
use std::process::ExitCode;

use batch_runtime::prelude::*;

/// Prints a greeting.
#[derive(BatchArtifact)]
struct Greeter {
    #[batch_property(name = "name", value = "world")]
    name: String,
}

#[batchlet("Greeter")]
impl Greeter {
    #[process]
    fn greet(&self) -> String {
        // `println!` would panic, and fail the step, if nothing reads the output.
        let _ = writeln!(stdout(), "Hello, {}!", self.name);
        "GREETED".into()
    }

    #[cancel]
    fn cancel(&self) {}
}

fn main() -> ExitCode {
    batch_cli::Cli::new().jobs(embed_jobs!("hello")).main()
}

#[cfg(test)]
mod tests;
