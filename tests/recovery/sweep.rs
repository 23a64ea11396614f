//! The crash sweep: a fault at any event of the repository, followed by a plain launch. And a process that is
//! suspended for longer than its lease. The slow tier strikes at each event, the usual one at some of them.
#![cfg(unix)]

use std::fs;
use std::thread;

use batch_tests::suspended::{launch_until_it_waits, taken_over_at};
use batch_tests::sweep::{
    BATCHLET, CHUNKS, DATA, FILES, Fault, NESTED, PARTITIONS, PIPELINE, PLAIN_PIPELINE, REFUSALS, Raised,
    Shape, Sweep, UNDISTURBED,
};
use batch_tests::{slow, sqlite};
use diesel::connection::SimpleConnection;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweeping");

/// The distance between the events that a sweep strikes.
const STRIDE: u32 = 5;

/// Strikes at events, and checks their number.
fn strike(shape: Shape, fault: Fault, raised: Raised, at_least: u64) {
    let stride = slow::stride(STRIDE);
    let sweep = Sweep::new(PROGRAM, shape).with_stride(stride);
    let events = sweep
        .strike_everywhere(fault, raised)
        .unwrap_or_else(|problem| panic!("{problem}"));
    println!("{fault:?} {raised:?}: {events} events");
    assert!(events + u64::from(stride) > at_least, "only {events} events");
}

/// The process dies before any statement, or after any commit.
///
/// Spec: DOM-26, DOM-27, CHUNK-LOOP-12, CHUNK-LOOP-16, OP-35, OP-36, RESTART-07, RESTART-08, REPO-44, REPO-62, REPO-63
#[test]
fn a_death_at_any_event_is_recovered_by_a_launch() {
    strike(CHUNKS, Fault::Kill, Raised::InStatement, 100);
}

/// The same for files that are written exactly once: whenever the process dies, also while the files get their names, they
/// equal an undisturbed run's.
///
/// Spec: OP-35, CHUNK-LOOP-12, CHUNK-LOOP-16, RESTART-07, D-96
#[test]
fn a_death_at_any_event_leaves_each_item_in_its_file_once() {
    strike_files(FILES);
}

/// The same while the next chunk is read.
///
/// Spec: OP-35, CHUNK-LOOP-12, CHUNK-LOOP-16, RESTART-07, D-96, D-100
#[test]
fn a_death_at_any_event_of_a_pipeline_leaves_each_item_in_its_file_once() {
    strike_files(PIPELINE);
}

/// The same with one processor, to a table.
///
/// Spec: OP-35, CHUNK-LOOP-12, CHUNK-LOOP-16, RESTART-07, REPO-62, D-100
#[test]
fn a_fault_at_any_event_of_a_plain_pipeline_is_recovered_by_a_launch() {
    strike(PLAIN_PIPELINE, Fault::Kill, Raised::InStatement, 100);
    strike(PLAIN_PIPELINE, Fault::Once, Raised::InCommit, 30);
}

fn strike_files(shape: Shape) {
    strike(shape, Fault::Kill, Raised::InStatement, 100);
    for raised in [Raised::InStatement, Raised::InCommit] {
        strike(shape, Fault::Once, raised, 30);
        strike(shape, Fault::ForEver, raised, 30);
    }
}

/// The same for the process that recovers the execution.
///
/// Spec: OP-35, OP-36, CHUNK-LOOP-12, CHUNK-LOOP-16, RESTART-07, RESTART-08, REPO-44
#[test]
fn a_death_at_any_event_of_the_recovery_is_recovered_by_a_launch() {
    let stride = slow::stride(STRIDE);
    let events = Sweep::new(PROGRAM, CHUNKS)
        .with_stride(stride)
        .kill_twice_everywhere();
    let events = events.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(events + u64::from(stride) > 100, "only {events} events");
}

/// The first launch creates the tables. Wherever it dies, the next one completes them.
///
/// Spec: OP-35, OP-36
#[test]
fn a_death_while_the_tables_are_made_is_recovered_by_a_launch() {
    let events = Sweep::new(PROGRAM, BATCHLET).kill_while_it_makes_the_tables();
    let events = events.unwrap_or_else(|problem| panic!("{problem}"));
    println!("tables: {events} events");
    assert!(events >= 30, "only {events} events");
}

/// Data of the job agrees with the rows, wherever the process dies or a statement fails.
///
/// Spec: DATA-01, OP-35, CHUNK-LOOP-12
#[test]
fn a_fault_at_any_event_leaves_data_that_agrees_with_the_rows() {
    strike(DATA, Fault::Kill, Raised::InStatement, 100);
    strike(DATA, Fault::Once, Raised::InStatement, 30);
    strike(DATA, Fault::Once, Raised::InCommit, 30);
}

/// Wherever a process dies that runs a job within a job, or a statement fails, a launch of the
/// outer job resumes the inner one, which has a single instance.
///
/// Spec: NEST-01, NEST-02, OP-35, CHUNK-LOOP-12
#[test]
fn a_fault_at_any_event_of_a_nested_job_is_recovered_by_a_launch() {
    strike(NESTED, Fault::Kill, Raised::InStatement, 100);
    strike(NESTED, Fault::Once, Raised::InStatement, 30);
    strike(NESTED, Fault::Once, Raised::InCommit, 30);
}

/// The same between and in partitions; completed ones do not run again.
///
/// Spec: OP-35, PART-29, PART-30, CHUNK-LOOP-12, RESTART-07, REPO-44, REPO-68
#[test]
fn a_death_at_any_event_of_partitions_is_recovered_by_a_launch() {
    strike(PARTITIONS, Fault::Kill, Raised::InStatement, 150);
}

/// A panic within a call of the repository, on the job's thread or a partition's, ends the execution or leaves it to
/// the next launch; it does not hang.
///
/// Spec: OP-35, PART-29, CHUNK-LOOP-12, CHUNK-LOOP-13, RESTART-07, REPO-44
#[test]
fn a_panic_at_any_event_is_recovered_by_a_launch() {
    strike(PARTITIONS, Fault::Panic, Raised::InStatement, 150);
}

/// Each writing statement fails once, including the writer's own; so does each commit.
///
/// Spec: CHUNK-LOOP-12, CHUNK-LOOP-13, OP-35, RESTART-07, REPO-15, REPO-60, REPO-62
#[test]
fn an_error_at_any_event_is_recovered_by_a_launch() {
    for raised in [Raised::InStatement, Raised::InCommit] {
        strike(CHUNKS, Fault::Once, raised, 30);
        strike(PARTITIONS, Fault::Once, raised, 50);
    }
}

/// From some statement on every write of the process fails, as on a full disk, including the end of its execution.
///
/// Spec: CHUNK-LOOP-12, CHUNK-LOOP-13, OP-35, RESTART-07, REPO-15, REPO-44, REPO-62
#[test]
fn errors_from_any_event_on_are_recovered_by_a_launch() {
    for raised in [Raised::InStatement, Raised::InCommit] {
        strike(CHUNKS, Fault::ForEver, raised, 30);
        strike(PARTITIONS, Fault::ForEver, raised, 50);
    }
}

/// A process that is suspended for longer than its lease, and taken over, commits nothing more when it continues: the
/// VERSION of the row fences it. It reports this, and ends with an error.
///
/// Spec: OP-34, OP-35, REPO-15, REPO-16, REPO-44, CHUNK-LOOP-12, RESTART-07
#[test]
fn a_process_that_was_taken_over_commits_nothing_more() {
    thread::scope(|scope| {
        // In the first, the second and the last chunk, and at the end of the input.
        for number in ["2", "7", "12", "13"] {
            scope.spawn(move || {
                let sweep = Sweep::new(PROGRAM, CHUNKS);
                taken_over_at(sweep, number)
                    .unwrap_or_else(|problem| panic!("waiting at {number}: {problem}"));
            });
        }
    });
}

/// The negative control of the checker: each wrong entry in a correct repository, and the expected error.
const WRONG: [(&str, &str); 20] = [
    ("DELETE FROM written WHERE n = 3", "the rows"),
    (
        "INSERT INTO written SELECT * FROM written WHERE n = 3",
        "the rows",
    ),
    (
        "UPDATE written SET execution = 99 WHERE n = 3",
        "a WRITE_COUNT that is not",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET COMMIT_COUNT = COMMIT_COUNT - 1 WHERE STEP_NAME = 'load'",
        "a COMMIT_COUNT that is not",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET READ_COUNT = READ_COUNT + 1, FILTER_COUNT = FILTER_COUNT + 1",
        "the sums",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET PROCESS_SKIP_COUNT = 0, READ_SKIP_COUNT = 1 WHERE PROCESS_SKIP_COUNT = 1",
        "the item balance",
    ),
    (
        "UPDATE BATCH_JOB_EXECUTION SET END_TIME = NULL",
        "an execution that has not ended",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET END_TIME = NULL",
        "an execution that has not ended",
    ),
    (
        "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'UNKNOWN'",
        "an execution that has not ended",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET STATUS = 'STARTED' WHERE STEP_NAME = 'load'",
        "an execution that has not ended",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET START_TIME = '2999-01-01 00:00:00'",
        "times out of order",
    ),
    (
        "UPDATE BATCH_JOB_EXECUTION SET CREATE_TIME = '2999-01-01 00:00:00'",
        "times out of order",
    ),
    (
        "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'FAILED'",
        "not completed exactly once",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET STATUS = 'FAILED', EXIT_MESSAGE = 'struck' WHERE STEP_NAME = 'load'",
        "not completed exactly once",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET STATUS = 'FAILED', EXIT_MESSAGE = 'another error'",
        "without its cause",
    ),
    (
        "INSERT INTO BATCH_JOB_INSTANCE SELECT 99, VERSION, JOB_NAME, 'another' FROM BATCH_JOB_INSTANCE",
        "more than one instance",
    ),
    (
        "UPDATE BATCH_JOB_EXECUTION SET VERSION = VERSION + 1",
        "a VERSION that is not",
    ),
    (
        "DELETE FROM BATCH_STEP_EXECUTION_CONTEXT WHERE STEP_EXECUTION_ID = 1",
        "a context is missing",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET EXIT_MESSAGE = 'no edge of the status graph'",
        "a row that was refused",
    ),
    (
        "UPDATE BATCH_JOB_INSTANCE_LEASE SET EXPIRES_AT = 5",
        "the last execution and the lease",
    ),
];

/// Spec: REPO-15, REPO-44, REPO-62
#[test]
fn the_checker_finds_every_error() {
    let sweep = Sweep::new(PROGRAM, CHUNKS);
    sweep.reset();
    assert!(sweep.launch(UNDISTURBED).status().unwrap().success());
    sweep.check().unwrap();
    let right = sweep.path().join("right.db");
    sqlite::open(&sweep.database())
        .batch_execute(&format!("VACUUM INTO '{}'", right.display()))
        .unwrap();
    for (statement, expected) in WRONG {
        fs::copy(&right, sweep.database()).unwrap();
        sweep.without_triggers(statement);
        let problem = sweep.check().expect_err(statement);
        assert!(problem.contains(expected), "{statement}: {problem}");
    }
}

/// The rejected updates of the running step, each with the trigger's message.
const REFUSED: [(&str, &str); 10] = [
    (
        "UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1, READ_COUNT = READ_COUNT + 1",
        "the item balance is broken",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 2",
        "VERSION did not grow by one",
    ),
    (
        "UPDATE BATCH_JOB_EXECUTION SET VERSION = VERSION",
        "VERSION did not grow by one",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1, STATUS = 'STARTING'",
        "no edge of the status graph",
    ),
    (
        "UPDATE BATCH_JOB_EXECUTION SET VERSION = VERSION + 1, STATUS = 'COMPLETED'",
        "END_TIME does not fit STATUS",
    ),
    (
        "INSERT INTO BATCH_JOB_EXECUTION (JOB_EXECUTION_ID, VERSION, JOB_INSTANCE_ID, CREATE_TIME, STATUS)
            SELECT 99, 0, JOB_INSTANCE_ID, CREATE_TIME, 'STARTING' FROM BATCH_JOB_EXECUTION",
        "two live executions",
    ),
    (
        "UPDATE BATCH_JOB_INSTANCE_LEASE SET FENCE = FENCE - 1",
        "the fence went back",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1, COMMIT_COUNT = COMMIT_COUNT - 1",
        "a count went back",
    ),
    (
        "UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1, LAST_UPDATED = LAST_UPDATED - 1",
        "a time went back",
    ),
    (
        "BEGIN; UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1, STATUS = 'FAILED', END_TIME = LAST_UPDATED;
         UPDATE BATCH_STEP_EXECUTION SET VERSION = VERSION + 1",
        "an ended execution was changed",
    ),
];

/// Spec: REPO-15, REPO-44, REPO-62
#[test]
fn the_triggers_reject_wrong_rows() {
    let sweep = Sweep::new(PROGRAM, CHUNKS);
    sweep.reset();
    let mut child = launch_until_it_waits(&sweep, "7");
    child.kill().unwrap();
    child.wait().unwrap();
    for (statement, refusal) in REFUSED {
        let error = sqlite::open(&sweep.database())
            .batch_execute(statement)
            .expect_err(statement);
        assert!(error.to_string().contains(refusal), "{statement}: {error}");
    }
    for refusal in REFUSALS {
        assert!(REFUSED.iter().any(|(_, said)| *said == refusal), "{refusal}");
    }
    assert!(sweep.launch(UNDISTURBED).status().unwrap().success());
    sweep.check().unwrap();
}
