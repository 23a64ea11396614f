//! When to look at the tables of the queue: as soon as the database wakes this process, or else after pauses.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::repository::{Channel, JobRepository, Listener};

/// The pauses between two looks: short after a success, and longer while there is nothing to do.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause of a process that is woken.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The interval at which it looks for a call, which costs no request.
const DOZE: Duration = Duration::from_millis(5);
/// The time for which looks are so frequent after a success that nobody needs to be woken.
pub(super) const AWAKE_FOR: Duration = Duration::from_millis(50);

pub(super) struct Alarm {
    pause: Duration,
    listener: Option<Box<dyn Listener>>,
}

impl Alarm {
    /// Listens, if the database can wake this process.
    pub(super) fn new(repository: &Arc<dyn JobRepository>, channel: Channel, about: &str) -> Self {
        let listener = repository.listen(channel, about).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot listen for other processes; looking at intervals");
            None
        });
        Self {
            pause: SHORTEST_PAUSE,
            listener,
        }
    }

    /// Notes whether the last look has found nothing.
    pub(super) fn was_in_vain(&mut self, nothing: bool) {
        let longest = match self.listener {
            Some(_) => LONGEST_SLEEP,
            None => LONGEST_PAUSE,
        };
        self.pause = match nothing {
            true => (self.pause * 2).min(longest),
            false => SHORTEST_PAUSE,
        };
    }

    /// Waits for the next look. Returns `false` if `until` has passed.
    pub(super) fn wait(&mut self, until: Instant) -> bool {
        let now = Instant::now();
        if now >= until {
            return false;
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
                    Ok(false) => thread::sleep(left.min(DOZE)),
                    Err(error) => {
                        tracing::warn!(%error, "no longer listening for other processes; looking at intervals");
                        self.listener = None;
                    }
                },
            }
        }
    }
}
