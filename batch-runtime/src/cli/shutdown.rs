//! SIGTERM and SIGINT: the first asks the job to stop, a second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::print::err;

/// What a process that a signal has ended is seen to end with, by the custom of shells.
const BY_SIGNAL: i32 = 128;

/// Whether, and since when, the process is to end.
pub(super) struct Shutdown {
    signalled: Arc<AtomicBool>,
    limit: Duration,
    asked: Option<Instant>,
}

impl Shutdown {
    /// Listens from now on. A job that was asked to stop has `limit` for it.
    pub(super) fn listen(limit: Duration) -> Self {
        let signalled = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds what the first one has set.
            let heard =
                flag::register_conditional_shutdown(signal, BY_SIGNAL + signal, Arc::clone(&signalled))
                    .and_then(|_| flag::register(signal, Arc::clone(&signalled)));
            if let Err(error) = heard {
                err(format_args!(
                    "warning: signal {signal} ends the process like a crash: {error}"
                ));
            }
        }
        Self {
            signalled,
            limit,
            asked: None,
        }
    }

    /// Whether the job is to be asked to stop now: once.
    pub(super) fn begins(&mut self) -> bool {
        let begins = self.asked.is_none() && self.signalled.load(Ordering::Relaxed);
        if begins {
            self.asked = Some(Instant::now());
        }
        begins
    }

    /// Whether the job has not stopped in time.
    pub(super) fn is_over(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() >= self.limit)
    }

    /// How long a job has to stop.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }
}
