//! Artifacts made of others.

mod functions;
mod peek;
mod processors;
mod traits;
mod writers;

pub use self::peek::PeekableItemReader;
pub use self::processors::{ProcessorChain, Validate, ValidatingProcessor, ValidationError};
pub use self::traits::{Classified, LookUp, NoWriter, ProcessItem, ReadItems, WriteItems};
pub use self::writers::{
    ClassifierItemWriter, CompositeItemWriter, EnrichingItemWriter, FlatteningItemWriter,
};
