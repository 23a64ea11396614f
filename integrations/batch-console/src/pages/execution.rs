//! A job execution: its steps, its failure, and what can be done about it.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use batch_runtime::execution::{JobExecution, StepCounters, StepExecution, StepTotal};
use batch_runtime::operator::ExecutionState;
use batch_runtime::repository::ExecutionFilter;
use batch_runtime::time::elapsed;
use batch_runtime::xml::graph::{ElementMark, JobGraph};
use batch_runtime::xml::model::Job;
use batch_runtime::{BatchStatus, JobExecutionId, JobOperator, JobOperatorError, StepExecutionId};

use super::{Layout, html, now};
use crate::app::RequestContext;
use crate::audit::Entry;
use crate::extract::{ExecutionPath, Path};
use crate::operations::Action;
use crate::problem::Problem;
use crate::view::progress::Share;
use crate::view::rows::{ExecutionRow, MOST_PARTITIONS, StepRow, rows, without_surplus};
use crate::view::timeline::{self, Period};
use crate::view::{Count, Pill, Time, counted, encoded, owners, process};

/// The number of other executions of the instance that the page lists, the latest ones.
const MOST_OTHERS: usize = 50;

#[derive(Template)]
#[template(path = "execution.html")]
struct Page {
    layout: Layout,
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
    decisions: Vec<(String, String)>,
    message: String,
    /// Where a restart resumes.
    resume: String,
    steps: Vec<StepRow>,
    /// The number of partitions that are not listed.
    unlisted: Count,
    nested: Vec<(String, String, JobExecutionId)>,
    drawn: Drawn,
    totals: Vec<TotalRow>,
    /// The other executions of the instance.
    others: Vec<ExecutionRow>,
    /// The number of other executions that are not listed.
    older: Count,
    /// True if the job can be launched, with the parameters of this execution.
    can_launch: bool,
    actions: Vec<Action>,
    lines: Vec<LogLine>,
    has_logs: bool,
    has_rejects: bool,
    has_report: bool,
    /// The actions of users on it, the newest first.
    audit: Vec<(Time, Entry)>,
    /// How long the job usually takes, while the execution runs.
    usual: String,
    taken_over: Option<TakenOver>,
}

/// The pictures of the execution.
struct Drawn {
    timeline: String,
    /// The number of steps that are not in the timeline.
    left_out: usize,
    /// Empty if the job is unknown.
    graph: String,
}

/// A step with its executions and counters.
type TotalRow = (String, u32, Count, Count, Count);

/// The execution before this one, whose process has died.
struct TakenOver {
    execution: JobExecutionId,
    /// The process; empty if it is unknown.
    process: String,
    /// The number of items that the executions before this one have read, as `480 items`.
    items: String,
}

impl Data {
    /// Returns whether it runs.
    fn runs(&self) -> bool {
        self.row.is_open && self.row.pill != Pill::DEAD
    }
}

/// A line of the log.
pub(super) struct LogLine {
    pub(super) time: String,
    pub(super) level: &'static str,
    pub(super) text: String,
}

/// Returns the log lines of an execution, or of one of its steps, if they are collected.
pub(super) fn lines(
    context: &RequestContext,
    job: JobExecutionId,
    steps: Option<&[StepExecutionId]>,
) -> Option<Vec<LogLine>> {
    let logs = context.app.logs.as_ref()?;
    let lines = logs.of(job, steps).into_iter().map(|line| LogLine {
        time: line.time.to_string(),
        level: line.level.as_str(),
        text: line.text,
    });
    Some(lines.collect())
}

pub(super) async fn show(
    context: RequestContext,
    Path(path): Path<ExecutionPath>,
) -> Result<Response, Problem> {
    let id = path.id()?;
    let root = context.root.path.clone();
    let mut data = context
        .app
        .operator
        .run(move |operator| read(operator, id, &root))
        .await?;
    if let Some(lines) = lines(&context, id, None) {
        (data.lines, data.has_logs) = (lines, true);
    }
    data.has_report = context.app.reports.is_some();
    let audit = context.app.audit.about(id).into_iter();
    data.audit = audit.map(|entry| (Time::new(entry.time, now()), entry)).collect();
    let title = format!("{} {id}", data.row.job);
    let layout = Layout::new(&context, "executions", title).refreshing(data.row.is_open);
    Ok(html(&Page { layout, data }))
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
    let parameters = operator.parameters(id)?;
    let is_latest = executions.iter().all(|other| other.id <= id);
    let (row, others, older) = with_others(operator, &executions, id)?;
    let mut row = row.ok_or(JobOperatorError::NoSuchJobExecution(id))?;
    let begin = found.started.unwrap_or(found.created);
    if is_dead {
        end_at_last_sign(&mut row, &found, &steps);
    }
    let job = operator
        .definitions()
        .effective_job(&found.job_name, &parameters)
        .ok();
    let drawn = drawn(job.as_ref(), &steps, &Period { begin, now, is_dead }, &link);
    let (listed, unlisted) = without_surplus(&steps, MOST_PARTITIONS);
    let owner = owners::of_execution(&found, state);
    let (persistent, decisions) = data_of(operator, id);
    let owners = owners::of_partitions(operator, &steps, &listed, owner)?;
    Ok(Data {
        id,
        usual: usual(operator, &found.job_name, row.is_open && !is_dead)?,
        row,
        started: found.started.map(|time| Time::new(time, now)),
        ended: found.ended.map(|time| Time::new(time, now)),
        steps: step_rows(operator, &listed, &owners, is_dead, id),
        owner: process(owner),
        file: found.configuration_location.clone().unwrap_or_default(),
        waits_for: state.and_then(|state| state.waits_for),
        parameters: parameters.iter().map(|(name, one)| one.to_text(name)).collect(),
        persistent,
        decisions,
        message: found.exit_message.clone(),
        resume: resume(&found, is_dead, is_latest, &totals).unwrap_or_default(),
        nested: nested(&steps),
        drawn,
        unlisted: count(unlisted),
        totals: total_rows(&totals),
        can_launch: operator.job_path().jobs.contains(&found.job_name),
        actions: actions(&found, state, is_latest, operator),
        taken_over: taken_over(operator, &executions, id)?,
        has_rejects: steps.iter().any(|step| step.counters.skips() > 0),
        others,
        older,
        lines: Vec::new(),
        has_logs: false,
        has_report: false,
        audit: Vec::new(),
    })
}

/// Returns the median time that the latest complete executions of a job have taken; empty if there are few, or if it does not run.
fn usual(operator: &JobOperator, job: &str, is_running: bool) -> Result<String, JobOperatorError> {
    if !is_running {
        return Ok(String::new());
    }
    const COMPLETE: u32 = 20;
    const FEW: usize = 3;
    let found = operator.find_executions(&ExecutionFilter {
        job: Some(job.to_owned()),
        statuses: vec![BatchStatus::Completed],
        limit: Some(COMPLETE),
        ..ExecutionFilter::default()
    })?;
    let took = |one: &JobExecution| Some(one.ended?.millis_since(one.started?));
    let mut all: Vec<u64> = found.iter().filter_map(took).collect();
    all.sort_unstable();
    Ok(match all.get(all.len() / 2).filter(|_| all.len() >= FEW) {
        Some(millis) => elapsed(*millis),
        None => String::new(),
    })
}

pub(super) fn count(number: usize) -> Count {
    Count(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns the row of an execution, the rows of the latest others of its instance, and the number of all others.
fn with_others(
    operator: &JobOperator,
    executions: &[JobExecution],
    id: JobExecutionId,
) -> Result<(Option<ExecutionRow>, Vec<ExecutionRow>, Count), JobOperatorError> {
    let (mut listed, mut others): (Vec<_>, Vec<_>) = executions.iter().cloned().partition(|one| one.id == id);
    others.sort_unstable_by_key(|other| std::cmp::Reverse(other.id));
    let older = count(others.len().saturating_sub(MOST_OTHERS));
    listed.extend(others.into_iter().take(MOST_OTHERS));
    let mut rows = rows(operator, &listed, now())?.into_iter();
    Ok((rows.next().filter(|row| row.id == id), rows.collect(), older))
}

/// Returns the execution that this one has taken over.
fn taken_over(
    operator: &JobOperator,
    executions: &[JobExecution],
    id: JobExecutionId,
) -> Result<Option<TakenOver>, JobOperatorError> {
    let earlier: Vec<&JobExecution> = executions.iter().filter(|other| other.id < id).collect();
    let before = earlier.iter().max_by_key(|other| other.id);
    let Some(dead) = before.filter(|before| owners::is_crashed(before)) else {
        return Ok(None);
    };
    let ids: Vec<JobExecutionId> = earlier.iter().map(|other| other.id).collect();
    let counters = operator.counters_of(&ids)?;
    let read = counters
        .values()
        .fold(StepCounters::default(), |sum, one| sum.plus(*one));
    Ok(Some(TakenOver {
        execution: dead.id,
        process: process(owners::of_execution(dead, None)),
        items: counted(read.reads.saturating_add(read.read_skips), "item"),
    }))
}

/// Lets the time of a dead execution end at its last sign. The list has not read the partitions.
fn end_at_last_sign(row: &mut ExecutionRow, found: &JobExecution, steps: &[StepExecution]) {
    let updates = steps.iter().map(|step| step.last_updated);
    let begin = found.started.unwrap_or(found.created);
    row.millis = updates.fold(found.last_updated, Ord::max).millis_since(begin);
    row.took = elapsed(row.millis);
}

/// Names with their texts.
type Pairs = Vec<(String, String)>;

/// Returns the data of an execution, or why it cannot be read, and its decisions.
fn data_of(operator: &JobOperator, id: JobExecutionId) -> (Pairs, Pairs) {
    match operator.persistent_data(id) {
        Ok(data) => (owned(data.iter()), owned(data.decisions())),
        Err(error) => (vec![("not shown".to_owned(), error.to_string())], Vec::new()),
    }
}

fn owned<'a>(texts: impl Iterator<Item = (&'a str, String)>) -> Pairs {
    texts.map(|(name, text)| (name.to_owned(), text)).collect()
}

/// Draws the timeline, and the graph if the job is known.
fn drawn(job: Option<&Job>, steps: &[StepExecution], period: &Period, link: &str) -> Drawn {
    let lanes = job.map(timeline::lanes).unwrap_or_default();
    let (timeline, left_out) = timeline::draw(steps, &lanes, period, link);
    let graph = job.map(|job| graph(job, steps, period.is_dead, link));
    Drawn {
        timeline,
        left_out,
        graph: graph.unwrap_or_default(),
    }
}

/// Returns the totals of the steps that several executions have run.
fn total_rows(totals: &[StepTotal]) -> Vec<TotalRow> {
    let several = totals.iter().filter(|total| total.executions > 1);
    several.take(MOST_PARTITIONS).map(total_row).collect()
}

fn nested(steps: &[StepExecution]) -> Vec<(String, String, JobExecutionId)> {
    let nested = steps.iter().filter_map(|step| {
        let nested = step.nested_job()?;
        Some((step.step_name.clone(), nested.nested_job, nested.execution))
    });
    nested.collect()
}

/// Returns the rows of the steps, with their progress and the processes of partitions.
pub(super) fn step_rows(
    operator: &JobOperator,
    steps: &[StepExecution],
    owners: &BTreeMap<StepExecutionId, String>,
    is_dead: bool,
    id: JobExecutionId,
) -> Vec<StepRow> {
    let now = now();
    let progress = operator.progress(id).unwrap_or_default();
    let rows = steps.iter().map(|step| {
        let mut row = StepRow::new(step, is_dead, now);
        row.worker = owners
            .get(&step.id)
            .map(|owner| process(owner))
            .unwrap_or_default();
        row.share = Share::of(&progress, &step.step_name);
        row
    });
    rows.collect()
}

fn total_row(total: &StepTotal) -> TotalRow {
    let counters = total.counters;
    (
        total.step_name.clone(),
        total.executions,
        Count(counters.reads),
        Count(counters.writes),
        Count(counters.skips()),
    )
}

/// Draws the job, its elements colored by the statuses of this execution.
fn graph(job: &Job, steps: &[StepExecution], is_dead: bool, link: &str) -> String {
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
    JobGraph::new(job).marked(mark).to_svg_element()
}

/// Describes where a restart resumes, if there can be one.
fn resume(execution: &JobExecution, is_dead: bool, is_latest: bool, totals: &[StepTotal]) -> Option<String> {
    let can_resume =
        is_latest && (is_dead || matches!(execution.status, BatchStatus::Failed | BatchStatus::Stopped));
    if !can_resume {
        return None;
    }
    let Some(last) = totals.iter().rev().find(|total| !total.step_name.contains(':')) else {
        return Some("A restart begins with the first step: no step has started yet.".into());
    };
    let step = &last.step_name;
    // The row of a partitioned step counts nothing itself.
    let counters = match last.counters.commits {
        0 => {
            let prefix = format!("{step}:");
            let partitions = totals.iter().filter(|total| total.step_name.starts_with(&prefix));
            partitions.fold(StepCounters::default(), |sum, total| sum.plus(total.counters))
        }
        _ => last.counters,
    };
    let items = counters.reads + counters.read_skips;
    Some(match counters.commits {
        0 => format!("A restart resumes with step {step}; nothing of it was committed."),
        commits => format!(
            "A restart resumes with step {step}, after {} and {}.",
            counted(items, "item"),
            counted(commits, "commit")
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
