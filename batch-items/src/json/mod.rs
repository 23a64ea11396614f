//! Files of JSON values.

mod added;
mod array;
mod lines;

pub use self::array::{JsonArrayItemReader, JsonArrayItemWriter};
pub use self::lines::{JsonLinesItemReader, JsonLinesItemWriter};
