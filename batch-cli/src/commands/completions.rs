//! `completions`: scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::options;
use crate::print::out;
use crate::session::{Outcome, Session};

/// Prints a script that completes commands, for a shell
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, _: &Session) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut options::command(),
            options::program(),
            &mut script,
        );
        out(String::from_utf8_lossy(&script).trim_end());
        Ok(ExitCode::SUCCESS)
    }
}
