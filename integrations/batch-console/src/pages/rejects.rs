//! The items that a job has skipped, from the reports of `batch-items`' reject listeners.
//!
//! The parameters of a job can name any file, so only lines that are rejects of the instance are shown.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Error, Read, Seek, SeekFrom};
use std::path::Path as FilePath;

use askama::Template;
use axum::response::Response;
use batch_runtime::operator::ElementExplanation;
use batch_runtime::{JobExecutionId, JobInstanceId, JobOperator, JobOperatorError};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Layout, html};
use crate::app::RequestContext;
use crate::extract::{ExecutionPath, Path};
use crate::problem::Problem;

/// The property of the listeners that names the report.
const PROPERTY: &str = "rejects.output";
/// The number of rejects that are shown, the last ones.
const MAX_LISTED: usize = 200;
/// The length of the end of a report that is read, in bytes.
const TAIL: u64 = 512 * 1024;
/// The columns of a report as CSV.
const COLUMNS: [&str; 12] = [
    "skip", "instance", "step", "phase", "error", "resource", "line", "field", "value", "raw", "raw_end",
    "item",
];

#[derive(Template)]
#[template(path = "rejects.html")]
struct Page {
    layout: Layout,
    execution: JobExecutionId,
    reports: Vec<Report>,
}

/// A report of a step.
struct Report {
    step: String,
    path: String,
    rejects: Vec<Reject>,
    is_cut: bool,
    problem: String,
}

/// A skipped item.
#[derive(Clone, Debug, Deserialize)]
struct Reject {
    skip: u64,
    instance: i64,
    phase: String,
    error: String,
    #[serde(default)]
    resource: Option<String>,
    #[serde(default)]
    line: Option<u64>,
    #[serde(default)]
    raw: Option<String>,
    /// JSON of any form.
    #[serde(default)]
    item: Option<Box<RawValue>>,
}

impl Reject {
    /// Returns the place of the record in its input.
    fn place(&self) -> String {
        match (&self.resource, self.line) {
            (Some(resource), Some(line)) => format!("{resource}:{line}"),
            (Some(resource), None) => resource.clone(),
            (None, _) => String::new(),
        }
    }

    /// Returns the record or item.
    fn item(&self) -> &str {
        let item = self.item.as_ref().map(|item| item.get());
        self.raw
            .as_deref()
            .filter(|raw| !raw.is_empty())
            .or(item)
            .unwrap_or_default()
    }
}

pub(super) async fn show(
    context: RequestContext,
    Path(path): Path<ExecutionPath>,
) -> Result<Response, Problem> {
    let id = path.id()?;
    let reports = context
        .app
        .operator
        .run(move |operator| read(operator, id))
        .await?;
    Ok(html(&Page {
        layout: Layout::new(&context, "executions", format!("Rejects of execution {id}")),
        execution: id,
        reports,
    }))
}

fn read(operator: &JobOperator, id: JobExecutionId) -> Result<Vec<Report>, JobOperatorError> {
    let found = operator
        .job_execution(id)?
        .ok_or(JobOperatorError::NoSuchJobExecution(id))?;
    let parameters = operator.parameters(id)?;
    let explained = operator.definitions().explain(&found.job_name, &parameters)?;
    let mut paths = BTreeSet::new();
    collect(&explained.job, &mut paths);
    let executions = operator.job_executions(found.instance_id)?;
    let ids: Vec<JobExecutionId> = executions.iter().map(|execution| execution.id).collect();
    let has_skips = operator.counters_of(&ids)?.values().any(|one| one.skips() > 0);
    let reports = paths
        .into_iter()
        .map(|(step, path)| open(step, path, found.instance_id, has_skips));
    Ok(reports.collect())
}

/// Collects the reports of an element and those in it.
fn collect(element: &ElementExplanation, paths: &mut BTreeSet<(String, String)>) {
    for property in element.artifacts.iter().flat_map(|artifact| &artifact.properties) {
        if property.field.is_some()
            && property.name == PROPERTY
            && let Some(path) = &property.value
        {
            paths.insert((element.id.clone(), path.clone()));
        }
    }
    element.elements.iter().for_each(|inner| collect(inner, paths));
}

fn open(step: String, path: String, instance: JobInstanceId, has_skips: bool) -> Report {
    let (rejects, is_cut, problem) = match tail(FilePath::new(&path), instance) {
        Ok((rejects, is_cut)) => (rejects, is_cut, String::new()),
        // The first reject creates it.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !has_skips => {
            (Vec::new(), false, String::new())
        }
        Err(error) => (Vec::new(), false, error.to_string()),
    };
    Report {
        step,
        path,
        rejects,
        is_cut,
        problem,
    }
}

/// Returns the last rejects of an instance in a report, and whether there may be more before.
fn tail(path: &FilePath, instance: JobInstanceId) -> io::Result<(Vec<Reject>, bool)> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The rest of a line that is cut is no reject.
    let is_csv = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let mut rejects = if is_csv { of_csv(&text) } else { of_json(&text) };
    rejects.retain(|reject| reject.instance == instance.0);
    let surplus = rejects.len().saturating_sub(MAX_LISTED);
    rejects.drain(..surplus);
    Ok((rejects, skipped > 0 || surplus > 0))
}

fn of_json(text: &str) -> Vec<Reject> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn of_csv(text: &str) -> Vec<Reject> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let rows = reader.records().filter_map(Result::ok);
    rows.filter_map(|row| {
        let column = |name: &str| row.get(COLUMNS.iter().position(|column| *column == name)?);
        let text = |name: &str| column(name).filter(|text| !text.is_empty()).map(str::to_owned);
        (row.len() == COLUMNS.len()).then_some(())?;
        Some(Reject {
            skip: column("skip")?.parse().ok()?,
            instance: column("instance")?.parse().ok()?,
            phase: text("phase")?,
            error: text("error")?,
            resource: text("resource"),
            line: column("line")?.parse().ok(),
            raw: text("raw"),
            item: text("item").and_then(|item| RawValue::from_string(item).ok()),
        })
    })
    .collect()
}
