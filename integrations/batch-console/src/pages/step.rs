//! A step execution: its counters, its partitions, its failure and its log.

use askama::Template;
use axum::response::Response;
use batch_runtime::execution::{JobExecution, StepCounters, StepExecution};
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, StepExecutionId};

use super::execution::{LogLine, count, job_link, lines, step_rows};
use super::{Layout, html, now};
use serde::Deserialize;

use crate::app::RequestContext;
use crate::extract::{Path, execution_id};
use crate::problem::Problem;
use crate::view::rows::{MOST_PARTITIONS, StepRow, sum, without_surplus};
use crate::view::{Count, Time, owners};

#[derive(Template)]
#[template(path = "step.html")]
struct Page {
    layout: Layout,
    job: String,
    job_link: String,
    execution: JobExecutionId,
    data: Data,
    lines: Vec<LogLine>,
    has_logs: bool,
}

struct Data {
    found: JobExecution,
    row: StepRow,
    /// The counters with their names.
    counters: [(&'static str, Count); 8],
    started: Time,
    ended: Option<Time>,
    message: String,
    user_data: String,
    partitions: Vec<StepRow>,
    /// The number of partitions that are not listed.
    unlisted: Count,
    /// The step and its partitions.
    ids: Vec<StepExecutionId>,
    is_dead: bool,
}

impl Data {
    /// Returns whether it runs.
    fn runs(&self) -> bool {
        self.ended.is_none() && !self.is_dead
    }
}

/// The parts of the path.
#[derive(Deserialize)]
pub(super) struct StepPath {
    execution: String,
    step: String,
}

pub(super) async fn show(
    context: RequestContext,
    Path(StepPath { execution, step }): Path<StepPath>,
) -> Result<Response, Problem> {
    let execution = execution_id(&execution)?;
    let id: i64 = step.parse().map_err(|_| {
        Problem::not_found(format!(
            "`{step}` is not the id of a step execution; expected a number"
        ))
    })?;
    let id = StepExecutionId(id);
    let read = move |operator: &JobOperator| read(operator, execution, id);
    let data = context.app.operator.run(read).await?;
    let data =
        data.ok_or_else(|| Problem::not_found(format!("execution {execution} has no step execution {id}")))?;
    let collected = lines(&context, execution, Some(&data.ids));
    let title = format!("{} of {} {execution}", data.row.name, data.found.job_name);
    let is_open = data.ended.is_none();
    Ok(html(&Page {
        job: data.found.job_name.clone(),
        job_link: job_link(&context.root.path, &data.found.job_name),
        layout: Layout::new(&context, "executions", title).refreshing(is_open),
        execution,
        has_logs: collected.is_some(),
        lines: collected.unwrap_or_default(),
        data,
    }))
}

fn read(
    operator: &JobOperator,
    execution: JobExecutionId,
    id: StepExecutionId,
) -> Result<Option<Data>, JobOperatorError> {
    let found = operator.job_execution(execution)?;
    let found = found.ok_or(JobOperatorError::NoSuchJobExecution(execution))?;
    let states = operator.execution_states(std::slice::from_ref(&found))?;
    let is_dead = states.values().any(|state| state.is_dead(found.status));
    let process = owners::of_execution(&found, states.get(&execution));
    let steps = operator.step_executions(execution)?;
    let Some(step) = steps.iter().find(|step| step.id == id).cloned() else {
        return Ok(None);
    };
    // The rows of `load` are `load:1`, and the steps in its partitions `load:1/sort`.
    let prefix = format!("{}:", step.step_name);
    let partitions: Vec<StepExecution> = steps
        .iter()
        .filter(|other| other.step_name.starts_with(&prefix))
        .cloned()
        .collect();
    let (mut listed, unlisted) = without_surplus(&partitions, MOST_PARTITIONS);
    listed.insert(0, step.clone());
    let owners = owners::of_partitions(operator, &steps, &listed, process)?;
    let mut rows = step_rows(operator, &listed, &owners, is_dead, execution).into_iter();
    let Some(row) = rows.next() else {
        return Ok(None);
    };
    let (now, number) = (now(), Count);
    // The row of a partitioned step counts nothing itself.
    let counters = match step.counters == StepCounters::default() {
        true => sum(&partitions),
        false => step.counters,
    };
    Ok(Some(Data {
        counters: [
            ("Read", number(counters.reads)),
            ("Filtered", number(counters.filters)),
            ("Written", number(counters.writes)),
            ("Skipped in read", number(counters.read_skips)),
            ("Skipped in process", number(counters.process_skips)),
            ("Skipped in write", number(counters.write_skips)),
            ("Commits", number(counters.commits)),
            ("Rollbacks", number(counters.rollbacks)),
        ],
        started: Time::new(step.started, now),
        ended: step.ended.map(|time| Time::new(time, now)),
        message: step.exit_message,
        user_data: step.user_data.unwrap_or_default(),
        ids: partitions.iter().map(|one| one.id).chain([id]).collect(),
        partitions: rows.collect(),
        unlisted: count(unlisted),
        is_dead,
        found,
        row,
    }))
}
