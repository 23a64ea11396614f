//! Runs queries, which block, beside the threads that serve pages.

use std::sync::Arc;
use std::time::Duration;

use batch_runtime::JobOperator;
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// The number of queries that run at the same time; others wait.
const MOST: usize = 8;
/// The time that a page waits for the repository.
const LONGEST_QUERY: Duration = Duration::from_secs(5);

/// The operator, for asynchronous code.
#[derive(Clone)]
pub(crate) struct Workbench {
    operator: JobOperator,
    permits: Arc<Semaphore>,
}

impl Workbench {
    pub(crate) fn new(operator: JobOperator) -> Self {
        Self {
            operator,
            permits: Arc::new(Semaphore::new(MOST)),
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
        let done = tokio::time::timeout(LONGEST_QUERY, self.act(query)).await;
        done.unwrap_or_else(|_| Err(Problem::no_answer(LONGEST_QUERY)))
    }

    /// Runs something that may take long on another thread, such as a restart, which waits until the process of the execution is certainly
    /// dead.
    pub(crate) async fn act<T, E>(
        &self,
        work: impl FnOnce(&JobOperator) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await;
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
