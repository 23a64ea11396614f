//! A file that is being written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;

use super::compression::Compression;
use super::identity::{FileId, prove};
use super::locked::LockedFile;
use super::output::{CompleteFiles, OutputPosition};
use super::resource::Whole;
use crate::error::ResourceError;

/// The length of the end of a file by which a restart recognises it.
const TAIL: usize = 64;

/// A state to which the output can return.
pub(super) struct Mark {
    pub(super) number: u32,
    pub(super) length: u64,
    pub(super) items: u64,
    pub(super) buffered: usize,
    pub(super) content: Hasher,
}

/// A file that is being written.
pub(super) struct Part {
    pub(super) file: LockedFile,
    /// The number of the file, from 1.
    pub(super) number: u32,
    /// The length at the last checkpoint.
    pub(super) checkpoint: u64,
    /// The bytes and items in the file, without those in the buffer.
    pub(super) length: u64,
    pub(super) items: u64,
    /// The last bytes in the file.
    pub(super) tail: Vec<u8>,
    /// The checksum of the bytes in the file.
    pub(super) content: Hasher,
    /// Bytes that are not yet in the file, uncompressed.
    pub(super) buffer: Vec<u8>,
    /// True after an error that left items of a failed call behind.
    pub(super) broken: bool,
}

impl Part {
    /// Returns an empty file.
    pub(super) fn new(file: LockedFile, number: u32) -> Self {
        Self {
            file,
            number,
            checkpoint: 0,
            length: 0,
            items: 0,
            tail: Vec::new(),
            content: Hasher::new(),
            buffer: Vec::new(),
            broken: false,
        }
    }

    pub(super) fn flush(&mut self, compression: Compression) -> io::Result<()> {
        let compressed;
        let bytes = match compression {
            Compression::None => &self.buffer,
            _ => {
                compressed = compression.compress(&self.buffer)?;
                &compressed
            }
        };
        self.file.seek(SeekFrom::Start(self.length))?;
        if let Err(error) = self.file.write_all(bytes) {
            // It may have written some of them, which the next attempt would repeat.
            self.broken = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.content.update(bytes);
        let kept = TAIL.saturating_sub(bytes.len()).min(self.tail.len());
        self.tail.drain(..self.tail.len() - kept);
        self.tail
            .extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn undo(&mut self, mark: &Mark, is_plain: bool) -> io::Result<()> {
        if self.number != mark.number || (self.length != mark.length && !is_plain) {
            return Err(io::Error::other("the file is complete"));
        }
        if self.length == mark.length {
            self.buffer.truncate(mark.buffered);
        } else {
            // What was in the buffer is in the file.
            self.length = mark.length + mark.buffered as u64;
            self.file.set_len(self.length)?;
            self.tail = read_tail(&self.file, self.length)?;
            self.content = mark.content.clone();
            hash(&self.file, mark.length..self.length, &mut self.content)?;
            self.buffer.clear();
        }
        self.items = mark.items;
        Ok(())
    }

    /// Begins with the content of an existing file.
    pub(super) fn copy(&mut self, existing: &Path) -> io::Result<()> {
        self.length = io::copy(&mut Whole::new(File::open(existing)?, 0)?, &mut *self.file)?;
        self.tail = read_tail(&self.file, self.length)?;
        hash(&self.file, 0..self.length, &mut self.content)
    }
}

/// The number of bytes that a complete file adds to the checksum of all.
const SUM: u64 = 12;

/// The files that are complete before the one that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Complete {
    /// Their identities and lengths.
    files: Vec<(FileId, u64)>,
    /// The checksum of their lengths and of those of their contents.
    sums: Hasher,
}

impl Complete {
    pub(super) fn add(&mut self, id: FileId, length: u64, content: u32) {
        self.files.push((id, length));
        self.sums.update(&length.to_le_bytes());
        self.sums.update(&content.to_le_bytes());
    }

    /// Returns what a checkpoint holds of them.
    pub(super) fn fingerprint(&self) -> Option<CompleteFiles> {
        (!self.files.is_empty()).then(|| CompleteFiles {
            length: self.length(),
            content: self.sums.clone().finalize(),
        })
    }

    /// Adds a file whose content the checkpoint vouches for.
    pub(super) fn add_known(&mut self, id: FileId, length: u64) {
        self.files.push((id, length));
    }

    /// Takes over the checksum of a checkpoint.
    pub(super) fn continue_from(&mut self, sums: u32) {
        self.sums = Hasher::new_with_initial_len(sums, SUM * self.files.len() as u64);
    }

    /// Returns the sum of their lengths.
    pub(super) fn length(&self) -> u64 {
        self.files.iter().map(|(_, length)| length).sum()
    }

    /// Fails unless each of them is still at its path.
    pub(super) fn prove(&self, path: impl Fn(u32) -> PathBuf) -> Result<(), ResourceError> {
        for (number, (id, length)) in (1..).zip(&self.files) {
            let path = path(number);
            let proven = prove(&path, *id, *length);
            proven.map_err(|error| ResourceError::new(format!("publish `{}`", path.display()), error))?;
        }
        Ok(())
    }
}

/// Checks that the file is the one of a checkpoint, and returns its end there.
pub(super) fn check(file: &File, position: &OutputPosition) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length < position.length {
        return Err(io::Error::other(format!(
            "it has {length} bytes, and had {} at the last checkpoint; restore it, or launch the job with other parameters",
            position.length
        )));
    }
    let tail = read_tail(file, position.length)?;
    if crc32fast::hash(&tail) != position.tail {
        return Err(other_content());
    }
    Ok(tail)
}

/// Checks that the whole content up to the checkpoint is the one that was written.
pub(super) fn check_content(file: &File, position: &OutputPosition) -> io::Result<()> {
    check(file, position)?;
    let mut content = Hasher::new();
    hash(file, 0..position.length, &mut content)?;
    if content.finalize() != position.content {
        return Err(other_content());
    }
    Ok(())
}

fn other_content() -> io::Error {
    io::Error::other(
        "its content is not that of the last checkpoint, perhaps because another job instance writes the same `output`; \
         restore it, or run `abandon` for this execution and `start` the job again",
    )
}

/// Returns the bytes before `end`.
fn read_tail(mut file: &File, end: u64) -> io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(end.saturating_sub(TAIL as u64)))?;
    file.take(end.min(TAIL as u64)).read_to_end(&mut tail)?;
    Ok(tail)
}

/// Adds a range of a file to a checksum.
fn hash(mut file: &File, range: Range<u64>, content: &mut Hasher) -> io::Result<()> {
    struct Sum<'a>(&'a mut Hasher);
    impl Write for Sum<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    file.seek(SeekFrom::Start(range.start))?;
    io::copy(&mut file.take(range.end - range.start), &mut Sum(content)).map(drop)
}

/// Returns the length of a file, and the checksum of its content.
pub(super) fn sum_of(file: &File) -> io::Result<(u64, u32)> {
    let length = file.metadata()?.len();
    let mut content = Hasher::new();
    hash(file, 0..length, &mut content)?;
    Ok((length, content.finalize()))
}
