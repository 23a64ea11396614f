//! Parquet and Arrow files.

mod arrow;
mod children;
mod columns;
mod error;
mod fit;
mod footer;
mod group;
mod int96;
mod reader;
mod rows;
mod temporal;
mod values;
mod writer;

pub use self::arrow::ArrowItemReader;
pub use self::group::Codec;
pub use self::reader::ParquetItemReader;
pub use self::writer::ParquetItemWriter;
