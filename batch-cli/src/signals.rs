//! SIGTERM and SIGINT: the first requests the job to stop, the second ends the process at once.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::print::{err, errln};

/// The exit code of a process that a signal ended is this number plus the signal, as shells report it.
const BY_SIGNAL: c_int = 128;
/// The polling interval for signals. Two of one kind within this time count as one, as they may for the system.
const POLL: Duration = Duration::from_millis(20);

/// The request of a signal to end the process.
pub(crate) struct Shutdown {
    signalled: Arc<AtomicBool>,
    limit: Duration,
    requested: Option<Instant>,
}

impl Shutdown {
    /// Starts to listen for signals. A job that is requested to stop has `limit` to do so.
    pub(crate) fn listen(limit: Duration) -> Self {
        let signalled = Arc::new(AtomicBool::new(false));
        let at_once = Arc::new(AtomicBool::new(false));
        let signals = [SIGINT, SIGTERM].map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        for (signal, arrived) in &signals {
            // A handler must not print, so it sets a flag for the thread; without the thread, it ends the process.
            let registered =
                flag::register_conditional_shutdown(*signal, BY_SIGNAL + signal, Arc::clone(&at_once))
                    .and_then(|_| flag::register(*signal, Arc::clone(arrived)));
            if let Err(error) = registered {
                errln!(
                    "warning: cannot handle signal {signal}, which will end the process like a crash: {error}"
                );
            }
        }
        let polled = Arc::clone(&signalled);
        let ending = Arc::clone(&at_once);
        let thread = thread::Builder::new().name("batch-signals".into());
        if let Err(error) = thread.spawn(move || poll(&signals, &polled, &ending)) {
            at_once.store(true, Ordering::Relaxed);
            errln!(
                "warning: cannot start the thread that handles signals, which will end the process like a crash: {error}"
            );
        }
        Self {
            signalled,
            limit,
            requested: None,
        }
    }

    /// Returns `true` once, after the first signal.
    pub(crate) fn starts(&mut self) -> bool {
        let starts = self.requested.is_none() && self.signalled.load(Ordering::Relaxed);
        if starts {
            self.requested = Some(Instant::now());
        }
        starts
    }

    /// Returns whether the time to stop is over.
    pub(crate) fn is_overdue(&self) -> bool {
        self.requested
            .is_some_and(|requested| requested.elapsed() >= self.limit)
    }

    /// Returns the time that a job has to stop.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }
}

/// Ends the process without exit handlers: a client library of the database may be in use.
pub(crate) fn end_process(code: c_int) -> ! {
    low_level::exit(code)
}

/// Runs on its own thread, so that a second signal ends the process even if all others are busy.
fn poll(signals: &[(c_int, Arc<AtomicBool>)], signalled: &AtomicBool, at_once: &AtomicBool) {
    loop {
        thread::sleep(POLL);
        for (signal, arrived) in signals {
            if arrived.swap(false, Ordering::Relaxed) && signalled.swap(true, Ordering::Relaxed) {
                // If the standard error blocks, a third signal ends the process without the message.
                at_once.store(true, Ordering::Relaxed);
                err(
                    "process ended at once, like a crash; run the same `launch`, or `recover`, to resume from the last checkpoint",
                );
                end_process(BY_SIGNAL + signal);
            }
        }
    }
}
