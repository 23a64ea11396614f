//! SIGTERM and SIGINT: the first asks the job to stop, a second one ends the process at once.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::print::err;

/// What a process that a signal has ended is seen to end with, by the custom of shells.
const BY_SIGNAL: c_int = 128;
/// How soon a signal is seen. Two of one kind within this time are one, as they may be for the system too.
const LOOKING: Duration = Duration::from_millis(20);

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
        let at_once = Arc::new(AtomicBool::new(false));
        let signals = [SIGINT, SIGTERM].map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        for (signal, came) in &signals {
            // A handler may not print: it leaves word for the thread, unless nobody is left who looks.
            let heard =
                flag::register_conditional_shutdown(*signal, BY_SIGNAL + signal, Arc::clone(&at_once))
                    .and_then(|_| flag::register(*signal, Arc::clone(came)));
            if let Err(error) = heard {
                err(format_args!(
                    "warning: signal {signal} ends the process like a crash: {error}"
                ));
            }
        }
        let watched = Arc::clone(&signalled);
        let ending = Arc::clone(&at_once);
        let looking = thread::Builder::new().name("batch-signals".into());
        if let Err(error) = looking.spawn(move || look(&signals, &watched, &ending)) {
            at_once.store(true, Ordering::Relaxed);
            err(format_args!(
                "warning: signals end the process like a crash: no thread waits for them: {error}"
            ));
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

/// On a thread of its own: whatever the others do, a second signal ends the process.
fn look(signals: &[(c_int, Arc<AtomicBool>)], signalled: &AtomicBool, at_once: &AtomicBool) {
    loop {
        thread::sleep(LOOKING);
        for (signal, came) in signals {
            if came.swap(false, Ordering::Relaxed) && signalled.swap(true, Ordering::Relaxed) {
                // Who does not read what is printed must not keep the process: the next signal does without.
                at_once.store(true, Ordering::Relaxed);
                err(
                    "ended at once, as by a crash: the same `launch` goes on from the last checkpoint, and so does `recover`",
                );
                // Without what runs at an exit: a library of the database may be at work.
                low_level::exit(BY_SIGNAL + signal);
            }
        }
    }
}
