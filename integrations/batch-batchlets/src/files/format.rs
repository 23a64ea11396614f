//! The formats of compressed files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::str::FromStr;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// A format of compressed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Gzip,
    #[cfg(feature = "zstd")]
    Zstd,
}

impl FromStr for Format {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "gzip" => Ok(Self::Gzip),
            #[cfg(feature = "zstd")]
            "zstd" => Ok(Self::Zstd),
            #[cfg(not(feature = "zstd"))]
            "zstd" => Err("this program was compiled without the feature `zstd` of batch-batchlets"),
            _ => Err("expected `gzip` or `zstd`"),
        }
    }
}

impl Format {
    /// Returns the suffix of file names.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            #[cfg(feature = "zstd")]
            Self::Zstd => ".zst",
        }
    }

    /// Compresses what `write` writes.
    pub(super) fn encode(
        self,
        file: &mut File,
        write: impl FnOnce(&mut Encoder<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut encoder = match self {
            Self::Gzip => Encoder::Gzip(GzEncoder::new(file, Compression::default())),
            #[cfg(feature = "zstd")]
            Self::Zstd => Encoder::Zstd(zstd::Encoder::new(file, 0)?),
        };
        write(&mut encoder)?;
        match encoder {
            Encoder::Gzip(encoder) => encoder.finish().map(drop),
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => encoder.finish().map(drop),
        }
    }

    /// Returns a reader of the decompressed content.
    pub(super) fn decoder(self, file: impl Read + 'static) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(file)),
            #[cfg(feature = "zstd")]
            Self::Zstd => Box::new(zstd::Decoder::new(file)?),
        })
    }
}

/// An encoder of a file.
pub(super) enum Encoder<'f> {
    Gzip(GzEncoder<&'f mut File>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::Encoder<'static, &'f mut File>),
}

impl Write for Encoder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(encoder) => encoder.write(bytes),
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.flush(),
            #[cfg(feature = "zstd")]
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}
