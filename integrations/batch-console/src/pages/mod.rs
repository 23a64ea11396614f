//! The pages, one file each.

mod actions;
mod audit;
mod events;
mod execution;
mod executions;
mod job;
mod jobs;
mod launch;
mod launch_form;
pub(crate) mod login;
mod overview;
mod rejects;
mod repository;
mod step;
mod workers;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use batch_runtime::Timestamp;
use batch_runtime::time::{Clock, SystemClock};

pub(crate) use executions::Filter;

use crate::app::{App, RequestContext, Root};
use crate::documents;
use crate::problem::Problem;
use crate::view::printable;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/jobs", get(jobs::show))
        .route("/jobs/{job}", get(job::show))
        .route("/jobs/{job}/launch", get(launch::form).post(launch::launch))
        .route("/executions", get(executions::show))
        .route("/executions/{execution}", get(execution::show))
        .route("/executions/{execution}/steps/{step}", get(step::show))
        .route("/executions/{execution}/rejects", get(rejects::show))
        .route("/executions/{execution}/report", get(documents::report))
        .route(
            "/executions/{execution}/do/{action}",
            get(actions::confirm).post(actions::act),
        )
        .route("/recover", get(actions::confirm_recovery).post(actions::recover))
        .route("/workers", get(workers::show))
        .route("/repository", get(repository::show))
        .route(
            "/repository/purge",
            get(repository::preview).post(repository::purge),
        )
        .route("/audit", get(audit::show))
        .route("/logout", post(login::log_out))
        .route("/events", get(events::follow))
}

/// What every page shows around its contents.
pub(crate) struct Layout {
    /// The place of the console in URLs.
    pub(crate) root: String,
    /// The URL of this page without a fragment: after a launch, the browser's URL has `#launch`, and no browser loads a page with a fragment again.
    pub(crate) page: String,
    /// The overview. A nested router has no page at its path with a slash at the end.
    pub(crate) home: String,
    pub(crate) title: String,
    /// The entry of the navigation.
    pub(crate) entry: &'static str,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) may_operate: bool,
    pub(crate) can_log_out: bool,
    /// The token of forms.
    pub(crate) form: String,
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
    pub(crate) version: &'static str,
    /// Seconds until a browser without JavaScript reloads the page; 0: never.
    pub(crate) refresh: u32,
    /// True if a browser with JavaScript refreshes the page.
    pub(crate) is_live: bool,
}

impl Layout {
    pub(crate) fn new(context: &RequestContext, entry: &'static str, title: impl Into<String>) -> Self {
        let identity = &context.identity;
        Self {
            user: identity.user.name().to_owned(),
            may_operate: identity.user.may_operate(),
            can_log_out: identity.session.is_some(),
            form: context.app.forms.token(identity),
            entry,
            ..Self::anonymous(&context.app, &context.root, title)
        }
    }

    /// Of a page without a user.
    pub(crate) fn anonymous(app: &App, root: &Root, title: impl Into<String>) -> Self {
        Self {
            root: root.path.clone(),
            page: root.page.clone(),
            home: root.home(),
            title: title.into(),
            entry: "",
            name: app.name.clone(),
            user: String::new(),
            may_operate: false,
            can_log_out: false,
            form: String::new(),
            style: app.assets.style.clone(),
            script: app.assets.script.clone(),
            icon: app.assets.icon.clone(),
            version: env!("CARGO_PKG_VERSION"),
            refresh: 0,
            is_live: false,
        }
    }

    /// Refreshes the page when something changes; loads it again after a while where there is no JavaScript.
    pub(crate) fn refreshing(mut self, if_so: bool) -> Self {
        self.refresh = if if_so { 10 } else { 0 };
        self.live(if_so)
    }

    /// Refreshes the page when something changes, only by JavaScript: loading it again would empty its form.
    pub(crate) fn live(mut self, if_so: bool) -> Self {
        self.is_live = if_so;
        self
    }
}

/// Returns a page.
pub(crate) fn html(page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => ([(CONTENT_TYPE, "text/html; charset=utf-8")], printable(text)).into_response(),
        Err(error) => Problem::bug(&error).into_response(),
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    layout: Layout,
    text: String,
}

/// Returns the page of a problem. It loads itself again if the problem may pass.
pub(crate) fn problem(layout: Layout, problem: &Problem) -> Response {
    let layout = layout.refreshing(problem.is_transient());
    let text = problem.text.clone();
    let mut response = html(&ProblemPage { layout, text });
    *response.status_mut() = problem.status;
    response
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// Checks the form of an operation.
fn check_form(context: &RequestContext, token: &str) -> Result<(), Problem> {
    context.require_operator()?;
    check_token(context, token)
}

/// Checks the token of a form.
fn check_token(context: &RequestContext, token: &str) -> Result<(), Problem> {
    match context.app.forms.is_valid(&context.identity, token) {
        true => Ok(()),
        false => Err(Problem::new(
            axum::http::StatusCode::FORBIDDEN,
            "Not allowed",
            "the form is not from this console, or from before it was restarted; go back, load the page again, and send it once more",
        )),
    }
}
