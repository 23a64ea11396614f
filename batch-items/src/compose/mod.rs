//! Artifacts made of others.

mod functions;
mod processors;
mod traits;
mod writers;

pub use self::processors::{ProcessorChain, Validate, ValidatingProcessor, ValidationError};
pub use self::traits::{Classified, LookUp, NoWriter, ProcessItem, WriteItems};
pub use self::writers::{
    ClassifierItemWriter, CompositeItemWriter, EnrichingItemWriter, FlatteningItemWriter,
};
