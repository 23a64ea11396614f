//! 4.8: a job runs what it inherits.

use std::fs;

use batch_runtime::JobParameters;
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use super::artifacts::story;

/// The steps of an abstract parent in another file run before the child's; a step that both have is the child's, with
/// what it takes from the parent's. The parent itself cannot be started.
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
    let missing = operator
        .start("child", JobParameters::new())
        .unwrap_err()
        .to_string();
    assert!(missing.contains("`base`"), "{missing}");

    let base = r#"<job id="base" abstract="true">
      <properties><property name="result" value="inherited"/></properties>
      <step id="one" next="two"><batchlet ref="Task"/></step>
      <step id="two"><batchlet ref="Task"/></step>
    </job>"#;
    fs::write(stage.path().join("jobs/base.xml"), base).unwrap();
    let execution = stage.start("child", JobParameters::new());
    assert_snapshot!(story(&stage, execution), @r"
    job child COMPLETED COMPLETED
      step one COMPLETED inherited read 0 filter 0 write 0 commit 0 rollback 0
      step two COMPLETED inherited read 0 filter 0 write 0 commit 0 rollback 0
      step three COMPLETED inherited read 0 filter 0 write 0 commit 0 rollback 0
    begin one
    process one
    end one
    begin two
    process two
    end two
    begin three
    process three
    end three
    ");
    let refused = operator
        .start("base", JobParameters::new())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("abstract") || refused.contains("no job is called"),
        "{refused}"
    );
}
