//! The executions of all jobs, filtered, in pages.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError, Timestamp};
use serde::Deserialize;

use super::{Layout, html, now};
use crate::app::RequestContext;
use crate::extract::Query;
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
    fn query(&self, before: Option<JobExecutionId>) -> String {
        let mut query = before.map_or_else(String::new, |before| format!("&before={before}"));
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
        query.trim_start_matches('&').to_owned()
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
    layout: Layout,
    filter: Filter,
    statuses: Vec<(&'static str, bool)>,
    jobs: Vec<String>,
    rows: Vec<ExecutionRow>,
    /// What is wrong with the filter.
    problem: String,
    /// The query of the first page.
    newest: String,
    /// The query of the next page.
    next: Option<String>,
}

pub(super) async fn show(context: RequestContext, Query(filter): Query<Filter>) -> Result<Response, Problem> {
    // One more, to know whether there is another page.
    let (wanted, problem) = match filter.parse(PAGE + 1) {
        Ok(wanted) => (Some(wanted), None),
        Err(problem) => (None, Some(problem)),
    };
    let read = move |operator: &JobOperator| {
        let mut found = match wanted {
            Some(wanted) => operator.find_executions(&wanted)?,
            None => Vec::new(),
        };
        let has_more = found.len() > PAGE;
        found.truncate(PAGE);
        let last = found.last().map(|last| last.id).filter(|_| has_more);
        Ok::<_, JobOperatorError>((rows(operator, &found, now())?, last, operator.job_names()?))
    };
    let (rows, last, jobs) = context.app.operator.run(read).await?;
    let chosen = filter.status.trim().to_ascii_uppercase();
    let statuses = BatchStatus::ALL.map(|status| (status.as_str(), status.as_str() == chosen));
    let is_live = filter.before.is_empty() && problem.is_none();
    let status = problem.as_ref().map_or(StatusCode::OK, |problem| problem.status);
    let mut response = html(&Page {
        layout: Layout::new(&context, "executions", "Executions").live(is_live),
        problem: problem.map(|problem| problem.text).unwrap_or_default(),
        newest: filter.query(None),
        next: last.map(|last| filter.query(Some(last))),
        statuses: statuses.to_vec(),
        jobs: jobs.into_iter().collect(),
        rows,
        filter,
    });
    *response.status_mut() = status;
    Ok(response)
}
