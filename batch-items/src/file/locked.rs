//! A file that only one writer can have open.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// A file that is locked until it is dropped, or until the process ends.
pub(crate) struct LockedFile(File);

/// An error of opening or locking a file.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process, or another writer of this one, has locked it.
    Taken,
    /// It cannot be opened or locked.
    Failed(io::Error),
}

impl LockedFile {
    /// Opens and locks a file to read and write it.
    pub(crate) fn open(path: &Path, create: bool) -> Result<Self, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false);
        let file = options.open(path).map_err(LockError::Failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(LockError::Taken),
            Err(TryLockError::Error(error)) => Err(LockError::Failed(error)),
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing is not enough: while another thread starts a program, the forked process has a copy of the descriptor, which holds the lock
        // until exec.
        let _ = self.0.unlock();
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
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
