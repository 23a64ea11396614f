//! The audit log.

use askama::Template;
use axum::response::Response;

use super::{Shell, html, now};
use crate::app::Visit;
use crate::audit::Entry;
use crate::problem::Problem;
use crate::view::Time;

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    shell: Shell,
    entries: Vec<(Time, Entry)>,
}

pub(super) async fn show(visit: Visit) -> Result<Response, Problem> {
    let now = now();
    let entries = visit.app.audit.latest().into_iter();
    Ok(html(&Page {
        shell: Shell::new(&visit, "audit", "Audit log"),
        entries: entries.map(|entry| (Time::new(entry.time, now), entry)).collect(),
    }))
}
