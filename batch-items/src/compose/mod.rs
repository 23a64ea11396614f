//! Artifacts made of others.

mod dropped;
mod expecting;
mod functions;
mod grouping;
mod peek;
mod processors;
mod record_groups;
mod routing;
mod traits;
mod writers;

pub use self::expecting::{ExpectingItemReader, ExpectingPosition};
pub use self::grouping::{
    BySize, GroupCounts, GroupError, GroupPart, GroupPosition, GroupRule, GroupingItemReader,
};
pub use self::peek::PeekableItemReader;
pub use self::processors::{ProcessorChain, Validate, ValidatingProcessor, ValidationError};
pub use self::record_groups::RecordGroups;
pub use self::routing::RecordRoutingWriter;
pub use self::traits::{BulkLookup, Classified, NoWriter, ProcessItem, ReadItems, WriteItems};
pub use self::writers::{
    ClassifierItemWriter, CompositeItemWriter, EnrichingItemWriter, FlatteningItemWriter, FlatteningPosition,
};
