//! The readers, writers and other artifacts that most jobs use: `use batch_items::prelude::*;`.

pub use crate::compose::{
    ClassifierItemWriter, CompositeItemWriter, EnrichingItemWriter, FlatteningItemWriter, GroupingItemReader,
    ProcessorChain, ValidatingProcessor,
};
pub use crate::errors::*;
pub use crate::lookup::{KeyLookup, Lookup, UnknownKey};
pub use crate::readers::*;
pub use crate::record::{Record, Value};
pub use crate::rejects::RejectListener;
pub use crate::writers::*;
