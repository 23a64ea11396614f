//! Files whose records are lines: of fields with fixed widths, of fields that a pattern finds, or of plain text.

mod fixed_width;
mod pattern;
mod records;
mod text;

pub use self::fixed_width::{FixedWidthItemReader, FixedWidthItemWriter};
pub use self::pattern::PatternItemReader;
pub use self::text::{LineItemReader, LineItemWriter};

pub(crate) use self::records::{LineFormat, LineRecords};
