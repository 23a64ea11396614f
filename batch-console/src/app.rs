//! The routes, and the layers around all of them: the user, the checks against other sites, the headers, and errors as pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts, OriginalUri, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, LOCATION, REFERRER_POLICY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use batch_runtime::JobExecutionId;
use tokio::sync::Semaphore;

use crate::access::{Access, Denied, FormKeys, Identity, Sessions, is_cross_site};
use crate::assets::{self, Assets};
use crate::async_operator::AsyncOperator;
use crate::audit::AuditLog;
use crate::changes::ChangeNotifier;
use crate::logs::LogLines;
use crate::pages::{self, Layout};
use crate::problem::Problem;
use crate::view::encoded;
use crate::{Console, Metrics, Reports, api};

/// The longest body of a request, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

/// The number of pages that are refreshed at the same time, in this process.
const MAX_STREAMS: usize = 256;

/// The parts that all requests share.
pub(crate) struct App {
    pub(crate) operator: AsyncOperator,
    pub(crate) access: Access,
    pub(crate) sessions: Sessions,
    pub(crate) forms: FormKeys,
    pub(crate) audit: AuditLog,
    pub(crate) logs: Option<LogLines>,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) reports: Option<Reports>,
    pub(crate) changes: ChangeNotifier,
    /// Limits the open streams of events.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) assets: Assets,
    pub(crate) name: String,
    base_path: Option<String>,
}

impl App {
    pub(crate) fn new(console: Console) -> Result<Self, getrandom::Error> {
        Ok(Self {
            operator: AsyncOperator::new(console.operator),
            access: console.access,
            sessions: Sessions::new()?,
            forms: FormKeys::new()?,
            audit: console.audit,
            logs: console.logs,
            metrics: console.metrics,
            reports: console.reports,
            changes: ChangeNotifier::new(),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            assets: Assets::new(),
            name: console.name,
            base_path: console.base_path,
        })
    }
}

/// Returns the routes of the console.
pub(crate) fn router(app: App) -> Router {
    let app = Arc::new(app);
    Router::new()
        .merge(pages::routes())
        .merge(api::routes())
        .route("/metrics", get(metrics))
        .route_layer(from_fn_with_state(Arc::clone(&app), authenticate))
        .route("/login", get(pages::login::show).post(pages::login::log_in))
        .route("/assets/{name}", get(assets::serve))
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

/// The place of the console in the URLs that browsers see: the empty text, or `/batch`.
#[derive(Clone, Debug)]
pub(crate) struct Root(pub(crate) String);

impl Root {
    /// Returns the URL of the overview.
    pub(crate) fn home(&self) -> String {
        match self.0.as_str() {
            "" => "/".into(),
            root => root.into(),
        }
    }

    fn of(app: &App, request: &Request) -> Self {
        if let Some(path) = &app.base_path {
            return Self(path.clone());
        }
        let whole = request.extensions().get::<OriginalUri>();
        let whole = whole.map_or_else(|| request.uri().path(), |whole| whole.0.path());
        let prefix = whole.strip_suffix(request.uri().path());
        // The page of the console itself may be requested without the slash at its end.
        Self(prefix.unwrap_or(whole).trim_end_matches('/').to_owned())
    }
}

/// A request of a user.
pub(crate) struct RequestContext {
    pub(crate) app: Arc<App>,
    pub(crate) identity: Identity,
    pub(crate) root: Root,
}

impl RequestContext {
    /// Rejects users who only read.
    pub(crate) fn require_operator(&self) -> Result<(), Problem> {
        match self.identity.user.may_operate() {
            true => Ok(()),
            false => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "Not allowed",
                format!(
                    "user `{}` may only read; an operator can do this",
                    self.identity.user.name()
                ),
            )),
        }
    }

    /// Records an action that needs no thread of its own.
    pub(crate) fn record(&self, action: &str, outcome: &str) {
        self.app.audit.record(self.identity.user.name(), action, outcome);
    }
}

impl FromRequestParts<Arc<App>> for RequestContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let found = parts
            .extensions
            .get::<Identity>()
            .zip(parts.extensions.get::<Root>());
        let (identity, root) = found.ok_or_else(|| Problem::bug(&"a route without a user"))?;
        Ok(Self {
            app: Arc::clone(app),
            identity: identity.clone(),
            root: root.clone(),
        })
    }
}

/// A request of a user who may operate. Others are rejected before the body of their request is read.
pub(crate) struct OperatorContext(pub(crate) RequestContext);

impl FromRequestParts<Arc<App>> for OperatorContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let context = RequestContext::from_request_parts(parts, app).await?;
        context.require_operator()?;
        Ok(Self(context))
    }
}

/// Finds the user of a request, and rejects what another site has caused.
async fn authenticate(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let is_api = api::is_api(parts.uri.path());
    let root = parts
        .extensions
        .get::<Root>()
        .map(|root| root.0.clone())
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

/// The problem of a request that a page of another site has caused.
pub(crate) fn cross_site() -> Problem {
    let text = "the request comes from a page of another site; open the console and try again there";
    Problem::new(StatusCode::FORBIDDEN, "Not allowed", text)
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
            "without authentication, the console answers requests of its own computer only; configure tokens or a reverse proxy",
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

/// Becomes a page, or JSON, in [`finish`].
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
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
