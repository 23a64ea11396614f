//! 4.5: batch and exit status of steps and jobs.

use std::sync::{Arc, Mutex};

use batch_runtime::execution::JobExecution;
use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobParameters};
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    Gate, assert_matches, assert_starts, execute, first_step_execution, job, job_execution, started, story,
    tree,
};

const ONE: &str = r#"<step id="one"><batchlet ref="Task"/></step>"#;

fn ended(stage: &Stage, parameters: impl Into<JobParameters>) -> JobExecution {
    let execution = stage.start("job", parameters);
    job_execution(stage, execution)
}

/// The exit status defaults to the batch status; setting it never changes the batch status.
///
/// Spec: STATUS-01, STATUS-02, STATUS-03, STATUS-05, STATUS-13, STATUS-14, STATUS-17, STATUS-18, STATUS-19, STATUS-20,
/// Spec: STATUS-21, STATUS-22, CTX-18, CTX-28, DOM-12
#[test]
fn exit_statuses_default_to_the_batch_status() {
    let stage = Stage::new(&job(ONE));
    let mut text = String::new();
    for parameters in [
        vec![],
        vec![("result", "FAILED")],
        vec![("step.exit", "SET"), ("result", "RETURNED")],
        vec![("job.exit", "HALF")],
        vec![
            ("job.exit", "HALF"),
            ("step.exit", "SET"),
            ("fail", "process one"),
        ],
    ] {
        let execution = stage.start("job", JobParameters::from_iter(parameters.clone()));
        text += &format!("{parameters:?}\n{}", tree(&stage, execution));
    }
    assert_snapshot!(text, @r#"
    []
    job job COMPLETED
      step one COMPLETED DONE
    [("result", "FAILED")]
    job job COMPLETED
      step one COMPLETED FAILED
    [("step.exit", "SET"), ("result", "RETURNED")]
    job job COMPLETED
      step one COMPLETED SET
    [("job.exit", "HALF")]
    job job COMPLETED HALF
      step one COMPLETED DONE
    [("job.exit", "HALF"), ("step.exit", "SET"), ("fail", "process one")]
    job job FAILED HALF | cannot process one | thrown by #[process] of batchlet `Task`
      step one FAILED SET | the job's message
    "#);
}

/// Sets exit statuses one after the other; `none` resets it.
#[batchlet("Undecided")]
fn undecided(
    #[batch_property] log: &str,
    #[batch_property] statuses: &str,
    #[batch_context] job: &JobContext,
    #[batch_context] step: &StepContext,
) -> String {
    for status in statuses.split(' ') {
        let status = (status != "none").then_some(status);
        job.set_exit_status(status);
        step.set_exit_status(status);
        assert_eq!(step.exit_status(), job.exit_status());
        say(log, format!("{:?}", step.exit_status()));
    }
    "RETURNED".into()
}

/// Every status that the rows of jobs and steps had, in order.
fn trail(stage: &Stage, parameters: impl Into<JobParameters>, stop: bool) -> Vec<String> {
    execute(
        stage,
        "DROP TABLE IF EXISTS trail; CREATE TABLE trail (text TEXT)",
    );
    for (table, name) in [
        ("BATCH_JOB_EXECUTION", "'job'"),
        ("BATCH_STEP_EXECUTION", "'step ' || NEW.STEP_NAME"),
    ] {
        for event in ["INSERT", "UPDATE"] {
            let trigger = format!(
                "CREATE TRIGGER IF NOT EXISTS trail_{event}_{table} AFTER {event} ON {table}
                 BEGIN INSERT INTO trail VALUES ({name} || ' ' || NEW.STATUS); END"
            );
            execute(stage, &trigger);
        }
    }
    let (operator, gate) = (stage.operator(), Gate::at(stage));
    let execution = operator.start("job", parameters).unwrap();
    if stop {
        gate.pass("held");
        assert!(operator.stop(execution).unwrap());
    }
    operator.wait(execution).unwrap();
    stage.outside().rows("SELECT text FROM trail ORDER BY rowid")
}

/// STARTING before it starts, STARTED while it runs, then a final status; a stopped job is STOPPING first. The row of a step begins
/// STARTED (D-102).
///
/// Spec: STATUS-07, STATUS-08, STATUS-09, STATUS-10, STATUS-11, STATUS-12, STATUS-13, STATUS-23, DOM-31
#[test]
fn rows_have_their_statuses_in_order() {
    let stage = Stage::new(&job(ONE));
    for (fail, end) in [("", "COMPLETED"), ("process one", "FAILED")] {
        let trail = trail(&stage, [("fail", fail)], false).join(", ");
        let expected = format!("job STARTING, job STARTED, step one STARTED, step one {end}, job {end}");
        assert_eq!(trail, expected);
    }
    let stopped = trail(&stage, [("hold", "until cancelled")], true);
    let of_job: Vec<_> = stopped.iter().filter(|line| line.starts_with("job")).collect();
    let expected = ["job STARTING", "job STARTED", "job STOPPING", "job STOPPED"];
    assert_eq!(of_job, expected);
    assert!(stopped.contains(&"step one STOPPED".to_owned()), "{stopped:?}");
}

/// The last value wins; `None` restores the default. The getter returns the set value, never the default.
///
/// Spec: STATUS-18, STATUS-19, STATUS-21, CTX-17, CTX-18, CTX-27, CTX-28
#[test]
fn the_last_exit_status_counts() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Undecided"/></step>"#));
    let mut text = String::new();
    for statuses in ["A B", "A none", "A none C"] {
        let execution = stage.start("job", [("statuses", statuses)]);
        text += &format!("{}\n", story(&stage, execution));
    }
    assert_snapshot!(text, @r#"
    job job COMPLETED B
      step one COMPLETED B
    Some("A") · Some("B")
    job job COMPLETED
      step one COMPLETED RETURNED
    Some("A") · None
    job job COMPLETED C
      step one COMPLETED C
    Some("A") · None · Some("C")
    "#);
}

/// STARTING as soon as `start` returns or later, STARTED while it runs, then one final status.
///
/// Spec: STATUS-05, STATUS-06, STATUS-09, STATUS-23, OP-10
#[test]
fn the_batch_status_changes_in_order() {
    let stage = Stage::new(&job(ONE));
    let (operator, gate) = (stage.operator(), Gate::at(&stage));
    let execution = operator.start("job", [("hold", "until opened")]).unwrap();
    let status = || operator.job_execution(execution).unwrap().unwrap().status;
    assert_matches!(status(), BatchStatus::Starting | BatchStatus::Started);
    gate.pass("held");
    assert_eq!(status(), BatchStatus::Started);
    let step = operator.step_executions(execution).unwrap().remove(0);
    assert_eq!((step.status, step.ended), (BatchStatus::Started, None));
    gate.open("go");
    operator.wait(execution).unwrap();
    assert_eq!(status(), BatchStatus::Completed);
    assert!(operator.stop(execution).is_err());
    assert_eq!(status(), BatchStatus::Completed);
}

/// STARTED before the first listener is called, final after the after-listeners.
///
/// Spec: STATUS-04, STATUS-09, STATUS-12, STATUS-15, CTX-16, CTX-26
#[test]
fn listeners_see_the_statuses() {
    let elements = r#"<listener ref="JobWatch"/><step id="one"><listener ref="StepWatch"/><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "process one")]);
    assert_snapshot!(story(&stage, execution), @r"
    job job FAILED | cannot process one | thrown by #[process] of batchlet `Task`
      step one FAILED | the job's message
    JobWatch before job job STARTED · JobWatch before step one STARTED · StepWatch before one STARTED
    begin one · process one · end one · StepWatch after one FAILED · JobWatch after step one FAILED
    JobWatch after job job FAILED
    ");
}

/// A value that is too long for the repository, or not storable on every database, is rejected, never truncated.
///
/// Spec: STATUS-17, STATUS-20, REPO-46
#[test]
fn an_exit_status_that_cannot_be_stored_fails_its_element() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Verbose"/></step>"#));
    let whole = "é".repeat(2_500);
    let job = job_with(&stage, &whole, &whole);
    assert_eq!((job.status, &job.exit_status), (BatchStatus::Completed, &whole));
    let three_hundred = "x".repeat(300);
    let job = job_with(&stage, &three_hundred, &three_hundred);
    let step = first_step_execution(&stage, job.id);
    assert_eq!([&job.exit_status, &step.exit_status], [&three_hundred; 2]);
    let mut text = String::new();
    let long = "x".repeat(2_501);
    for (step, job) in [(&*long, ""), ("", &*long), ("a\0b", "")] {
        let job = job_with(&stage, step, job);
        text += &tree(&stage, job.id);
    }
    assert_snapshot!(text, @r"
    job job FAILED
        | step `one` set an exit status of 2501 characters; the repository stores at most 2500
      step one FAILED | the job's message
    job job FAILED | job `job` set an exit status of 2501 characters; the repository stores at most 2500
      step one COMPLETED DONE
    job job FAILED
        | step `one` set an exit status with a NUL character, which not every database can store
      step one FAILED | the job's message
    ");
}

static WORDS: Mutex<Vec<(String, String, String)>> = Mutex::new(Vec::new());

/// Ends with exit statuses that a job parameter could not hold.
#[batchlet("Verbose")]
fn verbose(
    #[batch_property] log: &str,
    #[batch_property] fail: &str,
    #[batch_context] job: &JobContext,
    #[batch_context] step: &StepContext,
) -> Result<String, BatchError> {
    let mut words = WORDS.lock().unwrap();
    let mine = words.iter().position(|(other, ..)| other == log).unwrap();
    let (_, of_step, of_job) = words.remove(mine);
    let set = |status: String| Some(status).filter(|status| !status.is_empty());
    step.set_exit_status(set(of_step).as_deref());
    job.set_exit_status(set(of_job).as_deref());
    match fail {
        "" => Ok("DONE".into()),
        _ => Err(BatchError::msg(fail)),
    }
}

/// Makes the next execution of the stage end with these exit statuses.
fn say_next(stage: &Stage, step: &str, job: &str) {
    let words = (stage.log_name().to_owned(), step.to_owned(), job.to_owned());
    WORDS.lock().unwrap().push(words);
}

fn job_with(stage: &Stage, step: &str, job: &str) -> JobExecution {
    say_next(stage, step, job);
    ended(stage, JobParameters::new())
}

/// An exit status that cannot be stored does not hide the error of the step.
///
/// Spec: STATUS-27, STATUS-25
#[test]
fn the_first_failure_is_the_message() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Verbose"/></step>"#));
    let long = "x".repeat(2_501);
    say_next(&stage, &long, &long);
    let execution = stage.start("job", [("fail", "no disk")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job FAILED | no disk | thrown by #[process] of batchlet `Verbose`
        | job `job` set an exit status of 2501 characters; the repository stores at most 2500
      step one FAILED | no disk | thrown by #[process] of batchlet `Verbose`
        | step `one` set an exit status of 2501 characters; the repository stores at most 2500
    ");
}

/// The messages of step and job include the causes of an error, the outermost first.
///
/// Spec: STATUS-27
#[test]
fn the_message_holds_the_chain_of_causes() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Wrapped"/></step>"#));
    let job = ended(&stage, JobParameters::new());
    assert_starts(
        &job.exit_message,
        "the file cannot be used: invalid digit found in string\n",
    );
    let step = first_step_execution(&stage, job.id);
    assert_eq!(step.exit_message, job.exit_message);
}

#[derive(Debug)]
struct Unusable(std::num::ParseIntError);

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the file cannot be used")
    }
}

impl std::error::Error for Unusable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Fails with an error that has a cause.
#[batchlet("Wrapped")]
fn wrapped() -> Result<String, Unusable> {
    let number = "x".parse::<u8>().map_err(Unusable)?;
    Ok(number.to_string())
}

/// Spec: STATUS-06
#[test]
fn statuses_of_other_programs_are_readable() {
    let (stage, execution) = started(ONE, ());
    execute(
        &stage,
        "DROP TRIGGER final_BATCH_JOB_EXECUTION; DROP TRIGGER edge_BATCH_JOB_EXECUTION",
    );
    for status in ["ABANDONED", "UNKNOWN"] {
        execute(
            &stage,
            &format!("UPDATE BATCH_JOB_EXECUTION SET STATUS = '{status}', VERSION = VERSION + 1"),
        );
        let read = job_execution(&stage, execution);
        assert_eq!(read.status.as_str(), status);
    }
}

/// The statuses that the callback and the repository see at the end are the same.
///
/// Spec: STATUS-05, OP-27, OP-28
#[test]
fn the_callback_sees_the_final_status() {
    let stage = Stage::new(&job(ONE));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (sink, operator) = (Arc::clone(&seen), stage.operator());
    let callback = move |execution: &JobExecution| {
        let stored = operator.job_execution(execution.id).unwrap().unwrap();
        assert_eq!(&stored, execution);
        let ended = format!("{} {}", execution.status, execution.exit_status);
        sink.lock().unwrap().push(ended);
    };
    stage.operator().register_job_end_callback(callback).unwrap();
    stage.start("job", [("job.exit", "HALF")]);
    stage.start("job", [("fail", "process one")]);
    assert_eq!(*seen.lock().unwrap(), ["COMPLETED HALF", "FAILED FAILED"]);
}

/// An exit status is never empty: no pattern could match it.
///
/// Spec: STATUS-18, STATUS-25
#[test]
fn an_empty_exit_status_fails_the_step() {
    let (stage, execution) = started(ONE, [("step.exit", "")]);
    assert_snapshot!(tree(&stage, execution), @r"
    job job FAILED | step `one` set an empty exit status
      step one FAILED | the job's message
    ");
}
