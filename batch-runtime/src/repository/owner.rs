//! The owners of executions, one per runtime, and the liveness of their processes.
//!
//! An owner holds an operating-system lock on its own file beside the database. The kernel releases the lock when the process
//! dies, so other runtimes on the same host know at once whether it is alive. Where the lock cannot be checked, on another host
//! or without the file, only the lease shows it, see `observation.rs`.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::process;
use crate::random::random;

/// Marks the name of an owner that holds a lock file.
const LOCKED: &str = "locked";

/// The longest note that is read.
const NOTE_BYTES: u64 = 1_000;

/// The liveness of an owner, as its lock file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// Its process holds the lock.
    Alive,
    /// Its process has released the lock, so it is dead.
    Dead,
    /// There is no lock to check: another host, no lock file, or a lost one.
    Unknown,
}

/// This runtime as an owner of executions.
#[derive(Debug)]
pub(crate) struct Owner {
    name: String,
    nonce: String,
    host: String,
    directory: Option<PathBuf>,
    mode: u32,
    lock: Mutex<Option<File>>,
}

impl Owner {
    /// Creates an owner. `directory` contains the lock files of the repository's owners; it is `None` for a
    /// repository that no other process sees. New files have the permissions `mode`. Without a lock file, the owner's death is
    /// detected later.
    pub(crate) fn new(directory: Option<PathBuf>, mode: u32) -> Self {
        let host = gethostname::gethostname()
            .to_string_lossy()
            .replace(['/', '\0'], "-");
        let nonce = format!("{:016x}", random());
        let lock = directory.as_deref().and_then(|directory| {
            let path = directory.display();
            take_lock(directory, &nonce, mode)
                .inspect_err(|error| {
                    tracing::warn!(%path, %error, "no owner lock: a crash of this process is detected only when its lease expires");
                })
                .ok()
        });
        let mark = match lock {
            Some(_) => LOCKED.to_owned(),
            None => process::own_mark().unwrap_or_else(|| "unlocked".into()),
        };
        // OWNER is VARCHAR(250); a host name has at most 64 characters on Linux, 253 in the DNS.
        let shown: String = host.chars().take(150).collect();
        Self {
            name: format!("{shown}/{}/{nonce}/{mark}", std::process::id()),
            nonce,
            host: shown,
            directory: directory.filter(|_| lock.is_some()),
            mode,
            lock: Mutex::new(lock),
        }
    }

    /// Returns the name in the lease: `host/process/nonce/mark`. From the mark, others know how to check whether the process is alive.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the part of the name that no other owner has.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Returns whether the process of the owner `name` is alive.
    pub(crate) fn liveness(&self, name: &str) -> Liveness {
        match (self.lock_path_of(name), &self.directory) {
            (Some(path), Some(directory)) if is_directory(directory) => liveness(&path),
            _ => Liveness::Unknown,
        }
    }

    /// Returns whether the process of the owner `name` has ended, by its lock, or else as this host shows its processes. For people:
    /// without a lock, a lease is decided by its expiry only.
    pub(crate) fn has_ended(&self, name: &str) -> bool {
        match self.liveness(name) {
            Liveness::Alive => false,
            Liveness::Dead => true,
            Liveness::Unknown => {
                let parts: Vec<&str> = name.split('/').collect();
                matches!(parts[..], [host, pid, _, mark] if host == self.host && process::has_ended(pid, mark))
            }
        }
    }

    /// Returns the lock file of another owner on this host.
    fn lock_path_of(&self, name: &str) -> Option<PathBuf> {
        let parts: Vec<&str> = name.split('/').collect();
        let [host, _, nonce, LOCKED] = parts[..] else {
            return None;
        };
        let is_checked = host == self.host && name != self.name && is_nonce(nonce);
        Some(lock_path(self.directory.as_ref()?, nonce)).filter(|_| is_checked)
    }

    /// Creates the lock file anew if it was removed: without it, other runtimes would have to wait for the lease to learn that
    /// this process is alive.
    pub(crate) fn restore_lock(&self) {
        let Some(directory) = &self.directory else { return };
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock
            .as_ref()
            .is_some_and(|file| is_at(file, &lock_path(directory, &self.nonce)))
        {
            return;
        }
        match take_lock(directory, &self.nonce, self.mode) {
            Ok(file) => {
                tracing::warn!(path = %directory.display(), "the owner lock was removed; created it again");
                *lock = Some(file);
            }
            Err(error) => {
                tracing::warn!(path = %directory.display(), %error, "the owner lock was removed and cannot be created again");
            }
        }
    }

    /// Removes the lock files of dead owners, but keeps the files of the owners that `needed` returns: their leases are still to be taken
    /// over. Touches only files that are named like lock files of owners.
    pub(crate) fn sweep(&self, needed: impl FnOnce() -> Option<Vec<String>>) {
        let Some(directory) = self
            .directory
            .as_ref()
            .filter(|directory| is_directory(directory))
        else {
            return;
        };
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        let is_lock = |path: &PathBuf| {
            let nonce = path
                .file_name()
                .and_then(|name| name.to_str()?.strip_suffix(".lock"));
            nonce.is_some_and(|nonce| is_nonce(nonce) && nonce != self.nonce)
        };
        let paths = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(is_lock);
        let dead: Vec<PathBuf> = paths.filter(|path| liveness(path) == Liveness::Dead).collect();
        if dead.is_empty() {
            return;
        }
        // After the look at the locks: an owner that was dead by then cannot acquire a lease that is missing in
        // this list.
        let Some(needed) = needed() else { return };
        // On this host or another one, which sees the same directory: its file shows that host that the owner is dead.
        let nonces = needed.iter().filter_map(|owner| owner.split('/').nth(2));
        let needed: Vec<PathBuf> = nonces.map(|nonce| lock_path(directory, nonce)).collect();
        for path in dead.iter().filter(|path| !needed.contains(path)) {
            let _ = fs::remove_file(path);
        }
    }

    /// Writes why this process ends to its lock file, which no database lock can delay. Returns `false` without a lock file.
    pub(crate) fn note(&self, cause: &str) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock.as_ref().is_some_and(|file| write_note(file, cause).is_ok())
    }

    /// Returns the cause that the process of the owner `name` has noted.
    pub(crate) fn note_of(&self, name: &str) -> Option<String> {
        let path = self.lock_path_of(name).filter(|path| is_regular_file(path))?;
        let mut note = Vec::new();
        File::open(path)
            .ok()?
            .take(NOTE_BYTES)
            .read_to_end(&mut note)
            .ok()?;
        // The limit may cut a character.
        Some(String::from_utf8_lossy(&note).into_owned()).filter(|note| !note.is_empty())
    }

    /// Removes the lock file, at the end of a runtime that holds no lease.
    pub(crate) fn remove_lock(&self) {
        let Some(directory) = &self.directory else { return };
        if self
            .lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .is_some()
        {
            // Other runtimes may see the free lock first. They find the owner dead, which is harmless without a
            // lease.
            let _ = fs::remove_file(lock_path(directory, &self.nonce));
        }
    }
}

impl Drop for Owner {
    /// A program that another thread starts inherits the file until its own code begins, and with it the lock.
    fn drop(&mut self) {
        let lock = self.lock.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = lock.take() {
            let _ = file.unlock();
        }
    }
}

/// Returns the liveness of the owner of a lock file. The file gets its name once it is locked, so an unlocked file belongs to
/// a dead owner.
fn liveness(path: &Path) -> Liveness {
    // A symbolic link or a device is not a lock file.
    if !is_regular_file(path) {
        return Liveness::Unknown;
    }
    // A shared lock, so that two who look at the same time do not take each other for the owner.
    match File::open(path).map(|file| file.try_lock_shared()) {
        Ok(Ok(())) => Liveness::Dead,
        Ok(Err(TryLockError::WouldBlock)) => Liveness::Alive,
        Ok(Err(TryLockError::Error(_))) | Err(_) => Liveness::Unknown,
    }
}

/// Creates and locks the owner's file. It gets its name only once it is locked.
fn take_lock(directory: &Path, nonce: &str, mode: u32) -> io::Result<File> {
    create_directory(directory, mode)?;
    if !is_directory(directory) {
        return Err(io::Error::other("it is a symbolic link or not a directory"));
    }
    let path = lock_path(directory, nonce);
    let made = path.with_extension("new");
    let file = create_file(&made, mode)?;
    let locked = file.lock().and_then(|()| fs::rename(&made, &path));
    match locked {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = fs::remove_file(&made);
            Err(error)
        }
    }
}

/// Creates a directory. Users who may read its files may enter it.
#[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix has these modes"))]
fn create_directory(directory: &Path, mode: u32) -> io::Result<()> {
    let builder = &mut fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(builder, mode | (mode & 0o444) >> 2);
    match builder.create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix has these modes"))]
fn create_file(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    options.read(true).write(true).create_new(true).open(path)
}

fn write_note(mut file: &File, note: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(note.as_bytes())?;
    file.sync_data()
}

fn is_regular_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Returns whether this is a directory and not a link to one, which may belong to another program.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Returns whether `path` still leads to this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(found)) => (held.dev(), held.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Returns the nonce in the name of an owner.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) fn nonce_of(name: &str) -> Option<&str> {
    name.split('/').nth(2).filter(|nonce| is_nonce(nonce))
}

fn is_nonce(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn lock_path(directory: &Path, nonce: &str) -> PathBuf {
    directory.join(format!("{nonce}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(directory: &Path) -> Owner {
        Owner::new(Some(directory.to_owned()), 0o600)
    }

    /// As the kernel does when the process dies.
    fn die(owner: &Owner) {
        let file = owner.lock.lock().unwrap().take().unwrap();
        file.unlock().unwrap();
    }

    fn files(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// A missing file proves nothing.
    // Spec: OP-35
    #[test]
    fn an_owner_is_dead_when_its_lock_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let (one, other) = (owner(&owners), owner(&owners));
        let name = one.name().to_owned();
        assert_eq!(other.liveness(&name), Liveness::Alive);
        assert_eq!(one.liveness(&name), Liveness::Unknown, "its own");
        for unknown in [
            "elsewhere/1/00ff00ff00ff00ff/locked".to_owned(),
            name.replace("locked", "unlocked"),
        ] {
            assert_eq!(other.liveness(&unknown), Liveness::Unknown, "{unknown}");
        }
        die(&one);
        assert_eq!(other.liveness(&name), Liveness::Dead);
        fs::remove_dir_all(&owners).unwrap();
        assert_eq!(other.liveness(&name), Liveness::Unknown);
    }

    /// A program that is just being started has inherited the file, as does a clone.
    // Spec: OP-35
    #[test]
    fn the_lock_ends_with_its_owner_though_the_file_was_inherited() {
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let (one, other) = (owner(&owners), owner(&owners));
        let name = one.name().to_owned();
        let _inherited = one.lock.lock().unwrap().as_ref().unwrap().try_clone().unwrap();
        drop(one);
        assert_eq!(other.liveness(&name), Liveness::Dead);
    }

    /// A name without a lock is checked on its own host only.
    // Spec: DISP-13
    #[test]
    fn an_owner_has_ended_when_its_process_has() {
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let (one, other) = (owner(&owners), owner(&owners));
        assert!(!other.has_ended(one.name()));
        die(&one);
        assert!(other.has_ended(one.name()));
        let without_lock = Owner::new(None, 0);
        assert!(!other.has_ended(without_lock.name()));
        let Some(mark) = process::own_mark() else { return };
        let (host, nonce) = (&other.host, &other.nonce);
        // No process has so high an id.
        let ended = format!("{host}/4294967295/{nonce}/{mark}");
        assert!(other.has_ended(&ended));
        assert!(!other.has_ended(&ended.replacen(host, "elsewhere", 1)));
    }

    // Spec: OP-35
    #[test]
    fn the_last_words_of_an_owner_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let (one, other) = (owner(&owners), owner(&owners));
        assert_eq!(other.note_of(one.name()), None);
        assert!(one.note("a long note"));
        assert!(one.note("the disk is full"));
        assert_eq!(other.note_of(one.name()).as_deref(), Some("the disk is full"));
        assert!(one.note(&"ü".repeat(600)));
        assert!(other.note_of(one.name()).unwrap().starts_with(&"ü".repeat(500)));
        assert_eq!(other.note_of("elsewhere/1/00ff00ff00ff00ff/locked"), None);
        assert!(!Owner::new(None, 0).note("nowhere"));
    }

    // Spec: OP-35
    #[test]
    fn a_living_owner_restores_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let (one, other) = (owner(&owners), owner(&owners));
        one.restore_lock();
        assert_eq!(files(&owners).len(), 2, "nothing to restore");
        let is_there = || {
            let lock = one.lock.lock().unwrap();
            is_at(lock.as_ref().unwrap(), &lock_path(&owners, &one.nonce))
        };
        assert!(is_there());
        fs::remove_dir_all(&owners).unwrap();
        assert!(!is_there());
        one.restore_lock();
        assert!(is_there());
        assert_eq!(other.liveness(one.name()), Liveness::Alive);
        die(&one);
        assert_eq!(
            other.liveness(one.name()),
            Liveness::Dead,
            "by the lock of the new file"
        );
    }

    /// The files of dead owners stay as long as a lease names them.
    // Spec: OP-35
    #[test]
    fn only_files_of_dead_owners_without_leases_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let (alive, dead, leased) = (owner(&owners), owner(&owners), owner(&owners));
        die(&dead);
        die(&leased);
        let elsewhere = "00ff00ff00ff00ff";
        fs::write(lock_path(&owners, elsewhere), "").unwrap();
        for foreign in ["note.txt", "cargo.lock", "00ff.lock", "00FF00FF00FF00FF.lock"] {
            fs::write(owners.join(foreign), "").unwrap();
        }
        let sweeper = owner(&owners);
        sweeper.sweep(|| None);
        assert_eq!(files(&owners).len(), 5 + 4, "the leases are unknown");
        let on_another_host = format!("elsewhere/1/{elsewhere}/locked");
        sweeper.sweep(|| Some(vec![leased.name().to_owned(), on_another_host]));
        assert!(!lock_path(&owners, &dead.nonce).exists());
        assert_eq!(files(&owners).len(), 4 + 4);
        assert_eq!(sweeper.liveness(leased.name()), Liveness::Dead);
        assert_eq!(sweeper.liveness(alive.name()), Liveness::Alive);
        sweeper.sweep(|| Some(Vec::new()));
        assert_eq!(files(&owners).len(), 2 + 4);
    }

    /// A link may lead to files of other programs.
    // Spec: OP-35
    #[test]
    #[cfg(unix)]
    fn links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (foreign, owners) = (folder.path().join("foreign"), folder.path().join("owners"));
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("00ff00ff00ff00ff.lock"), "").unwrap();
        std::os::unix::fs::symlink(&foreign, &owners).unwrap();
        let unlocked = owner(&owners);
        assert!(!unlocked.name().ends_with("/locked"));
        unlocked.sweep(|| Some(Vec::new()));
        assert_eq!(files(&foreign), ["00ff00ff00ff00ff.lock"]);
    }

    // Spec: OP-35
    #[test]
    #[cfg(unix)]
    fn others_cannot_read_the_locks() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let one = owner(&owners);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&owners), 0o700);
        assert_eq!(mode(&lock_path(&owners, &one.nonce)), 0o600);
        let shared = folder.path().join("shared");
        let _other = Owner::new(Some(shared.clone()), 0o640);
        assert_eq!(mode(&shared), 0o750);
    }

    /// Owners that start, sweep and end on many threads: none is considered dead while it is alive.
    // Spec: OP-34, OP-35
    #[test]
    fn no_living_owner_is_ever_seen_dead() {
        let folder = tempfile::tempdir().unwrap();
        let owners = folder.path().join("owners");
        let observer = owner(&owners);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..400 {
                        let one = owner(&owners);
                        one.sweep(|| Some(Vec::new()));
                        std::thread::yield_now();
                        assert_eq!(observer.liveness(one.name()), Liveness::Alive);
                        assert_eq!(one.liveness(observer.name()), Liveness::Alive);
                        one.remove_lock();
                    }
                });
            }
        });
        observer.remove_lock();
        assert_eq!(files(&owners), [""; 0]);
    }
}
