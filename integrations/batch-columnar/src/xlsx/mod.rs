//! Excel workbooks.

mod letters;
mod numbers;
mod reader;
mod sheet;
mod text;
mod unpack;

pub use self::reader::XlsxItemReader;
