//! Parquet and Arrow files.

mod arrow;
mod children;
mod columns;
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

use ::parquet::errors::ParquetError;

/// Returns the message without the prefix that all of these errors have.
fn message(error: &ParquetError) -> String {
    let text = error.to_string();
    text.split_once(": ")
        .map_or_else(|| text.clone(), |(_, message)| message.to_owned())
}
