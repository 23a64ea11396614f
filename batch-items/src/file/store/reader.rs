//! The bytes of an object, by requests of some MiB.

use std::io::{self, Read};

use futures_util::stream::{BoxStream, StreamExt};
use object_store::ObjectMeta;

use super::super::fingerprint::HEAD;
use super::object::Object;
use super::wait;

/// The length of the first request and of later ones. The first one is shorter, for readers that need a few records.
const FIRST: u64 = 1 << 18;
const MOST: u64 = 1 << 22;

/// The body of an answer.
type Body = BoxStream<'static, object_store::Result<bytes::Bytes>>;

impl Object {
    /// Returns the CRC-32 of the beginning.
    pub(super) fn checksum_of_head(&self, meta: &ObjectMeta) -> io::Result<u32> {
        let mut head = Vec::new();
        ObjectReader::new(self.clone(), meta.clone(), 0)
            .with_first_request(HEAD)
            .take(HEAD)
            .read_to_end(&mut head)?;
        Ok(crc32fast::hash(&head))
    }

    /// Opens the object at a byte. If it is not the one of the last fingerprint any more, reading fails.
    pub(crate) fn open_at(&self, start: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(ObjectReader::new(self.clone(), self.meta()?, start)))
    }
}

/// Reads an object from a byte on. Fails if the object changes meanwhile.
pub(super) struct ObjectReader {
    object: Object,
    /// The object when it was opened.
    meta: ObjectMeta,
    /// The position after the buffer.
    next: u64,
    buffer: bytes::Bytes,
    /// The length of the next request.
    length: u64,
    /// The rest of the object, from a server that does not support ranges.
    body: Option<Body>,
}

impl ObjectReader {
    pub(super) fn new(object: Object, meta: ObjectMeta, start: u64) -> Self {
        Self {
            object,
            meta,
            next: start,
            buffer: bytes::Bytes::new(),
            length: FIRST,
            body: None,
        }
    }

    pub(super) fn with_first_request(mut self, length: u64) -> Self {
        self.length = length;
        self
    }

    /// Fills the buffer from the position.
    fn fetch(&mut self) -> io::Result<()> {
        if self.body.is_none() {
            if let Some(bytes) = self.object.recent(self.next) {
                self.next += bytes.len() as u64;
                self.buffer = bytes;
                return Ok(());
            }
            let end = self.meta.size.min(self.next + self.length);
            if let Some(found) = self.object.get(Some(self.next..end))? {
                self.check(&found.meta)?;
                let bytes = wait(found.bytes())?;
                self.buffer = bytes.map_err(|error| self.object.fail(&error))?;
                self.object.keep(self.next, &self.buffer);
                self.next += self.buffer.len() as u64;
                self.length = (self.length * 4).min(MOST);
                return match self.buffer.len() {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => Ok(()),
                };
            }
            let skipped = self.next;
            self.next = 0;
            let found = self.object.get(None)?.ok_or(io::ErrorKind::Unsupported)?;
            self.check(&found.meta)?;
            self.body = Some(found.into_stream());
            while self.next <= skipped {
                self.fetch_more()?;
            }
            // The last chunk contains the position.
            let unread = usize::try_from(self.next - skipped).map_err(io::Error::other)?;
            self.buffer = self.buffer.slice(self.buffer.len() - unread..);
            return Ok(());
        }
        self.fetch_more()
    }

    fn fetch_more(&mut self) -> io::Result<()> {
        let Some(mut body) = self.body.take() else {
            return Ok(());
        };
        let (chunk, body) = wait(async move { (body.next().await, body) })?;
        self.body = Some(body);
        let chunk = chunk.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.buffer = chunk.map_err(|error| self.object.fail(&error))?;
        self.next += self.buffer.len() as u64;
        Ok(())
    }

    /// Checks that an answer is of the object that was opened.
    fn check(&self, found: &ObjectMeta) -> io::Result<()> {
        let is_same = found.size == self.meta.size
            && found.e_tag == self.meta.e_tag
            && found.last_modified == self.meta.last_modified;
        is_same
            .then_some(())
            .ok_or_else(|| io::Error::other("it was replaced while it was read; launch the job with other parameters to read the new content"))
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.buffer.is_empty() {
            if self.next >= self.meta.size || buffer.is_empty() {
                return Ok(0);
            }
            self.fetch()?;
        }
        let count = self.buffer.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.buffer.split_to(count));
        Ok(count)
    }
}
