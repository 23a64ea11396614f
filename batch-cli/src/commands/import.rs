//! `import`: instances from lines of JSON.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::error::CliError;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session, exit_code};

/// Imports instances that were exported or archived, one on each line of a file
#[derive(Args, Debug)]
pub(crate) struct Import {
    /// The file
    file: PathBuf,
}

impl Import {
    /// Reports a line that cannot be imported, and continues with the next.
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let operator = session.create()?;
        let text = fs::read_to_string(&self.file).map_err(CliError::file("read", &self.file))?;
        let mut succeeded = true;
        let lines = (1..).zip(text.lines());
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            match operator.import(line) {
                Ok(id) => outln!("imported as instance {id}"),
                Err(error) => {
                    succeeded = false;
                    errln!("error: {}:{number}: {error}", self.file.display());
                }
            }
        }
        Ok(exit_code(succeeded))
    }
}
