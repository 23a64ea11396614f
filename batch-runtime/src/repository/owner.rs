//! Who runs a job: one owner per runtime, and whether an owner's process still lives.
//!
//! An owner holds an operating-system lock on a file of its own beside the database for as long as it lives. The kernel
//! frees the lock at the process's death, however it dies, so another runtime on the same host sees at once that the
//! owner is dead. Everyone else waits for the lease to expire.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Marks an owner that holds a lock file.
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
    /// A new owner. `directory` is where the lock files of the repository's owners lie; `None` for a repository that no
    /// other process sees. Where no lock file can be made, the owner does without, and its death is noticed later.
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

    /// The name that stands in the lease: `host/process/nonce/mark`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the process of the owner called `name` is certainly dead. `false` means alive or unknown.
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

/// Makes and locks the owner's file. It gets its name only when it is locked: a file with that name which nobody has
/// locked is one whose owner is dead, at every moment.
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
            tracing::warn!(%path, %error, "no owner lock: a crash of this process is noticed only when its lease expires");
            None
        }
    }
}

/// Removes the lock files that dead owners left. One that is gone means a dead owner, as one that is not locked does.
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

/// Removes a lock file that nobody has locked. Returns whether the file's owner is dead.
fn remove_if_free(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => {
                let _ = fs::remove_file(path);
                true
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        },
        // The owner removed its file when it ended, or another runtime found it dead.
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
    fn an_owner_is_dead_when_its_lock_is_free_or_gone() {
        let directory = tempfile::tempdir().unwrap();
        let owners = directory.path().join("owners");
        let (one, other) = (Owner::new(Some(owners.clone())), Owner::new(Some(owners.clone())));
        let name = one.name().to_owned();
        assert!(!other.is_dead(&name), "its lock is held");
        assert!(!one.is_dead(&name), "nobody is dead to itself");

        // What the kernel does when the process dies: the lock is free, the file stays.
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
    fn a_new_owner_removes_what_dead_ones_left_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let owners = directory.path().join("owners");
        let alive = Owner::new(Some(owners.clone()));
        fs::write(owners.join("00ff.lock"), "").unwrap();
        fs::write(owners.join("note.txt"), "").unwrap();
        let other = Owner::new(Some(owners.clone()));
        assert!(!owners.join("00ff.lock").exists() && owners.join("note.txt").exists());
        assert!(!other.is_dead(alive.name()));
    }

    /// Owners that come, sweep and go, on many threads: none is taken for dead while it lives.
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
