//! Files as the input and output of steps, whatever their format.

mod bytes;
mod compression;
mod content;
mod deserialize;
mod files;
mod fingerprint;
mod framed;
mod identity;
mod input;
mod line_ends;
mod locked;
mod output;
mod output_position;
mod part;
mod pattern;
mod place;
mod reader;
mod resource;
#[cfg(not(feature = "object-store"))]
#[path = "no_store.rs"]
mod store;
#[cfg(feature = "object-store")]
mod store;
mod target;
mod text;
mod url;
mod used_files;
mod writer;

pub use self::bytes::{Bytes, NextLine};
pub use self::compression::Compression;
pub use self::fingerprint::{Fingerprint, IfChanged};
pub use self::framed::{FileFrame, FramedPosition};
pub use self::input::{
    FileInput, FilePosition, Format, IfMissing, Items, OpenFile, ReadPosition, Records, Source,
};
pub(crate) use self::output::Existing;
pub use self::output::{FileOutput, IfEmpty, IfExists, Sync};
pub use self::output_position::{CompleteFiles, OutputPosition};
pub use self::place::Place;
pub use self::reader::FileItemReader;
pub use self::resource::{EmptyFiles, FileOrder};
pub use self::text::{LineEnd, TextOutput};
pub use self::writer::FileItemWriter;

pub(crate) use self::bytes::{Part, line_end};
#[cfg(test)]
pub(crate) use self::content::counted;
pub(crate) use self::content::{decode, encode};
pub(crate) use self::framed::Encode;
pub use self::identity::{FileId, FileState, prove};
pub(crate) use self::locked::{LockError, LockedFile};
pub(crate) use self::pattern::literal;
pub use self::pattern::{FilePattern, FoundFile};
pub use self::resource::{Whole, read_text};
pub(crate) use self::resource::{find_files, read_whole};
pub(crate) use self::target::sync_folder;
pub(crate) use self::url::redact;
pub(crate) use self::used_files::{UsedFiles, is_used, kind_to_keep};
