//! The bytes of a file from a position on, decompressed and, for UTF-16 and others, as UTF-8.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::str::FromStr;

use encoding_rs::{
    BIG5, Decoder, DecoderResult, EUC_KR, EncoderResult, Encoding, GB18030, GBK, SHIFT_JIS, UTF_8, UTF_16BE,
    UTF_16LE,
};

use super::compression::Compression;
use super::resource::Resource;
use crate::error::ResourceError;

/// The bytes of a file from [`Content::start`] on.
pub(crate) struct Content {
    pub(crate) bytes: Box<dyn Read + Send>,
    /// The position of the first byte.
    pub(crate) start: u64,
}

/// The name of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EncodingName(
    pub(crate) &'static Encoding,
    /// True if the name does not say which of the two UTF-16 it is.
    pub(super) bool,
);

impl FromStr for EncodingName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Encoding::for_label_no_replacement(text.as_bytes());
        let mark_decides = found == Some(UTF_16LE) && !text.trim().eq_ignore_ascii_case("utf-16le");
        found.map(|encoding| Self(encoding, mark_decides)).ok_or_else(|| {
            "expected a label of the WHATWG encoding standard, such as `utf-8`, `windows-1252` or `utf-16le`".to_owned()
        })
    }
}

impl Default for EncodingName {
    fn default() -> Self {
        Self(UTF_8, false)
    }
}

/// How the bytes of a file become its content.
#[derive(Clone, Copy)]
pub(crate) struct Coding {
    pub(crate) compression: Compression,
    pub(crate) encoding: &'static Encoding,
    /// True for `utf-16`: a byte-order mark says which of the two it is.
    pub(crate) mark_decides: bool,
    /// True for bytes that are no text: they have no byte-order mark.
    pub(crate) is_binary: bool,
}

impl Coding {
    /// Returns whether positions in the content are positions in the file, so that a restart can seek.
    pub(crate) fn is_seekable(&self) -> bool {
        self.compression == Compression::None && !self.is_transcoded()
    }

    /// Such encodings are converted before a file is split into records: a byte of ASCII, such as a delimiter or an escape character, may be
    /// a part of another character.
    fn is_transcoded(&self) -> bool {
        let ends_with_ascii = [BIG5, EUC_KR, GB18030, GBK, SHIFT_JIS];
        !self.encoding.is_ascii_compatible() || ends_with_ascii.contains(&self.encoding)
    }

    /// Returns the encoding of the content.
    pub(crate) fn of_content(&self) -> &'static Encoding {
        if self.is_transcoded() {
            UTF_8
        } else {
            self.encoding
        }
    }

    /// Opens the content of `resource` at `start`. At the beginning, a byte-order mark is skipped.
    pub(crate) fn open(&self, resource: &Resource, start: u64) -> Result<Content, ResourceError> {
        let fail = |error: io::Error| ResourceError::new(format!("read `{resource}`"), error);
        if self.is_seekable() && start > 0 {
            let bytes = resource.open_at(start)?;
            return Ok(Content::new(bytes, start, resource));
        }
        let bytes = self.compression.reader(resource.open_at(0)?).map_err(fail)?;
        let (encoding, mark, mut bytes) = self.without_mark(bytes).map_err(fail)?;
        if self.is_transcoded() {
            bytes = Box::new(Transcoded::new(bytes, encoding));
        }
        // Positions count the mark of UTF-8; in a file that is converted they are not positions of the file.
        let mark = if self.is_transcoded() { 0 } else { mark };
        let Some(skip) = start.checked_sub(mark).filter(|_| start > 0) else {
            return Ok(Content::new(bytes, mark, resource));
        };
        let skipped = io::copy(&mut bytes.by_ref().take(skip), &mut io::sink()).map_err(fail)?;
        if skipped < skip {
            let ended = skipped + mark;
            let cause = format!("it ends after {ended} bytes, before byte {start} of the checkpoint");
            return Err(ResourceError::new(format!("read `{resource}`"), cause));
        }
        Ok(Content::new(bytes, start, resource))
    }

    /// Returns the bytes without their byte-order mark, its length, and their encoding.
    ///
    /// # Errors
    /// If the mark is of another encoding than the property says: the text would be read wrong, or not at all.
    fn without_mark(
        &self,
        mut bytes: Box<dyn Read + Send>,
    ) -> io::Result<(&'static Encoding, u64, Box<dyn Read + Send>)> {
        if self.is_binary {
            return Ok((self.encoding, 0, bytes));
        }
        let mut first = Vec::new();
        bytes.by_ref().take(LONGEST_MARK).read_to_end(&mut first)?;
        let Some((mark, name, encodings)) = MARKS.iter().find(|(mark, ..)| first.starts_with(mark)) else {
            if self.mark_decides && self.is_transcoded() && !first.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it has no byte-order mark, which says which UTF-16 it is; set `encoding` to `utf-16le` or `utf-16be`",
                ));
            }
            return Ok((self.encoding, 0, Box::new(Cursor::new(first).chain(bytes))));
        };
        let decided = encodings.first().filter(|_| self.mark_decides);
        let encoding = match encodings.contains(&self.encoding) {
            true => Some(self.encoding),
            false => decided
                .copied()
                .filter(|encoding| [UTF_16LE, UTF_16BE].contains(encoding)),
        };
        let Some(encoding) = encoding else {
            let remedy = match encodings.first() {
                Some(encoding) => format!("set `encoding` to `{}`", encoding.name().to_ascii_lowercase()),
                None => "convert it to UTF-8".to_owned(),
            };
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "it begins with the byte-order mark of {name}, but is read as {}; {remedy}",
                    self.encoding.name()
                ),
            ));
        };
        let rest = first.split_off(mark.len());
        Ok((
            encoding,
            mark.len() as u64,
            Box::new(Cursor::new(rest).chain(bytes)),
        ))
    }
}

/// A byte-order mark, its name, and the encodings that have it.
type Mark = (&'static [u8], &'static str, &'static [&'static Encoding]);

/// The byte-order marks, longer ones before those that they begin with.
const MARKS: &[Mark] = &[
    (b"\xFF\xFE\0\0", "UTF-32LE", &[]),
    (b"\0\0\xFE\xFF", "UTF-32BE", &[]),
    (b"\x84\x31\x95\x33", "GB18030", &[GB18030, GBK]),
    (b"\xEF\xBB\xBF", "UTF-8", &[UTF_8]),
    (b"\xFF\xFE", "UTF-16LE", &[UTF_16LE]),
    (b"\xFE\xFF", "UTF-16BE", &[UTF_16BE]),
];

const LONGEST_MARK: u64 = 4;

impl Content {
    fn new(bytes: Box<dyn Read + Send>, start: u64, _resource: &Resource) -> Self {
        #[cfg(test)]
        let bytes = Box::new(counted::Counted(bytes, _resource.to_string()));
        Self { bytes, start }
    }
}

/// Converts a stream to UTF-8.
struct Transcoded {
    input: BufReader<Box<dyn Read + Send>>,
    decoder: Decoder,
    output: Vec<u8>,
    /// The part of `output` that is not read yet.
    unread: std::ops::Range<usize>,
    ended: bool,
}

impl Transcoded {
    fn new(input: Box<dyn Read + Send>, encoding: &'static Encoding) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 15, input),
            decoder: encoding.new_decoder_without_bom_handling(),
            output: vec![0; 1 << 16],
            unread: 0..0,
            ended: false,
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        while self.unread.is_empty() && !self.ended {
            let bytes = self.input.fill_buf()?;
            let last = bytes.is_empty();
            let (result, used, written) =
                self.decoder
                    .decode_to_utf8_without_replacement(bytes, &mut self.output, last);
            self.input.consume(used);
            self.unread = 0..written;
            match result {
                DecoderResult::InputEmpty => self.ended = last,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("it is not valid {}", self.decoder.encoding().name()),
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Read for Transcoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.refill()?;
        let count = self.unread.len().min(buffer.len());
        let from = self.unread.start;
        buffer[..count].copy_from_slice(&self.output[from..from + count]);
        self.unread.start += count;
        Ok(count)
    }
}

/// Appends `bytes` to `text`. Fails if they are not valid in the encoding: nothing is replaced.
pub(crate) fn decode(encoding: &'static Encoding, bytes: &[u8], text: &mut String) -> Result<(), String> {
    let invalid = |at: usize| {
        format!(
            "the text is not valid {} (byte {} of it); set the property `encoding`",
            encoding.name(),
            at + 1
        )
    };
    if encoding == UTF_8 {
        let valid = std::str::from_utf8(bytes).map_err(|error| invalid(error.valid_up_to()))?;
        text.push_str(valid);
        return Ok(());
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let most = decoder
        .max_utf8_buffer_length_without_replacement(bytes.len())
        .unwrap_or(bytes.len() * 3);
    text.reserve(most);
    let (result, used) = decoder.decode_to_string_without_replacement(bytes, text, true);
    match result {
        DecoderResult::InputEmpty => Ok(()),
        _ => Err(invalid(used.saturating_sub(1))),
    }
}

/// Appends `text` in the encoding to `bytes`. Fails if a character does not exist there.
pub(crate) fn encode(encoding: &'static Encoding, text: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    if encoding.output_encoding() != encoding {
        return Err(format!(
            "{} can be read, but not written; set `encoding` to `utf-8`",
            encoding.name()
        ));
    }
    let mut encoder = encoding.new_encoder();
    let most = encoder
        .max_buffer_length_from_utf8_without_replacement(text.len())
        .unwrap_or(text.len() * 4);
    bytes.reserve(most);
    let start = bytes.len();
    let (result, used) = encoder.encode_from_utf8_to_vec_without_replacement(text, bytes, true);
    match result {
        EncoderResult::InputEmpty => check_encoded(encoding, text, &bytes[start..]),
        EncoderResult::Unmappable(character) => {
            Err(format!("{character:?} does not exist in {}", encoding.name()))
        }
        EncoderResult::OutputFull => Err(format!("cannot encode the text after byte {used}")),
    }
}

/// Fails if the bytes stand for another text: encodings of Japanese write `¥` as the byte that they read as `\`.
fn check_encoded(encoding: &'static Encoding, text: &str, bytes: &[u8]) -> Result<(), String> {
    if text.is_ascii() || encoding == UTF_8 || encoding.is_single_byte() {
        return Ok(());
    }
    let mut read = String::new();
    decode(encoding, bytes, &mut read)?;
    let mut others = text.chars().zip(read.chars());
    match others.find(|(given, read)| given != read) {
        Some((given, _)) => Err(format!("{given:?} does not exist in {}", encoding.name())),
        None => Ok(()),
    }
}

/// The number of bytes of content that are read of each file, decompressed, for tests.
#[cfg(test)]
pub(crate) mod counted {
    use std::collections::HashMap;
    use std::io::{self, Read};
    use std::sync::{LazyLock, Mutex};

    static FILES: LazyLock<Mutex<HashMap<String, u64>>> = LazyLock::new(Mutex::default);

    pub(crate) fn bytes(file: &str) -> u64 {
        FILES.lock().unwrap().get(file).copied().unwrap_or(0)
    }

    pub(super) struct Counted(pub(super) Box<dyn Read + Send>, pub(super) String);

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(buffer)?;
            *FILES.lock().unwrap().entry(self.1.clone()).or_default() += count as u64;
            Ok(count)
        }
    }
}
