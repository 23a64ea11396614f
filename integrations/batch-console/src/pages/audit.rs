//! The audit log.

use askama::Template;
use axum::response::Response;

use super::{Layout, html, now};
use crate::app::RequestContext;
use crate::audit::Entry;
use crate::problem::Problem;
use crate::view::Time;

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    layout: Layout,
    entries: Vec<(Time, Entry)>,
}

pub(super) async fn show(context: RequestContext) -> Result<Response, Problem> {
    let now = now();
    let entries = context.app.audit.latest().into_iter();
    Ok(html(&Page {
        layout: Layout::new(&context, "audit", "Audit log"),
        entries: entries.map(|entry| (Time::new(entry.time, now), entry)).collect(),
    }))
}
