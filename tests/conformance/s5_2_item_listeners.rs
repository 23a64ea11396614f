//! 5.2.3 to 5.2.6: the calls of item and checkpoint listeners.

use batch_runtime::prelude::*;
use batch_tests::stage::say;
use insta::assert_snapshot;

use super::artifacts::{calls, impatient, restart_with, stopped};
use super::faults::{RULES, faulty, faulty_job, faulty_stage, lines, listener, run, tree_and_calls};

/// Listener calls surround every call of reader, processor, writer and checkpoint, in order. They precede the read that
/// finds the end, which has no item after it; a filtered item has no result.
///
/// Spec: LISTEN-CKPT-01, LISTEN-CKPT-02, LISTEN-CKPT-03, LISTEN-READ-01, LISTEN-READ-02, LISTEN-READ-03, LISTEN-PROC-01,
/// Spec: LISTEN-PROC-02, LISTEN-PROC-03, LISTEN-PROC-04, LISTEN-WRITE-01, LISTEN-WRITE-02, LISTEN-WRITE-03,
/// Spec: CHUNK-LOOP-03, CHUNK-LOOP-10, JSL-STEPLIS-02
#[test]
fn listeners_surround_every_call() {
    let some = "before checkpoint,after checkpoint,after read 1,before write";
    let listeners = listener("L1", "") + &listener("L2", some);
    let stage = faulty(&listeners, "Out", "commit-interval=\"2\"", "");
    let execution = stage.start("job", [("items", "3"), ("filter.every", "2")]);
    assert_snapshot!(tree_and_calls(&stage, execution, &[]));
}

/// Each call of the writer has its own listener calls with exactly its list, also in the search and in repeated writes.
///
/// Spec: LISTEN-WRITE-02, LISTEN-WRITE-03, LISTEN-WRITE-04, LISTEN-WRITE-05
#[test]
fn write_listeners_receive_the_list_of_each_call() {
    let words = "before write,after write,on write";
    let stage = faulty(&listener("", words), "Out", "commit-interval=\"3\"", RULES);
    assert_snapshot!(run(&stage, "has n2: Both", "3", &["write", "L"]), @r"
    job job COMPLETED
      step copy COMPLETED read 3 write 2 commit 2 rollback 2 write skip 1
    L before write n1 n2 n3 · write n1 n2 n3 !Both · L on write error Both n1 n2 n3 · L before write n1
    write n1 · L after write n1 · L before write n2 · write n2 !Both · L on write error Both n2
    L before write n1 · write n1 · L after write n1 · L before write n2 · write n2 !Both
    L on write error Both n2 · L before write n3 · write n3 · L after write n3
    ");
}

/// The listener is called with an error before the engine handles it.
///
/// Spec: LISTEN-READ-04, LISTEN-PROC-05, LISTEN-WRITE-04, CHUNK-LOOP-13
#[test]
fn listeners_receive_errors_that_fail_the_step() {
    let stage = faulty(&listener("", "on"), "Out", "commit-interval=\"3\"", RULES);
    let mut text = String::new();
    for faults in [
        "read 2: Fatal",
        "process 2: Fatal",
        "has n2: Fatal",
        "read the end: Fatal",
    ] {
        text += &format!("{}\n", run(&stage, faults, "3", &["L", "close"]));
    }
    assert_snapshot!(text, @r"
    job job FAILED | Fatal | thrown by #[read_item] of item reader `Source`
        | its class `conformance::faults::Oops::Fatal` is neither skippable nor retryable
      step copy FAILED rollback 1 | the job's message
    L on read error Fatal · close writer · close reader
    job job FAILED | Fatal | thrown by #[process_item] of item processor `Shape` | at item 2 of `copy`
        | its class `conformance::faults::Oops::Fatal` is neither skippable nor retryable
      step copy FAILED rollback 1 | the job's message
    L on process error Fatal 2 · close writer · close reader
    job job FAILED | Fatal | thrown by #[write_items] of item writer `Out`
        | in the chunk of items 1 to 3 of `copy`
        | its class `conformance::faults::Oops::Fatal` is neither skippable nor retryable
      step copy FAILED rollback 1 | the job's message
    L on write error Fatal n1 n2 n3 · close writer · close reader
    job job FAILED | Fatal | thrown by #[read_item] of item reader `Source`
        | its class `conformance::faults::Oops::Fatal` is neither skippable nor retryable
      step copy FAILED read 3 write 3 commit 1 rollback 1 | the job's message
    L on read error Fatal · close writer · close reader
    ");
}

/// Without a checkpoint there is no `after_checkpoint`; after a rollback `before_checkpoint` is called again at the
/// next checkpoint of the interval. An error of `after_checkpoint` does not undo the commit.
///
/// Spec: LISTEN-CKPT-02, LISTEN-CKPT-03, LISTEN-CKPT-04, CHUNK-LOOP-13
#[test]
fn checkpoint_listeners_and_failures() {
    let stage = faulty(
        &listener("", "before checkpoint,after checkpoint"),
        "TableOut",
        "commit-interval=\"2\"",
        "",
    );
    let words = ["L", "open", "write", "checkpoint", "close"];
    let execution = stage.start("job", [("faults", "checkpoint writer: Fatal"), ("items", "3")]);
    assert_snapshot!(tree_and_calls(&stage, execution, &words), @r"
    job job FAILED | Fatal | thrown by #[get_checkpoint_info] of item writer `TableOut`
      step copy FAILED rollback 1 | the job's message
    open reader at 0 · open writer at 0 · write n1 n2 · L before checkpoint · checkpoint reader at 2
    checkpoint writer !Fatal · close writer · close reader
    ");
    assert_eq!(lines(&stage), "");
    let again = restart_with(&stage, execution, [("faults", "L after checkpoint: Fatal")]);
    assert_snapshot!(tree_and_calls(&stage, again, &words), @r"
    job job FAILED | Fatal | thrown by #[after_checkpoint] of checkpoint listener `CallListener`
      step copy FAILED read 2 write 2 commit 1 | the job's message
    open reader at 0 · open writer at 0 · write n1 n2 · L before checkpoint · checkpoint reader at 2
    checkpoint writer · L after checkpoint !Fatal · close writer · close reader
    ");
    assert_eq!(lines(&stage), "n1 n2");
    let third = restart_with(&stage, again, [("faults", "")]);
    assert_snapshot!(tree_and_calls(&stage, third, &words), @r"
    job job COMPLETED
      step copy COMPLETED read 1 write 1 commit 1
    open reader at 2 · open writer at 2 · write n3 · L before checkpoint · checkpoint reader at 3
    checkpoint writer · L after checkpoint · close writer · close reader
    ");
    assert_eq!(lines(&stage), "n1 n2 n3");
}

/// A failed commit, here because the writer has ended the transaction, has no `after_checkpoint`, and its message
/// reports the writer's mistake.
///
/// Spec: LISTEN-CKPT-04, CHUNK-LOOP-12, CHUNK-LOOP-13, STATUS-27
#[test]
fn no_after_checkpoint_without_a_commit() {
    let stage = faulty(
        &listener("", "before checkpoint,after checkpoint"),
        "Spoils",
        "commit-interval=\"2\"",
        "",
    );
    assert_snapshot!(run(&stage, "", "1", &["L", "write", "close"]), @r"
    job job FAILED
        | the chunk transaction has ended early: by the database, after an error that the writer did not return, or by the writer itself
      step copy FAILED rollback 1 | the job's message
    write n1 · L before checkpoint · close writer · close reader
    ");
    // A failed write that has ended the transaction cannot be undone: the step fails with the writer's own error.
    let stage = faulty("", "Spoils", "commit-interval=\"1\"", RULES);
    assert_snapshot!(run(&stage, "has n1: Skip", "1", &["write", "close"]), @r"
    job job FAILED | Skip | thrown by #[write_items] of item writer `Spoils`
        | the chunk transaction has ended early: by the database, after an error that the writer did not return, or by the writer itself
      step copy FAILED rollback 1 | the job's message
    write n1 !Skip · close writer · close reader
    ");
}

/// A stop finishes the current item, with any listeners.
///
/// Spec: CHUNK-LOOP-15, LISTEN-READ-02
#[test]
fn a_stop_takes_effect_between_listeners() {
    let xml = faulty_job(&listener("", "before"), "Out", "", "");
    let stage = impatient(&xml);
    let execution = stopped(&stage, [("hold.at", "2")]);
    assert_snapshot!(tree_and_calls(&stage, execution, &["L", "read", "write", "checkpoint"]), @r"
    job job STOPPED
      step copy STOPPED read 2 write 2 commit 1
    L before read · read 1 · L before process 1 · L before read · read 2 · L before process 2
    L before write n1 n2 · write n1 n2 · L before checkpoint · checkpoint reader at 2
    checkpoint writer
    ");
}

/// Records the counters in the step's context.
#[derive(BatchArtifact)]
struct SeesCounters {
    #[batch_property(name = "log")]
    log: String,
    #[batch_context]
    step: StepContext,
}

#[checkpoint_listener]
impl SeesCounters {
    #[before_checkpoint]
    fn before(&mut self) {
        self.log_counters("before");
    }
    #[after_checkpoint]
    fn after(&mut self) {
        self.log_counters("after");
    }
}

#[step_listener]
impl SeesCounters {
    #[after_step]
    fn end(&mut self) {
        self.log_counters("end");
    }
}

impl SeesCounters {
    fn log_counters(&self, when: &str) {
        let metrics = self.step.metrics();
        let counters: Vec<_> = metrics.iter().map(|metric| metric.value.to_string()).collect();
        say(&self.log, format!("{when} {}", counters.join(" ")));
    }
}

/// The context's counters have the values of the last commit, also after a rollback; before a checkpoint they include its items and skips.
///
/// Spec: CTX-30, LISTEN-CKPT-03, D-98
#[test]
fn the_counters_change_with_the_commit() {
    let listener = "<listener ref=\"SeesCounters\"/>";
    let xml = faulty_job(listener, "Out", "commit-interval=\"2\"", RULES);
    let stage = faulty_stage(&xml);
    let faults = "read 1: Skip; process 3: Skip; has n4: @Skip";
    stage.start("job", [("faults", faults), ("items", "5")]);
    assert_snapshot!(calls(&stage, &["before", "after"]), @r"
    before 2 1 0 0 0 1 1 0 · after 2 1 0 1 0 1 1 0 · before 4 2 0 1 1 1 1 1 · after 4 2 0 2 1 1 1 1
    before 4 2 0 2 1 1 1 1 · after 4 2 0 3 1 1 1 1
    ");
    let stage = faulty_stage(&xml);
    let faults = "checkpoint reader at 4: Fatal";
    stage.start("job", [("faults", faults), ("items", "5")]);
    assert_snapshot!(calls(&stage, &["before", "after", "end"]), @"before 2 2 0 0 0 0 0 0 · after 2 2 0 1 0 0 0 0 · before 4 4 0 1 0 0 0 0 · end 2 2 0 1 1 0 0 0");
}

/// Listeners with one role each.
macro_rules! listeners {
    ($($name:ident: #[$role:ident] #[$method:ident] fn($($argument:ty),*);)*) => {$(
        #[derive(BatchArtifact)]
        struct $name {
            #[batch_property(name = "log")]
            log: String,
        }

        #[$role]
        impl $name {
            #[$method]
            fn hear(&mut self $(, _: $argument)*) {
                say(&self.log, stringify!($method));
            }
        }
    )*};
}

listeners! {
    HearsReads: #[item_read_listener] #[after_read] fn(&u64);
    HearsProcesses: #[item_process_listener] #[after_process] fn(&u64, Option<&String>);
    HearsWrites: #[item_write_listener] #[after_write] fn(&[String]);
    HearsCheckpoints: #[checkpoint_listener] #[after_checkpoint] fn();
    HearsSkips: #[skip_listener] #[on_skip_in_process] fn(&BatchError, &u64);
    RetryLog: #[retry_listener] #[on_retry_item] fn(&BatchError, &String);
}

/// A listener is called for its own roles, whether there are others or not.
///
/// Spec: LISTEN-READ-03, LISTEN-PROC-03, LISTEN-WRITE-03, LISTEN-CKPT-03, LISTEN-SKIP-03, LISTEN-RETRY-06, JSL-STEPLIS-02
#[test]
fn a_listener_needs_no_other() {
    let mut text = String::new();
    for listener in [
        "HearsReads",
        "HearsProcesses",
        "HearsWrites",
        "HearsCheckpoints",
        "HearsSkips",
        "RetryLog",
    ] {
        let element = format!("<listener ref=\"{listener}\"/>");
        let stage = faulty(&element, "Out", "", RULES);
        let faults = "process 1: Skip; has n2: @Retry x1";
        stage.start("job", [("faults", faults), ("items", "2")]);
        text += &format!("{listener}: {}\n", calls(&stage, &["after", "on"]));
    }
    assert_snapshot!(text, @r"
    HearsReads: after_read · after_read
    HearsProcesses: after_process
    HearsWrites: after_write
    HearsCheckpoints: after_checkpoint
    HearsSkips: on_skip_in_process
    RetryLog: on_retry_item
    ");
}
