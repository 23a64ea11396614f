//! Files of rows whose fields are separated by a character, such as CSV.

mod form;
mod format;
mod reader;
mod rows;
mod split;
mod writer;

pub use self::format::{Character, DelimitedFormat, QuoteMode};
pub use self::reader::DelimitedItemReader;
pub use self::writer::DelimitedItemWriter;
