//! `purge`: deletes instances that are over.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use batch_runtime::operator::Purge as Selection;
use batch_runtime::{
    Timestamp,
    time::{Clock, SystemClock},
};
use clap::{ArgGroup, Args};

use super::count;
use crate::error::CliError;
use crate::print::{errln, outln};
use crate::session::{Outcome, Session};

const DAY_MILLIS: i64 = 86_400_000;

/// Deletes instances that cannot be resumed: those that are COMPLETED or ABANDONED
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("which").required(true).multiple(true).args(["before", "older_than", "keep"]))]
pub(crate) struct Purge {
    /// Only instances of this job
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only instances that ended before this time, such as 2026-11-20
    #[arg(long, value_name = "TIME", conflicts_with = "older_than")]
    before: Option<Timestamp>,
    /// Only instances that ended more than this number of days ago
    #[arg(long, value_name = "DAYS", value_parser = count)]
    older_than: Option<u32>,
    /// Keeps this number of instances of each job, the newest
    #[arg(long, value_name = "COUNT", value_parser = count)]
    keep: Option<u32>,
    /// Also instances that failed or were stopped, which could be resumed
    #[arg(long)]
    force: bool,
    /// Only lists the instances
    #[arg(long)]
    dry_run: bool,
    /// Appends each instance to a file before it is deleted, as a line of JSON
    #[arg(long, value_name = "FILE")]
    archive: Option<PathBuf>,
}

impl Purge {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        session.name_databases()?;
        let operator = session.open()?;
        let selection = Selection {
            job: self.job,
            before: self.before.or(self.older_than.map(days_ago)),
            keep: self.keep.unwrap_or(0),
            force: self.force,
        };
        if self.dry_run {
            let all = operator.purgeable(&selection)?;
            for instance in &all {
                outln!("instance {} of `{}`", instance.id, instance.job_name);
            }
            outln!("{} would be deleted", instances(all.len() as u64));
            return Ok(ExitCode::SUCCESS);
        }
        let mut archive = self.archive.as_deref().map(Archive::open).transpose()?;
        let archive = archive.as_mut().map(|archive| archive as &mut dyn Write);
        let deleted = operator.purge(&selection, archive)?;
        outln!("{} deleted", instances(deleted));
        Ok(ExitCode::SUCCESS)
    }
}

fn days_ago(days: u32) -> Timestamp {
    Timestamp(SystemClock.now().0 - i64::from(days) * DAY_MILLIS)
}

fn instances(count: u64) -> String {
    format!("{count} instance{}", if count == 1 { "" } else { "s" })
}

/// A file whose `flush` reaches the disk, because the instances are deleted after it. Locked, because another purge may append to
/// it, until the process ends.
struct Archive(File);

impl Archive {
    fn open(path: &Path) -> Result<Self, CliError> {
        Self::open_at_end(path).map_err(CliError::file("open the archive", path))
    }

    fn open_at_end(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // It holds all parameters, which may be confidential.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        if file.metadata()?.is_file() {
            lock(&file, path)?;
            remove_torn_line(&mut file)?;
        }
        Ok(Self(file))
    }
}

/// Locks the archive, and reports a wait for another process.
fn lock(file: &File, path: &Path) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            errln!("waiting for another purge that writes to `{}`", path.display());
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a last line that a crash has cut: its instance was not deleted. The file may be another one by mistake, so only the
/// start of an exported instance is removed.
fn remove_torn_line(file: &mut File) -> io::Result<()> {
    const BLOCK: u64 = 64 * 1024;
    let length = file.seek(SeekFrom::End(0))?;
    // Backwards to the last line break, because a line may be long.
    let mut start = length;
    let begin = loop {
        let block_start = start.saturating_sub(BLOCK);
        let mut block = vec![0; usize::try_from(start - block_start).unwrap_or_default()];
        file.seek(SeekFrom::Start(block_start))?;
        file.read_exact(&mut block)?;
        if let Some(position) = block.iter().rposition(|byte| *byte == b'\n') {
            break block_start + position as u64 + 1;
        }
        if block_start == 0 {
            break 0;
        }
        start = block_start;
    };
    if begin == length {
        return Ok(());
    }
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(begin))?;
    file.read_to_end(&mut line)?;
    let is_started = line.starts_with(LINE_START) || LINE_START.starts_with(&line);
    let is_complete = serde_json::from_slice::<serde_json::Value>(&line).is_ok();
    match is_started && !is_complete {
        true => file.set_len(begin),
        false => file.write_all(b"\n"),
    }
}

/// The start of an exported instance.
const LINE_START: &[u8] = br#"{"format":"batch-instance/"#;

impl Write for Archive {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}
