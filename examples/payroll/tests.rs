//! Tests of the job with `batch-testing`.

use batch_runtime::BatchStatus;
use batch_testing::{JobTest, crash_sweep};

fn job() -> JobTest {
    JobTest::new("payroll/payroll.xml").system_property("data", "data")
}

/// A second launch with another budget passes over the steps that are complete.
#[test]
fn a_stopped_job_resumes_at_the_decision() {
    let job = job().parameter("month", "2026-11");
    let run = job.launch();
    run.assert_status(BatchStatus::Stopped)
        .assert_exit_status("OVER BUDGET")
        .assert_steps(&["prepare", "pay"]);
    let again = job.restart(&run, [("budget", "31000")]);
    again.assert_completed().assert_steps(&["release"]);
    assert_eq!(again.database().count("payslip"), 9);
}

/// Wherever the process dies, each payslip is there once.
#[test]
fn a_crash_pays_nobody_twice() {
    crash_sweep(job().parameter("budget", "31000")).run();
}
