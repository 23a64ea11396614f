//! The file of a database: its permissions, and that it stays the same one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// The permissions of a new file, unless the URL sets others: its user alone reads and writes it.
pub(super) const MODE: u32 = 0o600;

/// The characters that end the path of a URI.
const NOT_IN_PATH: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');

/// A file that holds a database.
pub(super) struct DatabaseFile {
    path: PathBuf,
    mode: u32,
    /// The device and the inode of the file that was opened first.
    identity: OnceLock<(u64, u64)>,
    /// Whether it had content at an earlier check: a new database is empty.
    had_content: AtomicBool,
    /// The write-ahead log, which is beside the file itself even if the path is a symbolic link.
    log: OnceLock<PathBuf>,
}

impl DatabaseFile {
    pub(super) fn new(path: PathBuf, mode: u32) -> Self {
        Self {
            path,
            mode,
            identity: OnceLock::new(),
            had_content: AtomicBool::new(false),
            log: OnceLock::new(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn mode(&self) -> u32 {
        self.mode
    }

    /// Returns the URI that makes SQLite open the file and not create it; `None` if the path is not UTF-8.
    pub(super) fn uri(&self) -> Option<String> {
        let path = utf8_percent_encode(self.path.to_str()?, NOT_IN_PATH);
        Some(format!("file:{path}?mode=rw"))
    }

    /// Creates the file if it is missing. SQLite gives its other files the same permissions.
    pub(super) fn create(&self) -> io::Result<()> {
        let mut options = File::options();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, self.mode);
        match options.write(true).create_new(true).open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created.map(drop),
        }
    }

    /// Waits until the write-ahead log is on the disk.
    pub(super) fn sync_log(&self) -> io::Result<()> {
        let log = self.log.get_or_init(|| {
            let file = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
            let mut log = file.into_os_string();
            log.push("-wal");
            log.into()
        });
        // Opened each time: a log is a new file after a moment without connections.
        match File::open(log) {
            Ok(log) => log.sync_data(),
            // The last connection has moved its content to the database, and has synced that.
            Err(error) if error.kind() == io::ErrorKind::NotFound => check_is_closed(log),
            Err(error) => Err(error),
        }
    }

    /// Checks that the path leads to the file that was opened first. Another one, such as a restored copy or a new file after a
    /// move, knows nothing of the jobs that run; what is committed to a file without a name is lost.
    pub(super) fn check_is_same(&self) -> io::Result<()> {
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.identity.get().is_some() => {
                return Err(io::Error::other(
                    "the file was removed or moved while this program uses it; end the program before moving the database, and \
                     restore the file before starting it again",
                ));
            }
            Err(error) => return Err(error),
        };
        if self.identity.get().is_none() {
            check_has_one_name(&found)?;
        }
        if found.len() > 0 {
            self.had_content.store(true, Ordering::Relaxed);
        } else if self.had_content.load(Ordering::Relaxed) {
            // SQLite would not notice while its log and its cache have the pages that it needs.
            return Err(io::Error::other(
                "the file was emptied while this program uses it; restore a backup before starting the program again",
            ));
        }
        let found = identity(&found);
        if *self.identity.get_or_init(|| found) == found {
            Ok(())
        } else {
            Err(io::Error::other(
                "the file was replaced while this program uses it; end the program before moving or restoring the database",
            ))
        }
    }
}

/// Checks that a log is missing because no connection is open: then its index is removed too, a moment later.
fn check_is_closed(log: &Path) -> io::Result<()> {
    const MOMENT: Duration = Duration::from_millis(200);
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let index = log.with_file_name(format!("{}-shm", name.trim_end_matches("-wal")));
    let begin = Instant::now();
    while index.try_exists()? && !log.try_exists()? {
        if begin.elapsed() > MOMENT {
            return Err(io::Error::other(format!(
                "its log `{}` was removed while this program uses it; end the program before moving the database",
                log.display()
            )));
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// SQLite finds the log of a database by its name: through another name of the file, committed transactions would be missing.
#[cfg(unix)]
fn check_has_one_name(metadata: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    match metadata.nlink() {
        0 | 1 => Ok(()),
        names => Err(io::Error::other(format!(
            "the file has {names} names (hard links), and the log of SQLite belongs to one of them; remove the others, or use symbolic links"
        ))),
    }
}

#[cfg(not(unix))]
fn check_has_one_name(_metadata: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_metadata: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// Parses the permissions of a URL: three octal digits, with or without a leading 0.
pub(super) fn parse_mode(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('0').unwrap_or(text);
    let is_octal = digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let mode = u32::from_str_radix(digits, 8).ok()?;
    // The user of the program has to read and write it.
    (is_octal && mode & 0o600 == 0o600).then_some(mode)
}
