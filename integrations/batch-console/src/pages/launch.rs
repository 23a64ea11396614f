//! The launch of a job from its form.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use batch_runtime::JobParameters;

use super::execution::job_link;
use super::launch_form::Form;
use super::{check_form, job};
use crate::app::RequestContext;
use crate::extract::{Form as Fields, JobPath, Path};
use crate::operations::Launched;
use crate::problem::Problem;

/// Leads to the form: a browser may reload the address that the form was sent to.
pub(super) async fn form(context: RequestContext, Path(JobPath { job }): Path<JobPath>) -> Response {
    let page = format!("{}#launch", job_link(&context.root.path, &job));
    (StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response()
}

/// Launches the job, or checks what was entered.
pub(super) async fn launch(
    context: RequestContext,
    Path(JobPath { job }): Path<JobPath>,
    Fields(fields): Fields<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let form = Form::new(fields);
    check_form(&context, &form.token)?;
    let result = match form.parameters() {
        Ok(parameters) => act(&context, &job, &form, parameters).await,
        Err(problem) => Err(problem),
    };
    match result {
        Ok(Done::At(page)) => Ok((StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response()),
        Ok(Done::Checked(text)) => job::page(context, job, form, Some(Ok(text))).await,
        Err(problem) => job::page(context, job, form, Some(Err(problem))).await,
    }
}

/// What came of a form.
enum Done {
    /// The page that shows it.
    At(String),
    /// The job was only checked.
    Checked(String),
}

async fn act(
    context: &RequestContext,
    job: &str,
    form: &Form,
    parameters: JobParameters,
) -> Result<Done, Problem> {
    let (name, root, operator) = (job.to_owned(), &context.root.path, &context.app.operator);
    if form.action == "check" {
        let warnings = operator
            .run(move |operator| operator.check(&name, parameters))
            .await?;
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        return Ok(Done::Checked(match warnings.is_empty() {
            true => "The job can be launched with these parameters.".into(),
            false => format!(
                "The job can be launched, with warnings:\n\n{}",
                warnings.join("\n")
            ),
        }));
    }
    let queue = form.on_worker.then(|| form.queue.clone());
    let page = match context.launch(name, parameters, queue).await? {
        Launched::Here(execution) => format!("{root}/executions/{execution}"),
        Launched::Queued(_) => format!("{root}/workers"),
    };
    Ok(Done::At(page))
}
