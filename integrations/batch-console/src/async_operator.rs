//! The operator for asynchronous code: its calls block, and run beside the threads that serve pages.

use std::sync::Arc;
use std::time::Duration;

use batch_runtime::JobOperator;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// The number of queries that run at the same time; others wait.
const MAX_QUERIES: usize = 8;
/// The number of operations that run at the same time. A restart waits until the process of the execution is certainly dead, which must not
/// keep pages from being served.
const MAX_OPERATIONS: usize = 8;
/// The number of threads that all of them need.
pub(crate) const MAX_THREADS: usize = MAX_QUERIES + MAX_OPERATIONS;
/// The time that a page waits for the repository, or for the end of other operations.
const PATIENCE: Duration = Duration::from_secs(5);

/// The operator, for asynchronous code.
#[derive(Clone)]
pub(crate) struct AsyncOperator {
    operator: JobOperator,
    queries: Arc<Semaphore>,
    operations: Arc<Semaphore>,
}

impl AsyncOperator {
    pub(crate) fn new(operator: JobOperator) -> Self {
        Self {
            operator,
            queries: Arc::new(Semaphore::new(MAX_QUERIES)),
            operations: Arc::new(Semaphore::new(MAX_OPERATIONS)),
        }
    }

    /// Runs a query on another thread, and waits at most 5 seconds for it. The runtime itself retries for longer if the repository does not
    /// answer.
    pub(crate) async fn run<T, E>(
        &self,
        query: impl FnOnce(&JobOperator) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let answer = async {
            let permit = Arc::clone(&self.queries).acquire_owned().await;
            self.on_thread(permit.ok(), query).await
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        answer.unwrap_or_else(|_| Err(Problem::no_answer(PATIENCE)))
    }

    /// Runs an operation, which may take long, on another thread. It runs to its end even if its client goes away.
    pub(crate) async fn act<T, E>(
        &self,
        operation: impl FnOnce(&JobOperator) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let permit = Arc::clone(&self.operations).acquire_owned();
        match tokio::time::timeout(PATIENCE, permit).await {
            Ok(permit) => self.on_thread(permit.ok(), operation).await,
            Err(_) => Err(Problem::busy()),
        }
    }

    async fn on_thread<T, E>(
        &self,
        permit: Option<OwnedSemaphorePermit>,
        work: impl FnOnce(&JobOperator) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let operator = self.operator.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&operator)
        });
        match done.await {
            Ok(result) => result.map_err(Into::into),
            Err(error) => Err(Problem::bug(&error)),
        }
    }
}
