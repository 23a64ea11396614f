//! A process that is suspended for longer than its lease, and continues when another one has taken over.

use std::fs::{self, File};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::process;
use crate::sweep::{REFUSALS, Sweep, UNDISTURBED, WAITS_AT};

/// The file of the process's output.
const SAID: &str = "said.txt";

fn said_in(sweep: &Sweep) -> String {
    fs::read_to_string(sweep.path().join(SAID)).unwrap()
}

/// Launches a job on the empty repository whose reader waits before it has read the number.
///
/// # Panics
/// If the process ends before.
pub fn launch_until_it_waits(sweep: &Sweep, number: &str) -> Child {
    let said = File::create(sweep.path().join(SAID)).unwrap();
    let mut command = sweep.launch(UNDISTURBED);
    let mut child = command.env(WAITS_AT, number).stderr(said).spawn().unwrap();
    while !said_in(sweep).contains("waiting") {
        assert_eq!(child.try_wait().unwrap(), None, "{}", said_in(sweep));
        thread::yield_now();
    }
    child
}

/// Suspends the process when its reader is at the number. When it continues it must commit nothing, report that, and
/// end with an error.
///
/// # Errors
/// The violated condition.
///
/// # Panics
/// If it is never taken over.
pub fn taken_over_at(sweep: Sweep, number: &str) -> Result<(), String> {
    let sweep = sweep.with("BATCH_LEASE_TIME", "1");
    sweep.reset();
    // As on another host: no lock shows whether the process is alive.
    fs::write(sweep.path().join("batch.db-owners"), "").unwrap();
    let mut suspended = launch_until_it_waits(&sweep, number);
    process::signal(&suspended, "STOP");
    let begin = Instant::now();
    loop {
        let output = sweep.launch(UNDISTURBED).output().unwrap();
        let errors = process::text(&output.stderr);
        if output.status.success() {
            break;
        }
        // Its process lives, so its lease is not taken over before it expires.
        assert!(errors.contains("is running: execution 1"), "{errors}");
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "never taken over: {errors}"
        );
    }
    let before = sweep.check();

    fs::write(sweep.path().join("go"), "").unwrap();
    process::signal(&suspended, "CONT");
    let code = suspended.wait().unwrap().code();
    let said = said_in(&sweep);
    before?;
    // It has not tried to, either.
    let is_refused = REFUSALS.iter().any(|refusal| said.contains(refusal));
    if is_refused || code != Some(1) || !said.contains("another runtime has taken this execution over") {
        return Err(format!("it ended with {code:?}: {said}"));
    }
    sweep.check()?;
    sweep.check_locks()?;
    let ended = sweep
        .rows("SELECT STATUS || ' ' || EXIT_CODE AS text FROM BATCH_JOB_EXECUTION ORDER BY JOB_EXECUTION_ID");
    if ended != ["FAILED CRASHED", "COMPLETED COMPLETED"] {
        return Err(format!("they ended as {ended:?}"));
    }
    Ok(())
}
