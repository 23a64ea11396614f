//! A file that is being written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;

use super::compression::Compression;
use super::identity::{FileId, FileState, prove_unchanged};
use super::locked::LockedFile;
use super::output_position::{CompleteFiles, OutputPosition};
use super::resource::Whole;
use crate::error::ResourceError;

/// A state that the output can return to.
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
            self.content = mark.content.clone();
            hash(&self.file, mark.length..self.length, &mut self.content)?;
            self.buffer.clear();
        }
        self.items = mark.items;
        Ok(())
    }

    /// Begins with the content of an existing file, and returns the state of that file.
    pub(super) fn copy(&mut self, existing: &Path) -> io::Result<FileState> {
        let existing = File::open(existing)?;
        // Before it is copied: what is added meanwhile shows.
        let state = FileState::of(&existing.metadata()?)?;
        self.length = io::copy(&mut Whole::new(existing, 0)?, &mut *self.file)?;
        hash(&self.file, 0..self.length, &mut self.content)?;
        Ok(state)
    }
}

/// The number of bytes that a complete file adds to the checksum of all.
const SUM: u64 = 12;

/// The files that are complete before the one that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Complete {
    files: Vec<CompleteFile>,
    /// The checksum of their lengths and of the checksums of their contents.
    sums: Hasher,
}

#[derive(Clone, Copy, Debug)]
struct CompleteFile {
    id: FileId,
    state: FileState,
}

impl Complete {
    /// Adds a file with the checksum of its content.
    pub(super) fn add(&mut self, file: &File, content: u32) -> io::Result<()> {
        let metadata = file.metadata()?;
        let state = FileState::of(&metadata)?;
        self.files.push(CompleteFile {
            id: FileId::of(&metadata),
            state,
        });
        self.sums.update(&state.length.to_le_bytes());
        self.sums.update(&content.to_le_bytes());
        Ok(())
    }

    /// Adds a file, whose content is read.
    pub(super) fn read(&mut self, file: &File) -> io::Result<()> {
        let mut content = Hasher::new();
        hash(file, 0..file.metadata()?.len(), &mut content)?;
        self.add(file, content.finalize())
    }

    /// Returns what a checkpoint holds of them.
    pub(super) fn fingerprint(&self) -> Option<CompleteFiles> {
        (!self.files.is_empty()).then(|| CompleteFiles {
            length: self.files.iter().map(|file| file.state.length).sum(),
            content: self.sums.clone().finalize(),
        })
    }

    /// Forgets the files that were completed after a checkpoint.
    pub(super) fn return_to(&mut self, position: &OutputPosition) {
        self.files.truncate((position.file - 1) as usize);
        let sums = position.complete.unwrap_or_default().content;
        self.sums = Hasher::new_with_initial_len(sums, SUM * self.files.len() as u64);
    }

    /// Fails unless each of them is still at its path, and unchanged.
    pub(super) fn prove(&self, path: impl Fn(u32) -> PathBuf) -> Result<(), ResourceError> {
        for (number, file) in (1..).zip(&self.files) {
            let path = path(number);
            let proven = prove_unchanged(&path, file.id, file.state);
            proven.map_err(|error| ResourceError::new(format!("publish `{}`", path.display()), error))?;
        }
        Ok(())
    }
}

/// Checks that a file is not shorter than at a checkpoint.
pub(super) fn check_length(file: &File, position: &OutputPosition) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length < position.length {
        return Err(io::Error::other(format!(
            "it has {length} bytes, and had {} at the last checkpoint; restore it, or launch the job with other parameters",
            position.length
        )));
    }
    Ok(())
}

/// Checks that the content up to the checkpoint is the one that was written.
pub(super) fn check_content(file: &File, position: &OutputPosition) -> io::Result<()> {
    check_length(file, position)?;
    let mut content = Hasher::new();
    hash(file, 0..position.length, &mut content)?;
    if content.finalize() != position.content {
        return Err(other_content());
    }
    Ok(())
}

fn other_content() -> io::Error {
    io::Error::other(
        "its content differs from the content at the last checkpoint, perhaps because another job instance writes the same `output`; \
         restore it, or run `abandon` for this execution and `start` the job again",
    )
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
    let length = range.end - range.start;
    match io::copy(&mut file.take(length), &mut Sum(content))? {
        read if read < length => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
