//! Documents: drawings of jobs, reports of executions, exported instances.

use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use batch_runtime::JobOperator;
use batch_runtime::xml::graph::JobGraph;
use serde::Deserialize;

use crate::ReportFormat;
use crate::app::RequestContext;
use crate::extract::{ExecutionPath, InstancePath, JobPath, Path, Query, parameters};
use crate::problem::Problem;

/// A text for a file, which a browser does not show as a page of the console.
fn file(kind: &'static str, name: &str, text: String) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    (
        [
            (CONTENT_TYPE, kind.to_owned()),
            (CONTENT_DISPOSITION, disposition),
        ],
        text,
    )
        .into_response()
}

/// Draws a job as it would run.
pub(crate) async fn graph(
    context: RequestContext,
    Path(JobPath { job }): Path<JobPath>,
    Query(query): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let (mut format, mut texts) = ("svg".to_owned(), Vec::new());
    for (name, value) in query {
        match name.as_str() {
            "format" => format = value,
            "parameter" => texts.push(value),
            other => {
                return Err(Problem::invalid(format!(
                    "unknown field `{other}`: expected `format` or `parameter`"
                )));
            }
        }
    }
    let (kind, extension, draw): (_, _, fn(&JobGraph) -> String) = match format.as_str() {
        "svg" => ("image/svg+xml", "svg", JobGraph::to_svg),
        "dot" => ("text/vnd.graphviz; charset=utf-8", "dot", JobGraph::to_dot),
        "mermaid" => ("text/plain; charset=utf-8", "mmd", JobGraph::to_mermaid),
        other => {
            return Err(Problem::invalid(format!(
                "invalid value `{other}` for `format`: expected one of svg, dot, mermaid"
            )));
        }
    };
    let parameters = parameters(&texts)?;
    let read = move |operator: &JobOperator| operator.definitions().effective_job(&job, &parameters);
    let job = context.app.operator.run(read).await?;
    Ok(file(
        kind,
        &format!("job.{extension}"),
        draw(&JobGraph::new(&job)),
    ))
}

/// The query of a report.
#[derive(Deserialize)]
pub(crate) struct ReportRequest {
    #[serde(default)]
    format: String,
}

impl ReportRequest {
    fn format(&self) -> Result<ReportFormat, Problem> {
        match self.format.as_str() {
            "" | "html" => Ok(ReportFormat::Html),
            "markdown" => Ok(ReportFormat::Markdown),
            other => Err(Problem::invalid(format!(
                "invalid value `{other}` for `format`: expected html or markdown"
            ))),
        }
    }
}

/// Returns an execution as a file for others.
pub(crate) async fn report(
    context: RequestContext,
    Path(path): Path<ExecutionPath>,
    Query(request): Query<ReportRequest>,
) -> Result<Response, Problem> {
    let (id, format) = (path.id()?, request.format()?);
    let Some(render) = context.app.reports.clone() else {
        return Err(Problem::not_found("this program makes no reports"));
    };
    let read = move |operator: &JobOperator| render(operator, id, format);
    let text = context.app.operator.run(read).await?;
    let (kind, extension) = match format {
        ReportFormat::Html => ("text/html; charset=utf-8", "html"),
        ReportFormat::Markdown => ("text/markdown; charset=utf-8", "md"),
    };
    Ok(file(kind, &format!("execution-{id}.{extension}"), text))
}

/// Returns an instance as a line of JSON.
pub(crate) async fn export(
    context: RequestContext,
    Path(path): Path<InstancePath>,
) -> Result<Response, Problem> {
    let id = path.id()?;
    let read = move |operator: &JobOperator| operator.export(id);
    let line = context.app.operator.run(read).await?;
    let line = line.ok_or_else(|| Problem::not_found(format!("unknown job instance {id}")))?;
    Ok(([(CONTENT_TYPE, "application/json")], line + "\n").into_response())
}
