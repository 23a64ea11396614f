//! Tests of the job with `batch-testing`.

use batch_runtime::{BatchError, BatchStatus};
use batch_testing::JobTest;

fn job() -> JobTest {
    JobTest::new("flow/flow.xml").system_property("data", "data")
}

/// One step alone: nothing follows it.
#[test]
fn the_orders_of_the_day_are_added_up() {
    let run = job().step("add-up").launch();
    run.assert_completed().assert_steps(&["add-up"]);
    run.step("add-up").assert_exit_status("7 ORDERS");
}

/// Doubles stand in for the approval and for the paper work.
#[test]
fn a_large_day_waits_for_its_approval() {
    let approved = |status: &'static str| {
        let answer = move |status: &'static str| move || Ok::<_, BatchError>(status.to_owned());
        ["WriteInvoices", "PackingList", "ParcelLabels", "Ship"]
            .into_iter()
            .fold(job(), |job, name| job.batchlet(name, answer("DONE")))
            .batchlet("Approve", answer(status))
            .launch()
    };
    let run = approved("NEEDS APPROVAL");
    run.assert_status(BatchStatus::Stopped)
        .assert_exit_status("NEEDS APPROVAL");
    let run = approved("APPROVED BY ADA");
    run.assert_completed();
    // The flows of the split run in parallel.
    let mut steps: Vec<&str> = run.steps().iter().map(|step| step.step_name.as_str()).collect();
    steps.sort_unstable();
    assert_eq!(steps, ["add-up", "approve", "invoices", "label", "pack", "ship"]);
}
