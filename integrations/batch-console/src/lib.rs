//! An operations console for batch jobs: pages that show running and failed jobs and operate them, and a JSON API.
//!
//! [`router`] mounts it in a program on axum. The program authenticates its users by adding a [`User`] to each request, or configures
//! [`Access`]. Otherwise the console responds only to requests from this computer. For that the program has to serve with
//! `into_make_service_with_connect_info::<SocketAddr>()`.
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use axum::Router;
//! use batch_runtime::BatchRuntime;
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = BatchRuntime::builder().repository("sqlite://batch.db").build()?;
//! let program = Router::new().nest("/batch", batch_console::router(&runtime));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, program.into_make_service_with_connect_info::<SocketAddr>()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A program without axum starts it by [`Console::start`], on a separate thread; `batch-cli console` does nothing else.
//!
//! The pages work without JavaScript, which only refreshes them. They show the executions of every process and host on the repository,
//! Spring Batch's included. A job that is launched here runs in this process, or on a worker.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default), `postgres`, `mysql` | the databases of job repositories, as of `batch-runtime` |
//! | `bundled-postgres`, `bundled-mysql` | the same, with the client library compiled in |
// Spec: CON-01 to CON-15
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod api;
mod app;
mod assets;
mod async_operator;
mod audit;
mod changes;
mod digest;
mod documents;
mod extract;
mod logs;
mod operations;
mod pages;
mod problem;
mod routes;
mod server;
mod view;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use batch_runtime::{BatchRuntime, JobExecutionId, JobOperator, JobOperatorError};

pub use access::{Access, AccessError, Role, User};
pub use logs::LogLines;
pub use server::{ConsoleServer, StartError};

use app::App;
use audit::AuditLog;

/// Returns the console of a runtime with its defaults, for [`Router::nest`] or [`Router::fallback_service`].
///
/// # Panics
/// When the operating system has no random numbers.
pub fn router(runtime: &BatchRuntime) -> Router {
    Console::new(runtime).router()
}

/// Configuration of a console.
#[derive(Clone)]
pub struct Console {
    operator: JobOperator,
    access: Access,
    name: String,
    base_path: Option<String>,
    audit: AuditLog,
    logs: Option<LogLines>,
    metrics: Option<Metrics>,
    reports: Option<Reports>,
}

/// Returns the metrics as text for Prometheus.
type Metrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Returns the report of an execution.
type Reports =
    Arc<dyn Fn(&JobOperator, JobExecutionId, ReportFormat) -> Result<String, JobOperatorError> + Send + Sync>;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportFormat {
    /// A page of HTML, which needs no other file.
    Html,
    /// A text in Markdown.
    Markdown,
}

/// Records an action in the audit log that [`Console::audit_file`] names, for a program that acts without a console.
///
/// # Errors
/// If the file cannot be opened.
pub fn record_action(path: impl AsRef<Path>, user: &str, action: &str, outcome: &str) -> io::Result<()> {
    AuditLog::open(path.as_ref())?.record(user, action, outcome);
    Ok(())
}

impl Console {
    /// Creates the console of a runtime, for users of this computer.
    pub fn new(runtime: &BatchRuntime) -> Self {
        let operator = runtime.job_operator();
        Self {
            name: operator.repository_url().to_string(),
            operator,
            access: Access::new(),
            base_path: None,
            audit: AuditLog::default(),
            logs: None,
            metrics: None,
            reports: None,
        }
    }

    /// Sets the users.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the name that every page shows; default: the URL of the repository, without its password.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the path prefix that browsers use, such as `/batch`, if a reverse proxy removes it from requests. The prefix of
    /// [`Router::nest`] is known without that.
    #[must_use]
    pub fn base_path(mut self, path: &str) -> Self {
        self.base_path = Some(path.trim_end_matches('/').to_owned());
        self
    }

    /// Shows the log lines of executions that run in this process.
    #[must_use]
    pub fn logs(mut self, lines: LogLines) -> Self {
        self.logs = Some(lines);
        self
    }

    /// Serves metrics at `/metrics`, as `render` returns them in Prometheus' text format.
    #[must_use]
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.metrics = Some(Arc::new(render));
        self
    }

    /// Serves reports of executions, as files that users download and send to others; `render` returns the text of one.
    #[must_use]
    pub fn reports(
        mut self,
        render: impl Fn(&JobOperator, JobExecutionId, ReportFormat) -> Result<String, JobOperatorError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.reports = Some(Arc::new(render));
        self
    }

    /// Appends the audit log to a file, as JSON lines, and shows its last entries. Without it, the audit log starts with the process; both
    /// are logged as events of the level INFO.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub fn audit_file(mut self, path: impl AsRef<Path>) -> io::Result<Self> {
        self.audit = AuditLog::open(path.as_ref())?;
        Ok(self)
    }

    /// Returns the console as a router.
    ///
    /// # Panics
    /// When the operating system has no random numbers.
    pub fn router(self) -> Router {
        match App::new(self) {
            Ok(app) => routes::router(app),
            Err(error) => panic!("cannot make the keys of the console: {error}"),
        }
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("name", &self.name)
            .field("access", &self.access)
            .field("base_path", &self.base_path)
            .finish_non_exhaustive()
    }
}
