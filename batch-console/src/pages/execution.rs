//! A job execution: its steps, its failure, and what can be done about it.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use batch_runtime::execution::{JobExecution, StepExecution, StepTotal};
use batch_runtime::operator::{ExecutionState, WorkerInfo};
use batch_runtime::xml::graph::{ElementMark, JobGraph};
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError};

use super::{Shell, html, now};
use crate::app::Visit;
use crate::operations::Action;
use crate::problem::Problem;
use crate::view::rows::{ExecutionRow, StepRow, rows};
use crate::view::{Count, Pill, Time, encoded, timeline};

#[derive(Template)]
#[template(path = "execution.html")]
struct Page {
    shell: Shell,
    data: Data,
}

struct Data {
    id: JobExecutionId,
    row: ExecutionRow,
    started: Option<Time>,
    ended: Option<Time>,
    owner: String,
    file: String,
    waits_for: Option<JobExecutionId>,
    parameters: Vec<String>,
    persistent: Vec<(String, String)>,
    message: String,
    /// Where a restart resumes.
    resume: String,
    steps: Vec<StepRow>,
    nested: Vec<(String, String, JobExecutionId)>,
    timeline: String,
    left_out: usize,
    graph: String,
    totals: Vec<(String, u32, Count, Count, Count)>,
    /// The other executions of the instance.
    others: Vec<ExecutionRow>,
    actions: Vec<Action>,
    lines: Vec<LogLine>,
    has_logs: bool,
    has_rejects: bool,
}

/// A line of the log.
pub(super) struct LogLine {
    pub(super) time: String,
    pub(super) level: &'static str,
    pub(super) text: String,
}

/// Returns the log lines of an execution, or of one of its steps, if they are collected.
pub(super) fn lines(
    visit: &Visit,
    job: JobExecutionId,
    step: Option<batch_runtime::StepExecutionId>,
) -> Option<Vec<LogLine>> {
    let logs = visit.app.logs.as_ref()?;
    let lines = logs.of(job, step).into_iter().map(|line| LogLine {
        time: line.time.to_string(),
        level: line.level.as_str(),
        text: line.text,
    });
    Some(lines.collect())
}

/// Parses the id in a path.
pub(super) fn execution_id(text: &str) -> Result<JobExecutionId, Problem> {
    let id = text.parse();
    id.map_err(|_| {
        Problem::not_found(format!(
            "`{text}` is not the id of an execution; expected a number"
        ))
    })
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>) -> Result<Response, Problem> {
    let id = execution_id(&id)?;
    let root = visit.root.0.clone();
    let mut data = visit
        .app
        .workbench
        .run(move |operator| read(operator, id, &root))
        .await?;
    if let Some(lines) = lines(&visit, id, None) {
        (data.lines, data.has_logs) = (lines, true);
    }
    let title = format!("{} {id}", data.row.job);
    let shell = Shell::new(&visit, "executions", title).refreshing(data.row.is_open);
    Ok(html(&Page { shell, data }))
}

fn read(operator: &JobOperator, id: JobExecutionId, root: &str) -> Result<Data, JobOperatorError> {
    let now = now();
    let found = operator
        .job_execution(id)?
        .ok_or(JobOperatorError::NoSuchJobExecution(id))?;
    let executions = operator.job_executions(found.instance_id)?;
    let states = operator.execution_states(&executions)?;
    let state = states.get(&id);
    let steps = operator.step_executions(id)?;
    let is_dead = state.is_some_and(|state| state.is_dead(found.status));
    let totals = operator.step_totals(id)?;
    let link = format!("{root}/executions/{id}");
    let begin = found.started.unwrap_or(found.created);
    let parameters = operator.parameters(id)?;
    let is_latest = executions.iter().all(|other| other.id <= id);
    let mut others = rows(operator, &executions, now)?;
    let own = others.iter().position(|row| row.id == id);
    let row = own.map(|own| others.remove(own));
    let row = row.ok_or(JobOperatorError::NoSuchJobExecution(id))?;
    Ok(Data {
        id,
        row,
        started: found.started.map(|time| Time::new(time, now)),
        ended: found.ended.map(|time| Time::new(time, now)),
        owner: state.and_then(|state| state.owner.clone()).unwrap_or_default(),
        file: found.configuration_location.clone().unwrap_or_default(),
        waits_for: state.and_then(|state| state.waits_for),
        parameters: parameters.iter().map(|(name, one)| one.to_text(name)).collect(),
        persistent: persistent(operator, id),
        message: found.exit_message.clone(),
        resume: resume(&found, is_dead, is_latest, &totals).unwrap_or_default(),
        nested: nested(&steps),
        timeline: timeline::draw(&steps, is_dead, begin, now, &link),
        left_out: timeline::left_out(steps.len()),
        graph: graph(operator, &found, &steps, is_dead, &link),
        steps: step_rows(operator, &steps, is_dead, id)?,
        totals: totals
            .iter()
            .filter(|total| total.executions > 1)
            .map(total_row)
            .collect(),
        actions: actions(&found, state, is_latest, operator),
        has_rejects: steps.iter().any(|step| step.counters.skips() > 0),
        others,
        lines: Vec::new(),
        has_logs: false,
    })
}

/// Returns the data of the job; nothing if they cannot be read, which `show` of the command line reports.
fn persistent(operator: &JobOperator, id: JobExecutionId) -> Vec<(String, String)> {
    let data = operator.persistent_data(id);
    data.map(|data| {
        data.iter()
            .map(|(name, json)| (name.to_owned(), json.to_string()))
            .collect()
    })
    .unwrap_or_default()
}

fn nested(steps: &[StepExecution]) -> Vec<(String, String, JobExecutionId)> {
    let nested = steps.iter().filter_map(|step| {
        let nested = step.nested_job()?;
        Some((step.step_name.clone(), nested.nested_job, nested.execution))
    });
    nested.collect()
}

/// Returns the rows of the steps, with their progress and the workers of partitions.
pub(super) fn step_rows(
    operator: &JobOperator,
    steps: &[StepExecution],
    is_dead: bool,
    id: JobExecutionId,
) -> Result<Vec<StepRow>, JobOperatorError> {
    let now = now();
    let progress = operator.progress(id).unwrap_or_default();
    let workers: Vec<WorkerInfo> = match steps.iter().any(StepExecution::is_of_partition) {
        true => operator.workers()?,
        false => Vec::new(),
    };
    let worker_of: BTreeMap<_, &str> = workers
        .iter()
        .flat_map(|worker| {
            worker
                .partitions
                .iter()
                .map(|(_, row)| (*row, worker.name.as_str()))
        })
        .collect();
    let rows = steps.iter().map(|step| {
        let mut row = StepRow::new(step, is_dead, now);
        row.worker = worker_of.get(&step.id).copied().unwrap_or_default().to_owned();
        let followed = progress
            .steps
            .iter()
            .rev()
            .find(|one| one.step == step.step_name && one.is_running);
        row.percent = followed.and_then(|one| {
            let count = one.item_count.filter(|count| *count > 0)?;
            Some((one.items_read() * 100 / count).min(100))
        });
        row
    });
    Ok(rows.collect())
}

fn total_row(total: &StepTotal) -> (String, u32, Count, Count, Count) {
    let counters = total.counters;
    (
        total.step_name.clone(),
        total.executions,
        Count(counters.reads),
        Count(counters.writes),
        Count(counters.skips()),
    )
}

/// Draws the job, its elements colored by the statuses of this execution; empty if its file has changed too much.
fn graph(
    operator: &JobOperator,
    execution: &JobExecution,
    steps: &[StepExecution],
    is_dead: bool,
    link: &str,
) -> String {
    let Ok(parameters) = operator.parameters(execution.id) else {
        return String::new();
    };
    let Ok(job) = operator
        .definitions()
        .effective_job(&execution.job_name, &parameters)
    else {
        return String::new();
    };
    let mark = |id: &str| {
        let step = steps.iter().rev().find(|step| step.step_name == id)?;
        let pill = match !step.status.is_final() && is_dead {
            true => Pill::DEAD,
            false => Pill::of(step.status),
        };
        Some(ElementMark {
            class: pill.class.into(),
            link: Some(format!("{link}/steps/{}", step.id)),
        })
    };
    JobGraph::new(&job).marked(mark).to_svg_element()
}

/// Says where a restart resumes, if there can be one.
fn resume(execution: &JobExecution, is_dead: bool, is_latest: bool, totals: &[StepTotal]) -> Option<String> {
    let can_resume =
        is_latest && (is_dead || matches!(execution.status, BatchStatus::Failed | BatchStatus::Stopped));
    if !can_resume {
        return None;
    }
    let Some(last) = totals.iter().rev().find(|total| !total.step_name.contains(':')) else {
        return Some("A restart begins with the first step: no step has started yet.".into());
    };
    let (step, counters) = (&last.step_name, last.counters);
    let items = counters.reads + counters.read_skips;
    Some(match counters.commits {
        0 => format!("A restart resumes with step {step}, of which nothing was committed."),
        commits => format!(
            "A restart resumes with step {step}, after {} items and {} commits.",
            Count(items),
            Count(commits)
        ),
    })
}

fn actions(
    execution: &JobExecution,
    state: Option<&ExecutionState>,
    is_latest: bool,
    operator: &JobOperator,
) -> Vec<Action> {
    let is_open = !execution.status.is_final();
    let is_dead = state.is_some_and(|state| state.is_dead(execution.status));
    let is_foreign = state.is_some_and(|state| state.is_of_other_program);
    let ended_early = matches!(
        execution.status,
        BatchStatus::Failed | BatchStatus::Stopped | BatchStatus::Unknown
    );
    let can_restart =
        is_latest && (ended_early || is_dead) && operator.definitions().is_restartable(&execution.job_name);
    let mut actions = Vec::new();
    if is_open && !is_dead && execution.status != BatchStatus::Stopping {
        actions.push(Action::Stop);
    }
    if can_restart {
        actions.push(Action::Restart);
    }
    if is_open && is_foreign {
        actions.push(Action::DeclareDead);
    }
    if is_dead || (ended_early && is_latest) {
        actions.push(Action::Abandon);
    }
    actions
}

/// Returns the link of a job in the pages.
pub(super) fn job_link(root: &str, job: &str) -> String {
    format!("{root}/jobs/{}", encoded(job))
}
