//! `completions`: scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::print::out;
use crate::session::{Outcome, Session};

/// Prints a script that completes commands, for a shell
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let mut script = Vec::new();
        let mut arguments = session.arguments();
        let program = arguments.get_display_name().unwrap_or_default().to_owned();
        clap_complete::generate(self.shell, &mut arguments, program, &mut script);
        out(String::from_utf8_lossy(&script).trim_end());
        Ok(ExitCode::SUCCESS)
    }
}
