//! All jobs: from the job path, and from executions in the repository.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use batch_runtime::{JobOperator, JobOperatorError, Timestamp};

use super::job::{Definition, definition};
use super::{Layout, html, now};
use crate::app::RequestContext;
use crate::problem::Problem;
use crate::view::encoded;
use crate::view::rows::{ExecutionRow, rows};

#[derive(Template)]
#[template(path = "jobs.html")]
struct Page {
    layout: Layout,
    data: Data,
}

struct Data {
    jobs: Vec<JobRow>,
    /// The mistakes of files that are not valid Job XML.
    broken: Vec<String>,
    directories: Vec<String>,
}

struct JobRow {
    name: String,
    path: String,
    /// False if no file on the job path has it.
    is_defined: bool,
    is_valid: bool,
    latest: Option<ExecutionRow>,
}

pub(super) async fn show(context: RequestContext) -> Result<Response, Problem> {
    let data = context.app.operator.run(|operator| read(operator, now())).await?;
    let layout = Layout::new(&context, "jobs", "Jobs").refreshing(true);
    Ok(html(&Page { layout, data }))
}

fn read(operator: &JobOperator, now: Timestamp) -> Result<Data, JobOperatorError> {
    let report = operator.job_path();
    let latest = operator.latest_executions()?;
    let mut latest: BTreeMap<String, ExecutionRow> = rows(operator, &latest, now)?
        .into_iter()
        .map(|row| (row.job.clone(), row))
        .collect();
    let mut names: Vec<String> = report.jobs.iter().chain(latest.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    let jobs = names.into_iter().map(|name| JobRow {
        path: encoded(&name),
        is_valid: !matches!(definition(operator, &name, None), Definition::Invalid(_)),
        is_defined: report.jobs.contains(&name),
        latest: latest.remove(&name),
        name,
    });
    Ok(Data {
        jobs: jobs.collect(),
        broken: report.broken.iter().map(ToString::to_string).collect(),
        directories: report
            .directories
            .iter()
            .map(|one| one.display().to_string())
            .collect(),
    })
}
