//! The proof that an open file is still the one at its path.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// What tells a file from all others of the machine, also after it was renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// Returns the identity of an open file.
    #[cfg(unix)]
    pub fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(metadata.dev(), metadata.ino())
    }

    /// Returns the identity of an open file: when it was created.
    // The index of a file is not in the standard library's stable interface.
    #[cfg(windows)]
    pub fn of(metadata: &Metadata) -> Self {
        use std::os::windows::fs::MetadataExt;
        Self(metadata.creation_time(), 0)
    }

    /// Returns the identity of an open file: all are one.
    #[cfg(not(any(unix, windows)))]
    pub fn of(_metadata: &Metadata) -> Self {
        Self(0, 0)
    }
}

/// What shows that nothing has changed a file since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its length in bytes.
    pub length: u64,
    /// The time of its last change, in nanoseconds since 1970.
    pub modified: u64,
}

impl FileState {
    pub(crate) fn of(metadata: &Metadata) -> io::Result<Self> {
        let modified = metadata
            .modified()?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Self {
            length: metadata.len(),
            modified: u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

/// Fails unless the file with this identity and length is at `path`.
pub fn prove(path: &Path, id: FileId, length: u64) -> io::Result<()> {
    // A link is another file, even if it leads to this one.
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(lost("it was removed or moved while the step wrote it"));
        }
        Err(error) => return Err(error),
    };
    if FileId::of(&found) != id {
        return Err(lost("it was replaced by another file while the step wrote it"));
    }
    if found.len() != length {
        return Err(lost(format!(
            "another program changed it while the step wrote it: it has {} bytes, and {length} were written",
            found.len()
        )));
    }
    Ok(())
}

/// Fails unless the file with this identity is at `path`, and nothing has changed it since.
pub(crate) fn prove_unchanged(path: &Path, id: FileId, state: FileState) -> io::Result<()> {
    prove(path, id, state.length)?;
    match FileState::of(&fs::symlink_metadata(path)?)? == state {
        true => Ok(()),
        false => Err(lost("another program changed it after the step wrote it")),
    }
}

/// Fails unless `path` is free, or a regular file: a writer replaces nothing else.
pub(crate) fn check_regular(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => return Ok(()),
        // A file in the way of a directory is reported when that is created.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        found => found?,
    };
    Err(io::Error::other(if found.is_symlink() {
        "it is a link; name the file that it leads to"
    } else if found.is_dir() {
        "it is a directory; name a file in it"
    } else {
        "it is a pipe or device; name a regular file"
    }))
}

pub(super) fn lost(cause: impl Into<String>) -> io::Error {
    let cause = cause.into();
    io::Error::other(format!(
        "{cause}; restore it and restart the job, or run `abandon` for this execution and `start` the job again"
    ))
}
