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

/// The payslips of a month that is over budget are not released with the payslips of another month.
#[test]
fn only_the_payslips_of_the_month_are_released() {
    let job = job().parameter("month", "2026-11");
    job.launch().assert_status(BatchStatus::Stopped);
    let job = job.parameter("month", "2026-12").parameter("budget", "31000");
    let run = job.launch();
    let rows = run
        .assert_completed()
        .database()
        .rows_without("payslip", &["cents"]);
    let released = |month: &str| {
        rows.iter()
            .filter(|row| row.ends_with(&format!("'{month}', 1")))
            .count()
    };
    assert_eq!((released("2026-11"), released("2026-12")), (0, 9), "{rows:?}");
}

/// After a crash at any point, each payslip is stored once.
#[test]
fn a_crash_doubles_no_payslip() {
    crash_sweep(job().parameter("budget", "31000"))
        // All faults take half a minute.
        .sample(20)
        .run();
}
