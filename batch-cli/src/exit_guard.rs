//! A process that is ended by `exit` while a job runs must not look like a success to a scheduler: an artifact, or a library that
//! it calls, may end it with code 0.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use batch_runtime::{BatchStatus, JobOperator};

use crate::print::{err, errln};
use crate::signals::end_process;

/// True while a command may run jobs.
static IS_ARMED: AtomicBool = AtomicBool::new(false);
static OPERATOR: Mutex<Option<JobOperator>> = Mutex::new(None);

/// The time limit for recording the cause.
const PATIENCE: Duration = Duration::from_secs(5);

/// Guards the process until [`disarm`].
pub(crate) fn arm() {
    if !IS_ARMED.swap(true, Ordering::SeqCst) && !shutdown_hooks::add_shutdown_hook(at_exit) {
        errln!(
            "warning: cannot register an exit handler; if an artifact calls `exit(0)`, the process reports success"
        );
    }
}

/// Sets the operator that records the cause.
pub(crate) fn record_by(operator: &JobOperator) {
    *OPERATOR.lock().unwrap_or_else(PoisonError::into_inner) = Some(operator.clone());
}

/// Lets the process exit, when the observers have received the last events, and drops the operator: its runtime removes its lock file when
/// it ends.
pub(crate) fn disarm() {
    IS_ARMED.store(false, Ordering::SeqCst);
    let operator = OPERATOR.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(operator) = operator {
        operator.flush_observers();
    }
}

/// Called by `exit`, on the thread that called it.
extern "C" fn at_exit() {
    if !IS_ARMED.swap(false, Ordering::SeqCst) {
        return;
    }
    let cause = "an artifact, or a library that it calls, ended the process by `exit`";
    err(format_args!(
        "error: {cause}; run the same `launch`, or `recover`, to resume from the last checkpoint"
    ));
    // On a separate thread: this one may hold a lock that the database waits for.
    let (done, wait) = channel();
    let record = move || {
        let operator = OPERATOR.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = operator.as_ref().map(|operator| operator.record_exit(cause)) {
            errln!("error: cannot record the cause: {error}");
        }
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(record).is_ok() {
        let _ = wait.recv_timeout(PATIENCE);
    }
    // The code that `exit` was given cannot be known here, nor changed otherwise.
    end_process(BatchStatus::Failed.exit_code().into());
}
