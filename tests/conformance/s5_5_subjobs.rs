//! Sections 5.5.3 and 5.5.4: collectors and analyzers.

use batch_tests::stage::Stage;
use insta::assert_snapshot;

use crate::artifacts::{assert_contains_all, calls, chosen, restart_with, started, story, tree, wrapped};
use crate::parallel::{A_AND_B, ONE_THREAD, in_turn, partition_of, partitioned, properties};
use crate::sequence::{decision, done, flow, run, split, task};

pub(crate) const BOTH: &str = r#"<collector ref="Send"/><analyzer ref="Receive"/>"#;

/// The words of the calls of collectors and analyzers.
fn subjob_calls(stage: &Stage) -> String {
    calls(stage, &["collect", "data", "status", "analyzed", "process"])
}

/// Returns the calls that begin with `word`.
fn of(log: &[String], word: &str) -> String {
    let calls: Vec<_> = log.iter().filter(|call| call.starts_with(word)).collect();
    wrapped(&calls)
}

/// Returns `Send` and `Receive` around two partitions of a chunk with five items, three in an interval.
pub(crate) fn chunk(around: &str) -> String {
    let names = properties("name.1=a; name.2=b; items.2=2");
    format!(
        r#"{ONE_THREAD}<step id="load"><chunk reader="Numbers" processor="Labels" writer="Lines" commit-interval="3"/>
           <partition instances="2">{names}{around}</partition></step>"#
    )
}

/// The collector is called after each checkpoint and at the end, with one instance per partition. The analyzer gets the
/// payloads of a partition in order, and its exit status last, on the thread of the step.
///
/// Spec: SUBJOB-01, SUBJOB-02, SUBJOB-03, SUBJOB-05, SUBJOB-07, SUBJOB-08, SUBJOB-09, SUBJOB-10, SUBJOB-11, SUBJOB-12, SUBJOB-27, PART-27, D-45
#[test]
fn a_collector_is_called_after_each_checkpoint_and_at_the_end() {
    let (stage, execution) = started(&chunk(BOTH), [("sets", "true")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job COMPLETED
      step load COMPLETED RECEIVED 7
      step load:1 COMPLETED read 5 write 5 commit 2
      step load:2 COMPLETED read 2 write 2 commit 1
    ");
    let log = stage.log();
    assert_snapshot!(of(&log, "collect"), @r"
    collect a 1 at load · collect a 2 at load · collect a 3 at load · collect b 1 at load
    collect b 2 at load
    ");
    // The payloads of a partition precede its status.
    assert_snapshot!([of(&log, "data"), of(&log, "status"), of(&log, "analyzed")].join("\n"), @r"
    data a 1 at load · data a 2 at load · data a 3 at load · data b 1 at load · data b 2 at load
    status COMPLETED · status COMPLETED
    ");
    let at = |call: &str| log.iter().position(|other| other == call);
    assert!(at("data a 3 at load") < at("status COMPLETED"));
}

/// A batchlet collects once, at its end. Properties reach both artifacts, the partition's properties only the collector.
///
/// Spec: SUBJOB-04, SUBJOB-06, SUBJOB-13, SUBJOB-14, SUBJOB-15, PART-16
#[test]
fn batchlets_and_their_optional_methods() {
    let mut text = String::new();
    for around in [
        BOTH,
        r#"<collector ref="Send"/>"#,
        r#"<analyzer ref="Receive"/>"#,
        r#"<collector ref="Send"><properties><property name="sends" value="nothing"/></properties></collector><analyzer ref="Receive"><properties><property name="fail" value="data a 1 at all"/></properties></analyzer>"#,
    ] {
        text += &(run(&in_turn(&format!("{A_AND_B}{around}"))) + "\n");
    }
    assert_snapshot!(text, @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED a DONE
      step all:2 COMPLETED b DONE
    process a · collect a 1 at all · data a 1 at all · status a DONE · process b · collect b 1 at all
    data b 1 at all · status b DONE
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED a DONE
      step all:2 COMPLETED b DONE
    process a · collect a 1 at all · process b · collect b 1 at all
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED a DONE
      step all:2 COMPLETED b DONE
    process a · status a DONE · process b · status b DONE
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED a DONE
      step all:2 COMPLETED b DONE
    process a · collect a 1 at all · status a DONE · process b · collect b 1 at all · status b DONE
    ");
}

/// A collector that throws fails its partition, and takes the checkpoint back that its payload belongs to.
///
/// Spec: SUBJOB-03, SUBJOB-05, PART-26, D-108
#[test]
fn a_collector_that_throws_fails_its_partition_and_its_checkpoint() {
    let (stage, execution) = started(&chunk(BOTH), [("fail", "collect a 1 at load")]);
    let problems = [
        "step load:1 FAILED FAILED read 0 filter 0 write 0 commit 0 rollback 1",
        "thrown by #[collect_sub_job_data]",
    ];
    assert_contains_all(&stage.tree(execution), &problems);
    assert!(!stage.log().contains(&"read 4".to_owned()));
}

/// A subjob that ended with an exception collects nothing more; the analyzer sees that it failed.
///
/// Spec: SUBJOB-10, SUBJOB-16
#[test]
fn a_failed_subjob_collects_nothing() {
    let (stage, _) = started(&chunk(BOTH), [("fail", "read 5")]);
    assert_snapshot!(calls(&stage, &["collect", "data", "status"]), @"collect a 1 at load · data a 1 at load · status FAILED");
}

/// Payloads are not stored; the exit status of a partition that completed earlier is reported again.
///
/// Spec: SUBJOB-17, SUBJOB-10, RESTART-14
#[test]
fn a_restart_reports_exit_statuses_again() {
    let elements = in_turn(&format!("{A_AND_B}{BOTH}"));
    let (stage, failed) = started(&elements, [("fail", "process b")]);
    let mut text = subjob_calls(&stage);
    let again = restart_with(&stage, failed, [("fail", "")]);
    text += &format!("\nAGAIN\n{}", story(&stage, again));
    assert_snapshot!(text, @r"
    process a · collect a 1 at all · data a 1 at all · status a DONE · process b · status FAILED
    AGAIN
    job job COMPLETED
      step all COMPLETED
      step all:2 COMPLETED b DONE
    status a DONE · process b · collect b 1 at all · data b 1 at all · status b DONE
    ");
}

/// In a partitioned flow the collector is called for every step, with one instance per partition; for a partitioned step in it once.
///
/// Spec: SUBJOB-18, SUBJOB-19, SUBJOB-20, SUBJOB-21, SUBJOB-26, FPART-06, FPART-09
#[test]
fn a_collector_of_a_flow() {
    let steps = format!(
        r#"<step id="load" next="inner"><chunk reader="Numbers" processor="Labels" writer="Lines"/></step>{}{}"#,
        partitioned("inner", "next=\"last\"", "Part", "instances=\"2\""),
        done("last")
    );
    let names = properties("name.1=a; items.1=1; name.2=b; items.2=1");
    let partition = partition_of(&format!("instances=\"2\"|{names}{BOTH}"));
    let elements = format!("{ONE_THREAD}{}", flow("parts", "", &(steps + &partition)));
    let (stage, execution) = started(&elements, [("sets", "true")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job COMPLETED
      step parts:1 COMPLETED DONE
      step parts:2 COMPLETED DONE
      step parts:1/load COMPLETED read 1 write 1 commit 1
      step parts:1/inner COMPLETED
      step parts:1/inner:1 COMPLETED a DONE
      step parts:1/inner:2 COMPLETED a DONE
      step parts:1/last COMPLETED DONE
      step parts:2/load COMPLETED read 1 write 1 commit 1
      step parts:2/inner COMPLETED
      step parts:2/inner:1 COMPLETED b DONE
      step parts:2/inner:2 COMPLETED b DONE
      step parts:2/last COMPLETED DONE
    ");
    let log = stage.log();
    assert_snapshot!([of(&log, "collect"), of(&log, "data"), of(&log, "status")].join("\n"), @r"
    collect a 1 at load · collect a 2 at load · collect a 3 at inner · collect a 4 at last
    collect b 1 at load · collect b 2 at load · collect b 3 at inner · collect b 4 at last
    data a 1 at load · data a 2 at load · data a 3 at inner · data a 4 at last · data b 1 at load
    data b 2 at load · data b 3 at inner · data b 4 at last
    status DONE · status DONE
    ");
}

/// In a split the collector is called for every step of each flow, with one instance per flow; for a partitioned flow
/// once.
///
/// Spec: SUBJOB-22, SUBJOB-23, SUBJOB-24, SUBJOB-25, SUBJOB-26, SPLIT-16
#[test]
fn a_collector_of_a_split() {
    let plain = task("one", "next=\"two\"", "DONE", "") + &task("two", "", "WELL", "");
    let parts = task("three", "next=\"four\"", "DONE", "") + &done("four") + &partition_of("instances=\"2\"");
    let flows = flow("plain", "", &plain) + &flow("parts", "", &parts);
    let flows = format!("{flows}<concurrency>{BOTH}</concurrency>");
    let elements = split("both", "next=\"choose\"", &flows) + &decision("choose", "GO", r#"<end on="GO"/>"#);
    let (stage, _) = started(&elements, [("sets", "true")]);
    let mut recorded = chosen(&stage, &["collect", "data", "status", "analyzed", "decide"]);
    recorded.sort();
    assert_snapshot!(wrapped(&recorded), @r"
    collect nameless 1 at no step · collect nameless 1 at one · collect nameless 2 at two
    data nameless 1 at no step · data nameless 1 at one · data nameless 2 at two
    decide of job after split both COMPLETED RECEIVED 5 · status COMPLETED · status WELL
    ");
}

/// The payload of a partitioned flow that has failed would be counted again after a restart, so its collector is not called.
///
/// Spec: SUBJOB-16, SUBJOB-24
#[test]
fn a_failed_partitioned_flow_collects_nothing() {
    let parts = done("one") + &partition_of("instances=\"2\"");
    let flows = flow("parts", "", &parts) + &format!("<concurrency>{BOTH}</concurrency>");
    let (stage, _) = started(&split("both", "", &flows), [("fail", "process one")]);
    assert_snapshot!(calls(&stage, &["collect", "data", "status"]), @"status FAILED");
}
