//! The login page.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{OriginalUri, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::actions::Token;
use super::{Layout, check_token, html};
use crate::access::is_cross_site;
use crate::app::{App, RequestContext, Root, cross_site};
use crate::extract::{Form, Query};
use crate::problem::Problem;

#[derive(Template)]
#[template(path = "login.html")]
struct Page {
    layout: Layout,
    next: String,
    has_failed: bool,
    has_tokens: bool,
}

#[derive(Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub(crate) struct Login {
    #[serde(default)]
    token: String,
    #[serde(default)]
    next: String,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(root): Extension<Root>,
    Query(Next { next }): Query<Next>,
) -> Response {
    page(&app, &root, next, false)
}

fn page(app: &App, root: &Root, next: String, has_failed: bool) -> Response {
    let layout = Layout::anonymous(app, root, "Log in");
    let has_tokens = app.access.has_tokens();
    html(&Page {
        layout,
        next,
        has_failed,
        has_tokens,
    })
}

pub(crate) async fn log_in(
    State(app): State<Arc<App>>,
    Extension(root): Extension<Root>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    Form(login): Form<Login>,
) -> Result<Response, Problem> {
    if is_cross_site(&headers, &uri) {
        return Err(cross_site());
    }
    let Some(user) = app.access.with_token(login.token.trim()) else {
        app.audit.record_failed_login();
        let mut response = page(&app, &root, login.next, true);
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(response);
    };
    app.audit.record(user.name(), "log in", "done");
    let session = app.sessions.begin(user).map_err(|error| Problem::bug(&error))?;
    // Only pages of the console: another site must not send users elsewhere by it.
    let is_page = login.next.starts_with('/')
        && !login.next.starts_with("//")
        && !login.next.contains(|c: char| c.is_control() || c == '\\');
    let next = match login.next.as_str() {
        next if is_page && next != "/" => format!("{}{next}", root.path),
        _ => root.home(),
    };
    let headers = [
        (LOCATION, next),
        (SET_COOKIE, cookie(&app, &root, &headers, &session, "")),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Ends the session.
pub(super) async fn log_out(
    context: RequestContext,
    headers: HeaderMap,
    Form(token): Form<Token>,
) -> Result<Response, Problem> {
    check_token(&context, &token.form)?;
    if let Some(session) = &context.identity.session {
        context.app.sessions.end(session);
        context.record("log out", "done");
    }
    let headers = [
        (LOCATION, format!("{}/login", context.root.path)),
        (
            SET_COOKIE,
            cookie(&context.app, &context.root, &headers, "", "; Max-Age=0"),
        ),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Returns the cookie of a session. It is sent over TLS only if the browser has used it.
fn cookie(app: &App, root: &Root, headers: &HeaderMap, session: &str, age: &str) -> String {
    let proto = headers
        .get("x-forwarded-proto")
        .and_then(|proto| proto.to_str().ok());
    let secure = if proto == Some("https") { "; Secure" } else { "" };
    format!(
        "{}={session}; Path={}/; HttpOnly; SameSite=Strict{secure}{age}",
        app.sessions.cookie(),
        root.path
    )
}
