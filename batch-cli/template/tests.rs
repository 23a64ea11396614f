//! Tests of the job, from its parts to a crash at every event of the repository.

use batch_testing::{JobTest, crash_sweep};

use crate::orders::{OrderProcessor, OrderRow};

const JOB: &str = "jobs/NAME.xml";

/// The job files name artifacts that exist, with properties that they have.
#[test]
fn jobs_fit_their_artifacts() {
    batch_runtime::check_jobs!(deny_warnings, "jobs");
}

/// The method of an artifact is an ordinary method.
#[test]
fn small_orders_are_left_out() {
    let mut processor = OrderProcessor { minimum_cents: 100 };
    let mut total = |cents| {
        let row = OrderRow {
            number: "O-1".to_owned(),
            customer: "Ada".to_owned(),
            quantity: 2,
            cents,
        };
        let order = processor.process(&row).expect("a total");
        order.map(|order| order.total_cents)
    };
    assert_eq!(total(49), None);
    assert_eq!(total(50), Some(100));
}

/// The whole job, on a temporary database.
#[test]
fn orders_are_loaded() {
    let run = JobTest::new(JOB).launch();
    run.assert_completed();
    run.step("load")
        .assert_reads(4)
        .assert_filters(1)
        .assert_writes(3);
    assert_eq!(run.database().count("orders"), 3);
}

/// Wherever the process dies, the second launch completes the job, with each order once.
#[test]
fn a_crash_loses_or_duplicates_no_order() {
    crash_sweep(JOB).parameter("commit.interval", 2).run();
}
