//! A file that is being written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::compression::Compression;
use super::locked::LockedFile;
use super::output::OutputPosition;

/// The length of the end of a file by which a restart recognises it.
const TAIL: usize = 64;

/// A state to which the output can return.
pub(super) struct Mark {
    pub(super) number: u32,
    pub(super) length: u64,
    pub(super) items: u64,
    pub(super) buffered: usize,
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
    /// Bytes that are not yet in the file, uncompressed.
    pub(super) buffer: Vec<u8>,
    /// True after an error that left items of a failed call behind.
    pub(super) broken: bool,
}

impl Part {
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
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
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
            self.buffer.clear();
        }
        self.items = mark.items;
        Ok(())
    }

    /// Begins with the content of an existing file.
    pub(super) fn copy(&mut self, existing: &Path) -> io::Result<()> {
        self.length = io::copy(&mut File::open(existing)?, &mut *self.file)?;
        self.tail = read_tail(&self.file, self.length)?;
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
        return Err(io::Error::other(
            "its content is not that of the last checkpoint, perhaps because another job instance writes the same `output`; \
             restore it, or run `abandon` for this execution and `start` the job again",
        ));
    }
    Ok(tail)
}

/// Returns the bytes before `end`.
fn read_tail(mut file: &File, end: u64) -> io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(end.saturating_sub(TAIL as u64)))?;
    file.take(end.min(TAIL as u64)).read_to_end(&mut tail)?;
    Ok(tail)
}
