//! Excel workbooks.

mod reader;
mod sheet;
mod text;

pub use self::reader::XlsxItemReader;
