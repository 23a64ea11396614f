//! Restart, gathered from all sections of the draft.

use batch_runtime::JobParameters;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    assert_completed, assert_contains, assert_starts, calls, chunk_job, execute, job, job_execution, listens,
    refused, restart_with, started, story,
};
use super::parallel::in_turn;
use super::s4_2_6_restart::restart_edited;
use super::sequence::{decision, done, flow, split, task};

/// A restart uses the current Job XML, not the first execution's.
///
/// Spec: RESTART-03, RESTART-05, RESTART-06, RESTART-07
#[test]
fn a_restart_runs_the_job_xml_as_it_is_now() {
    let elements = r#"<step id="one" next="two"><batchlet ref="Task"/></step><step id="two"><batchlet ref="Task"/></step>
           <step id="three"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "process two")]);
    stage.log();
    stage.rewrite(&job(
        r#"<step id="one" next="three"><batchlet ref="Task"/></step><step id="two"><batchlet ref="Task"/></step>
           <step id="three" next="two"><batchlet ref="Task"/></step>"#,
    ));
    let operator = stage.another_runtime().job_operator();
    let again = operator.restart(execution, [("fail", "")]).unwrap();
    operator.wait(again).unwrap();
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step three COMPLETED DONE
      step two COMPLETED DONE
    begin three · process three · end three · begin two · process two · end two
    ");
}

/// The checkpoint belongs to the step, regardless of the reader's name and the interval.
///
/// Spec: RESTART-07, RESTART-03, DOM-30, CHUNK-LOOP-16
#[test]
fn a_restart_may_change_the_interval() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="${interval}""#));
    let execution = stage.start("job", [("interval", "2"), ("fail", "read 5"), ("items", "9")]);
    stage.log();
    restart_with(&stage, execution, [("interval", "3"), ("fail", "")]);
    let expected = "open reader at 4 · open writer at 4 · write n5 n6 n7 · write n8 n9";
    assert_eq!(calls(&stage, &["open", "write"]), expected);
}

/// A renamed step would do its work twice. A step that has committed nothing may be renamed.
///
/// Spec: LOSS-02, RESTART-03
#[test]
fn a_renamed_step_is_not_run_from_the_beginning() {
    let plain = chunk_job(r#"commit-interval="2""#);
    let partitions = r#"<partition><algorithm ref="Planner"/></partition></step>"#;
    let partitioned = plain.replace("</step>", partitions);
    for (xml, failing, committed) in [
        (&plain, "read 4", true),
        (&partitioned, "read 4", true),
        (&plain, "read 1", false),
    ] {
        let stage = Stage::new(xml);
        let first = stage.start("job", [("fail", failing), ("items", "5"), ("parts", "Lines")]);
        stage.log();
        let renamed = xml.replace("\"copy\"", "\"duplicate\"");
        let second = restart_edited(&stage, first, &renamed, [("fail", "")]);
        let (tree, wrote) = (stage.tree(second), calls(&stage, &["write"]));
        if committed {
            assert_contains(&tree, "step `copy` has committed items");
            assert_eq!(wrote, "");
            let third = restart_edited(&stage, second, xml, [("fail", "")]);
            let tree = stage.tree(third);
            assert_starts(&tree, "job job COMPLETED");
            assert_contains(&tree, " write 3 ");
        } else {
            assert_eq!(wrote, "write n1 n2 · write n3 n4 · write n5", "{tree}");
        }
    }
}

/// A stopped and a failed instance can be restarted; each restart begins at the first step of the job.
///
/// Spec: RESTART-01, RESTART-04, RESTART-05, RESTART-07, RESTART-13, DOM-02, DOM-08, DOM-26
#[test]
fn the_chunks_before_the_failure_are_not_repeated() {
    let elements = r#"<step id="first" next="second"><chunk reader="Numbers" processor="Labels" writer="Lines" commit-interval="2"/></step>
           <step id="second"><batchlet ref="Task"/></step>"#;
    let (stage, mut execution) = started(elements, [("fail", "write n3 n4;process second"), ("items", "4")]);
    assert_snapshot!(calls(&stage, &["open", "write", "process second"]), @"open reader at the beginning · open writer at the beginning · write n1 n2 · write n3 n4");
    execution = restart_with(&stage, execution, [("fail", "process second")]);
    assert_snapshot!(calls(&stage, &["open", "write", "process second"]), @"open reader at 2 · open writer at 2 · write n3 n4 · process second");
    execution = restart_with(&stage, execution, [("fail", "")]);
    assert_snapshot!(calls(&stage, &["open", "write", "process second"]), @"process second");
    assert!(stage.operator().restart(execution, ()).is_err(), "complete");
}

/// A step that has committed chunks fails instead, see `databases/damage.rs`.
///
/// Spec: RESTART-17, CHUNK-LOOP-02
#[test]
fn without_its_context_a_step_that_has_committed_nothing_starts_from_the_beginning() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let execution = stage.start("job", [("fail", "read 1")]);
    execute(&stage, "DELETE FROM BATCH_STEP_EXECUTION_CONTEXT");
    stage.log();
    restart_with(&stage, execution, [("fail", "")]);
    assert_snapshot!(calls(&stage, &["open"]), @"open reader at the beginning · open writer at the beginning");
}

const STARTED_BY_ANOTHER: &str = "another program, such as Spring Batch, has started step";

/// The step fails if another program has committed items of a chunk step under its own checkpoints: they are not
/// written again. A step without commits or checkpoints starts from the beginning, as in the other program.
///
/// Spec: RESTART-08, RESTART-17, REPO-69
#[test]
fn a_step_of_another_program_is_not_started_again() {
    let of_spring = r#"{"@class":"java.util.HashMap","batch.stepType":"TaskletStep","rows.read.count":4}"#;
    let without_state = r#"{"@class":"java.util.HashMap","batch.stepType":"TaskletStep"}"#;
    for (context, commits, runs) in [
        (of_spring, 2, false),
        (of_spring, 0, true),
        (without_state, 2, true),
    ] {
        let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
        let first = stage.start("job", [("fail", "read 5")]);
        stage.log();
        let statements = format!(
            "UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = '{context}';
             DROP TRIGGER final_BATCH_STEP_EXECUTION;
             DROP TRIGGER version_BATCH_STEP_EXECUTION;
             UPDATE BATCH_STEP_EXECUTION SET COMMIT_COUNT = {commits}"
        );
        execute(&stage, &statements);
        for _ in 0..2 {
            let again = restart_with(&stage, first, [("fail", "read 1")]);
            let message = job_execution(&stage, again).exit_message;
            let is_refused =
                message.contains(&format!("{STARTED_BY_ANOTHER} `copy` and committed part of it"));
            assert_eq!(is_refused, !runs, "{message}");
            assert_eq!(stage.log().is_empty(), !runs, "{context}");
        }
    }
}

/// The same holds if that program started the step again after this runtime and carried this runtime's checkpoint
/// along, and for its executions before the last one. If it has committed nothing, this runtime's checkpoint is valid,
/// and the job context is carried along.
///
/// Spec: RESTART-17, REPO-65, REPO-69
#[test]
fn later_commits_of_another_program_are_detected() {
    for (commits, runs) in [([0, 0], true), ([1, 0], false), ([0, 1], false)] {
        let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
        let first = stage.start("job", [("fail", "read 5")]);
        for (id, commits) in (2..).zip(commits) {
            let statements = format!(
                r#"INSERT INTO BATCH_JOB_EXECUTION SELECT {id}, VERSION, JOB_INSTANCE_ID, CREATE_TIME, START_TIME, END_TIME, STATUS,
                     EXIT_CODE, EXIT_MESSAGE, LAST_UPDATED, NULL FROM BATCH_JOB_EXECUTION WHERE JOB_EXECUTION_ID = 1;
                 INSERT INTO BATCH_JOB_EXECUTION_CONTEXT VALUES ({id}, '{{"@class":"java.util.HashMap","of.job":1.10}}', NULL);
                 INSERT INTO BATCH_STEP_EXECUTION (STEP_EXECUTION_ID, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME, END_TIME,
                     STATUS, EXIT_CODE, COMMIT_COUNT, READ_COUNT, WRITE_COUNT, FILTER_COUNT, ROLLBACK_COUNT, READ_SKIP_COUNT,
                     PROCESS_SKIP_COUNT, WRITE_SKIP_COUNT) SELECT {id}, VERSION, STEP_NAME, {id}, START_TIME, END_TIME, STATUS,
                     EXIT_CODE, {commits}, READ_COUNT, WRITE_COUNT, FILTER_COUNT, ROLLBACK_COUNT, READ_SKIP_COUNT, PROCESS_SKIP_COUNT,
                     WRITE_SKIP_COUNT FROM BATCH_STEP_EXECUTION WHERE STEP_EXECUTION_ID = 1;
                 INSERT INTO BATCH_STEP_EXECUTION_CONTEXT SELECT {id}, replace(SHORT_CONTEXT, 'HashMap"',
                     'HashMap","batch.stepType":"TaskletStep","rows.read.count":2'), NULL
                     FROM BATCH_STEP_EXECUTION_CONTEXT WHERE STEP_EXECUTION_ID = 1;
                 INSERT INTO BATCH_JOB_EXECUTION_SEQ VALUES ({id});
                 INSERT INTO BATCH_STEP_EXECUTION_SEQ VALUES ({id})"#
            );
            execute(&stage, &statements);
        }
        stage.log();
        let again = restart_with(&stage, first, [("fail", "read 6")]);
        let message = job_execution(&stage, again).exit_message;
        assert_eq!(
            message.contains(STARTED_BY_ANOTHER),
            !runs,
            "{commits:?}: {message}"
        );
        let opened = calls(&stage, &["open reader"]);
        assert_eq!(opened, if runs { "open reader at 4" } else { "" }, "{commits:?}");
        let of_job = "SELECT SHORT_CONTEXT AS text FROM BATCH_JOB_EXECUTION_CONTEXT WHERE JOB_EXECUTION_ID =";
        let expected = [r#"{"@class":"java.util.HashMap","of.job":1.10}"#];
        assert_eq!(stage.outside().rows(&format!("{of_job} {again}")), expected);
    }
}

/// Returns parameters of the instance of day 1.
fn day(fail: &str) -> JobParameters {
    JobParameters::from([("day", "1")]).with_non_identifying("fail", fail)
}

/// Deleted parameter rows do not change the instance: the key identifies it.
///
/// Spec: REPO-26, REPO-27, OP-36
#[test]
fn an_instance_is_known_without_its_parameter_rows() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let first = stage.launch("job", day("read 4"));
    execute(&stage, "DELETE FROM BATCH_JOB_EXECUTION_PARAMS");
    let second = stage.launch("job", day(""));
    let [first, second] = [first, second].map(|execution| job_execution(&stage, execution));
    assert_eq!(first.instance_id, second.instance_id);
    assert_completed(&stage, second.id);
    assert_eq!(stage.operator().parameters(second.id).unwrap(), day(""));
}

/// A launch resumes the instance of an earlier launch; other parameters make another instance.
///
/// Spec: OP-36, DOM-10, DOM-11, RESTART-01
#[test]
fn a_launch_resumes_its_instance() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="2""#));
    let first = stage.launch("job", day("read 4"));
    let second = stage.launch("job", day(""));
    assert_snapshot!(calls(&stage, &["open reader"]), @"open reader at the beginning · open reader at 2");
    let instance = |execution| job_execution(&stage, execution).instance_id;
    assert_eq!(instance(first), instance(second));
    let complete = stage.operator().launch("job", day("")).unwrap_err();
    assert_contains(&complete, "is complete");
    let other = stage.launch("job", [("day", "2")]);
    assert_ne!(instance(other), instance(second));
    assert_eq!(calls(&stage, &["open reader"]), "open reader at the beginning");
}

/// Stops its own execution once.
#[derive(BatchArtifact)]
struct StopsItself {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "stop")]
    stop: String,
    #[batch_context]
    job: JobContext,
}

impl StopsItself {
    fn at(&self, place: &str) -> Result<(), BatchError> {
        say(&self.log, place);
        if self.stop == place {
            let operator = self.job.job_operator().unwrap();
            let stopped = operator.stop(self.job.execution_id())?;
            let status = self.job.batch_status();
            say(&self.log, format!("stopped: {stopped}, {status}"));
        }
        Ok(())
    }
}

listens!(job_listener StopsItself.at:
    before_job "before job", before_step "before step", after_step "after step", after_job "after job");

#[sub_job_analyzer]
impl StopsItself {
    #[analyze_exit_status]
    fn ended(&mut self, _: &str) -> Result<(), BatchError> {
        self.at("analysis")
    }
}

/// A stop between two partitions: the first is complete, the step is not.
///
/// Spec: PART-26, PART-28, SUBJOB-27
#[test]
fn a_stop_between_two_partitions() {
    let elements = in_turn(r#"instances="2"|<analyzer ref="StopsItself"/>"#);
    let (stage, execution) = started(&elements, [("stop", "analysis")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job STOPPED
      step all STOPPED
      step all:1 COMPLETED nameless DONE
      step all:2 STOPPED
    process nameless · analysis · stopped: false, STOPPING
    ");
    let again = restart_with(&stage, execution, [("stop", "")]);
    assert_snapshot!(story(&stage, again), @r"
    job job COMPLETED
      step all COMPLETED
      step all:2 COMPLETED nameless DONE
    analysis · process nameless · analysis
    ");
}

/// A stop request after the last step has ended still stops the job, and `after_job` sees it. No decider is called after it, and
/// in a split no element after a flow starts.
///
/// Spec: STATUS-26, SPLIT-10, SEQ-24, DEC-12, D-82, D-86
#[test]
fn nothing_starts_after_a_stop() {
    let listeners = r#"<listeners><listener ref="StopsItself"/><listener ref="JobWatch"/></listeners>"#;
    let chain = flow("first", "next=\"choose\"", &done("one"))
        + &decision("choose", "GO", r#"<next on="GO" to="second"/>"#)
        + &flow("second", "", &done("two"));
    let chain = split("chain", "", &chain);
    let decided = task("one", "next=\"choose\"", "DONE", "") + &decision("choose", "GO", r#"<end on="GO"/>"#);
    let mut text = String::new();
    for elements in [done("one"), decided, chain] {
        let (stage, execution) = started(&format!("{listeners}{elements}"), [("stop", "after step")]);
        text += &format!("{}\n", story(&stage, execution));
    }
    assert_snapshot!(text, @r"
    job job STOPPED
      step one COMPLETED DONE
    before job · JobWatch before job job STARTED · before step · JobWatch before step one STARTED
    begin one · process one · end one · after step · stopped: false, STOPPING
    JobWatch after step one COMPLETED · after job · JobWatch after job job STOPPED
    job job STOPPED
      step one COMPLETED DONE
    before job · JobWatch before job job STARTED · before step · JobWatch before step one STARTED
    begin one · process one · end one · after step · stopped: false, STOPPING
    JobWatch after step one COMPLETED · after job · JobWatch after job job STOPPED
    job job STOPPED
      step one COMPLETED DONE
    before job · JobWatch before job job STARTED · before step · JobWatch before step one STARTED
    begin one · process one · end one · after step · stopped: false, STOPPING
    JobWatch after step one COMPLETED · after job · JobWatch after job job STOPPED
    ");
}

/// A stop request from any callback ends the job STOPPED, no further step starts, and a restart resumes.
///
/// Spec: OP-17, STATUS-10, STATUS-11, STATUS-26, CTX-16, DOM-17, RESTART-01, BLET-08
#[test]
fn a_job_may_stop_itself() {
    let mut text = String::new();
    for place in ["before job", "before step", "after step", "after job"] {
        let elements = r#"<listener ref="StopsItself"/>
               <step id="one" next="two"><batchlet ref="Task"/></step><step id="two"><batchlet ref="Task"/></step>"#;
        let (stage, execution) = started(elements, [("stop", place)]);
        text += &format!("== {place}\n{}\n", story(&stage, execution));
        let again = restart_with(&stage, execution, [("stop", "")]);
        assert_completed(&stage, again);
    }
    assert_snapshot!(text);
}

/// Spec: OP-11, RESTART-03
#[test]
fn a_restart_checks_the_definition_again() {
    let stage = Stage::new(&chunk_job(r#"commit-interval="${interval}""#));
    assert!(refused(&stage, "job", [("interval", "0")]).contains("commit-interval"));
    let execution = stage.start("job", [("interval", "2"), ("fail", "read 1")]);
    let none = [("interval", "none")];
    let error = stage.operator().restart(execution, none).unwrap_err();
    assert_contains(&error, "cannot restart job execution");
    assert_contains(&error, "commit-interval");
}
