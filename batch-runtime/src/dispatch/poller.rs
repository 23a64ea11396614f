//! The pauses between polls of the queue: a poll as soon as the database notifies this process, or else at intervals.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::repository::{Channel, JobRepository, Listener};

/// The pauses between two polls: short after a success, and longer while there is nothing to do.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause of a process that is notified.
const LONGEST_NOTIFIED_PAUSE: Duration = Duration::from_secs(1);
/// The interval between checks for a notification, which cost no request.
const LISTEN_POLL: Duration = Duration::from_millis(5);
/// For this long after a success, polls are so frequent that no notification is needed.
pub(super) const BUSY_FOR: Duration = Duration::from_millis(50);
/// The wait before a process whose connection was lost listens again.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(30);

pub(super) struct QueuePoller {
    repository: Arc<dyn JobRepository>,
    channel: Channel,
    about: String,
    pause: Duration,
    listener: Option<Box<dyn Listener>>,
    /// When to listen again; `None` if the database cannot notify, or does.
    listen_at: Option<Instant>,
}

impl QueuePoller {
    /// Listens, if the database can notify this process.
    pub(super) fn new(repository: &Arc<dyn JobRepository>, channel: Channel, about: &str) -> Self {
        let mut poller = Self {
            repository: Arc::clone(repository),
            channel,
            about: about.to_owned(),
            pause: SHORTEST_PAUSE,
            listener: None,
            listen_at: None,
        };
        poller.listen();
        poller
    }

    fn listen(&mut self) {
        let store = self.repository.worker_store();
        match store.and_then(|store| store.listen(self.channel, &self.about)) {
            Ok(listener) => (self.listener, self.listen_at) = (listener, None),
            Err(error) => {
                tracing::warn!(%error, "cannot listen for other processes; polling at intervals");
                self.listen_at = Some(Instant::now() + LISTEN_AGAIN_AFTER);
            }
        }
    }

    /// Notes whether the last poll has found something.
    pub(super) fn polled(&mut self, found: bool) {
        let longest = match self.listener {
            Some(_) => LONGEST_NOTIFIED_PAUSE,
            None => LONGEST_PAUSE,
        };
        self.pause = match found {
            true => SHORTEST_PAUSE,
            false => (self.pause * 2).min(longest),
        };
    }

    /// Waits for the next poll. Returns `false` if `until` has passed.
    pub(super) fn wait(&mut self, until: Instant) -> bool {
        let now = Instant::now();
        if now >= until {
            return false;
        }
        if self.listen_at.is_some_and(|at| at <= now) {
            self.listen();
        }
        let until = until.min(now + self.pause);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match &mut self.listener {
                None => {
                    thread::sleep(left);
                    return true;
                }
                Some(_) if left.is_zero() => return true,
                Some(listener) => match listener.is_woken() {
                    Ok(true) => return true,
                    Ok(false) => thread::sleep(left.min(LISTEN_POLL)),
                    Err(error) => {
                        tracing::warn!(%error, "the connection that listens for other processes is lost; polling at intervals");
                        self.listener = None;
                        self.listen_at = Some(Instant::now() + LISTEN_AGAIN_AFTER);
                    }
                },
            }
        }
    }
}
