//! The parts that all requests share, and a request of a user.

use std::sync::Arc;

use axum::extract::{FromRequestParts, OriginalUri, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use crate::access::{Access, FormKeys, Identity, Sessions};
use crate::assets::Assets;
use crate::async_operator::AsyncOperator;
use crate::audit::AuditLog;
use crate::changes::ChangeNotifier;
use crate::logs::LogLines;
use crate::problem::Problem;
use crate::{Console, Metrics, Reports};

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

/// The place of the console in the URLs that browsers see.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// The empty text, or `/batch`.
    pub(crate) path: String,
    /// The URL of the requested page, with its query and without a fragment.
    pub(crate) page: String,
}

impl Root {
    /// Returns the URL of the overview.
    pub(crate) fn home(&self) -> String {
        match self.path.as_str() {
            "" => "/".into(),
            root => root.into(),
        }
    }

    pub(crate) fn of(app: &App, request: &Request) -> Self {
        let path = match &app.base_path {
            Some(path) => path.clone(),
            None => Self::path_of(request),
        };
        let inside = request.uri().path_and_query().map_or("", |page| page.as_str());
        let is_home = !path.is_empty() && request.uri().path() == "/";
        let inside = inside.strip_prefix('/').filter(|_| is_home).unwrap_or(inside);
        let page = format!("{path}{inside}");
        Self { path, page }
    }

    fn path_of(request: &Request) -> String {
        let whole = request.extensions().get::<OriginalUri>();
        let whole = whole.map_or_else(|| request.uri().path(), |whole| whole.0.path());
        let prefix = whole.strip_suffix(request.uri().path());
        // The page of the console itself may be requested without the slash at its end.
        prefix.unwrap_or(whole).trim_end_matches('/').to_owned()
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

    /// Records an action that needs no separate thread.
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

/// The problem of a request that a page of another site has caused.
pub(crate) fn cross_site() -> Problem {
    let text = "the request comes from a page of another site; open the console and try again there";
    Problem::new(StatusCode::FORBIDDEN, "Not allowed", text)
}

/// Becomes a page, or JSON, in the outermost layer of the routes.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
