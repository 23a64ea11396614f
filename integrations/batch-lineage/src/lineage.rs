//! `OpenLineage`: the observer, configured by the environment.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use batch_runtime::observer::{JobEvent, JobObserver};

use crate::config::Config;
use crate::ids;
use crate::runs::Runs;
use crate::sender::Sender;
use crate::transport::Transport;

/// The lineage of the jobs of a process, which goes to a server, or a file, as OpenLineage run events.
///
/// Cheap to clone. It is an [observer](batch_runtime::BatchRuntimeBuilder::observer) of a runtime, also of one that runs a worker.
#[derive(Clone)]
pub struct OpenLineage {
    inner: Arc<Inner>,
}

struct Inner {
    active: Option<(Mutex<Runs>, Sender)>,
    problems: Vec<String>,
    logged: OnceLock<()>,
}

impl OpenLineage {
    /// Reads the variables `OPENLINEAGE_*` of the process. Connects to nothing yet.
    ///
    /// Events are sent if `OPENLINEAGE_URL` is set, or written to a file if `OPENLINEAGE__TRANSPORT__TYPE` is `file`, unless
    /// `OPENLINEAGE_DISABLED` is `true`. What is invalid is ignored: see [`problems`](Self::problems).
    // Spec: LIN-01
    pub fn from_env() -> Self {
        let config = Config::read(&|name| std::env::var(name).ok());
        let (namespace, parents) = (config.namespace, config.parents);
        let active = config.target.map(|target| {
            let runs = Runs::new(namespace, parents);
            (Mutex::new(runs), Sender::new(Transport::new(target)))
        });
        Self {
            inner: Arc::new(Inner {
                active,
                problems: config.problems,
                logged: OnceLock::new(),
            }),
        }
    }

    /// Returns whether anything is sent.
    pub fn is_active(&self) -> bool {
        self.inner.active.is_some()
    }

    /// Returns the problems of the configuration. They are also logged as warnings when a job or partition starts.
    pub fn problems(&self) -> &[String] {
        &self.inner.problems
    }

    /// Sends the rest, and ends. Waits for the server up to `limit`; after that it logs a warning and discards the rest. Call it after
    /// [`flush_observers`](batch_runtime::JobOperator::flush_observers), which passes on the last events. A second call does nothing.
    // Spec: LIN-08
    pub fn shutdown(&self, limit: Duration) {
        if let Some((_, sender)) = &self.inner.active {
            sender.close(limit);
        }
    }

    /// Logs the problems once. Not when they are found: the program may not have installed its logger yet.
    fn log_problems(&self) {
        let problems = &self.inner.problems;
        self.inner
            .logged
            .get_or_init(|| problems.iter().for_each(|problem| tracing::warn!("{problem}")));
    }
}

impl JobObserver for OpenLineage {
    fn on_event(&self, event: &JobEvent) {
        self.log_problems();
        if let Some((runs, sender)) = &self.inner.active {
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.on_event(event)
                .into_iter()
                .for_each(|event| sender.send(event));
        }
    }

    /// The ids of runs follow from the context; an observer that traces supplies it, if there is one.
    fn trace_job(&self, _: &str) -> Option<String> {
        self.log_problems();
        self.is_active().then(ids::new_context)
    }
}

impl fmt::Debug for OpenLineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration contains a key.
        f.debug_struct("OpenLineage")
            .field("is_active", &self.is_active())
            .finish_non_exhaustive()
    }
}
