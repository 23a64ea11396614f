//! A job: its graph, the history of its executions, and the form that launches it.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::xml::graph::JobGraph;
use batch_runtime::{JobOperator, JobOperatorError, JobParameters};

use super::launch::{Form, LaunchForm};
use super::{Shell, html, now};
use crate::app::Visit;
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
    shell: Shell,
    data: Data,
}

pub(super) struct Data {
    name: String,
    path: String,
    file: String,
    /// The drawing, as an element of the page; empty if the job cannot be drawn.
    graph: String,
    /// The reason why it cannot be drawn.
    problem: String,
    instances: i64,
    rows: Vec<ExecutionRow>,
    durations: String,
    items: String,
    form: LaunchForm,
}

pub(super) async fn show(visit: Visit, Path(job): Path<String>) -> Result<Response, Problem> {
    page(visit, job, Form::default(), None).await
}

/// Returns the page with what was entered in the form, and what came of it.
pub(super) async fn page(
    visit: Visit,
    job: String,
    form: Form,
    result: Option<Result<String, Problem>>,
) -> Result<Response, Problem> {
    let root = visit.root.0.clone();
    let title = job.clone();
    let read = move |operator: &JobOperator| read(operator, job, &form, &root);
    let mut data = visit.app.workbench.run(read).await?;
    let mut status = axum::http::StatusCode::OK;
    match result {
        Some(Ok(done)) => data.form.done = done,
        Some(Err(problem)) => {
            status = problem.status;
            data.form.problem = problem.text;
        }
        None => {}
    }
    let shell = Shell::new(&visit, "jobs", title);
    let mut response = html(&Page { shell, data });
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
    rows.truncate(LISTED);
    let definitions = operator.definitions();
    let (graph, file, problem) = match definitions.effective_job(&name, &JobParameters::new()) {
        Ok(job) => {
            let file = job.id.span.source().name().to_owned();
            (JobGraph::new(&job).to_svg_element(), file, String::new())
        }
        Err(error) => (String::new(), String::new(), error.to_string()),
    };
    Ok(Data {
        path: crate::view::encoded(&name),
        file,
        graph,
        problem,
        instances,
        rows,
        durations,
        items,
        form: LaunchForm::of(operator, &name, form)?,
        name,
    })
}
