//! The asynchronous calls of the operator. The repository blocks, so each call starts a thread outside the tokio runtime: the call does not
//! occupy a blocking thread of the runtime for the length of a job, and the runtime does not wait for the call when it shuts down.
// Spec: ASYNC-03

use std::time::Duration;

use tokio::sync::oneshot;

use crate::execution::JobExecution;
use crate::ids::JobExecutionId;
use crate::operator::{JobOperator, JobOperatorError};
use crate::parameters::JobParameters;
use crate::runtime::BatchRuntime;
use crate::thread;

type Result<T> = std::result::Result<T, JobOperatorError>;

/// Asynchronous calls, with the feature `tokio`. A call whose future is dropped runs to its end nevertheless.
impl JobOperator {
    /// As [`start`](Self::start).
    ///
    /// # Errors
    /// As `start`, and [`JobOperatorError::Thread`].
    // Spec: ASYNC-03
    pub async fn start_async(
        &self,
        job: &str,
        parameters: impl Into<JobParameters>,
    ) -> Result<JobExecutionId> {
        let (job, parameters) = (job.to_owned(), parameters.into());
        self.on_thread(move |operator| operator.start(&job, parameters))
            .await
    }

    /// As [`launch`](Self::launch).
    ///
    /// # Errors
    /// As `launch`, and [`JobOperatorError::Thread`].
    // Spec: ASYNC-03
    pub async fn launch_async(
        &self,
        job: &str,
        parameters: impl Into<JobParameters>,
    ) -> Result<JobExecutionId> {
        let (job, parameters) = (job.to_owned(), parameters.into());
        self.on_thread(move |operator| operator.launch(&job, parameters))
            .await
    }

    /// As [`restart`](Self::restart).
    ///
    /// # Errors
    /// As `restart`, and [`JobOperatorError::Thread`].
    // Spec: ASYNC-03
    pub async fn restart_async(
        &self,
        execution: JobExecutionId,
        parameters: impl Into<JobParameters>,
    ) -> Result<JobExecutionId> {
        let parameters = parameters.into();
        self.on_thread(move |operator| operator.restart(execution, parameters))
            .await
    }

    /// As [`stop`](Self::stop).
    ///
    /// # Errors
    /// As `stop`, and [`JobOperatorError::Thread`].
    // Spec: ASYNC-03
    pub async fn stop_async(&self, execution: JobExecutionId) -> Result<bool> {
        if self.is_on_thread_of(execution) {
            return self.stop(execution);
        }
        self.on_thread(move |operator| operator.stop(execution)).await
    }

    /// As [`wait`](Self::wait).
    ///
    /// # Errors
    /// As `wait`, and [`JobOperatorError::Thread`].
    // Spec: ASYNC-03
    pub async fn wait_async(&self, execution: JobExecutionId) -> Result<JobExecution> {
        if self.is_on_thread_of(execution) {
            return self.wait(execution);
        }
        self.on_thread(move |operator| operator.wait(execution)).await
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let operator = self.clone();
        let (done, result) = oneshot::channel();
        // Fails if the future was dropped.
        let body = move || drop(done.send(call(&operator)));
        thread::start("batch-operator", body).map_err(JobOperatorError::Thread)?;
        result
            .await
            .unwrap_or_else(|_| panic!("a call of the operator panicked"))
    }
}

impl BatchRuntime {
    /// As [`shutdown`](Self::shutdown), with the feature `tokio`. Await it before the tokio runtime ends, which `async` methods of
    /// artifacts need.
    ///
    /// # Errors
    /// [`JobOperatorError::Thread`]
    // Spec: ASYNC-03
    pub async fn shutdown_async(&self, limit: Duration) -> Result<Vec<JobExecutionId>> {
        let operator = self.job_operator();
        operator
            .on_thread(move |operator| Ok(operator.shutdown(limit)))
            .await
    }
}
