//! The files that the property `resource` names.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::compression::Compression;
use super::input::IfChanged;
use crate::error::ResourceError;

/// A source of bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resource {
    path: PathBuf,
}

/// The order in which several files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileOrder {
    /// By path, as text. The default.
    #[default]
    Name,
    /// By the time of the last change, the oldest first; files of the same time by path.
    Modified,
}

/// What is known of a file's content without reading it: a restart compares it with the file that it finds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<u64>,
    /// The CRC-32 of the first 4 KiB.
    pub head: u32,
}

const HEAD: u64 = 4096;

impl Resource {
    /// Returns the files that match `pattern`: a path, `file://` with a path, or a glob such as `in/*.csv`, in `order`.
    pub(crate) fn find(pattern: &str, order: FileOrder) -> Result<Vec<Self>, ResourceError> {
        let fail = |cause: String| ResourceError::new(format!("read `{pattern}`"), cause);
        let path = match pattern.split_once("://") {
            Some(("file", path)) => path,
            Some((scheme, _)) if is_scheme(scheme) => {
                return Err(fail(format!(
                    "the URL scheme `{scheme}` is not supported; use a path or `file://`"
                )));
            }
            _ => pattern,
        };
        // A file may have a `[` in its name.
        if !path.contains(['*', '?', '[']) || Path::new(path).exists() {
            return Ok(vec![Self { path: path.into() }]);
        }
        let matches = glob::glob(path).map_err(|error| fail(error.to_string()))?;
        let mut found = Vec::new();
        for entry in matches {
            let path = entry.map_err(|error| fail(error.to_string()))?;
            if path.is_file() {
                found.push(Self { path });
            }
        }
        match order {
            FileOrder::Name => found.sort(),
            FileOrder::Modified => found.sort_by_cached_key(|one| (modified(&one.path), one.path.clone())),
        }
        Ok(found)
    }

    /// Opens the file. Directories are rejected here: reading one fails with a less helpful error.
    pub(crate) fn open(&self) -> Result<File, ResourceError> {
        let fail = |cause: io::Error| ResourceError::new(format!("read `{self}`"), cause);
        let file = File::open(&self.path).map_err(fail)?;
        if file.metadata().map_err(fail)?.is_dir() {
            return Err(ResourceError::new(
                format!("read `{self}`"),
                format!("it is a directory; to read its files, use a pattern such as `{self}/*`"),
            ));
        }
        Ok(file)
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    pub(crate) fn compression(&self, given: Option<Compression>) -> Compression {
        given.unwrap_or_else(|| Compression::of(&self.path))
    }

    /// Returns what is known of the file now.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint, ResourceError> {
        let file = self.open()?;
        fingerprint(&file).map_err(|error| ResourceError::new(format!("read `{self}`"), error))
    }

    /// Returns whether a line starts at `byte`. Between the bytes of a CRLF counts too: readers of rows stop there.
    pub(crate) fn has_line_at(&self, byte: u64) -> Result<bool, ResourceError> {
        let fail = |error: io::Error| ResourceError::new(format!("read `{self}`"), error);
        let (mut file, mut before) = (self.open()?, [0]);
        file.seek(SeekFrom::Start(byte - 1)).map_err(fail)?;
        match file.read_exact(&mut before) {
            Ok(()) => Ok(matches!(before, [b'\n' | b'\r'])),
            Err(error) => Err(fail(error)),
        }
    }

    /// Returns the number of lines; `None` if the file cannot be read.
    pub(crate) fn count_lines(&self) -> Option<u64> {
        let mut file = File::open(&self.path).ok()?;
        let (mut buffer, mut lines) = (vec![0; 1 << 18], 0);
        loop {
            let count = file.read(&mut buffer).ok()?;
            if count == 0 {
                return Some(lines);
            }
            lines += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64;
        }
    }
}

/// Returns the paths of the files that match a pattern.
pub(crate) fn find_files(pattern: &str, order: FileOrder) -> Result<Vec<String>, ResourceError> {
    let found = Resource::find(pattern, order)?;
    Ok(found.iter().map(Resource::to_string).collect())
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// `C:` is a drive, not a scheme.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn fingerprint(mut file: &File) -> io::Result<Fingerprint> {
    let data = file.metadata()?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    let modified = data
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(Fingerprint {
        size: data.len(),
        modified: modified.and_then(|time| u64::try_from(time.as_millis()).ok()),
        head: crc32fast::hash(&head),
    })
}

impl Fingerprint {
    /// Returns how the file has changed, if reading cannot resume, at `byte` if positions are those of the file.
    pub(crate) fn change_since(&self, earlier: &Self, rule: IfChanged, byte: Option<u64>) -> Option<String> {
        const REMEDY: &str =
            "if only what follows the last committed record was corrected, set `if.changed` to `resume`";
        let size = || format!("its size was {} and is {}", earlier.size, self.size);
        match rule {
            IfChanged::Resume => match byte {
                Some(byte) if self.size < byte => Some(format!(
                    "it ends before byte {byte}, where reading has to resume: {}",
                    size()
                )),
                Some(byte) if byte >= HEAD && self.head != earlier.head => {
                    Some("its beginning has changed since the checkpoint".to_owned())
                }
                _ => None,
            },
            IfChanged::Fail if self.size != earlier.size => Some(format!(
                "it has changed since the checkpoint: {}; {REMEDY}",
                size()
            )),
            IfChanged::Fail if self.head != earlier.head || self.modified != earlier.modified => {
                Some(format!("it has changed since the checkpoint; {REMEDY}"))
            }
            IfChanged::Fail => None,
        }
    }
}
