//! The job repository: its URL and errors, the filter of
//! [`JobOperator::find_executions`](crate::JobOperator::find_executions), and the connections that artifacts get.
// Spec: REPO-03, DOM-31

mod archive;
mod config;
mod context_json;
mod conversion;
mod database_kind;
mod diesel;
mod error;
#[cfg(test)]
mod insert_step;
mod java_json;
mod memory;
mod observation;
mod owner;
mod process;
mod records;
pub(crate) mod rules;
mod store;
mod stored_context;
mod url;

pub use crate::layout::RepositoryLayout;
pub(crate) use crate::layout::{MAX_VARCHAR, RepositoryFormat};
pub(crate) use archive::{
    ArchivedExecution, ArchivedInstance, ArchivedParameter, ArchivedStep, FORMAT, InstanceState,
};
pub(crate) use config::RepositoryConfig;
pub(crate) use context_json::{
    DECISION, DataChanges, ElementBefore, ElementKind, ElementState, JobState, RestartPosition, StepState,
    TxState, is_of_java,
};
pub use conversion::LayoutConversion;
pub use database_kind::DatabaseKind;
pub use diesel::{
    ChunkTransaction, DatabaseConnection, DatabaseDestination, ErrorClass, RepositoryConnection,
};
pub(crate) use diesel::{Connector, layout_of};
pub(crate) use error::ClaimError;
pub use error::RepositoryError;
#[cfg(test)]
pub(crate) use insert_step::InsertStep;
pub(crate) use java_json::{from_java, to_java};
pub(crate) use observation::{HolderState, LeaseKey, Observations};
pub(crate) use records::{
    AbandonOutcome, AcceptOutcome, ChunkCommit, Claim, ClaimRequest, ClaimedPartition, Concurrency,
    DeathOutcome, EndOfStep, Ending, InnerSteps, Inserted, KeptState, LaunchPhase, LaunchRow, Lease,
    NewNotification, NewStepExecution, NextNotification, PartitionFinding, PartitionReport, PartitionState,
    PayloadKey, QueuedNotification, QueuedPartition, SideWrites, Signals, StepHistory, StopOutcome,
    TakenLaunch, Target, TurnOutcome, WithdrawOutcome, WorkerRow,
};
pub use records::{ExecutionFilter, RepositorySize};
pub(crate) use store::{
    ArchiveStore, Channel, Holder, JobRepository, JobStore, LaunchStore, Listener, NotificationStore,
    OperatorStore, OverviewStore, PartitionStore, QueueStore, StepStore, WorkerStore,
};
pub(crate) use stored_context::{OtherEntries, StoredContext, ascii_json};
pub(crate) use url::open;
pub use url::{MigrationStatus, RepositoryUrl, SpringBatchVersion};

/// The result of an operation of the repository.
pub(crate) type Result<T, E = RepositoryError> = std::result::Result<T, E>;
