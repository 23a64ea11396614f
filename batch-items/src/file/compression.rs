//! Compressed files.

use std::io::{self, Read, Write};
use std::path::Path;

use crate::choices;

/// The compression of a file. A property of file readers and writers; the default is by the extension of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `none`
    None,
    /// `gzip`, the extension `.gz`
    Gzip,
    /// `zstd`, the extension `.zst`; requires the feature `zstd`
    Zstd,
}

impl Compression {
    /// Returns the compression that the extension says.
    pub(crate) fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }

    /// Returns a reader of the content. Concatenated streams are read as one.
    pub(crate) fn reader(self, file: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::None => Ok(Box::new(file)),
            Self::Gzip => Ok(Box::new(flate2::read::MultiGzDecoder::new(file))),
            #[cfg(feature = "zstd")]
            Self::Zstd => Ok(Box::new(zstd::Decoder::new(file)?)),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => Err(without_zstd()),
        }
    }

    /// Compresses `content` as a complete stream. Further ones may be appended.
    pub(crate) fn compress(self, content: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(content.to_vec()),
            Self::Gzip => {
                let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                stream.write_all(content)?;
                stream.finish()
            }
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::encode_all(content, 0),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => Err(without_zstd()),
        }
    }
}

#[cfg(not(feature = "zstd"))]
fn without_zstd() -> io::Error {
    io::Error::other("the feature `zstd` of batch-items is not enabled")
}

choices! {
    Compression { "none" => None, "gzip" => Gzip, "zstd" => Zstd }
}
