//! Pages that describe an action on executions and ask for confirmation.

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use batch_runtime::{JobOperator, JobOperatorError, JobParameters};
use serde::Deserialize;

use super::{Layout, check_form, html, now};
use crate::app::RequestContext;
use crate::extract::{ActionPath, Form, Path};
use crate::operations::Action;
use crate::problem::Problem;
use crate::view::rows::{ExecutionRow, rows};

impl Action {
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

    /// Returns what it does, in sentences.
    fn effect(self) -> &'static str {
        match self {
            Self::Stop => {
                "The execution is asked to stop at its next checkpoint, which may take a while. It ends STOPPED, and a restart resumes it \
                 from there."
            }
            Self::Restart => {
                "A new execution of the same instance starts in this process, and resumes from the last committed checkpoint. Complete \
                 steps do not run again."
            }
            Self::Abandon => {
                "The execution becomes ABANDONED. Its instance can never be restarted; what it has written remains."
            }
            Self::DeclareDead => {
                "Another program runs this execution, so its process cannot be checked. Declare it dead only if you know that this \
                 process has ended: the execution becomes FAILED, and its instance can be restarted. If the process is alive after all, \
                 its next update of the execution fails."
            }
        }
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    layout: Layout,
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
    pub(super) form: String,
}

/// Asks before an action.
pub(super) async fn confirm(
    context: RequestContext,
    Path(path): Path<ActionPath>,
) -> Result<Response, Problem> {
    let (id, action) = path.parse()?;
    context.require_operator()?;
    let read = move |operator: &JobOperator| {
        // What is not possible is said at once, as the action itself would.
        action.check(operator, id)?;
        let found = operator
            .job_execution(id)?
            .ok_or(JobOperatorError::NoSuchJobExecution(id))?;
        rows(operator, &[found], now())
    };
    let rows = context.app.operator.run(read).await?;
    let page = format!("{}/executions/{id}", context.root.path);
    Ok(html(&ConfirmPage {
        layout: Layout::new(
            &context,
            "executions",
            format!("{} execution {id}", action.label()),
        ),
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

/// Performs an action.
pub(super) async fn act(
    context: RequestContext,
    Path(path): Path<ActionPath>,
    Form(token): Form<Token>,
) -> Result<Response, Problem> {
    let (id, action) = path.parse()?;
    check_form(&context, &token.form)?;
    let next = context.perform(action, id, JobParameters::new()).await?;
    let page = format!("{}/executions/{next}", context.root.path);
    Ok((StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response())
}

/// Asks before all dead executions are resumed.
pub(super) async fn confirm_recovery(context: RequestContext) -> Result<Response, Problem> {
    context.require_operator()?;
    let read = |operator: &JobOperator| rows(operator, &operator.dead_executions()?, now());
    let rows = context.app.operator.run(read).await?;
    let root = &context.root.path;
    Ok(html(&ConfirmPage {
        layout: Layout::new(&context, "overview", "Recover"),
        question: "Recover these executions?".into(),
        effect: "Their processes are dead. Each is resumed by a new execution in this process, from its last committed checkpoint; one that \
                 was asked to stop is closed as STOPPED.",
        label: "Recover",
        class: "primary",
        target: format!("{root}/recover"),
        back: context.root.home(),
        is_idle: rows.is_empty(),
        rows,
    }))
}

/// Resumes all dead executions.
pub(super) async fn recover(context: RequestContext, Form(token): Form<Token>) -> Result<Response, Problem> {
    check_form(&context, &token.form)?;
    context.recover().await?;
    let page = context.root.home();
    Ok((StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response())
}
