//! Runs the cases on several threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::case::Case;
use crate::run;

/// The number of cases that run at the same time. Most of the time of the slow ones is spent asleep.
const THREADS: usize = 24;

/// The time limit of a case.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs all cases, the slow ones first, and returns the result of each method.
pub(crate) fn run_all(mut cases: Vec<Case>, folder: &Path) -> BTreeMap<&'static str, Result<(), String>> {
    // The last is taken first.
    cases.sort_by_key(|case| case.is_slow);
    let cases = Mutex::new(cases);
    let results = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = cases.lock().unwrap().pop();
                    let Some(case) = next else { break };
                    let method = case.method;
                    let result = run_limited(case, folder);
                    results.lock().unwrap().insert(method, result);
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// Runs a case on a separate thread, which is abandoned after the time limit.
fn run_limited(case: Case, folder: &Path) -> Result<(), String> {
    let (sender, receiver) = channel();
    let folder = Arc::<Path>::from(folder);
    thread::spawn(move || sender.send(run::run(&case, &folder)));
    match receiver.recv_timeout(LIMIT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(format!("no result after {} s", LIMIT.as_secs())),
        Err(RecvTimeoutError::Disconnected) => Err("the case panicked".into()),
    }
}
