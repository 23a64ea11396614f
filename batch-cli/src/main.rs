//! The command line without jobs: starts a crate with `new`, and inspects and maintains a repository.

use std::process::ExitCode;

fn main() -> ExitCode {
    batch_cli::main()
}
