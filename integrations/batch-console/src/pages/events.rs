//! The stream of events that refreshes open pages.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};

use crate::app::RequestContext;
use crate::problem::Problem;

/// The interval of comments that keep proxies from closing the stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Sends an event for each change in the repository.
///
/// # Errors
/// When too many pages are open; they still load.
pub(super) async fn follow(
    context: RequestContext,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let permit = Arc::clone(&context.app.streams).try_acquire_owned();
    let permit = permit.map_err(|_| {
        let text = "too many pages are open; this one has to be loaded again to show changes";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "Too many open pages", text)
    })?;
    let mut changes = context.app.changes.follow(&context.app.operator);
    changes.mark_unchanged();
    let events = stream::unfold((changes, permit), async |(mut changes, permit)| {
        // The sender lives as long as the console.
        changes.changed().await.ok()?;
        // Browsers ignore an event without data.
        Some((
            Ok(Event::default().event("change").data("now")),
            (changes, permit),
        ))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}
