//! The environment of a step's body, and its end.

use std::sync::Arc;

use super::threads::{Collecting, Running, Worker};
use crate::artifact::ContextScope;
use crate::context::StepContext;
use crate::execution::StepExecution;
use crate::job_data::JobData;
use crate::observer::StepEvents;
use crate::repository::{JobRepository, RepositoryError};
use crate::status::BatchStatus;

/// The environment of a step execution.
#[derive(Clone, Copy)]
pub(crate) struct StepEnv<'a> {
    pub(crate) repository: &'a dyn JobRepository,
    pub(crate) running: &'a Running,
    pub(crate) worker: &'a Arc<Worker>,
    pub(crate) context: &'a StepContext,
    /// The data of the job.
    pub(crate) data: &'a JobData,
    pub(crate) events: &'a StepEvents<'a>,
    /// The collector of the subjob, and the contexts of the step.
    pub(crate) collecting: Option<(&'a Collecting, &'a ContextScope)>,
    /// Records the end, if the step execution is a partition.
    pub(crate) partition: Option<&'a dyn PartitionRecorder>,
}

/// The recorder of the end of a partition.
pub(crate) trait PartitionRecorder {
    /// Calls `record`, which records the end and, if a partition is given, its start in the same transaction.
    ///
    /// # Errors
    /// If `record` fails. The other partition then waits again.
    fn record(
        &self,
        status: BatchStatus,
        record: &mut dyn FnMut(Option<&mut StepExecution>) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError>;
}

/// The end of a step's body without a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// Ended normally; a batchlet returns an exit status.
    Completed { exit_status: Option<String> },
    /// Ended after a stop request.
    Stopped { exit_status: Option<String> },
}

impl BodyEnd {
    pub(crate) fn stopped() -> Self {
        Self::Stopped { exit_status: None }
    }
}
