//! 4.2 and 4.2.5: the step element and the sequence of steps.

use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{calls, job, job_execution, refused, restart_with, started, story, tree};

/// The first step in document order runs first, then only `next` decides; an unreachable step does not run.
///
/// Spec: SEQ-01, SEQ-02, SEQ-03, JSL-STEP-01, JSL-STEP-02, JSL-STEP-11, JSL-STEP-12, DOM-03, DOM-17,
/// Spec: STATUS-14
#[test]
fn steps_follow_next_and_not_the_document() {
    let elements = r#"<step id="b" next="d"><batchlet ref="Task"/></step>
           <step id="a"><batchlet ref="Task"/></step>
           <step id="c"><batchlet ref="Task"/></step>
           <step id="d" next="c"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, ());
    assert_snapshot!(story(&stage, execution), @r"
    job job COMPLETED
      step b COMPLETED DONE
      step d COMPLETED DONE
      step c COMPLETED DONE
    begin b · process b · end b · begin d · process d · end d · begin c · process c · end c
    ");
}

/// After a failed step `next` is not followed.
///
/// Spec: STATUS-15, DOM-17, STATUS-12
#[test]
fn a_failed_step_is_the_last() {
    let elements =
        r#"<step id="a" next="b"><batchlet ref="Task"/></step><step id="b"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "end a")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job FAILED | cannot end a | thrown by #[end_step] of batchlet `Task`
      step a FAILED | the job's message
    begin a · process a · end a
    ");
}

/// An abstract step is ignored in the search for the first one.
///
/// Spec: JSL-STEP-13, JSL-STEP-14, SEQ-01, SEQ-12
#[test]
fn abstract_steps_are_never_run() {
    let stage = Stage::new(&job(
        r#"<step id="a" abstract="true"><batchlet ref="Task"/></step><step id="b"><batchlet ref="Task"/></step>"#,
    ));
    stage.start("job", ());
    assert_eq!(calls(&stage, &["process"]), "process b");
    let stage = Stage::new(&job(
        r#"<step id="a" next="b"><batchlet ref="Task"/></step><step id="b" abstract="true"><batchlet ref="Task"/></step>"#,
    ));
    assert_snapshot!(refused(&stage, "job", ()), @r#"
    cannot start job `job`: its definition is invalid
    error[JSL0027]: `b` is abstract and never executed
     --> jobs/job.xml:2:20
      |
    2 | <step id="a" next="b"><batchlet ref="Task"/></step><step id="b" abstract="true"><batchlet ref="Task"/></step>
      |                    ^ cannot be the target of `next`
    note: the element is here
     --> jobs/job.xml:2:62
      |
    2 | <step id="a" next="b"><batchlet ref="Task"/></step><step id="b" abstract="true"><batchlet ref="Task"/></step>
      |                                                              -
    "#);
}

/// Spec: SEQ-09, SEQ-25, JSL-STEP-16, JSL-DOC-15, ART-11
#[test]
fn impossible_steps_are_rejected() {
    let mut text = String::new();
    for elements in [
        r#"<step id="a" next="z"><batchlet ref="Task"/></step>"#,
        r#"<step id="a" next="false"><batchlet ref="Task"/></step>"#,
        r#"<step id="a" next="b"><batchlet ref="Task"/></step><step id="b" next="a"><batchlet ref="Task"/></step>"#,
        r#"<step id="a"/>"#,
        r#"<step id="a"><batchlet ref="Task"/><chunk reader="Numbers" processor="Labels" writer="Lines"/></step>"#,
    ] {
        text += &format!("{}\n", refused(&Stage::new(&job(elements)), "job", ()));
    }
    assert_snapshot!(text);
}

/// `start-limit=n` allows n restarts of the step, that is n + 1 starts in the instance; 0 means no limit.
///
/// Spec: JSL-STEP-03, JSL-STEP-04, JSL-STEP-05, RESTART-13
#[test]
fn the_start_limit_counts_restarts() {
    for (limit, starts) in [("1", 2), ("2", 3)] {
        let elements = r#"<step id="one" start-limit="${limit}"><batchlet ref="Task"/></step>"#;
        let (stage, mut execution) = started(elements, [("limit", limit), ("fail", "process one")]);
        for _ in 1..starts {
            assert_eq!(calls(&stage, &["process"]), "process one");
            execution = stage.restart(execution);
        }
        assert_eq!(calls(&stage, &["process"]), "process one");
        let over = stage.restart(execution);
        let message = job_execution(&stage, over).exit_message;
        let expected = format!(
            "step `one` of job `job` was started {starts} times in this job instance, as often as its start-limit allows; \
             increase the start-limit in the Job XML to restart it"
        );
        assert_eq!(message, expected);
        assert_eq!(stage.operator().step_executions(over).unwrap(), []);
        assert_eq!(stage.log(), [""; 0]);
        // Another instance has its own count.
        stage.start("job", [("limit", limit)]);
        assert_eq!(calls(&stage, &["process"]), "process one");
    }
    let elements = r#"<step id="one" start-limit="0"><batchlet ref="Task"/></step>"#;
    let (stage, mut execution) = started(elements, [("fail", "process one")]);
    for _ in 0..4 {
        execution = stage.restart(execution);
    }
    assert_eq!(stage.log().len(), 15, "begin, process and end of five executions");
}

/// A completed step that is not run again does not count as a start.
///
/// Spec: JSL-STEP-06, JSL-STEP-09, RESTART-05
#[test]
fn skipping_a_step_does_not_count_as_a_start() {
    let elements = r#"<step id="one" next="two" start-limit="1"><batchlet ref="Task"/></step>
           <step id="two"><batchlet ref="Task"/></step>"#;
    let (stage, mut execution) = started(elements, [("fail", "process two")]);
    for _ in 0..3 {
        execution = stage.restart(execution);
    }
    let last = restart_with(&stage, execution, [("fail", "")]);
    assert_snapshot!(tree(&stage, last), @r"
    job job COMPLETED
      step two COMPLETED DONE
    ");
}

/// A start-limit has no effect in a job that is not restartable.
///
/// Spec: JSL-STEP-07
#[test]
fn the_start_limit_is_for_restartable_jobs() {
    let stage = Stage::new(
        r#"<job id="job" restartable="false"><step id="one" start-limit="1"><batchlet ref="Task"/></step></job>"#,
    );
    for _ in 0..3 {
        stage.start("job", [("fail", "process one")]);
        assert_eq!(calls(&stage, &["process"]), "process one");
    }
}

/// On restart a completed step does not run again, unless it allows another start.
///
/// Spec: JSL-STEP-08, JSL-STEP-09, JSL-STEP-10, RESTART-05, RESTART-04, DOM-08, DOM-28
#[test]
fn completed_steps_do_not_run_again_unless_they_allow_it() {
    let elements = r#"<step id="one" next="two"><batchlet ref="Task"/></step>
           <step id="two" next="three" allow-start-if-complete="true"><batchlet ref="Task"/></step>
           <step id="three"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "process three")]);
    stage.log();
    let again = restart_with(&stage, execution, [("fail", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step two COMPLETED DONE
      step three COMPLETED DONE
    begin two · process two · end two · begin three · process three · end three
    ");
}

/// Spec: JSL-STEPPROP-01, JSL-STEPPROP-02, JSL-STEPPROP-04, JSL-BATCHLET-03, JSL-STEPLIS-06, OVR-01, OVR-05, OVR-12
#[test]
fn a_step_property_reaches_the_artifacts_of_its_step_alone() {
    let elements = r#"<step id="one" next="two"><properties><property name="result" value="OF THE STEP"/></properties>
             <batchlet ref="Task"><properties><property name="result" value="OF THE BATCHLET"/></properties></batchlet></step>
           <step id="two" next="three"><batchlet ref="Task"><properties><property name="result" value="OF ${which}"/>
             <property name="which" value="THE BATCHLET"/></properties></batchlet></step>
           <step id="three"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, ());
    assert_snapshot!(tree(&stage, execution), @r"
    job job COMPLETED
      step one COMPLETED OF THE STEP
      step two COMPLETED OF THE BATCHLET
      step three COMPLETED DONE
    ");
}
