//! Section 4.2.6: the state of partitions that a restart uses after all kinds of failures.

use batch_runtime::{JobExecutionId, JobParameters};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use crate::artifacts::{
    assert_completed, assert_contains, assert_contains_all, job, restart_with, started, story, tree,
};
use crate::parallel::{A_AND_B, ONE_THREAD, in_turn, partition_of, partitioned, properties, sorted_tree};
use crate::sequence::{done, flow, run_with};

/// A restart after the Job XML was edited.
pub(crate) fn restart_edited(
    stage: &Stage,
    execution: JobExecutionId,
    xml: &str,
    parameters: impl Into<JobParameters>,
) -> JobExecutionId {
    stage.rewrite(xml);
    let operator = stage.another_runtime().job_operator();
    let execution = operator.restart(execution, parameters).unwrap();
    operator.wait(execution).unwrap();
    execution
}

/// A partition whose artifacts cannot be created keeps the checkpoint of its last attempt.
///
/// Spec: RESTART-09, RESTART-13, PART-29
#[test]
fn a_partition_that_cannot_be_created_keeps_its_checkpoint() {
    let xml = |writer: &str| {
        job(&format!(
            r#"{ONE_THREAD}<step id="load"><chunk reader="Numbers" processor="Labels" writer="{writer}" commit-interval="2"/>
            <partition><algorithm ref="Planner"/></partition></step>"#
        ))
    };
    let stage = Stage::new(&xml("${name}"));
    let first = stage.start("job", [("parts", "Lines"), ("items", "5"), ("fail", "read 4")]);
    stage.log();
    let second = restart_edited(&stage, first, &xml("${nam}"), [("fail", "")]);
    assert_contains(&story(&stage, second), "the symbol `nam` has no value");
    let third = restart_edited(&stage, second, &xml("${name}"), [("fail", "")]);
    assert_snapshot!(story(&stage, third), @r"
    job job COMPLETED
      step load COMPLETED
      step load:1 COMPLETED read 3 write 3 commit 2
    open reader at 2 · open writer at 2 · read 3 · process 3 · read 4 · process 4 · write n3 n4
    checkpoint reader at 4 · checkpoint writer at 4 · read 5 · process 5 · read the end · write n5
    checkpoint reader at 5 · checkpoint writer at 5 · close writer · close reader
    ");
}

/// A step that has committed is not restarted with partitions that it did not have, or without those that it had: its progress is
/// stored under other names. With the previous Job XML it resumes.
///
/// Spec: RESTART-09, RESTART-13, PART-29
#[test]
fn partitions_are_neither_added_nor_removed() {
    let xml = |partition: &str| {
        job(&format!(
            r#"<step id="load"><chunk reader="Numbers" processor="Labels" writer="Lines" commit-interval="2"/>{partition}</step>"#
        ))
    };
    let partition = r#"<partition><algorithm ref="Planner"/></partition>"#;
    for (before, after, problem) in [
        (
            "",
            partition,
            "had no partitions when it ran before in this job instance, but has some now",
        ),
        (
            partition,
            "",
            "had partitions when it ran before in this job instance, but has none now",
        ),
    ] {
        let stage = Stage::new(&xml(before));
        let first = stage.start("job", [("parts", "Lines"), ("items", "5"), ("fail", "read 4")]);
        let second = restart_edited(&stage, first, &xml(after), [("fail", "")]);
        assert_contains(&stage.tree(second), &format!("step `load` {problem}"));
        let third = restart_edited(&stage, second, &xml(before), [("fail", "")]);
        assert_completed(&stage, third);
        assert_contains(&stage.tree(third), " read 3 filter 0 write 3 ");
    }
}

/// A complete step that runs again runs all its partitions, even if it failed before any of them started.
///
/// Spec: PART-30, JSL-STEP-10
#[test]
fn a_step_that_runs_again_runs_all_partitions() {
    let attributes = r#"allow-start-if-complete="true" next="last""#;
    let listeners = "<listeners><listener ref=\"StepWatch\"/></listeners>";
    let all = partitioned("all", attributes, "Part", A_AND_B);
    let all = all.replace("<batchlet", &format!("{listeners}<batchlet"));
    let elements = ONE_THREAD.to_owned() + &all + &done("last");
    let (stage, first) = started(&elements, [("fail", "process last")]);
    let second = restart_with(&stage, first, [("fail", "StepWatch before all STARTED")]);
    stage.log();
    assert_snapshot!(tree(&stage, second), @r"
    job job FAILED | cannot StepWatch before all STARTED
        | thrown by #[before_step] of step listener `StepWatch`
      step all FAILED | the job's message
    ");
    let third = restart_with(&stage, second, [("fail", "")]);
    assert_snapshot!(tree(&stage, third), @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED a DONE
      step all:2 COMPLETED b DONE
      step last COMPLETED DONE
    ");
}

/// An `end` element in one partition of a flow does not hide the failure of another.
///
/// Spec: FPART-08, STATUS-25, PART-29
#[test]
fn an_end_element_does_not_hide_a_failure() {
    let xml = |then: &str| {
        let step = r#"<step id="one"><batchlet ref="Meeting"/><end on="a DONE"/><next on="b DONE" to="two"/></step>"#;
        let names = "name.1=a; result.1=a DONE; meets.1=b; name.2=b; result.2=b DONE";
        let names = properties(&format!("{names}; then.2={then}"));
        let partition = partition_of(&format!("instances=\"2\"|{names}"));
        let elements = step.to_owned() + &done("two") + &partition;
        job(&flow("parts", "", &elements))
    };
    let stage = Stage::new(&xml("wait and fail"));
    let first = stage.start("job", ());
    assert_snapshot!(sorted_tree(&stage, first), @r"
    job job FAILED | b had enough | thrown by #[process] of batchlet `Meeting`
        | in partition 2 of `parts`
      step parts:1 COMPLETED a DONE
      step parts:1/one COMPLETED a DONE
      step parts:2 FAILED | b had enough | thrown by #[process] of batchlet `Meeting`
      step parts:2/one FAILED | b had enough | thrown by #[process] of batchlet `Meeting`
    ");
    stage.log();
    let second = restart_edited(&stage, first, &xml("end"), JobParameters::new());
    assert_snapshot!(story(&stage, second), @r"
    job job COMPLETED
      step parts:2 COMPLETED b DONE
      step parts:2/one COMPLETED b DONE
      step parts:2/two COMPLETED b DONE
    begin two · process two · end two
    ");
}

/// If the analyzer fails, the partitions are stopped at once, even if nothing else happens in them.
///
/// Spec: SUBJOB-16, PART-26, PART-28
#[test]
fn a_failing_analyzer_stops_the_partitions() {
    let names = properties("name.1=a; then.1=wait; name.2=b; result.2=b DONE; meets.2=a");
    let partition = format!("instances=\"2\"|{names}<analyzer ref=\"Receive\"/>");
    let step = partitioned("all", "", "Meeting", &partition);
    let (stage, execution) = started(&step, [("fail", "status b DONE")]);
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job FAILED | cannot status b DONE
        | thrown by #[analyze_exit_status] of sub job analyzer `Receive`
      step all FAILED | the job's message
      step all:1 STOPPED MET
      step all:2 COMPLETED b DONE
    ");
}

/// The partition that waits for the thread of another one does not begin before the analyzer has seen its end.
///
/// Spec: SUBJOB-16, PART-28, D-105
#[test]
fn a_partition_after_a_failing_analyzer_does_not_begin() {
    let names = properties("name.1=a; name.2=b; name.3=c");
    let step = in_turn(&format!("instances=\"3\"|{names}<analyzer ref=\"Receive\"/>"));
    assert_snapshot!(run_with(&step, [("fail", "status a DONE")]), @r"
    job job FAILED | cannot status a DONE
        | thrown by #[analyze_exit_status] of sub job analyzer `Receive`
      step all FAILED | the job's message
      step all:1 COMPLETED a DONE
      step all:2 STOPPED
      step all:3 STOPPED
    process a · status a DONE
    ");
}

/// A plan belongs to the algorithm that made it: if the XML has changed, it is not reused.
///
/// Spec: PART-30
#[test]
fn a_plan_of_an_algorithm_is_not_one_of_the_xml() {
    let xml = |partition: &str| job(&in_turn(partition));
    let of_xml = xml(A_AND_B);
    let of_algorithm = xml("|<algorithm ref=\"Planner\"/>");
    let mut text = String::new();
    for (before, after) in [(&of_xml, &of_algorithm), (&of_algorithm, &of_xml)] {
        let stage = Stage::new(before);
        let first = stage.start("job", [("parts", "a,b"), ("fail", "process b")]);
        stage.log();
        let second = restart_edited(&stage, first, after, [("fail", "")]);
        text += &(story(&stage, second) + "\n");
    }
    assert_snapshot!(text, @r"
    job job FAILED
        | cannot reuse the partitions of an earlier execution: an algorithm has been added or removed, so its committed work belongs to other partitions; start a new instance, or restart with the previous Job XML
      step all FAILED | the job's message

    job job FAILED
        | cannot reuse the partitions of an earlier execution: an algorithm has been added or removed, so its committed work belongs to other partitions; start a new instance, or restart with the previous Job XML
      step all FAILED | the job's message
    ");
}

/// An analyzer that panics when it is dropped is logged; the step keeps its status.
///
/// Spec: SUBJOB-16
#[test]
fn a_panic_when_an_artifact_is_dropped() {
    let step = partitioned("all", "", "Part", r#"instances="1"|<analyzer ref="DropsBadly"/>"#);
    assert_snapshot!(run_with(&step, ()), @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED nameless DONE
    process nameless
    ");
}

/// The rows of partitions are inserted before their threads are free. If a later one cannot be inserted, they end, too.
///
/// Spec: D-105, PART-29
#[test]
fn no_partition_stays_open_if_another_cannot_be_recorded() {
    let names = properties("name.1=a; name.2=b; name.3=c; fail.1=process a");
    let (stage, first) = started(&in_turn(&format!("instances=\"3\"|{names}")), ());
    assert_eq!(stage.tree(first).matches("STOPPED STOPPED").count(), 2);
    let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON BATCH_STEP_EXECUTION WHEN NEW.STEP_NAME = 'all:3'
        BEGIN SELECT RAISE(ABORT, 'the true cause'); END";
    stage.outside().execute(trigger).unwrap();
    let second = restart_with(&stage, first, ());
    assert_contains_all(&stage.tree(second), &["the true cause", "all:2 STOPPED"]);
    let open = "SELECT STEP_NAME AS text FROM BATCH_STEP_EXECUTION WHERE END_TIME IS NULL";
    assert_eq!(stage.outside().rows(open), [""; 0]);
}
