//! The owners of executions, one per runtime, and the liveness of their processes.
//!
//! An owner holds an operating-system lock on its own file beside the database. The kernel releases the lock when the
//! process dies, so other runtimes on the same host detect the death at once. On other hosts the lease has to expire.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Marks the name of an owner that holds a lock file.
const LOCKED: &str = "locked";

/// This runtime as an owner of executions.
#[derive(Debug)]
pub(crate) struct Owner {
    name: String,
    host: String,
    directory: Option<PathBuf>,
    lock: Option<(PathBuf, File)>,
}

impl Owner {
    /// Creates an owner. `directory` contains the lock files of the repository's owners; it is `None` for a
    /// repository that no other process sees. Without a lock file, the owner's death is detected later.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        let host = gethostname::gethostname()
            .to_string_lossy()
            .replace(['/', '\0'], "-");
        let nonce = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        if let Some(directory) = &directory {
            sweep(directory);
        }
        let lock = directory
            .as_deref()
            .and_then(|directory| take_lock(directory, &nonce));
        let mark = if lock.is_some() { LOCKED } else { "unlocked" };
        // OWNER is VARCHAR(250); a host name has at most 64 characters on Linux, 253 in the DNS.
        let shown: String = host.chars().take(150).collect();
        let name = format!("{shown}/{}/{nonce}/{mark}", std::process::id());
        Self {
            name,
            host: shown,
            directory,
            lock,
        }
    }

    /// Returns the name in the lease: `host/process/nonce/mark`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the process of the owner `name` is certainly dead; `false` means alive or unknown.
    pub(crate) fn is_dead(&self, name: &str) -> bool {
        let mut parts = name.split('/');
        let (Some(host), Some(_), Some(nonce), Some(LOCKED)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let Some(directory) = &self.directory else {
            return false;
        };
        if host != self.host || name == self.name || !nonce.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        remove_if_free(&lock_path(directory, nonce))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some((path, _file)) = self.lock.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Creates and locks the owner's file. The file gets its name only once it is locked, so an unlocked file with that
/// name always belongs to a dead owner.
fn take_lock(directory: &Path, nonce: &str) -> Option<(PathBuf, File)> {
    let path = lock_path(directory, nonce);
    let made = path.with_extension("new");
    let taken = fs::create_dir_all(directory).and_then(|()| {
        let file = File::create_new(&made)?;
        file.lock()?;
        fs::rename(&made, &path)?;
        Ok(file)
    });
    match taken {
        Ok(file) => Some((path, file)),
        Err(error) => {
            let path = path.display();
            tracing::warn!(%path, %error, "no owner lock: a crash of this process is detected only when its lease expires");
            None
        }
    }
}

/// Removes the lock files of dead owners. A missing file has the same meaning as an unlocked one.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|extension| extension == "lock") {
            remove_if_free(&path);
        }
    }
}

/// Removes an unlocked file. Returns whether its owner is dead.
fn remove_if_free(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => {
                let _ = fs::remove_file(path);
                true
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        },
        // The owner removed its file at its end, or another runtime found it dead.
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn lock_path(directory: &Path, nonce: &str) -> PathBuf {
    directory.join(format!("{nonce}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_dead_when_its_lock_is_free_or_missing() {
        let directory = tempfile::tempdir().unwrap();
        let owners = directory.path().join("owners");
        let (one, other) = (Owner::new(Some(owners.clone())), Owner::new(Some(owners.clone())));
        let name = one.name().to_owned();
        assert!(!other.is_dead(&name), "its lock is held");
        assert!(!one.is_dead(&name), "nobody is dead to itself");

        // The death of the process releases the lock, but leaves the file.
        let mut dead = one;
        let (path, file) = dead.lock.take().unwrap();
        drop(file);
        assert!(path.exists() && other.is_dead(&name));
        assert!(
            !path.exists() && other.is_dead(&name),
            "still dead when the file is gone"
        );
        assert!(!other.is_dead("elsewhere/1/00ff/locked"), "another host");
        assert!(
            !other.is_dead(&name.replace("locked", "unlocked")),
            "no lock to look at"
        );
        drop((dead, other));
        assert_eq!(fs::read_dir(&owners).unwrap().count(), 0);
    }

    #[test]
    fn a_new_owner_removes_only_the_files_of_dead_ones() {
        let directory = tempfile::tempdir().unwrap();
        let owners = directory.path().join("owners");
        let alive = Owner::new(Some(owners.clone()));
        fs::write(owners.join("00ff.lock"), "").unwrap();
        fs::write(owners.join("note.txt"), "").unwrap();
        let other = Owner::new(Some(owners.clone()));
        assert!(!owners.join("00ff.lock").exists() && owners.join("note.txt").exists());
        assert!(!other.is_dead(alive.name()));
    }

    /// Owners that start, sweep and end on many threads: none is considered dead while it is alive.
    ///
    /// Spec: OP-34, OP-35
    #[test]
    fn no_living_owner_is_ever_seen_dead() {
        let directory = tempfile::tempdir().unwrap();
        let owners = directory.path().join("owners");
        let observer = Owner::new(Some(owners.clone()));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..400 {
                        let owner = Owner::new(Some(owners.clone()));
                        let (path, _) = owner.lock.as_ref().expect("it holds a lock");
                        std::thread::yield_now();
                        assert!(path.exists(), "its file was swept away");
                        assert!(!observer.is_dead(owner.name()) && !owner.is_dead(observer.name()));
                    }
                });
            }
        });
        drop(observer);
        assert_eq!(fs::read_dir(&owners).unwrap().count(), 0);
    }
}
