//! The stream of events by which open pages refresh.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};

use crate::app::Visit;

/// The interval of comments that keep proxies from closing the stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Sends an event for each change in the repository.
pub(super) async fn follow(visit: Visit) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut changes = visit.app.pulse.follow(&visit.app.workbench);
    changes.mark_unchanged();
    let events = stream::unfold(changes, async |mut changes| {
        // The sender lives as long as the console.
        changes.changed().await.ok()?;
        // Browsers ignore an event without data.
        Some((Ok(Event::default().event("change").data("now")), changes))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}
