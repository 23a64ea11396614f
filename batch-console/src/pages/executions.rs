//! The executions of all jobs, filtered, in pages.

use askama::Template;
use axum::extract::Query;
use axum::response::Response;
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{BatchStatus, JobExecutionId, Timestamp};
use serde::Deserialize;

use super::{Shell, html, now};
use crate::app::Visit;
use crate::problem::Problem;
use crate::view::encoded;
use crate::view::rows::{ExecutionRow, rows};

/// The number of executions on a page.
const PAGE: usize = 50;

/// The filter as it is in the URL.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    pub(crate) job: String,
    pub(crate) status: String,
    pub(crate) since: String,
    pub(crate) until: String,
    pub(crate) before: String,
}

impl Filter {
    /// Returns the filter of the operator.
    pub(crate) fn parse(&self, limit: usize) -> Result<ExecutionFilter, Problem> {
        let time = |name: &str, text: &str| -> Result<Option<Timestamp>, Problem> {
            match text.trim() {
                "" => Ok(None),
                text => text.parse().map(Some).map_err(|error| {
                    Problem::invalid(format!("invalid value `{text}` for `{name}`: {error}"))
                }),
            }
        };
        let job = self.job.trim();
        Ok(ExecutionFilter {
            job: (!job.is_empty()).then(|| job.to_owned()),
            statuses: status(&self.status)?.into_iter().collect(),
            since: time("since", &self.since)?,
            until: time("until", &self.until)?,
            before: match self.before.trim() {
                "" => None,
                text => Some(text.parse().map_err(|_| {
                    Problem::invalid(format!(
                        "invalid value `{text}` for `before`: expected the id of an execution"
                    ))
                })?),
            },
            limit: u32::try_from(limit).ok(),
            ..ExecutionFilter::default()
        })
    }

    /// Returns the query of the URL, for executions before this one.
    fn query(&self, before: JobExecutionId) -> String {
        let mut query = format!("before={before}");
        for (name, value) in [
            ("job", &self.job),
            ("status", &self.status),
            ("since", &self.since),
            ("until", &self.until),
        ] {
            if !value.trim().is_empty() {
                query += &format!("&{name}={}", encoded(value.trim()));
            }
        }
        query
    }
}

fn status(text: &str) -> Result<Option<BatchStatus>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let mut all = BatchStatus::ALL.into_iter();
    let found = all.find(|status| status.as_str().eq_ignore_ascii_case(text));
    found.map(Some).ok_or_else(|| {
        let names = BatchStatus::ALL.map(BatchStatus::as_str).join(", ");
        Problem::invalid(format!(
            "invalid value `{text}` for `status`: expected one of {names}"
        ))
    })
}

#[derive(Template)]
#[template(path = "executions.html")]
struct Page {
    shell: Shell,
    filter: Filter,
    statuses: Vec<(&'static str, bool)>,
    jobs: Vec<String>,
    rows: Vec<ExecutionRow>,
    /// The query of the next page.
    next: Option<String>,
}

pub(super) async fn show(visit: Visit, Query(filter): Query<Filter>) -> Result<Response, Problem> {
    // One more, to know whether there is another page.
    let wanted = filter.parse(PAGE + 1)?;
    let read = move |operator: &batch_runtime::JobOperator| {
        let mut found = operator.find_executions(&wanted)?;
        let has_more = found.len() > PAGE;
        found.truncate(PAGE);
        let last = found.last().map(|last| last.id).filter(|_| has_more);
        Ok::<_, batch_runtime::JobOperatorError>((
            rows(operator, &found, now())?,
            last,
            operator.job_names()?,
        ))
    };
    let (rows, last, jobs) = visit.app.workbench.run(read).await?;
    let chosen = filter.status.trim().to_ascii_uppercase();
    let statuses = BatchStatus::ALL.map(|status| (status.as_str(), status.as_str() == chosen));
    Ok(html(&Page {
        shell: Shell::new(&visit, "executions", "Executions").refreshing(filter.before.is_empty()),
        next: last.map(|last| filter.query(last)),
        statuses: statuses.to_vec(),
        jobs: jobs.into_iter().collect(),
        rows,
        filter,
    }))
}
