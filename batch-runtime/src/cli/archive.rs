//! `purge`, `export`, `import`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::print::out;
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
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.map(Archive)
            .map_err(|error| format!("cannot open the archive `{}`: {error}", path.display()))
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

/// All lines up to one that is wrong, which is told with its number.
pub(super) fn import(operator: &JobOperator, file: &Path) -> Result<(), String> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let imported = operator.import(line);
        let id = imported.map_err(|error| format!("{shown}:{}: {error}", index + 1))?;
        out(format_args!("imported as instance {id}"));
    }
    Ok(())
}
