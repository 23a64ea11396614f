//! `purge`, `export`, `import`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;

use super::print::{err, out};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::ids::JobInstanceId;
use crate::operator::{JobOperator, Purge};

const DAY_MILLIS: i64 = 86_400_000;

pub(super) fn days_ago(days: u32) -> Timestamp {
    Timestamp(SystemClock.now().0 - i64::from(days) * DAY_MILLIS)
}

pub(super) fn purge(
    operator: &JobOperator,
    what: &Purge,
    dry_run: bool,
    archive: Option<&Path>,
) -> Result<(), String> {
    if dry_run {
        let all = operator.purgeable(what).map_err(|error| error.to_string())?;
        for instance in &all {
            out(format_args!(
                "instance {} of `{}`",
                instance.id, instance.job_name
            ));
        }
        out(format_args!("{} would be deleted", instances(all.len() as u64)));
        return Ok(());
    }
    let file = archive.map(|path| {
        open(path).map_err(|error| format!("cannot open the archive `{}`: {error}", path.display()))
    });
    let mut file = file.transpose()?;
    let archive = file.as_mut().map(|file| file as &mut dyn Write);
    let deleted = operator.purge(what, archive).map_err(|error| error.to_string())?;
    out(format_args!("{} deleted", instances(deleted)));
    Ok(())
}

fn instances(count: u64) -> String {
    match count {
        1 => "1 instance".to_owned(),
        count => format!("{count} instances"),
    }
}

/// Opens the file at its end. A line that a crash has torn stays alone.
fn open(path: &Path) -> io::Result<Archive> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    // All parameters stand in it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(Archive(file))
}

/// What is flushed is on the disk: what follows is deleted from the repository.
struct Archive(File);

impl Write for Archive {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

pub(super) fn export(operator: &JobOperator, instance: JobInstanceId) -> Result<(), String> {
    let line = operator.export(instance).map_err(|error| error.to_string())?;
    out(line.ok_or_else(|| format!("there is no job instance {instance}"))?);
    Ok(())
}

/// What is wrong, or there already, is told with its line, and passed over.
pub(super) fn import(operator: &JobOperator, file: &Path) -> Result<ExitCode, String> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    let mut code = ExitCode::SUCCESS;
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        match operator.import(line) {
            Ok(id) => out(format_args!("imported as instance {id}")),
            Err(error) => {
                code = ExitCode::FAILURE;
                err(format_args!("error: {shown}:{}: {error}", index + 1));
            }
        }
    }
    Ok(code)
}
