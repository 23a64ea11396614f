//! The operator, as artifacts of a running job get it from their context.

use super::{JobOperator, Shared};
use crate::context::JobContext;

impl JobContext {
    /// Returns the operator of the runtime that runs the job. A batchlet can use it to launch another job and wait for it. `None` in a test
    /// of an artifact alone, which has no runtime.
    ///
    /// A chunk that has written in its transaction holds locks until its commit, so do not launch a job there.
    // Spec: OP-37
    pub fn job_operator(&self) -> Option<JobOperator> {
        let shared = self.runtime().upgrade()?.downcast::<Shared>().ok()?;
        Some(JobOperator { shared })
    }
}
