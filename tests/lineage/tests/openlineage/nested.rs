//! The runs of nested jobs.

use std::fs;

use insta::assert_snapshot;

use crate::program::Tracked;
use crate::shown::lines;

const OUTER: &str = r#"<step id="daily"><batchlet ref="runJob"><properties><property name="job" value="inner"/></properties></batchlet></step>"#;
const INNER: &str = r#"<job id="inner"><step id="rates"><batchlet ref="runJob"><properties><property name="job" value="leaf"/></properties></batchlet></step></job>"#;
const LEAF: &str = r#"<job id="leaf"><step id="only"><batchlet ref="Task"><properties>
  <property name="fail" value="${fail}"/></properties></batchlet></step></job>"#;
const PARENT: (&str, &str) = (
    "OPENLINEAGE_PARENT_ID",
    "airflow/dag.task/f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11",
);

fn nested(leaf: &str) -> Tracked {
    let tracked = Tracked::new(OUTER);
    fs::write(tracked.path().join("inner.xml"), INNER).unwrap();
    fs::write(tracked.path().join("leaf.xml"), leaf).unwrap();
    tracked
}

/// The parent of a nested job's run is the run of the step that runs it, at any depth; the root is the outermost job's.
///
/// Spec: LIN-11
#[test]
fn the_parent_of_a_nested_job_is_the_step_that_runs_it() {
    let tracked = nested(&LEAF.replace("${fail}", ""));
    tracked.launch(0, &[]);
    assert_snapshot!(lines(&tracked.receiver.events(), &tracked.path()), @r#"
    START #1 job
    START #2 job.daily parent=#1:job root=#1:job
    START #3 inner parent=#2:job.daily root=#1:job
    START #4 inner.rates parent=#3:inner root=#1:job
    START #5 leaf parent=#4:inner.rates root=#1:job
    START #6 leaf.only parent=#5:leaf root=#1:job
    COMPLETE #6 leaf.only parent=#5:leaf root=#1:job
    COMPLETE #5 leaf parent=#4:inner.rates root=#1:job
    COMPLETE #4 inner.rates parent=#3:inner root=#1:job
    COMPLETE #3 inner parent=#2:job.daily root=#1:job
    COMPLETE #2 job.daily parent=#1:job root=#1:job
    COMPLETE #1 job
    "#);
}

/// Spec: LIN-04, LIN-11
#[test]
fn the_root_of_the_environment_is_that_of_nested_jobs() {
    let tracked = nested(&LEAF.replace("${fail}", ""));
    tracked.launch(0, &[PARENT]);
    assert_snapshot!(lines(&tracked.receiver.events(), &tracked.path()), @r#"
    START #1 job parent=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    START #2 job.daily parent=#1:job root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    START #3 inner parent=#2:job.daily root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    START #4 inner.rates parent=#3:inner root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    START #5 leaf parent=#4:inner.rates root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    START #6 leaf.only parent=#5:leaf root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    COMPLETE #6 leaf.only parent=#5:leaf root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    COMPLETE #5 leaf parent=#4:inner.rates root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    COMPLETE #4 inner.rates parent=#3:inner root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    COMPLETE #3 inner parent=#2:job.daily root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    COMPLETE #2 job.daily parent=#1:job root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    COMPLETE #1 job parent=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task root=f99310b4-3c3c-1a1a-2b2b-c1b95c24ff11:dag.task
    "#);
}

/// A nested job that an operator restarts alone has the parent of the environment: no step runs it.
///
/// Spec: LIN-11
#[test]
fn a_nested_job_that_runs_alone_has_no_step_as_parent() {
    let tracked = nested(&LEAF.replace("${fail}", "no rates"));
    tracked.launch(1, &[]);
    let before = tracked.receiver.events().len();
    tracked.run(1, &["restart", "3"], &[]);
    let events = tracked.receiver.events();
    assert_snapshot!(lines(&events[before..], &tracked.path()), @r#"
    START #1 leaf
    START #2 leaf.only parent=#1:leaf root=#1:leaf
    FAIL #2 leaf.only parent=#1:leaf root=#1:leaf error="no rates"
    FAIL #1 leaf error="no rates"
    "#);
}
