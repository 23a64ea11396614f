//! Files that appear under their name only when they are complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use batch_runtime::JobInstanceId;

use batch_items::file::{FileId, prove};

/// Writes a file under a temporary name in the same directory, and renames it when `write` has succeeded. A file of
/// that name is replaced. Creates the directory.
///
/// A temporary file that a killed process left behind is removed when the same job instance writes that file again.
///
/// # Errors
/// The errors of `write` and of the file system. The temporary file is removed.
pub(crate) fn publish<T>(
    target: &Path,
    instance: JobInstanceId,
    write: impl FnOnce(&mut File) -> io::Result<T>,
) -> io::Result<T> {
    let directory = directory_of(target);
    fs::create_dir_all(directory)?;
    let temporary = Temporary(temporary_name(target, instance)?);
    remove_if_exists(&temporary.0)?;
    // It must be new: following a link would write somewhere else.
    let mut file = File::create_new(&temporary.0)?;
    let result = write(&mut file)?;
    file.sync_all()?;
    let written = file.metadata()?;
    prove(&temporary.0, FileId::of(&written), written.len())?;
    drop(file);
    fs::rename(&temporary.0, target)?;
    sync_directory(directory)?;
    Ok(result)
}

/// A temporary file, removed if it was not renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = remove_if_exists(&self.0);
    }
}

/// Returns the directory of a file.
pub(crate) fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns a hidden name, which no pattern matches. Other instances use other names, so that they do not write the same file.
fn temporary_name(target: &Path, instance: JobInstanceId) -> io::Result<PathBuf> {
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path does not end with a name"))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{instance}.part"));
    Ok(target.with_file_name(temporary))
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes renames in a directory survive a loss of power.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new/a.txt");
        let directory = target.parent().unwrap();
        publish(&target, JobInstanceId(7), |file| {
            file.write_all(b"whole")?;
            assert_eq!(names(directory), [".a.txt.7.part"]);
            Ok(())
        })
        .unwrap();
        assert_eq!(names(directory), ["a.txt"]);
        assert_eq!(fs::read(&target).unwrap(), b"whole");
    }

    #[test]
    fn a_failure_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.txt");
        fs::write(&target, "old").unwrap();
        let result: io::Result<()> = publish(&target, JobInstanceId(7), |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no"))
        });
        assert!(result.is_err());
        assert_eq!(names(folder.path()), ["a.txt"]);
        assert_eq!(fs::read(&target).unwrap(), b"old");
    }

    #[test]
    fn a_file_of_a_killed_process_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.txt");
        fs::write(folder.path().join(".a.txt.7.part"), "of the killed process").unwrap();
        publish(&target, JobInstanceId(7), |file| file.write_all(b"new")).unwrap();
        assert_eq!(names(folder.path()), ["a.txt"]);
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }
}
