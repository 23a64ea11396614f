//! Decisions by expressions.

use batch_runtime::BatchStatus;

use super::stage::{Ended, Stage};

/// A job of a decision after the step `load`, or after a flow with it, that reads two good rows, a filtered one and a bad one.
fn job(element: &str, expression: &str) -> Stage {
    let expression = expression.replace('<', "&lt;");
    let step = |next: &str| {
        format!(
            r#"<step id="load"{next}><chunk reader="csvRecordReader" processor="recordProcessor" writer="recordCsvWriter" skip-limit="5">
              <properties>
                <property name="resource" value="${{dir}}/in.csv"/>
                <property name="where" value="id != '3'"/>
                <property name="output" value="${{dir}}/out.csv"/>
              </properties>
              <skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>
            </chunk></step>"#
        )
    };
    let before = match element {
        "step" => step(r#" next="decide""#),
        "flow" => format!(r#"<flow id="around" next="decide">{}</flow>"#, step("")),
        _ => format!(
            r#"<split id="around" next="decide"><flow id="inner">{}</flow></split>"#,
            step("")
        ),
    };
    let stage = Stage::of_job(
        &format!(
            r#"<job id="job">{before}<decision id="decide" ref="expressionDecider">
              <properties><property name="expression" value="{expression}"/></properties>
              <end on="GOOD" exit-status="WELL"/><fail on="BAD"/>
            </decision></job>"#
        ),
        false,
    );
    stage.write("in.csv", "id\n1\n2\n3\n4,5\n");
    stage
}

fn decided(element: &str, expression: &str) -> Ended {
    job(element, expression).start(())
}

/// Spec: EXPR-07
#[test]
fn an_expression_decides_by_the_element_before() {
    for (element, expression) in [
        (
            "step",
            "case when read_count = 3 and write_count = 2 and filter_count = 1 and read_skip_count = 1 then 'GOOD' else 'BAD' end",
        ),
        (
            "step",
            "case when process_skip_count + write_skip_count < 1 and batch_status = 'COMPLETED' then 'GOOD' end",
        ),
        (
            "split",
            "case when exit_status = 'COMPLETED' then 'GOOD' else 'BAD' end",
        ),
        (
            "flow",
            "case when batch_status = 'COMPLETED' then 'GOOD' else 'BAD' end",
        ),
    ] {
        let good = decided(element, expression);
        assert_eq!(
            good.status,
            BatchStatus::Completed,
            "{expression}: {}",
            good.message
        );
    }
    let bad = decided("step", "case when read_skip_count > 0 then 'BAD' else 'GOOD' end");
    assert_eq!(bad.status, BatchStatus::Failed, "{}", bad.message);
}

/// Spec: EXPR-07
#[test]
fn an_expression_without_a_result_fails_the_job() {
    for (element, expression, expected) in [
        (
            "step",
            "case when read_count > 99 then 'GOOD' end",
            "the expression is null; add an `else`",
        ),
        (
            "split",
            "case when read_count > 0 then 'GOOD' else 'BAD' end",
            "no field `read_count`",
        ),
        ("step", "'OTHER'", "matches none of its transition elements"),
    ] {
        let ended = decided(element, expression);
        assert_eq!(ended.status, BatchStatus::Failed, "{expression}");
        assert!(ended.message.contains(expected), "{}", ended.message);
    }
    for (expression, expected) in [
        (
            "case when reads > 0 then 'GOOD' end",
            "there is no field `reads`, but `batch_status`",
        ),
        ("count()", "there are no records here for the total `count()`"),
        ("case when", "expected"),
    ] {
        let rejected = job("step", expression).rejected();
        assert!(rejected.contains(expected), "{rejected}");
    }
}
