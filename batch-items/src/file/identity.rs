//! The proof that an open file is still the one at its path.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

/// What tells a file from all others of the machine, also after it was renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(metadata.dev(), metadata.ino())
    }

    // The index of a file is not in the standard library's stable interface.
    #[cfg(windows)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::windows::fs::MetadataExt;
        Self(metadata.creation_time(), 0)
    }

    #[cfg(not(any(unix, windows)))]
    pub(crate) fn of(_metadata: &Metadata) -> Self {
        Self(0, 0)
    }
}

/// Fails unless the file with this identity and length is at `path`.
pub(crate) fn prove(path: &Path, id: FileId, length: u64) -> io::Result<()> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
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

fn lost(cause: impl Into<String>) -> io::Error {
    let cause = cause.into();
    io::Error::other(format!(
        "{cause}; restore it and restart the job, or run `abandon` for this execution and `start` the job again"
    ))
}
