//! The JSON API: the verbs of the command line, for programs. `openapi.json` describes it.

mod import;
mod notifications;

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use batch_runtime::execution::{JobExecution, StepExecution};
use batch_runtime::operator::{ExecutionState, LaunchStatus, Purge};
use batch_runtime::{JobOperator, JobOperatorError, JobParameters, LaunchId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::app::{App, RequestContext};
use crate::documents;
use crate::extract::{ActionPath, Body, ExecutionPath, JobPath, Path, Query, parameters};
use crate::operations::{Action, Launched};
use crate::pages::Filter;
use crate::problem::Problem;
use crate::view::owners;

/// The number of executions that a list returns by default.
const LIMIT: usize = 100;
/// The most executions that a list returns.
const MAX_LIMIT: usize = 1_000;

/// Returns whether a path is one of the API.
pub(crate) fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/openapi.json", get(description))
        .route("/api/v1/jobs", get(jobs))
        .route("/api/v1/jobs/{job}", get(job))
        .route("/api/v1/jobs/{job}/check", post(check))
        .route("/api/v1/jobs/{job}/graph", get(documents::graph))
        .route("/api/v1/jobs/{job}/launch", post(launch))
        .route("/api/v1/jobs/{job}/start", post(start))
        .route("/api/v1/executions", get(executions))
        .route("/api/v1/executions/{execution}", get(execution))
        .route("/api/v1/executions/{execution}/report", get(documents::report))
        .route("/api/v1/executions/{execution}/{action}", post(act))
        .route("/api/v1/instances/{instance}/export", get(documents::export))
        .route("/api/v1/recover", post(recover))
        .route("/api/v1/workers", get(workers))
        .route("/api/v1/launches", get(launches))
        .route("/api/v1/launches/{launch}/stop", post(stop_launch))
        .route("/api/v1/import", import::route())
        .route("/api/v1/notifications", get(notifications::list))
        .route("/api/v1/notifications/send", post(notifications::send))
        .route(
            "/api/v1/notifications/targets/{target}/test",
            post(notifications::test),
        )
        .route("/api/v1/repository", get(repository))
        .route("/api/v1/repository/purge", get(purgeable).post(purge))
}

/// Returns a problem as JSON.
pub(crate) fn problem(problem: &Problem) -> Response {
    let body = json!({ "error": problem.text, "title": problem.title, "status": problem.status.as_u16() });
    (problem.status, Json(body)).into_response()
}

async fn description() -> Response {
    let text = include_str!("openapi.json");
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

type Answer = Result<Json<Value>, Problem>;

/// Reads the body of a request that changes something. Its type has to be JSON, which forms of other sites cannot send.
fn body<T: DeserializeOwned + Default>(headers: &HeaderMap, bytes: &Bytes) -> Result<T, Problem> {
    require_type(headers, &["application/json"])?;
    if bytes.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(bytes).map_err(|error| Problem::invalid(format!("invalid JSON: {error}")))
}

/// Rejects a body of another type.
fn require_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), Problem> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match allowed.iter().any(|allowed| kind.eq_ignore_ascii_case(allowed)) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Invalid request",
            format!("send the header `Content-Type: {}`", allowed.join("` or `")),
        )),
    }
}

fn with_state(execution: &JobExecution, state: Option<&ExecutionState>) -> Value {
    let mut shown = json!(execution);
    // The process of another program cannot be checked.
    let known = state.filter(|state| !state.is_of_other_program || execution.status.is_final());
    shown["isAlive"] = json!(known.map(|state| state.is_alive));
    shown["owner"] = json!(state.and_then(|state| state.owner.as_deref()));
    shown["lastOwner"] = json!(state.and_then(|state| state.last_owner.as_deref()));
    shown["isOfOtherProgram"] = json!(state.map(|state| state.is_of_other_program));
    shown["waitsFor"] = json!(state.and_then(|state| state.waits_for).map(|before| before.0));
    shown
}

fn with_states(operator: &JobOperator, executions: &[JobExecution]) -> Result<Vec<Value>, JobOperatorError> {
    let states = operator.execution_states(executions)?;
    let shown = executions
        .iter()
        .map(|execution| with_state(execution, states.get(&execution.id)));
    Ok(shown.collect())
}

async fn jobs(context: RequestContext) -> Answer {
    let read = |operator: &JobOperator| {
        let latest = operator.latest_executions()?;
        let shown = with_states(operator, &latest)?;
        let jobs = operator.job_names()?.into_iter().map(|name| {
            let latest = latest
                .iter()
                .zip(&shown)
                .find(|(execution, _)| execution.job_name == name);
            json!({ "job": name, "lastExecution": latest.map(|(_, shown)| shown) })
        });
        Ok::<_, JobOperatorError>(jobs.collect())
    };
    context.app.operator.run(read).await.map(Json)
}

async fn job(context: RequestContext, Path(JobPath { job }): Path<JobPath>) -> Answer {
    let read = move |operator: &JobOperator| {
        let instances = operator.job_instance_count(&job)?;
        let explained = operator.definitions().explain(&job, &JobParameters::new());
        let (definition, error) = match explained {
            Ok(explained) => (json!(explained), Value::Null),
            Err(error) => (Value::Null, json!(error.to_string())),
        };
        Ok::<_, JobOperatorError>(json!({
            "job": job, "instances": instances, "definition": definition, "error": error
        }))
    };
    context.app.operator.run(read).await.map(Json)
}

/// The body of a launch or check.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LaunchRequest {
    /// As the command line takes them: `name=value`.
    parameters: Vec<String>,
    /// The queue of workers that run the job; `None`: this process does.
    queue: Option<String>,
}

impl LaunchRequest {
    fn parameters(&self) -> Result<JobParameters, Problem> {
        parameters(&self.parameters)
    }
}

async fn check(
    context: RequestContext,
    Path(JobPath { job }): Path<JobPath>,
    headers: HeaderMap,
    Body(bytes): Body,
) -> Answer {
    let parameters = body::<LaunchRequest>(&headers, &bytes)?.parameters()?;
    let check = move |operator: &JobOperator| operator.check(&job, parameters);
    let warnings = context.app.operator.run(check).await?;
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    Ok(Json(json!({ "warnings": warnings })))
}

async fn launch(
    context: RequestContext,
    Path(JobPath { job }): Path<JobPath>,
    headers: HeaderMap,
    Body(bytes): Body,
) -> Result<(StatusCode, Json<Value>), Problem> {
    context.require_operator()?;
    let request: LaunchRequest = body(&headers, &bytes)?;
    let parameters = request.parameters()?;
    let launched = match context.launch(job, parameters, request.queue).await? {
        Launched::Here(execution) => json!({ "execution": execution.0 }),
        Launched::Queued(launch) => json!({ "launch": launch.0 }),
    };
    Ok((StatusCode::CREATED, Json(launched)))
}

async fn start(
    context: RequestContext,
    Path(JobPath { job }): Path<JobPath>,
    headers: HeaderMap,
    Body(bytes): Body,
) -> Result<(StatusCode, Json<Value>), Problem> {
    context.require_operator()?;
    let request: LaunchRequest = body(&headers, &bytes)?;
    if request.queue.is_some() {
        return Err(Problem::invalid(
            "a start cannot be queued for workers; launch the job instead",
        ));
    }
    let execution = context.start(job, request.parameters()?).await?;
    Ok((StatusCode::CREATED, Json(json!({ "execution": execution.0 }))))
}

/// The query of a list of executions.
#[derive(Deserialize)]
struct ListRequest {
    #[serde(flatten)]
    filter: Filter,
    limit: Option<String>,
}

async fn executions(context: RequestContext, Query(request): Query<ListRequest>) -> Answer {
    let limit = match request.limit.as_deref() {
        None => LIMIT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or_else(|| {
                Problem::invalid(format!(
                    "invalid value `{text}` for `limit`: expected a number from 1 to {MAX_LIMIT}"
                ))
            })?,
    };
    let wanted = request.filter.parse(limit)?;
    let read = move |operator: &JobOperator| {
        let found = operator.find_executions(&wanted)?;
        with_states(operator, &found).map(Value::from)
    };
    context.app.operator.run(read).await.map(Json)
}

async fn execution(context: RequestContext, Path(path): Path<ExecutionPath>) -> Answer {
    let id = path.id()?;
    let read = move |operator: &JobOperator| {
        let found = operator
            .job_execution(id)?
            .ok_or(JobOperatorError::NoSuchJobExecution(id))?;
        let states = operator.execution_states(std::slice::from_ref(&found))?;
        let mut shown = with_state(&found, states.get(&id));
        let parameters = operator.parameters(id)?;
        let texts: Vec<String> = parameters.iter().map(|(name, one)| one.to_text(name)).collect();
        shown["parameters"] = json!(texts);
        let steps = operator.step_executions(id)?;
        let own = owners::of_execution(&found, states.get(&id));
        let owners = owners::of_partitions(operator, &steps, &steps, own)?;
        let step = |step: &StepExecution| {
            let mut shown = json!(step);
            if let Some(owner) = owners.get(&step.id).filter(|owner| !owner.is_empty()) {
                shown["owner"] = json!(owner);
            }
            shown
        };
        shown["steps"] = steps.iter().map(step).collect();
        shown["totals"] = json!(operator.step_totals(id)?);
        Ok::<_, JobOperatorError>(shown)
    };
    context.app.operator.run(read).await.map(Json)
}

/// The body of a request without arguments.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyBody {}

/// The body of a restart.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RestartRequest {
    /// They override the instance's parameters.
    parameters: Vec<String>,
}

/// Performs an action on an execution.
async fn act(
    context: RequestContext,
    Path(path): Path<ActionPath>,
    headers: HeaderMap,
    Body(bytes): Body,
) -> Answer {
    let (id, action) = path.parse()?;
    context.require_operator()?;
    let parameters = match action {
        Action::Restart => parameters(&body::<RestartRequest>(&headers, &bytes)?.parameters)?,
        _ => body::<EmptyBody>(&headers, &bytes).map(|_| JobParameters::new())?,
    };
    let next = context.perform(action, id, parameters).await?;
    Ok(Json(json!({ "execution": next.0 })))
}

async fn recover(context: RequestContext, headers: HeaderMap, Body(bytes): Body) -> Answer {
    context.require_operator()?;
    body::<EmptyBody>(&headers, &bytes)?;
    let outcomes = context.recover().await?;
    let outcomes = outcomes
        .into_iter()
        .map(|(id, outcome)| json!({ "execution": id.0, "outcome": outcome }));
    Ok(Json(outcomes.collect()))
}

async fn workers(context: RequestContext) -> Answer {
    let workers = context.app.operator.run(JobOperator::workers).await?;
    let workers = workers.into_iter().map(|worker| {
        json!({
            "worker": worker.name, "queue": worker.queue, "slots": worker.slots, "version": worker.version,
            "started": worker.started, "isDraining": worker.is_draining, "isAlive": worker.is_alive,
            "partitions": worker.partitions.len(),
        })
    });
    Ok(Json(workers.collect()))
}

async fn launches(context: RequestContext) -> Answer {
    let launches = context.app.operator.run(JobOperator::launches).await?;
    let launches = launches.into_iter().map(|launch| {
        json!({
            "launch": launch.id.0, "job": launch.job, "queue": launch.queue, "status": status_of(launch.status),
            "execution": launch.execution.map(|id| id.0), "worker": launch.worker, "submitted": launch.submitted,
            "message": launch.message,
        })
    });
    Ok(Json(launches.collect()))
}

/// The part of the path of a launch.
#[derive(Deserialize)]
struct LaunchPath {
    launch: String,
}

/// Withdraws a launch that waits for a worker, or stops its execution.
async fn stop_launch(
    context: RequestContext,
    Path(LaunchPath { launch }): Path<LaunchPath>,
    headers: HeaderMap,
    Body(bytes): Body,
) -> Answer {
    let id: LaunchId = launch.parse().map_err(|_| {
        Problem::not_found(format!("`{launch}` is not the id of a launch; expected a number"))
    })?;
    context.require_operator()?;
    body::<EmptyBody>(&headers, &bytes)?;
    let has_stopped = context.stop_launch(id).await?;
    Ok(Json(json!({ "launch": id.0, "hasStopped": has_stopped })))
}

fn status_of(status: LaunchStatus) -> &'static str {
    match status {
        LaunchStatus::Queued => "QUEUED",
        LaunchStatus::Running => "RUNNING",
        LaunchStatus::Ended(status) => status.as_str(),
        LaunchStatus::Rejected => "REJECTED",
        LaunchStatus::Withdrawn => "WITHDRAWN",
        _ => "PURGED",
    }
}

async fn repository(context: RequestContext) -> Answer {
    let read = |operator: &JobOperator| {
        let size = operator.repository_size()?;
        Ok::<_, JobOperatorError>(json!({
            "repository": operator.repository_url().to_string(),
            "instances": size.job_instances, "executions": size.job_executions, "steps": size.step_executions,
        }))
    };
    context.app.operator.run(read).await.map(Json)
}

/// Selects instances to delete.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PurgeRequest {
    job: Option<String>,
    /// A time: only instances that ended before.
    before: Option<String>,
    keep: u32,
    force: bool,
}

impl PurgeRequest {
    fn purge(self) -> Result<Purge, Problem> {
        let before = self.before.map(|text| {
            text.parse()
                .map_err(|error| Problem::invalid(format!("invalid value `{text}` for `before`: {error}")))
        });
        Ok(Purge {
            job: self.job,
            before: before.transpose()?,
            keep: self.keep,
            force: self.force,
        })
    }
}

async fn purgeable(context: RequestContext, Query(request): Query<PurgeRequest>) -> Answer {
    let purge = request.purge()?;
    let found = context
        .app
        .operator
        .run(move |operator| operator.purgeable(&purge))
        .await?;
    Ok(Json(json!(found)))
}

async fn purge(context: RequestContext, headers: HeaderMap, Body(bytes): Body) -> Answer {
    context.require_operator()?;
    let purge = body::<PurgeRequest>(&headers, &bytes)?.purge()?;
    let deleted = context.purge(purge).await?;
    Ok(Json(json!({ "deleted": deleted })))
}
