//! Everything that an artifact needs: `use batch_runtime::prelude::*;`.

pub use crate::artifact::{BatchArtifactLoader, ChunkItems, LoadedArtifact, PartitionPlan};
pub use crate::artifacts;
pub use crate::context::{FlowContext, JobContext, SplitContext, StepContext};
pub use crate::error::BatchError;
pub use crate::repository::{ChunkTransaction, RepositoryConnection};
#[doc(no_inline)]
pub use batch_macros::*;
