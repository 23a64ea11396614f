//! Excel workbooks.

mod cells;
mod columns;
mod letters;
mod numbers;
mod package;
mod reader;
mod sheet;
mod text;
mod unpack;
mod writer;

pub use self::reader::XlsxItemReader;
pub use self::writer::XlsxItemWriter;
