//! The executions of all jobs, filtered, in pages.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use batch_runtime::execution::JobExecution;
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
    pub(crate) after: String,
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
        let id = |name: &str, text: &str| -> Result<Option<JobExecutionId>, Problem> {
            match text.trim() {
                "" => Ok(None),
                text => text.parse().map(Some).map_err(|_| {
                    Problem::invalid(format!(
                        "invalid value `{text}` for `{name}`: expected the id of an execution"
                    ))
                }),
            }
        };
        let job = self.job.trim();
        Ok(ExecutionFilter {
            job: (!job.is_empty()).then(|| job.to_owned()),
            statuses: status(&self.status)?.into_iter().collect(),
            since: time("since", &self.since)?,
            until: time("until", &self.until)?,
            before: id("before", &self.before)?,
            after: id("after", &self.after)?,
            limit: u32::try_from(limit).ok(),
            ..ExecutionFilter::default()
        })
    }

    /// Returns the query of the URL, for the executions before or after one.
    fn query(&self, from: Option<(&str, JobExecutionId)>) -> String {
        let mut query = from.map_or_else(String::new, |(name, id)| format!("&{name}={id}"));
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
    /// The queries of the pages beside this one.
    newer: Option<String>,
    older: Option<String>,
    /// True if it is the first page.
    is_newest: bool,
}

/// A page of the list.
#[derive(Default)]
struct Listed {
    rows: Vec<ExecutionRow>,
    has_newer: bool,
    has_older: bool,
}

impl Listed {
    /// Reads it with at most three statements for the list.
    fn read(operator: &JobOperator, filter: &ExecutionFilter) -> Result<Self, JobOperatorError> {
        // One more, to know whether there is another page.
        let limit = u32::try_from(PAGE + 1).ok();
        let limited = ExecutionFilter {
            limit,
            ..filter.clone()
        };
        let mut found = operator.find_executions(&limited)?;
        let mut has_more = found.len() > PAGE;
        let mut is_after = filter.after.is_some();
        if is_after && !has_more {
            // Nothing is newer than these, so they are on the first page, with those that fill it.
            is_after = false;
            found = operator.find_executions(&ExecutionFilter {
                after: None,
                ..limited
            })?;
            has_more = found.len() > PAGE;
        }
        match is_after {
            true => drop(found.drain(..found.len() - PAGE)),
            false => found.truncate(PAGE),
        }
        let is_first = !is_after && filter.before.is_none();
        let beside = match is_first {
            true => false,
            false => has_neighbour(operator, filter, &found, is_after)?,
        };
        Ok(Self {
            rows: rows(operator, &found, now())?,
            has_newer: if is_after { has_more } else { beside },
            has_older: if is_after { beside } else { has_more },
        })
    }
}

/// Returns whether an execution precedes or follows the executions of a page.
fn has_neighbour(
    operator: &JobOperator,
    filter: &ExecutionFilter,
    found: &[JobExecution],
    is_older: bool,
) -> Result<bool, JobOperatorError> {
    let end = if is_older { found.last() } else { found.first() };
    let Some(end) = end.map(|end| end.id) else {
        return Ok(false);
    };
    let beside = ExecutionFilter {
        before: is_older.then_some(end),
        after: (!is_older).then_some(end),
        limit: Some(1),
        ..filter.clone()
    };
    Ok(!operator.find_executions(&beside)?.is_empty())
}

pub(super) async fn show(context: RequestContext, Query(filter): Query<Filter>) -> Result<Response, Problem> {
    let (wanted, problem) = match filter.parse(PAGE) {
        Ok(wanted) => (Some(wanted), None),
        Err(problem) => (None, Some(problem)),
    };
    let read = move |operator: &JobOperator| {
        let listed = wanted.map(|wanted| Listed::read(operator, &wanted)).transpose()?;
        Ok::<_, JobOperatorError>((listed.unwrap_or_default(), operator.job_names()?))
    };
    let (listed, jobs) = context.app.operator.run(read).await?;
    let chosen = filter.status.trim().to_ascii_uppercase();
    let statuses = BatchStatus::ALL.map(|status| (status.as_str(), status.as_str() == chosen));
    let is_newest = filter.before.is_empty() && !listed.has_newer;
    let status = problem.as_ref().map_or(StatusCode::OK, |problem| problem.status);
    let query = |name, row: Option<&ExecutionRow>| filter.query(row.map(|row| (name, row.id)));
    let (rows, first, last) = (&listed.rows, listed.rows.first(), listed.rows.last());
    let mut response = html(&Page {
        layout: Layout::new(&context, "executions", "Executions").live(is_newest && problem.is_none()),
        problem: problem.map(|problem| problem.text).unwrap_or_default(),
        newest: filter.query(None),
        newer: listed.has_newer.then(|| query("after", first)),
        older: listed.has_older.then(|| query("before", last)),
        is_newest,
        statuses: statuses.to_vec(),
        jobs: jobs.into_iter().collect(),
        rows: rows.clone(),
        filter,
    });
    *response.status_mut() = status;
    Ok(response)
}
