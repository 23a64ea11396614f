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
              <end on="GOOD" exit-status="WELL"/><fail on="BAD"/><stop on="REVIEW"/>
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

/// A decision that stopped the job decides by the same counters again, and a gate stays closed.
///
/// Spec: EXPR-07, DEC-16
#[test]
fn a_restarted_decision_has_the_counters_of_the_step() {
    let stage = job(
        "step",
        "case when read_skip_count > 0 and read_count = 3 then 'REVIEW' else 'GOOD' end",
    );
    let stopped = stage.start(());
    assert_eq!(stopped.status, BatchStatus::Stopped, "{}", stopped.message);
    let again = stage.restart(&stopped, ());
    assert_eq!(again.status, BatchStatus::Stopped, "{}", again.message);
}

/// The counters of a partitioned step are the sums of its partitions.
///
/// Spec: EXPR-07, DEC-12
#[test]
fn partitions_are_counted() {
    let stage = Stage::of_job(
        r#"<job id="job"><step id="load" next="decide">
          <chunk reader="csvRecordReader" writer="recordCsvWriter" skip-limit="5">
            <properties><property name="output" value="${dir}/${file.name}.out" target="writer"/></properties>
            <skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>
          </chunk>
          <partition><algorithm ref="filePartitions">
            <properties><property name="resource" value="${dir}/in*.csv"/></properties>
          </algorithm></partition></step>
          <decision id="decide" ref="expressionDecider">
            <properties><property name="expression" value="read_count || '/' || read_skip_count"/></properties>
            <stop on="3/1"/>
          </decision></job>"#,
        false,
    );
    stage.write("in1.csv", "id\n1\n2\n");
    stage.write("in2.csv", "id\n3\n4,5\n");
    let stopped = stage.start(());
    assert_eq!(stopped.status, BatchStatus::Stopped, "{}", stopped.message);
    let again = stage.restart(&stopped, ());
    assert_eq!(again.status, BatchStatus::Stopped, "{}", again.message);
}

/// Spec: EXPR-07
#[test]
fn an_expression_without_a_result_fails_the_job() {
    for (element, expression, expected) in [
        (
            "step",
            "case when read_count > 99 then 'GOOD' end",
            "`expression` is null; add an `else`",
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
            "unknown field `reads`; a decision has `batch_status`",
        ),
        (
            "count()",
            "`count()` is a total of records, which a decision does not have",
        ),
        ("case when", "expected"),
    ] {
        let rejected = job("step", expression).rejected();
        assert!(rejected.contains(expected), "{rejected}");
    }
}
