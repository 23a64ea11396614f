//! 5.2.8: retry listeners, and the handling of their errors.

use crate::artifacts::tree;
use batch_runtime::prelude::*;
use batch_tests::sqlite;
use batch_tests::stage::say;
use diesel::connection::SimpleConnection;
use insta::assert_snapshot;

use super::faults::{RULES, faulty, faulty_job, faulty_stage, lines, listener, run, with_job_listeners};

const RETRIES: &str = "on retry,on skip";
const CALLS: &[&str] = &["write", "L", "checkpoint reader"];

/// Returns the story of a job with these faults that writes to the table.
fn story_of(attributes: &str, faults: &str) -> String {
    let stage = faulty(&listener("", RETRIES), "TableOut", attributes, RULES);
    let story = run(&stage, faults, "4", CALLS);
    format!("== {faults}\n{story}\ntable: {}\n", lines(&stage))
}

/// An error of `on_retry_exception` forces a rollback, for any classes of the two errors; it is the same retry.
///
/// Spec: LISTEN-RETRY-04, LISTEN-RETRY-05, LISTEN-RETRY-08, CHUNK-RETRY-04
#[test]
fn on_retry_exception_that_throws_forces_a_rollback() {
    let attributes = "commit-interval=\"4\" chunk-size=\"2\" retry-limit=\"1\"";
    let mut text = String::new();
    for faults in [
        "has n4: @Soft x1; L on retry exception Soft n4: Soft",
        "has n4: @Soft x1; L on retry exception Soft n4: Fatal",
        "has n4: @Retry x1; L on retry exception Retry n4: Skip",
        "has n4: Soft x1; L on retry exception Soft n3: Fatal",
    ] {
        text += &story_of(attributes, faults);
    }
    assert_snapshot!(text);
}

/// An error of `on_retry_item` is handled like an exception of the writer that is not retryable: the item is skipped,
/// or the step fails.
///
/// Spec: LISTEN-RETRY-09, LISTEN-RETRY-10, CHUNK-SKIP-06, CHUNK-SKIP-07
#[test]
fn on_retry_item_that_throws_is_skipped_or_the_end() {
    let attributes = "commit-interval=\"4\" chunk-size=\"2\" skip-limit=\"1\"";
    let mut text = String::new();
    for faults in [
        "has n3: @Retry x1; L on retry item Retry n3: Skip",
        "has n3: @Retry x1; L on retry item Retry n3: Fatal",
        "has n3: @Retry x1; L on retry item Retry n3: Retry",
        "has n3: @Soft x1; L on retry item Soft n3: Both",
        "process 1: Skip; has n3: @Retry x1; L on retry item Retry n3: Skip",
        "has n3: Soft x1; L on retry item Soft n4: Skip",
        "has n4: Soft x1; L on retry item Soft n3: Skip; L on retry item Soft n4: Skip",
    ] {
        text += &story_of(attributes, faults);
    }
    assert_snapshot!(text);
}

/// All retry listeners are called with an exception, the job's first, even if one of them throws; then the next
/// stage follows.
///
/// Spec: CHUNK-RETRY-15, LISTEN-RETRY-11, LISTEN-RETRY-05, JSL-JOBLIS-05, JSL-JOBLIS-07
#[test]
fn each_stage_is_for_all_retry_listeners() {
    let listeners = listener("S1", RETRIES) + &listener("S2", RETRIES);
    let xml = faulty_job(&listeners, "Out", "commit-interval=\"2\"", RULES);
    let stage = faulty_stage(&with_job_listeners(
        &xml,
        &(listener("J1", "") + &listener("J2", "")),
    ));
    let mut text = run(&stage, "has n2: @Retry x1", "2", &["J", "S", "write"]);
    let faults = "has n2: @Soft x1; J1 on retry exception Soft n2: Fatal; J2 on retry item Soft n2: Skip; S1 on retry item Soft n2: Fatal";
    text += &format!("\n{}", run(&stage, faults, "2", &["J", "S", "write"]));
    assert_snapshot!(text, @r"
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 2 rollback 1
    write n1 n2 !@Retry · J1 on retry exception Retry n2 · J2 on retry exception Retry n2
    S1 on retry exception Retry n2 · S2 on retry exception Retry n2 · write n1
    J1 on retry item Retry n2 · J2 on retry item Retry n2 · S1 on retry item Retry n2
    S2 on retry item Retry n2 · write n2
    job job COMPLETED
      step copy COMPLETED read 2 write 1 commit 2 rollback 1 write skip 1
    write n1 n2 !@Soft · J1 on retry exception Soft n2 !Fatal · J2 on retry exception Soft n2
    S1 on retry exception Soft n2 · S2 on retry exception Soft n2 · write n1 · J1 on retry item Soft n2
    J2 on retry item Soft n2 !Skip · S1 on retry item Soft n2 !Fatal · S2 on retry item Soft n2
    J1 on skip in write Skip n2 · J2 on skip in write Skip n2 · S1 on skip in write Skip n2
    S2 on skip in write Skip n2
    ");
}

/// Reports whether a transaction is open.
#[derive(BatchArtifact)]
struct SeesTransactions {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "folder")]
    folder: String,
}

impl SeesTransactions {
    fn look(&self, call: &str) {
        let mut connection = sqlite::open(&std::path::Path::new(&self.folder).join("batch.db"));
        connection.batch_execute("PRAGMA busy_timeout = 0").unwrap();
        let started = connection.batch_execute("BEGIN IMMEDIATE; ROLLBACK");
        let state = match started {
            Ok(()) => "no transaction",
            Err(_) => "in the transaction",
        };
        say(&self.log, format!("L {call}: {state}"));
    }
}

#[retry_listener]
impl SeesTransactions {
    #[on_retry_exception]
    fn thrown(&mut self, _: &BatchError, item: &String) {
        self.look(&format!("on retry exception of {item}"));
    }
    #[on_retry_item]
    fn again(&mut self, _: &BatchError, item: &String) {
        self.look(&format!("on retry item {item}"));
    }
}

/// `on_retry_exception` runs in the transaction of the failed write; `on_retry_item` too with no rollback, else after
/// the rollback, in the transaction that has written the earlier items.
///
/// Spec: LISTEN-RETRY-03, LISTEN-RETRY-07, LISTEN-RETRY-08
#[test]
fn retry_listeners_run_inside_the_transaction() {
    let listener = "<listener ref=\"SeesTransactions\"/>";
    let stage = faulty(listener, "TableOut", "commit-interval=\"2\"", RULES);
    let mut text = String::new();
    for faults in [
        "has n1: @Retry x1",
        "has n2: @Retry x1",
        "has n1: @Soft x1",
        "has n1: Soft x1",
    ] {
        let execution = stage.start("job", [("faults", faults), ("items", "2")]);
        let log = super::artifacts::calls(&stage, &["L"]);
        text += &format!("== {faults}\n{}{log}\n", tree(&stage, execution));
    }
    assert_snapshot!(text, @r"
    == has n1: @Retry x1
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 2 rollback 1
    L on retry exception of n1: in the transaction · L on retry item n1: no transaction
    == has n2: @Retry x1
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 2 rollback 1
    L on retry exception of n2: in the transaction · L on retry item n2: in the transaction
    == has n1: @Soft x1
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 2
    L on retry exception of n1: in the transaction · L on retry item n1: in the transaction
    == has n1: Soft x1
    job job COMPLETED
      step copy COMPLETED read 2 write 2 commit 2
    L on retry exception of n1: in the transaction · L on retry exception of n2: in the transaction
    L on retry item n1: in the transaction · L on retry item n2: in the transaction
    ");
}
