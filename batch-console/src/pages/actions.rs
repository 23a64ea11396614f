//! What an operator does to executions. Each action has a page that says what it does, and asks.

use askama::Template;
use axum::extract::{Form, Path};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use batch_runtime::operator::Recovery;
use batch_runtime::{JobExecutionId, JobOperator, JobOperatorError, JobParameters};
use serde::Deserialize;

use super::execution::execution_id;
use super::{Shell, check_form, html, now};
use crate::app::Visit;
use crate::problem::Problem;
use crate::view::rows::{ExecutionRow, rows};

/// An action on one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Stop,
    Restart,
    Abandon,
    DeclareDead,
}

impl Action {
    const ALL: [Self; 4] = [Self::Stop, Self::Restart, Self::Abandon, Self::DeclareDead];

    /// Returns its name in URLs.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Abandon => "abandon",
            Self::DeclareDead => "declare-dead",
        }
    }

    /// Returns the text of its button.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Stop => "Stop",
            Self::Restart => "Restart",
            Self::Abandon => "Abandon",
            Self::DeclareDead => "Declare dead",
        }
    }

    /// Returns the class of its button.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Restart => "primary",
            Self::Stop => "",
            Self::Abandon | Self::DeclareDead => "danger",
        }
    }

    /// Says what it does.
    fn effect(self) -> &'static str {
        match self {
            Self::Stop => {
                "The execution is asked to stop at its next checkpoint, which may take a while. It ends STOPPED, and a restart resumes it \
                 from there."
            }
            Self::Restart => {
                "A new execution of the same instance begins in this process, and resumes from the last committed checkpoint. Complete \
                 steps do not run again."
            }
            Self::Abandon => {
                "The execution becomes ABANDONED. Its instance can never be restarted; what it has written remains."
            }
            Self::DeclareDead => {
                "The execution is of another program, which shows no sign of life that could be checked. Declare it dead only if you know \
                 that its process has ended: it becomes FAILED, and its instance can be restarted. If the process is alive after all, its \
                 next update of the execution fails."
            }
        }
    }

    fn parse(text: &str) -> Result<Self, Problem> {
        let found = Self::ALL.into_iter().find(|action| action.path() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::path).join(", ");
            Problem::not_found(format!("unknown action `{text}`: expected one of {all}"))
        })
    }

    /// Does it. Returns what came of it, and the execution to look at next.
    pub(crate) fn run(
        self,
        operator: &JobOperator,
        id: JobExecutionId,
    ) -> Result<(String, JobExecutionId), JobOperatorError> {
        match self {
            Self::Stop => match operator.stop(id)? {
                true => Ok(("stopped".into(), id)),
                false => Ok(("stop requested".into(), id)),
            },
            Self::Restart => {
                let new = operator.restart(id, JobParameters::new())?;
                Ok((format!("execution {new}"), new))
            }
            Self::Abandon => operator.abandon(id).map(|()| ("abandoned".into(), id)),
            Self::DeclareDead => operator.declare_dead(id).map(|()| ("closed".into(), id)),
        }
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    shell: Shell,
    question: String,
    effect: &'static str,
    label: &'static str,
    class: &'static str,
    /// The URL of the form.
    target: String,
    /// The page to go back to.
    back: String,
    rows: Vec<ExecutionRow>,
    /// True if there is nothing to do.
    is_idle: bool,
}

/// The token of a form.
#[derive(Deserialize)]
pub(super) struct Token {
    #[serde(default)]
    form: String,
}

/// Asks before an action.
pub(super) async fn confirm(
    visit: Visit,
    Path((id, action)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (id, action) = (execution_id(&id)?, Action::parse(&action)?);
    visit.require_operator()?;
    let read = move |operator: &JobOperator| {
        let found = operator
            .job_execution(id)?
            .ok_or(JobOperatorError::NoSuchJobExecution(id))?;
        rows(operator, &[found], now())
    };
    let rows = visit.app.workbench.run(read).await?;
    let page = format!("{}/executions/{id}", visit.root.0);
    Ok(html(&ConfirmPage {
        shell: Shell::new(&visit, "executions", format!("{} execution {id}", action.label())),
        question: format!("{} execution {id}?", action.label()),
        effect: action.effect(),
        label: action.label(),
        class: action.class(),
        target: format!("{page}/do/{}", action.path()),
        back: page,
        rows,
        is_idle: false,
    }))
}

/// Does an action.
pub(super) async fn act(
    visit: Visit,
    Path((id, action)): Path<(String, String)>,
    Form(token): Form<Token>,
) -> Result<Response, Problem> {
    let (id, action) = (execution_id(&id)?, Action::parse(&action)?);
    check_form(&visit, &token.form)?;
    let next = perform(&visit, id, action).await?;
    let page = format!("{}/executions/{next}", visit.root.0);
    Ok((StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response())
}

/// Does an action and records it. Returns the execution to look at next.
pub(crate) async fn perform(
    visit: &Visit,
    id: JobExecutionId,
    action: Action,
) -> Result<JobExecutionId, Problem> {
    let done = visit
        .app
        .workbench
        .act(move |operator| action.run(operator, id))
        .await;
    let outcome = done
        .as_ref()
        .map_or_else(|problem| &problem.text, |(outcome, _)| outcome);
    visit.record(&format!("{} execution {id}", action.path()), outcome);
    done.map(|(_, next)| next)
}

/// Asks before all dead executions are resumed.
pub(super) async fn confirm_recovery(visit: Visit) -> Result<Response, Problem> {
    visit.require_operator()?;
    let read = |operator: &JobOperator| rows(operator, &operator.dead_executions()?, now());
    let rows = visit.app.workbench.run(read).await?;
    let root = &visit.root.0;
    Ok(html(&ConfirmPage {
        shell: Shell::new(&visit, "overview", "Recover"),
        question: "Recover these executions?".into(),
        effect: "Their processes are dead. Each is resumed by a new execution in this process, from its last committed checkpoint; one that \
                 was asked to stop is closed as STOPPED.",
        label: "Recover",
        class: "primary",
        target: format!("{root}/recover"),
        back: visit.root.home(),
        is_idle: rows.is_empty(),
        rows,
    }))
}

/// Resumes all dead executions.
pub(super) async fn recover(visit: Visit, Form(token): Form<Token>) -> Result<Response, Problem> {
    check_form(&visit, &token.form)?;
    recover_all(&visit).await?;
    let page = visit.root.home();
    Ok((StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response())
}

/// Resumes all dead executions, and records what came of each.
pub(crate) async fn recover_all(visit: &Visit) -> Result<Vec<(JobExecutionId, String)>, Problem> {
    let recovered = visit.app.workbench.act(JobOperator::recover).await?;
    let mut outcomes = Vec::new();
    for one in recovered {
        let outcome = match &one.recovery {
            Recovery::Restarted(id) => format!("execution {id}"),
            Recovery::Stopped => "stopped".into(),
            Recovery::TakenOver => "another process has taken it over".into(),
            Recovery::Failed(error) => error.to_string(),
            other => format!("{other:?}"),
        };
        visit.record(&format!("recover execution {}", one.execution.id), &outcome);
        outcomes.push((one.execution.id, outcome));
    }
    Ok(outcomes)
}
