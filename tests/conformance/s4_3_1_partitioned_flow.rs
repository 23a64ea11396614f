//! Section 4.3.1: partitioned flows.

use insta::assert_snapshot;

use crate::artifacts::{restart_with, started, story, wrapped};
use crate::parallel::{A_AND_B, ONE_THREAD, partition_of, properties, sorted, sorted_tree};
use crate::sequence::{decision, done, flow, meeting, run, run_with};

/// Each partition executes all steps of the flow in sequence, with its own rows; properties reach all steps.
///
/// Spec: FPART-01, FPART-02, FPART-03, FPART-09, FPART-10, PART-32, D-75
#[test]
fn every_partition_executes_all_steps() {
    let steps = r#"<step id="one" next="choose"><batchlet ref="Part"/></step>"#.to_owned()
        + &decision("choose", "GO", r#"<next on="GO" to="two"/>"#)
        + r#"<step id="two"><batchlet ref="Part"/></step>"#;
    let partition = partition_of(A_AND_B);
    let elements =
        ONE_THREAD.to_owned() + &flow("parts", "next=\"last\"", &(steps + &partition)) + &done("last");
    assert_snapshot!(run(&elements), @r"
    job job COMPLETED
      step parts:1 COMPLETED a DONE
      step parts:2 COMPLETED b DONE
      step parts:1/one COMPLETED a DONE
      step parts:1/two COMPLETED a DONE
      step parts:2/one COMPLETED b DONE
      step parts:2/two COMPLETED b DONE
      step last COMPLETED DONE
    process a · decide of job after step one COMPLETED a DONE · process a · process b
    decide of job after step one COMPLETED b DONE · process b · begin last · process last · end last
    ");
}

/// A symbol has its value in each partition for every step and artifact.
///
/// Spec: FPART-04, SUBST-09, PART-14
#[test]
fn symbols_of_the_steps_have_values_in_each_partition() {
    let step = |id: &str, attributes: &str| {
        format!(
            r#"<step id="{id}" {attributes}><batchlet ref="Part"><properties><property name="name" value="${{{id}.name}}"/></properties></batchlet></step>"#
        )
    };
    let steps = step("one", "next=\"two\"") + &step("two", "");
    let names = properties("one.name.1=1a; two.name.1=2a; one.name.2=1b; two.name.2=2b");
    let partition = partition_of(&format!("instances=\"2\"|{names}"));
    let elements = ONE_THREAD.to_owned() + &flow("parts", "", &(steps + &partition));
    let (stage, _) = started(&elements, ());
    assert_snapshot!(wrapped(&stage.log()), @"process 1a · process 2a · process 1b · process 2b");
}

/// A flow with an algorithm around a partitioned step: inner values win, the others are inherited.
///
/// Spec: FPART-05, FPART-07, PART-32, D-34, D-75
#[test]
fn a_partitioned_step_within_a_partitioned_flow() {
    let inner = properties("result.1=x; name.2=inner");
    let inner = partition_of(&format!("instances=\"2\"|{inner}"));
    let steps = format!(r#"<step id="one"><batchlet ref="Part"/>{inner}</step>"#);
    let outer = partition_of(r#"|<algorithm ref="Planner"/><logicalTX ref="Unit"/>"#);
    let elements = ONE_THREAD.to_owned() + &flow("parts", "", &(steps + &outer));
    assert_snapshot!(run_with(&elements, [("parts", "a,b")]), @r"
    job job COMPLETED
      step parts:1 COMPLETED
      step parts:2 COMPLETED
      step parts:1/one COMPLETED
      step parts:1/one:1 COMPLETED a DONE
      step parts:1/one:2 COMPLETED inner DONE
      step parts:2/one COMPLETED
      step parts:2/one:1 COMPLETED b DONE
      step parts:2/one:2 COMPLETED inner DONE
    tx begin · plan · process a · process inner · process b · process inner · tx before completion
    tx after 2 calls COMMIT
    ");
}

/// If a partition fails the others are stopped. On restart a complete partition does not run again, nor do the complete
/// steps of the others.
///
/// Spec: FPART-08, FPART-11, RESTART-12, D-32
#[test]
fn a_partition_that_fails_and_resumes() {
    let steps = r#"<step id="one" next="two"><batchlet ref="Part"/></step>"#.to_owned()
        + r#"<step id="two"><batchlet ref="Part"/></step>"#;
    let names = properties("name.1=a; name.2=b; name.3=c; log.3=${log}");
    let partition = partition_of(&format!("instances=\"3\"|{names}"));
    let elements = ONE_THREAD.to_owned() + &flow("parts", "", &(steps + &partition));
    let (stage, failed) = started(&elements, [("fail", "process b")]);
    assert_snapshot!(story(&stage, failed), @r"
    job job FAILED | cannot process b | thrown by #[process] of batchlet `Part`
        | in partition 2 of `parts`
      step parts:1 COMPLETED a DONE
      step parts:2 FAILED | cannot process b | thrown by #[process] of batchlet `Part`
      step parts:3 STOPPED
      step parts:1/one COMPLETED a DONE
      step parts:1/two COMPLETED a DONE
      step parts:2/one FAILED | cannot process b | thrown by #[process] of batchlet `Part`
    process a · process a · process b
    ");
    let again = restart_with(&stage, failed, [("fail", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step parts:2 COMPLETED b DONE
      step parts:3 COMPLETED c DONE
      step parts:2/one COMPLETED b DONE
      step parts:2/two COMPLETED b DONE
      step parts:3/one COMPLETED c DONE
      step parts:3/two COMPLETED c DONE
    process b · process b · process c · process c
    ");
}

/// Spec: FPART-08, STATUS-25, D-32
#[test]
fn running_siblings_are_stopped() {
    let steps = meeting("one", "", "a, b", "end", "")
        .replace("name=\"result\" value=\"one MET\"", "name=\"unused\" value=\"\"");
    let names = properties("name.1=a; then.1=fail; name.2=b; then.2=wait");
    let partition = partition_of(&format!("instances=\"2\"|{names}"));
    let elements = flow("parts", "", &(steps + &partition));
    let (stage, execution) = started(&elements, ());
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job FAILED | a had enough | thrown by #[process] of batchlet `Meeting`
        | in partition 1 of `parts`
      step parts:1 FAILED | a had enough | thrown by #[process] of batchlet `Meeting`
      step parts:1/one FAILED | a had enough | thrown by #[process] of batchlet `Meeting`
      step parts:2 STOPPED MET
      step parts:2/one STOPPED MET
    ");
    assert_snapshot!(sorted(&stage), @r#"cancel b"#);
}

/// A terminating element within a partition ends the job accordingly; no further partition starts. The restart resumes
/// accordingly.
///
/// Spec: FPART-09, STATUS-16, TERM-05, TERM-09, RESTART-04
#[test]
fn a_terminating_element_in_a_partition_ends_the_job() {
    let mut text = String::new();
    for element in [
        r#"<end on="b DONE" exit-status="EARLY"/>"#,
        r#"<stop on="b DONE" restart="last"/>"#,
        r#"<fail on="b DONE"/>"#,
    ] {
        let steps = format!(
            r#"<step id="one"><batchlet ref="Part"/>{element}<next on="*" to="two"/></step><step id="two"><batchlet ref="Part"/></step>"#
        );
        let names = properties("name.1=a; name.2=b; name.3=c");
        let partition = partition_of(&format!("instances=\"3\"|{names}"));
        let elements =
            ONE_THREAD.to_owned() + &flow("parts", "next=\"last\"", &(steps + &partition)) + &done("last");
        let (stage, execution) = started(&elements, ());
        text += &format!("{element}\n{}\n", story(&stage, execution));
        if !element.starts_with("<end") {
            let again = stage.restart(execution);
            text += &format!("AGAIN\n{}\n", story(&stage, again));
        }
    }
    assert_snapshot!(text);
}

/// A complete partition does not run again, even if its steps allow it.
///
/// Spec: FPART-11, JSL-STEP-08
#[test]
fn a_complete_partition_is_not_executed_again() {
    let steps = r#"<step id="one" allow-start-if-complete="true"><batchlet ref="Part"/></step>"#.to_owned();
    let partition = partition_of(A_AND_B);
    let elements = ONE_THREAD.to_owned() + &flow("parts", "", &(steps + &partition));
    let (stage, failed) = started(&elements, [("fail", "process b")]);
    stage.log();
    restart_with(&stage, failed, [("fail", "")]);
    assert_eq!(stage.log(), ["process b"]);
}
