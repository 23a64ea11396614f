//! The files that the property `resource` names.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use super::compression::Compression;
use super::fingerprint::{Fingerprint, HEAD};
use super::line_ends::LineEnds;
use super::pattern::{FilePattern, Kind, kind};
use super::store::Object;
use super::url;
use crate::choices;
use crate::dataset::{DatasetName, of_file};
use crate::error::ResourceError;

/// A source of bytes.
#[derive(Clone, Debug)]
pub(crate) enum Resource {
    File(PathBuf),
    Object(Object),
}

/// The order of several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileOrder {
    /// By path, as text. The default.
    #[default]
    Name,
    /// By the time of the last change, the oldest first; files of the same time by path.
    Modified,
}

/// The treatment of files without records: the property `empty.files`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyFiles {
    /// `accept`: they are read. The default.
    #[default]
    Accept,
    /// `fail`: they are an error.
    Fail,
}

choices! {
    EmptyFiles { "accept" => Accept, "fail" => Fail }
}

impl Resource {
    /// Returns the files that match `pattern`: a path or URL, or a glob such as `in/*.csv`, in `order`. `options` are those of object
    /// stores.
    pub(crate) fn find(pattern: &str, order: FileOrder, options: &[String]) -> io::Result<Vec<Self>> {
        match url::split(pattern) {
            None | Some(("file", _)) => Self::find_files(url::local_path(pattern), order),
            Some(_) => {
                let objects = Object::find(pattern, order == FileOrder::Modified, options, false)?;
                Ok(objects.into_iter().map(Self::Object).collect())
            }
        }
    }

    fn find_files(path: &str, order: FileOrder) -> io::Result<Vec<Self>> {
        let pattern = FilePattern::from_str(path).map_err(io::Error::other)?;
        if pattern.is_path() {
            return Ok(vec![Self::File(path.into())]);
        }
        let mut found: Vec<PathBuf> = pattern.matches()?.into_iter().map(|file| file.path).collect();
        if order == FileOrder::Modified {
            found.sort_by_cached_key(|path| (modified(path), path.clone()));
        }
        Ok(found.into_iter().map(Self::File).collect())
    }

    /// Opens the file at a byte.
    pub(crate) fn open_at(&self, start: u64) -> Result<Box<dyn Read + Send>, ResourceError> {
        let opened = match self {
            Self::File(path) => open(path).and_then(|file| Ok(Box::new(Whole::new(file, start)?) as Box<_>)),
            Self::Object(object) => object.open_at(start),
        };
        opened.map_err(|error| self.fail(error))
    }

    /// Opens the file for a format that reads at any position. An object is downloaded.
    pub(crate) fn local(&self) -> Result<File, ResourceError> {
        let opened = match self {
            Self::File(path) => open(path),
            Self::Object(object) => object.download(),
        };
        opened.map_err(|error| self.fail(error))
    }

    /// Returns whether reading needs requests.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Releases what is kept for reading.
    pub(crate) fn release(&self) {
        if let Self::Object(object) = self {
            object.release();
        }
    }

    /// Returns the dataset that it is.
    pub(crate) fn dataset(&self) -> DatasetName {
        match self {
            Self::File(path) => of_file(path),
            Self::Object(object) => object.dataset(),
        }
    }

    pub(crate) fn exists(&self) -> Result<bool, ResourceError> {
        match self {
            Self::File(path) => kind(path)
                .map(|kind| kind.is_some())
                .map_err(|error| self.fail(error)),
            Self::Object(object) => object.exists().map_err(|error| self.fail(error)),
        }
    }

    pub(crate) fn compression(&self, given: Option<Compression>) -> Compression {
        given.unwrap_or_else(|| Compression::of(Path::new(&self.to_string())))
    }

    /// Returns what is known of the file now.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint, ResourceError> {
        let fingerprint = match self {
            Self::File(path) => open(path).and_then(|file| fingerprint(&file)),
            Self::Object(object) => object.fingerprint(),
        };
        fingerprint.map_err(|error| self.fail(error))
    }

    /// Returns the fingerprint of the file. If an entity tag identifies the content, the checksum of the beginning is left out, which
    /// saves a request.
    pub(crate) fn quick_fingerprint(&self) -> Result<Fingerprint, ResourceError> {
        match self {
            Self::File(_) => self.fingerprint(),
            Self::Object(object) => object.quick_fingerprint().map_err(|error| self.fail(error)),
        }
    }

    /// Returns whether a line starts at `byte`. Between the bytes of a CRLF counts too: readers of rows stop there.
    pub(crate) fn has_line_at(&self, byte: u64) -> Result<bool, ResourceError> {
        // The first line starts at 0.
        let Some(before_line) = byte.checked_sub(1) else {
            return Ok(true);
        };
        let (mut file, mut before) = (self.open_at(before_line)?, [0]);
        match file.read_exact(&mut before) {
            Ok(()) => Ok(matches!(before, [b'\n' | b'\r'])),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Returns the number of lines; `None` if the file cannot be read, or only by requests.
    pub(crate) fn count_lines(&self) -> Option<u64> {
        let Self::File(path) = self else { return None };
        let mut file = File::open(path).ok()?;
        let (mut buffer, mut lines, mut ends) = (vec![0; 1 << 18], 0, LineEnds::default());
        loop {
            let count = file.read(&mut buffer).ok()?;
            if count == 0 {
                return Some(lines);
            }
            lines += ends.count(&buffer[..count]);
        }
    }

    fn fail(&self, cause: io::Error) -> ResourceError {
        let folder = match cause.kind() {
            io::ErrorKind::NotFound => current_folder(&self.to_string()),
            _ => String::new(),
        };
        ResourceError::new(format!("read `{self}`{folder}"), cause)
    }
}

/// Returns the paths or URLs of the files that match a pattern, for the plan of partitions.
pub(crate) fn find_files(pattern: &str, order: FileOrder, options: &[String]) -> io::Result<Vec<String>> {
    if url::split(pattern).is_some_and(|(scheme, _)| scheme != "file") {
        let found = Object::find(pattern, order == FileOrder::Modified, options, true)?;
        return Ok(found.iter().map(Object::to_string).collect());
    }
    let found = Resource::find(pattern, order, options)?;
    Ok(found.iter().map(Resource::to_string).collect())
}

/// Names the current folder, if the path or URL of what was not found is relative to it.
pub(crate) fn current_folder(path: &str) -> String {
    let is_relative = url::split(path).is_none() && Path::new(path).is_relative();
    match std::env::current_dir() {
        Ok(folder) if is_relative => format!(" in the current folder `{}`", folder.display()),
        _ => String::new(),
    }
}

/// Opens a file. What is not a regular file is rejected before: opening a pipe waits for its writer, which no stop ends.
fn open(path: &Path) -> io::Result<File> {
    match kind(path)? {
        Some(Kind::Directory) => Err(io::Error::other(format!(
            "it is a directory; to read its files, use a pattern such as `{}/*`",
            path.display()
        ))),
        Some(Kind::Special) => Err(io::Error::other(
            "it is a pipe or a device, which a restart cannot read again; copy its content to a file",
        )),
        Some(Kind::File) | None => File::open(path),
    }
}

/// A file that is read at least up to its length at the time of opening. Reading fails if the file is cut meanwhile, or modified without
/// growing.
pub struct Whole {
    file: File,
    read: u64,
    length: u64,
    modified: Option<SystemTime>,
}

impl Whole {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::new(File::open(path)?, 0)
    }

    /// Returns the length that the file had when it was opened.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads an open file from a position on.
    ///
    /// # Errors
    /// If it cannot be read there.
    pub fn new(mut file: File, start: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(start))?;
        let found = file.metadata()?;
        Ok(Self {
            file,
            read: start,
            length: found.len(),
            modified: found.modified().ok(),
        })
    }

    /// Checks the file at its end: appended data is read, but a write in place may have changed what was read before.
    fn check_end(&self) -> io::Result<()> {
        let (read, length) = (self.read, self.length);
        if read < length {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("it was cut while it was read: it had {length} bytes and ends after {read}"),
            ));
        }
        let found = self.file.metadata()?;
        if found.len() == length && found.modified().ok() != self.modified {
            return Err(io::Error::other("it was changed while it was read"));
        }
        Ok(())
    }
}

/// Reads a small file to its end.
pub(crate) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    Whole::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Reads a file of text that is small, to its end. A byte-order mark is no content.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    Whole::open(path)?.read_to_string(&mut text)?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        if count == 0 && !buffer.is_empty() {
            self.check_end()?;
        }
        Ok(count)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Object(object) => object.fmt(f),
        }
    }
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
        etag: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_while_it_is_read_does_not_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, b"1\n2\n3\n").unwrap();
        let resource = Resource::File(file.path().to_owned());
        let mut reader = resource.open_at(2).unwrap();
        reader.read_exact(&mut [0; 2]).unwrap();
        file.as_file().set_len(4).unwrap();
        let error = reader.read(&mut [0; 2]).unwrap_err().to_string();
        assert_eq!(
            error,
            "it was cut while it was read: it had 6 bytes and ends after 4"
        );
        // A write in place may have been read in part.
        let mut reader = resource.open_at(0).unwrap();
        reader.read_exact(&mut [0; 4]).unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(2);
        file.as_file().set_modified(later).unwrap();
        let error = reader.read(&mut [0; 2]).unwrap_err().to_string();
        assert_eq!(error, "it was changed while it was read");
        // What is appended is read.
        let mut reader = resource.open_at(2).unwrap();
        io::Write::write_all(&mut file, b"4\n").unwrap();
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert!(rest.starts_with("2\n") && rest.ends_with("4\n"), "{rest:?}");
    }
}
