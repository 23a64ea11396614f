//! `get_runtime`, the runtime of the process.

use batch_runtime::BatchRuntime;
use batch_runtime::execution::JobExecution;
use batch_tests::own_process;

/// `get_runtime` returns the same runtime at each call, and tries again after a failure.
///
/// Spec: ENV-04
#[test]
fn a_process_has_one_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let test = "get_runtime::a_process_has_one_runtime";
    own_process::run(test, folder.path(), || {
        std::fs::create_dir("batch.db").unwrap();
        assert!(
            BatchRuntime::get_runtime().is_err(),
            "a directory is not a database"
        );
        std::fs::remove_dir("batch.db").unwrap();
        let operator = || BatchRuntime::get_runtime().unwrap().job_operator();
        let callback = operator()
            .register_job_end_callback(|_: &JobExecution| {})
            .unwrap();
        operator()
            .deregister_job_end_callback(callback)
            .expect("the same runtime knows it");
        assert!(std::fs::exists("batch.db").unwrap());
    });
}
