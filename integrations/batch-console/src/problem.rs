//! Failed requests, as the status of a response and a text for people.

use std::fmt;
use std::time::Duration;

use axum::http::StatusCode;
use batch_runtime::{JobOperatorError, repository::RepositoryError};

/// A request that cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) title: &'static str,
    pub(crate) text: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, title: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, title, text }
    }

    /// Something does not exist.
    pub(crate) fn not_found(what: impl fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not found", what.to_string())
    }

    /// The request has a wrong value.
    pub(crate) fn invalid(what: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Invalid request", what.to_string())
    }

    /// The repository has not answered in this time.
    pub(crate) fn no_answer(time: Duration) -> Self {
        let text = format!(
            "the repository has not answered in {} s; the log of the program has the cause",
            time.as_secs()
        );
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The repository cannot be used",
            text,
        )
    }

    /// Too many operations are running.
    pub(crate) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Other operations are running",
            "nothing was done, because operations such as restarts are still running; try again",
        )
    }

    /// A mistake of this crate.
    pub(crate) fn bug(error: &dyn fmt::Display) -> Self {
        tracing::error!(%error, "the console cannot make a page");
        let text = "the console itself failed; its log has the cause";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The console failed", text)
    }

    /// Returns whether the same request may be answered later.
    pub(crate) fn is_transient(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }
}

impl From<JobOperatorError> for Problem {
    fn from(error: JobOperatorError) -> Self {
        let (status, title) = match &error {
            JobOperatorError::NoSuchJob { .. }
            | JobOperatorError::NoSuchJobInstance(_)
            | JobOperatorError::NoSuchJobExecution(_)
            | JobOperatorError::NoSuchLaunch(_)
            | JobOperatorError::NoSuchNotificationTarget { .. } => (StatusCode::NOT_FOUND, "Not found"),
            JobOperatorError::NotificationFailed { .. } => (StatusCode::BAD_GATEWAY, "Not delivered"),
            JobOperatorError::Repository(RepositoryError::Corrupt { .. }) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "The repository has invalid data",
            ),
            JobOperatorError::Repository(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "The repository cannot be used")
            }
            JobOperatorError::JobStart { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "The job cannot be started")
            }
            _ => (StatusCode::CONFLICT, "Not possible now"),
        };
        Self::new(status, title, error.to_string())
    }
}

impl From<RepositoryError> for Problem {
    fn from(error: RepositoryError) -> Self {
        JobOperatorError::from(error).into()
    }
}
