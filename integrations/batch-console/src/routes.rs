//! The routes, and the layers around all of them: the user, the checks against other sites, the headers, and errors as pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use batch_runtime::JobExecutionId;
use serde::Deserialize;

use crate::access::{Denied, is_cross_site};
use crate::api;
use crate::app::{App, RequestContext, Root, cross_site};
use crate::extract::Path;
use crate::pages::{self, Layout};
use crate::problem::Problem;
use crate::view::encoded;

/// The longest body of a request, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

/// Returns the routes of the console.
pub(crate) fn router(app: App) -> Router {
    let app = Arc::new(app);
    Router::new()
        .merge(pages::routes())
        .merge(api::routes())
        .route("/metrics", get(metrics))
        .route_layer(from_fn_with_state(Arc::clone(&app), authenticate))
        .route("/login", get(pages::login::show).post(pages::login::log_in))
        .route("/assets/{name}", get(asset))
        .route("/health", get(ready))
        .route("/health/live", get(async || "up\n"))
        .fallback(async || Problem::not_found("there is no such page"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "Not possible",
                "the method is not allowed for this page",
            )
        })
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(from_fn_with_state(Arc::clone(&app), finish))
        .with_state(app)
}

/// The part of the path of an asset.
#[derive(Deserialize)]
struct AssetPath {
    name: String,
}

async fn asset(
    State(app): State<Arc<App>>,
    Path(AssetPath { name }): Path<AssetPath>,
) -> Result<Response, Problem> {
    let found = app.assets.find(&name);
    let (kind, text) = found.ok_or_else(|| Problem::not_found("there is no such file"))?;
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Ok((headers, text).into_response())
}

/// Finds the user of a request, and rejects what another site has caused.
async fn authenticate(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let is_api = api::is_api(parts.uri.path());
    let root = parts
        .extensions
        .get::<Root>()
        .map(|root| root.path.clone())
        .unwrap_or_default();
    let identity = match app.access.identify(&parts, &app.sessions, !is_api) {
        Ok(identity) => identity,
        Err(Denied::Anonymous) if is_of_page(&parts) => {
            let page = parts.uri.path_and_query().map_or("/", |page| page.as_str());
            let login = format!("{root}/login?next={}", encoded(page));
            return (StatusCode::SEE_OTHER, [(LOCATION, login)]).into_response();
        }
        Err(denied) => {
            if denied == Denied::WrongToken {
                app.audit.record_failed_login();
            }
            return denied_response(denied);
        }
    };
    if parts.method != Method::GET && is_cross_site(&parts.headers, &parts.uri) {
        return cross_site().into_response();
    }
    parts.extensions.insert(identity);
    next.run(Request::from_parts(parts, body)).await
}

/// Returns whether a browser asks for a page, which can send its user to the login page.
fn is_of_page(parts: &Parts) -> bool {
    let accepts = parts
        .headers
        .get(ACCEPT)
        .and_then(|accepted| accepted.to_str().ok());
    parts.method == Method::GET
        && !api::is_api(parts.uri.path())
        && accepts.is_some_and(|accepted| accepted.contains("text/html"))
}

fn denied_response(denied: Denied) -> Response {
    let (status, text) = match denied {
        Denied::WrongToken => (StatusCode::UNAUTHORIZED, "no user has this token"),
        Denied::Anonymous => (
            StatusCode::UNAUTHORIZED,
            "log in, or send the header `Authorization: Bearer TOKEN`",
        ),
        Denied::NotFromProxy => (
            StatusCode::UNAUTHORIZED,
            "the console is used through a reverse proxy, which names the user",
        ),
        Denied::Remote => (
            StatusCode::FORBIDDEN,
            "without authentication, the console answers requests from its own computer only; configure tokens or a reverse proxy",
        ),
        Denied::Host => (
            StatusCode::MISDIRECTED_REQUEST,
            "the host of this request is not configured; use localhost, or add it to `hosts` in `[console]`",
        ),
    };
    let mut response = Problem::new(status, "Not allowed", text).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Adds the headers that protect pages, and makes pages of problems.
async fn finish(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let root = Root::of(&app, &request);
    request.extensions_mut().insert(root.clone());
    let is_api = api::is_api(request.uri().path());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let challenge = response.headers_mut().remove(WWW_AUTHENTICATE);
        response = match is_api {
            true => api::problem(&problem),
            false => pages::problem(Layout::anonymous(&app, &root, problem.title), &problem),
        };
        if let Some(challenge) = challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
    }
    let headers = response.headers_mut();
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                  form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Reports whether the repository can be used.
async fn ready(State(app): State<Arc<App>>) -> Response {
    match app
        .operator
        .run(|operator| operator.job_execution(JobExecutionId(0)))
        .await
    {
        Ok(_) => "up\n".into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the repository cannot be used\n").into_response(),
    }
}

async fn metrics(context: RequestContext) -> Result<Response, Problem> {
    let Some(render) = &context.app.metrics else {
        return Err(Problem::not_found("this program collects no metrics"));
    };
    Ok((
        [("content-type", "text/plain; version=0.0.4; charset=utf-8")],
        render(),
    )
        .into_response())
}
