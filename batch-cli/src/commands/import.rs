//! `import`: instances from lines of JSON.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use batch_runtime::operator::Imported;
use clap::Args;

use crate::error::CliError;
use crate::parameters::MARK;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session, exit_code};

/// The longest line, in bytes: an instance with contexts of many megabytes.
const MAX_LINE: u64 = 256 * 1024 * 1024;

/// Imports instances that were exported or archived, one on each line of a file
#[derive(Args, Debug)]
pub(crate) struct Import {
    /// The file
    file: PathBuf,
}

impl Import {
    /// Reports a line that cannot be imported, and continues with the next.
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let mut lines = open(&self.file).map_err(CliError::file("read", &self.file))?;
        // A file without an instance creates no repository: one in memory tries the lines until the first that is valid.
        let mut is_trial = !session.exists()?;
        let mut operator = match is_trial {
            true => session.in_memory()?,
            false => session.create()?,
        };
        let (mut succeeded, mut instances) = (true, 0);
        for number in 1.. {
            let line = next_line(&mut lines).map_err(CliError::file("read", &self.file))?;
            let Some(line) = line else { break };
            let line = line.trim_start_matches(MARK).trim();
            if line.is_empty() {
                continue;
            }
            instances += 1;
            let mut imported = operator.import(line);
            if is_trial && imported.is_ok() {
                is_trial = false;
                operator = session.create()?;
                imported = operator.import(line);
            }
            match imported {
                Ok(Imported::New(id)) => outln!("imported as instance {id}"),
                Ok(unchanged) => outln!("unchanged in the repository: instance {}", unchanged.id()),
                Err(error) => {
                    succeeded = false;
                    errln!("error: {}:{number}: {error}", self.file.display());
                }
            }
        }
        if instances == 0 {
            errln!("error: {} has no instance", self.file.display());
        }
        Ok(exit_code(succeeded && instances > 0))
    }
}

/// Opens a file that ends: devices such as /dev/zero do not.
fn open(path: &Path) -> io::Result<BufReader<File>> {
    let kind = path.metadata()?.file_type();
    #[cfg(unix)]
    let is_pipe = std::os::unix::fs::FileTypeExt::is_fifo(&kind);
    #[cfg(not(unix))]
    let is_pipe = false;
    if !kind.is_file() && !is_pipe {
        return Err(io::Error::other("it is neither a regular file nor a pipe"));
    }
    Ok(BufReader::new(File::open(path)?))
}

/// Reads a line of limited length; `None` at the end of the file.
fn next_line(lines: &mut BufReader<File>) -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = lines.by_ref().take(MAX_LINE).read_line(&mut line)?;
    if length as u64 == MAX_LINE && !line.ends_with('\n') {
        return Err(io::Error::other(format!("a line has more than {MAX_LINE} bytes")));
    }
    Ok((length > 0).then_some(line))
}
