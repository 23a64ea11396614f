//! The job operator: starts, launches, restarts, stops and awaits executions, and reads what the repository holds.
//!
//! [`JobOperator`] operates the jobs of a runtime. [`Definitions`] checks, explains, draws and converts jobs without a repository. The
//! command line `batch-cli` uses nothing else.
// Spec: OP-01 to OP-36

mod archive;
mod artifact_list;
mod callback;
mod certainty;
mod check;
mod definitions;
mod error;
mod explain;
mod job_context;
mod launch;
mod nested;
mod notifications;
mod overview;
mod partition_jobs;
mod partition_run;
mod possible;
mod query;
mod recover;
mod remote_checks;
mod remote_launch;
mod schema;
mod shared;
mod shutdown;
mod stop;
mod workers;

use std::sync::Arc;

pub use archive::{ArchiveError, Imported, Purge};
pub use artifact_list::{ArtifactDescription, PropertyDescription};
pub(crate) use callback::Callbacks;
pub use callback::{CallbackId, JobEndCallback};
pub use check::{CheckReport, JobCheck, Problem};
pub use definitions::Definitions;
pub(crate) use definitions::Wanted;
pub use error::{JobOperatorError, StartError};
pub use explain::{
    ArtifactExplanation, ArtifactType, AttributeValue, ElementExplanation, FieldExplanation, Guarantee,
    JobExplanation, PartitionExplanation, PartitionProperty, PropertyExplanation, TransitionExplanation,
    UnusedProperty, ValueOrigin,
};
pub(crate) use notifications::check_targets;
pub use overview::ExecutionState;
pub use partition_run::{ClaimPartitionError, PartitionRun, PartitionStop};
pub use possible::ExecutionAction;
pub use recover::{Recovered, Recovery};
pub use remote_checks::RemoteProblem;
pub(crate) use remote_launch::LaunchStart;
pub use remote_launch::{LaunchInfo, LaunchStatus};
pub(crate) use schema::Schema;
pub(crate) use shared::{Limits, Shared, SharedSettings};
pub use workers::WorkerInfo;

pub use crate::error::record_panic_locations;
pub use crate::job_path::JobPathReport;
pub use crate::observer::progress::{PartitionProgress, Progress, StepProgress};

/// Operates the jobs of one runtime. Cheap to clone, usable from several threads at once.
// Spec: OP-01, DOM-20
#[derive(Clone)]
pub struct JobOperator {
    pub(crate) shared: Arc<Shared>,
}

type Result<T> = std::result::Result<T, JobOperatorError>;

impl JobOperator {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}
