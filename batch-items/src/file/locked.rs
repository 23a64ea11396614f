//! A file that only one writer can have open.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use super::identity::{FileId, check_regular, prove};

/// A file that is locked until it is dropped, or until the process ends.
pub(crate) struct LockedFile {
    file: File,
    path: PathBuf,
    id: FileId,
}

/// An error of opening or locking a file.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process, or another writer of this one, has locked it.
    Taken,
    /// It cannot be opened or locked.
    Failed(io::Error),
}

impl LockedFile {
    /// Opens and locks a file to read it and to append to it.
    pub(crate) fn open(path: &Path, create: bool) -> Result<Self, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false);
        // If another program truncates the file, its length shows it: a write at a position would fill the hole with zeros.
        // On Windows, a file that is opened to append cannot be truncated.
        options.append(cfg!(unix));
        // Opening a pipe could wait forever.
        check_regular(path).map_err(LockError::Failed)?;
        let file = options.open(path).map_err(LockError::Failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Taken),
            Err(TryLockError::Error(error)) => return Err(LockError::Failed(error)),
        }
        let id = FileId::of(&file.metadata().map_err(LockError::Failed)?);
        // Its former holder may have given it another name before it released the lock.
        match fs::symlink_metadata(path) {
            Ok(found) if FileId::of(&found) == id => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(LockError::Failed(error)),
            _ => return Err(LockError::Taken),
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            id,
        })
    }

    /// Returns the identity of the file.
    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    /// Fails unless the file is still at its path, with this length: otherwise what was written to it is lost.
    pub(crate) fn prove(&self, length: u64) -> io::Result<()> {
        prove(&self.path, self.id, length)
    }

    /// Fails unless the file is at `path`, with this length, after it was renamed.
    pub(crate) fn prove_at(&self, path: &Path, length: u64) -> io::Result<()> {
        prove(path, self.id, length)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing is not enough: while another thread starts a program, the forked process has a copy of the descriptor, which holds the lock
        // until exec.
        let _ = self.file.unlock();
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The copy stands for the descriptor that a forked process has until exec.
    #[test]
    fn a_dropped_file_is_free_while_a_copy_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.part");
        let file = LockedFile::open(&path, true).unwrap();
        assert!(matches!(LockedFile::open(&path, true), Err(LockError::Taken)));
        let copy = file.try_clone().unwrap();
        drop(file);
        assert!(LockedFile::open(&path, false).is_ok());
        drop(copy);
    }
}
