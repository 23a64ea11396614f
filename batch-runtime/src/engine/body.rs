//! The environment of a step's body, and its end.

use std::sync::Arc;

use super::threads::{Collecting, Running, Worker};
use crate::artifact::ContextScope;
use crate::context::StepContext;
use crate::job_data::JobData;
use crate::observer::StepEvents;
use crate::repository::JobRepository;

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
