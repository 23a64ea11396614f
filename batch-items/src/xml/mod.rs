//! Files of XML elements.

mod empty;
mod markup;
mod name;
mod reader;
mod writer;

pub use self::reader::XmlItemReader;
pub use self::writer::XmlItemWriter;
