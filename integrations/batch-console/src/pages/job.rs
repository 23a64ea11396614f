//! A job: its graph, the history of its executions, and the form that launches it.

use askama::Template;
use axum::response::Response;
use batch_runtime::operator::{Guarantee, JobExplanation, StartError};
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::xml::JobXmlErrors;
use batch_runtime::xml::graph::JobGraph;
use batch_runtime::xml::model::Job;
use batch_runtime::{JobOperator, JobOperatorError, JobParameters};
use serde::Deserialize;

use super::launch_form::{Form, LaunchForm};
use super::{Layout, html, now};
use crate::app::RequestContext;
use crate::extract::{JobPath, Path, Query, execution_id};
use crate::problem::Problem;
use crate::view::chart::{self, Quantity};
use crate::view::rows::{ExecutionRow, rows};

/// The number of executions in the history.
const HISTORY: u32 = 60;
/// The number of executions in the table.
const LISTED: usize = 10;

#[derive(Template)]
#[template(path = "job.html")]
struct Page {
    layout: Layout,
    data: Data,
}

pub(super) struct Data {
    name: String,
    path: String,
    file: String,
    /// The drawing, as an element of the page; empty if the job cannot be drawn.
    graph: String,
    /// What a crash does to the items of each step.
    guarantees: Vec<(String, Guarantee)>,
    /// The reason why it cannot be drawn.
    problem: String,
    /// True if no parameters would make it valid.
    is_invalid: bool,
    instances: i64,
    rows: Vec<ExecutionRow>,
    durations: String,
    items: String,
    form: LaunchForm,
}

/// The execution whose parameters the form has.
#[derive(Deserialize)]
pub(super) struct Again {
    #[serde(default)]
    again: String,
}

pub(super) async fn show(
    context: RequestContext,
    Path(JobPath { job }): Path<JobPath>,
    Query(Again { again }): Query<Again>,
) -> Result<Response, Problem> {
    let form = match again.as_str() {
        "" => Form::default(),
        id => {
            let (id, name) = (execution_id(id)?, job.clone());
            context
                .app
                .operator
                .run(move |operator| Form::again(operator, &name, id))
                .await?
        }
    };
    page(context, job, form, None).await
}

/// Returns the page with what was entered in the form, and what came of it.
pub(super) async fn page(
    context: RequestContext,
    job: String,
    form: Form,
    result: Option<Result<String, Problem>>,
) -> Result<Response, Problem> {
    let root = context.root.path.clone();
    let title = job.clone();
    let read = move |operator: &JobOperator| read(operator, job, &form, &root);
    let mut data = context.app.operator.run(read).await?;
    // Loading the response to a form again would show the empty form.
    let is_live = result.is_none();
    let mut status = axum::http::StatusCode::OK;
    match result {
        Some(Ok(done)) => data.form.done = done,
        Some(Err(problem)) => {
            status = problem.status;
            data.form.problem = problem.text;
        }
        None => {}
    }
    let layout = Layout::new(&context, "jobs", title).live(is_live);
    let mut response = html(&Page { layout, data });
    *response.status_mut() = status;
    Ok(response)
}

fn read(operator: &JobOperator, name: String, form: &Form, root: &str) -> Result<Data, JobOperatorError> {
    // Reports an unknown job.
    let instances = operator.job_instance_count(&name)?;
    let filter = ExecutionFilter {
        job: Some(name.clone()),
        limit: Some(HISTORY),
        ..ExecutionFilter::default()
    };
    let mut rows = rows(operator, &operator.find_executions(&filter)?, now())?;
    let executions = format!("{root}/executions");
    let durations = chart::draw(&rows, Quantity::Duration, &executions);
    let items = match rows.iter().any(|row| row.written.0 > 0) {
        true => chart::draw(&rows, Quantity::Written, &executions),
        false => String::new(),
    };
    let latest = match rows.first() {
        Some(row) => Some(operator.parameters(row.id)?),
        None => None,
    };
    rows.truncate(LISTED);
    let definition = definition(operator, &name, latest.as_ref());
    let mut form = LaunchForm::of(operator, &name, form, latest.as_ref())?;
    let is_invalid = matches!(definition, Definition::Invalid(_));
    form.can_launch &= !is_invalid;
    let (graph, file, problem) = match definition {
        Definition::Valid(job) => {
            let file = job.id.span.source().name().to_owned();
            (JobGraph::new(&job).to_svg_element(), file, String::new())
        }
        Definition::Invalid(problem) | Definition::Incomplete(problem) => {
            (String::new(), String::new(), problem)
        }
        Definition::Missing => (String::new(), String::new(), String::new()),
    };
    Ok(Data {
        path: crate::view::encoded(&name),
        file,
        guarantees: guarantees(operator, &name, latest.as_ref()),
        graph,
        problem,
        is_invalid,
        instances,
        rows,
        durations,
        items,
        form,
        name,
    })
}

fn guarantees(
    operator: &JobOperator,
    name: &str,
    latest: Option<&JobParameters>,
) -> Vec<(String, Guarantee)> {
    let without = JobParameters::new();
    let explained = operator
        .definitions()
        .explain(name, latest.unwrap_or(&without))
        .ok();
    let guarantees = explained.iter().flat_map(JobExplanation::guarantees);
    guarantees
        .map(|(step, guarantee)| (step.to_owned(), guarantee.clone()))
        .collect()
}

/// The definition of a job, as far as it is known without its parameters.
pub(super) enum Definition {
    Valid(Box<Job>),
    /// What is wrong with any parameters.
    Invalid(String),
    /// What is wrong with values that parameters can change.
    Incomplete(String),
    /// No file on the job path has it.
    Missing,
}

/// Returns the definition of a job without parameters, else with the parameters of its latest execution.
pub(super) fn definition(operator: &JobOperator, name: &str, latest: Option<&JobParameters>) -> Definition {
    let definitions = operator.definitions();
    let error = match definitions.effective_job(name, &JobParameters::new()) {
        Ok(job) => return Definition::Valid(Box::new(job)),
        Err(error) => error,
    };
    if let Some(Ok(job)) = latest.map(|parameters| definitions.effective_job(name, parameters)) {
        return Definition::Valid(Box::new(job));
    }
    // The symbols of both dialects.
    let is_of_parameter = |text: &str| text.contains("${") || text.contains("#{jobParameters");
    let takes_parameters = |errors: &JobXmlErrors| errors.iter().any(|one| is_of_parameter(one.span.text()));
    match &error {
        JobOperatorError::NoSuchJob { .. } => Definition::Missing,
        JobOperatorError::JobStart {
            cause: StartError::Definition(errors),
            ..
        } if takes_parameters(errors) => Definition::Incomplete(error.to_string()),
        _ => Definition::Invalid(error.to_string()),
    }
}
