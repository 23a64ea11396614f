//! The deadline of the tests: one that hangs ends its program with a message, so that it does not block CI.
//!
//! The fixtures call [`waits_for`] whenever a test begins something that may take time. If a test makes no such call for ten
//! minutes, and does not end, the program prints the name of the test and what it waits for, and aborts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than any test waits for one thing on a machine under load, and shorter than the limit of a command in `.ci/run`.
const LIMIT: Duration = Duration::from_secs(600);

/// The limit in a process, in seconds, if it is another one.
const LIMIT_OF_PROCESS: &str = "BATCH_TEST_DEADLINE";

/// A running test.
struct Running {
    test: String,
    since: Instant,
    waits_for: Box<dyn Fn() -> String + Send>,
}

/// The running tests, each by the number of its thread.
static RUNNING: Mutex<BTreeMap<u64, Running>> = Mutex::new(BTreeMap::new());

fn running() -> MutexGuard<'static, BTreeMap<u64, Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes its test when the thread ends.
struct Registered(u64);

impl Drop for Registered {
    fn drop(&mut self) {
        // Dropped outside of the lock, because it may contain anything.
        let ended = running().remove(&self.0);
        drop(ended);
    }
}

thread_local! {
    static REGISTERED: RefCell<Option<Registered>> = const { RefCell::new(None) };
}

/// Restarts the deadline of the test that runs on this thread. `what` describes what the test waits for from now on; it is called
/// after the deadline, on another thread.
pub fn waits_for(what: impl Fn() -> String + Send + 'static) {
    let thread = thread::current();
    // Each test runs on a thread with its name, or on the main thread. Others belong to a test that waits for them.
    let Some(test) = thread.name() else { return };
    let number = REGISTERED.with_borrow_mut(|registered| registered.get_or_insert_with(register).0);
    let now = Running {
        test: test.to_owned(),
        since: Instant::now(),
        waits_for: Box::new(what),
    };
    let before = running().insert(number, now);
    drop(before);
}

/// Sets a deadline for the tests in a child process that is shorter than the deadline of the test that waits for it.
pub fn of_child(command: &mut Command) -> &mut Command {
    command.env(LIMIT_OF_PROCESS, (limit().as_secs() / 2).to_string())
}

fn register() -> Registered {
    static NUMBERS: Mutex<u64> = Mutex::new(0);
    let mut last = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    if *last == 0 {
        thread::spawn(watch);
    }
    *last += 1;
    Registered(*last)
}

fn limit() -> Duration {
    static OF_PROCESS: OnceLock<Duration> = OnceLock::new();
    *OF_PROCESS.get_or_init(|| {
        let seconds = std::env::var(LIMIT_OF_PROCESS).ok();
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        seconds.map_or(LIMIT, Duration::from_secs)
    })
}

fn watch() {
    loop {
        let first = running().values().map(|running| running.since.elapsed()).max();
        let left = limit().saturating_sub(first.unwrap_or_default());
        if left.is_zero() {
            report();
            std::process::abort();
        }
        thread::park_timeout(left);
    }
}

/// Prints all tests whose deadline has passed.
fn report() {
    // Not `eprintln`, whose output libtest keeps for the end of a test that never ends.
    let mut output = std::io::stderr();
    for hanging in running()
        .values()
        .filter(|running| running.since.elapsed() >= limit())
    {
        let (test, seconds) = (&hanging.test, limit().as_secs());
        // In two parts, because the description may hang too.
        let _ = write!(
            output,
            "\ntest `{test}` hangs: for {seconds} s it has waited for "
        );
        let _ = writeln!(output, "{}", (hanging.waits_for)());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANGS: &str = "BATCH_TEST_HANGS";

    #[test]
    fn a_test_that_hangs_is_named() {
        if std::env::var_os(HANGS).is_some() {
            waits_for(|| "the first thing".into());
            waits_for(|| "godot".into());
            let (_sender, receiver) = std::sync::mpsc::channel::<()>();
            return receiver.recv().unwrap();
        }
        let test = "deadline::tests::a_test_that_hangs_is_named";
        let hanging = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(HANGS, "1")
            .env(LIMIT_OF_PROCESS, "1")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&hanging.stderr);
        let message = format!("test `{test}` hangs: for 1 s it has waited for godot\n");
        assert!(!hanging.status.success() && errors.contains(&message), "{errors}");
    }
}
