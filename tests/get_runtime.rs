//! The runtime of the process. Alone in its process, whose current directory it changes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use batch_runtime::BatchRuntime;

/// The same runtime at each call; one that could not be built is tried again.
///
/// Spec: ENV-04
#[test]
fn a_process_has_one_runtime() {
    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    std::fs::create_dir("batch.db").unwrap();
    assert!(BatchRuntime::get_runtime().is_err(), "a folder is no database");
    std::fs::remove_dir("batch.db").unwrap();
    let operator = || BatchRuntime::get_runtime().unwrap().job_operator();
    let callback = operator()
        .register_job_end_callback(|_: &batch_runtime::execution::JobExecution| {})
        .unwrap();
    operator()
        .deregister_job_end_callback(callback)
        .expect("the same runtime knows it");
    assert!(folder.path().join("batch.db").exists());
}
