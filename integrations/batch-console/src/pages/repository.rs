//! The repository: its size and its tables, and the deletion of old instances.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use batch_runtime::execution::JobInstance;
use batch_runtime::operator::Purge;
use batch_runtime::repository::{MigrationStatus, RepositorySize};
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, JobParameters, Timestamp};
use serde::Deserialize;

use super::{Layout, check_form, html, now};
use crate::app::RequestContext;
use crate::extract::{Form, Query};
use crate::problem::Problem;
use crate::view::rows::truncated;
use crate::view::{Count, Pill, Time};

const DAY: i64 = 24 * 60 * 60 * 1_000;
/// The number of instances that a preview lists.
const LISTED: usize = 30;

#[derive(Template)]
#[template(path = "repository.html")]
struct Page {
    layout: Layout,
    data: Data,
    filter: Selection,
    preview: Option<Preview>,
}

struct Data {
    url: String,
    layout: String,
    tables: String,
    instances: Count,
    executions: Count,
    steps: Count,
    jobs: Vec<String>,
}

/// What would be deleted.
struct Preview {
    count: Count,
    instances: Vec<InstanceRow>,
    /// The number of instances that are not listed.
    more: Count,
}

/// An instance that would be deleted.
struct InstanceRow {
    id: i64,
    job: String,
    /// The execution that ran last.
    execution: Option<JobExecutionId>,
    pill: Option<Pill>,
    ended: Option<Time>,
    parameters: String,
}

impl InstanceRow {
    fn read(operator: &JobOperator, instance: JobInstance) -> Result<Self, JobOperatorError> {
        let executions = operator.job_executions(instance.id)?;
        let latest = executions.iter().max_by_key(|execution| execution.id);
        let parameters = match latest {
            Some(latest) => operator.parameters(latest.id)?,
            None => JobParameters::new(),
        };
        let parameters: Vec<String> = parameters.iter().map(|(name, one)| one.to_text(name)).collect();
        Ok(Self {
            id: instance.id.0,
            job: instance.job_name,
            execution: latest.map(|latest| latest.id),
            pill: latest.map(|latest| Pill::of(latest.status)),
            ended: latest
                .and_then(|latest| latest.ended)
                .map(|ended| Time::new(ended, now())),
            parameters: truncated(&parameters.join(" ")),
        })
    }
}

/// The fields of the form that selects instances.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Selection {
    form: String,
    job: String,
    days: String,
    keep: String,
    force: Option<String>,
}

impl Selection {
    fn purge(&self) -> Result<Purge, Problem> {
        let number = |name: &str, text: &str| -> Result<u32, Problem> {
            match text.trim() {
                "" => Ok(0),
                text => text.parse().map_err(|_| {
                    Problem::invalid(format!(
                        "invalid value `{text}` for `{name}`: expected a whole number"
                    ))
                }),
            }
        };
        let days = number("days", &self.days)?;
        let before = (!self.days.trim().is_empty()).then(|| Timestamp(now().0 - i64::from(days) * DAY));
        Ok(Purge {
            job: Some(self.job.trim().to_owned()).filter(|job| !job.is_empty()),
            before,
            keep: number("keep", &self.keep)?,
            force: self.force.is_some(),
        })
    }
}

pub(super) async fn show(context: RequestContext) -> Result<Response, Problem> {
    let days = String::from("90");
    let filter = Selection {
        days,
        ..Selection::default()
    };
    page(context, filter, None).await
}

/// Shows what would be deleted.
pub(super) async fn preview(
    context: RequestContext,
    Query(filter): Query<Selection>,
) -> Result<Response, Problem> {
    let purge = filter.purge()?;
    let read = move |operator: &JobOperator| {
        let found = operator.purgeable(&purge)?;
        let count = |number: usize| Count(i64::try_from(number).unwrap_or(i64::MAX));
        Ok::<_, JobOperatorError>(Preview {
            count: count(found.len()),
            more: count(found.len().saturating_sub(LISTED)),
            instances: found
                .into_iter()
                .take(LISTED)
                .map(|instance| InstanceRow::read(operator, instance))
                .collect::<Result<_, _>>()?,
        })
    };
    let preview = context.app.operator.run(read).await?;
    page(context, filter, Some(preview)).await
}

async fn page(
    context: RequestContext,
    filter: Selection,
    preview: Option<Preview>,
) -> Result<Response, Problem> {
    let data = context.app.operator.run(read).await?;
    let layout = Layout::new(&context, "repository", "Repository");
    Ok(html(&Page {
        layout,
        data,
        filter,
        preview,
    }))
}

fn read(operator: &JobOperator) -> Result<Data, JobOperatorError> {
    let url = operator.repository_url();
    let RepositorySize {
        job_instances,
        job_executions,
        step_executions,
        ..
    } = operator.repository_size()?;
    let count = |rows: u64| Count(i64::try_from(rows).unwrap_or(i64::MAX));
    let tables = match url.migration_status() {
        Ok(MigrationStatus::UpToDate) => "up to date".into(),
        Ok(MigrationStatus::Pending(missing)) => format!("{} migrations are missing", missing.len()),
        // In memory there are none.
        Ok(_) | Err(_) => String::from("none"),
    };
    let layout = url.layout().ok().flatten();
    Ok(Data {
        url: url.to_string(),
        layout: layout.map_or_else(|| "-".into(), |layout| format!("Spring Batch {layout}")),
        tables,
        instances: count(job_instances),
        executions: count(job_executions),
        steps: count(step_executions),
        jobs: operator.job_names()?.into_iter().collect(),
    })
}

/// Deletes what the preview has shown.
pub(super) async fn purge(
    context: RequestContext,
    Form(selection): Form<Selection>,
) -> Result<Response, Problem> {
    check_form(&context, &selection.form)?;
    context.purge(selection.purge()?).await?;
    let page = format!("{}/repository", context.root.path);
    Ok((StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response())
}
