//! Folders of tests.

use std::path::Path;

use tempfile::TempDir;

/// Returns a new folder, in memory if that has room and no other place is chosen: there a sync costs nothing, and a killed process leaves
/// the same files as on a disk.
pub fn new() -> TempDir {
    let memory = Path::new("/dev/shm");
    let in_memory = || tempfile::tempdir_in(memory).ok();
    let is_chosen = std::env::var_os("TMPDIR").is_some();
    let folder = (!is_chosen && has_room(memory)).then(in_memory).flatten();
    folder.unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder"))
}

/// Returns whether a folder has as much room as all tests need, and then some.
#[cfg(unix)]
fn has_room(folder: &Path) -> bool {
    const NEEDED: u64 = 2 << 30;
    rustix::fs::statvfs(folder).is_ok_and(|free| free.f_bavail.saturating_mul(free.f_frsize) > NEEDED)
}

#[cfg(not(unix))]
fn has_room(_: &Path) -> bool {
    false
}
