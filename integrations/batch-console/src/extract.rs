//! Parts of requests. Unlike axum's extractors, these reject with problems, which become pages or JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FormRejection, PathRejection, QueryRejection};
use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use batch_runtime::parameters::NamedParameter;
use batch_runtime::{JobExecutionId, JobInstanceId, JobParameters};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::operations::Action;
use crate::problem::Problem;

/// Parts of the path, by their names in the route: the path of a program around the console may have parts as well.
pub(crate) struct Path<T>(pub(crate) T);

/// The query of the URL.
pub(crate) struct Query<T>(pub(crate) T);

/// The fields of a form.
pub(crate) struct Form<T>(pub(crate) T);

/// The body of a request to the API.
pub(crate) struct Body(pub(crate) Bytes);

/// The part of the path of a page of a job.
#[derive(Deserialize)]
pub(crate) struct JobPath {
    pub(crate) job: String,
}

/// The part of the path of a page of an execution.
#[derive(Deserialize)]
pub(crate) struct ExecutionPath {
    execution: String,
}

/// The part of the path of an instance.
#[derive(Deserialize)]
pub(crate) struct InstancePath {
    instance: String,
}

impl InstancePath {
    /// Returns the id of the instance.
    pub(crate) fn id(&self) -> Result<JobInstanceId, Problem> {
        let (text, id) = (&self.instance, self.instance.parse());
        id.map_err(|_| {
            Problem::not_found(format!(
                "`{text}` is not the id of an instance; expected a number"
            ))
        })
    }
}

/// The parts of the path of an action on an execution.
#[derive(Deserialize)]
pub(crate) struct ActionPath {
    execution: String,
    action: String,
}

impl ExecutionPath {
    /// Returns the id of the execution.
    pub(crate) fn id(&self) -> Result<JobExecutionId, Problem> {
        execution_id(&self.execution)
    }
}

impl ActionPath {
    /// Returns the id of the execution, and the action.
    pub(crate) fn parse(&self) -> Result<(JobExecutionId, Action), Problem> {
        Ok((execution_id(&self.execution)?, Action::parse(&self.action)?))
    }
}

/// Parses the id of an execution.
pub(crate) fn execution_id(text: &str) -> Result<JobExecutionId, Problem> {
    let id = text.parse();
    id.map_err(|_| {
        Problem::not_found(format!(
            "`{text}` is not the id of an execution; expected a number"
        ))
    })
}

fn rejected(status: StatusCode, text: &str) -> Problem {
    match status {
        StatusCode::NOT_FOUND => Problem::not_found(text),
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(status, "Too large", "the body of a request has at most 64 KiB")
        }
        _ => Problem::new(status, "Invalid request", text),
    }
}

macro_rules! rejections {
    ($($rejection:ty),*) => {
        $(impl From<$rejection> for Problem {
            fn from(rejection: $rejection) -> Self {
                rejected(rejection.status(), &rejection.body_text())
            }
        })*
    };
}

rejections!(PathRejection, QueryRejection, FormRejection, BytesRejection);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let extract::Path(value) = extract::Path::from_request_parts(parts, app).await?;
        Ok(Self(value))
    }
}

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let extract::Query(value) = extract::Query::from_request_parts(parts, app).await?;
        Ok(Self(value))
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Form<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let extract::Form(value) = extract::Form::from_request(request, app).await?;
        Ok(Self(value))
    }
}

impl FromRequest<Arc<App>> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        Ok(Self(Bytes::from_request(request, app).await?))
    }
}

/// Parses parameters as the command line takes them: `name=value`.
pub(crate) fn parameters(texts: &[String]) -> Result<JobParameters, Problem> {
    let mut names = BTreeSet::new();
    let parsed = texts.iter().map(|text| {
        let parsed: Result<NamedParameter, String> = text.parse();
        let parsed = parsed.map_err(|problem| format!("parameter `{text}`: {problem}"))?;
        match names.insert(parsed.name.clone()) {
            true => Ok(parsed),
            false => Err(format!("parameter `{}` is given twice", parsed.name)),
        }
    });
    parsed.collect::<Result<_, _>>().map_err(Problem::invalid)
}
