//! 4.8: a job runs the elements that it inherits.

use std::fs;

use batch_runtime::{JobOperatorError, operator::StartError};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::{assert_contains, assert_starts, story};

/// The steps of an abstract parent in another file run before the child's; a step in both is the child's, merged with
/// the parent's. The parent itself cannot be started.
///
/// Spec: JSL-JOB-06, JSL-JOB-07, JSL-JOB-08, INH-03, INH-15, INH-19, INH-27, PATH-10
#[test]
fn a_job_runs_the_steps_of_its_parent() {
    let stage = Stage::new(
        r#"<job id="child" parent="base">
          <step id="two" next="three"><batchlet ref="Task"/></step>
          <step id="three"><batchlet ref="Task"/></step>
        </job>"#,
    );
    let operator = stage.operator();
    assert_contains(&operator.start("child", ()).unwrap_err(), "`base`");

    let base = r#"<job id="base" abstract="true">
      <properties><property name="result" value="inherited"/></properties>
      <step id="one" next="two"><batchlet ref="Task"/></step>
      <step id="two"><batchlet ref="Task"/></step>
    </job>"#;
    fs::write(stage.path().join("jobs/base.xml"), base).unwrap();
    let execution = stage.start("child", ());
    assert_snapshot!(story(&stage, execution), @r"
    job child COMPLETED
      step one COMPLETED inherited
      step two COMPLETED inherited
      step three COMPLETED inherited
    begin one · process one · end one · begin two · process two · end two · begin three · process three
    end three
    ");
    let refused = operator.start("base", ()).unwrap_err().to_string();
    let names_it = refused.contains("abstract") || refused.contains("unknown job");
    assert!(names_it, "{refused}");
}

/// A parent that is not in any readable file may be in an unreadable one.
///
/// Spec: INH-15, PATH-10, PATH-11
#[test]
fn an_unknown_parent_may_be_in_a_broken_file() {
    let stage = Stage::new(
        r#"<job id="child" parent="base">
          <step id="one" parent="worker"><batchlet ref="Task"/></step>
        </job>"#,
    );
    let write = |name: &str, text: &[u8]| fs::write(stage.path().join("jobs").join(name), text).unwrap();
    let half = b"<job id=\"base\" abstract=\"true\">\n  <step id=\"one\">";
    write("half.xml", half);
    write("other.xml", b"<job id=\"base-2\" abstract=\"true\">\n  <step");
    let refused = |job: &str| match stage.operator().start(job, ()).unwrap_err() {
        JobOperatorError::JobStart {
            cause: StartError::Definition(errors),
            ..
        } => errors.into_inner(),
        other => panic!("{other}"),
    };
    let found = refused("child");
    assert_eq!(found[0].code, "JSL0033");
    assert_eq!(found[0].span.text(), "base");
    let help = found[0].help.as_deref().unwrap();
    assert_starts(help, "a file that may define it cannot be read: `");
    assert!(help.ends_with("half.xml`; fix that file first"), "{help}");
    let [(place, what)] = found[0].related.as_slice() else {
        panic!("{found:?}")
    };
    assert!(place.to_string().ends_with("half.xml:2:3"), "{place}");
    assert_eq!(what, "this file cannot be read and may define it");

    // No file names the other parent.
    let worker = found.iter().find(|one| one.span.text() == "worker").unwrap();
    assert_eq!((&worker.help, worker.related.len()), (&None, 0));
    // A file that is not text may define any parent.
    write("no-text.xml", b"<job id=\"\xff\xff");
    let found = refused("child");
    let worker = found.iter().find(|one| one.span.text() == "worker").unwrap();
    assert_contains(worker.help.as_deref().unwrap(), "no-text.xml");
}
