//! Batch artifacts: what the annotations implement, and how the runtime makes, fills and calls them.
//! Knows no job and no thread; of the repository only the chunk transaction, which writers are handed.

mod exception;
mod inject;
mod item;
mod item_time;
mod listener;
mod loader;
mod parallel;
pub(crate) mod registry;
mod returns;
mod role;
#[cfg(test)]
mod role_tests;
mod type_name;

pub use crate::plan::PartitionPlan;
pub use exception::{ExceptionClass, ExceptionRegistration};
pub(crate) use exception::{ExceptionFilter, class_names, is_called};
pub use inject::{
    BatchArtifact, ContextField, ContextInfo, ContextKind, ContextScope, InjectError, InjectionScope,
    Properties, PropertyInfo, PropertySource, PropertyValue, require_artifact,
};
pub use item::{
    Fill, FillEnd, FillError, Halt, ItemClone, ItemObserver, ItemSink, ItemType, Items, item_clone,
    processor_sink,
};
pub(crate) use item_time::ITEM_TIME;
pub use listener::{
    CheckpointListener, ItemProcessListener, ItemReadListener, ItemWriteListener, ListenerItems,
    RetryListener, SameItem, SkipListener, StepListener, heard_item, heard_result, require_same_item,
};
pub use loader::{BatchArtifactLoader, LoadedArtifact};
pub use parallel::{CollectorData, LogicalTX, PartitionAlgorithm, SubJobAnalyzer, SubJobCollector};
pub use registry::{ArtifactRegistration, BindContexts, Factory, ListenerRole, LoaderRegistration, Role};
pub use returns::{CheckpointReturn, CollectReturn, ProcessReturn, ReadReturn, UnitReturn, ValueReturn};
pub use role::{
    Batchlet, CheckpointAlgorithm, Decider, ItemProcessor, ItemReader, ItemWriter, JobListener,
    ProcessorItems, WriterInfo,
};
pub(crate) use type_name::short as short_type_name;
