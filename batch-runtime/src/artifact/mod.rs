//! Batch artifacts: injection, typed items behind erased handles, exceptions, and the registry of linked artifacts.
//! Depends on no job, and of the repository only on the chunk transaction, which writers receive.

mod default_field;
mod exception;
mod failed_item;
mod fill;
pub(crate) mod inject;
pub(crate) mod item;
mod item_time;
pub(crate) mod linked;
pub(crate) mod listener_items;
mod loaded;
mod loader;
mod nested;
mod parallel;
pub(crate) mod payload;
pub(crate) mod registry;
mod results;
mod returns;
mod type_name;

pub use crate::plan::PartitionPlan;
pub use default_field::DefaultField;
pub use exception::BatchException;
pub(crate) use exception::{ExceptionFilter, class_names, class_names_of, class_of, is_called};
pub use failed_item::FailedItem;
pub use fill::{FillEnd, FillError, Halt, ItemObserver};
pub use inject::{
    BatchArtifact, ContextField, ContextInfo, ContextKind, ContextScope, InjectError, InjectionScope,
    Properties, PropertyInfo, PropertySource, PropertyValue,
};
pub use item::{Fill, ItemClone, ItemSink, ItemType, item_clone, processor_sink};
pub(crate) use item_time::ITEM_TIME;
pub use listener_items::{ListenerItems, SameItem, require_same_item, typed_item, typed_result};
pub use loader::{BatchArtifactLoader, LoadedArtifact, LoaderRegistration, artifact_loader};
pub use nested::NestedArtifact;
pub use payload::CollectorData;
pub(crate) use registry::is_ready_made;
pub use registry::{ArtifactRegistration, BindContexts, ExceptionClass, ExceptionRegistration};
pub use results::ChunkItems;
pub(crate) use results::ResultBuffer;
pub use returns::{
    CheckpointReturn, CollectReturn, DecideReturn, ProcessReturn, ReadReturn, StatusReturn, UnitReturn,
    ValueReturn,
};
pub(crate) use type_name::short as short_type_name;
