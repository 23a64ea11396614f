//! Processes that write files and tables and are killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use batch_tests::process;
use batch_tests::random::Random;
use batch_tests::slow;
use batch_tests::writing::{EVENT, EVENTS, Load, STEPS, Step, WAITING, WRONG_FROM, Writing, Written};

const PROGRAM: &str = env!("CARGO_BIN_EXE_writing");

/// The last chunk is incomplete, and the last file of those with 30 items is full.
const ROWS: u32 = 120;
const LOAD: Load = Load {
    rows: ROWS,
    width: 0,
    interval: 7,
};

/// The end of a launch.
enum Ended {
    Killed,
    /// The instance is complete.
    Complete,
}

/// Runs the launch, and kills it after `after` events of a kind, if it reaches them. Returns the number of events.
fn kill(mut launch: Command, event: &str, after: Option<u64>) -> (Ended, u64) {
    let mut child = launch
        .env(EVENTS, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = 0;
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    if after != Some(0) {
        for line in lines {
            events += u64::from(line.unwrap() == event);
            if Some(events) == after {
                break;
            }
        }
    }
    if after.is_some_and(|most| events >= most) {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let errors = process::text(&output.stderr);
    match output.status.code() {
        None => (Ended::Killed, events),
        Some(0) => (Ended::Complete, events),
        // The kill came after the last commit and before the end of the process.
        Some(10) if errors.contains("ended COMPLETED") => (Ended::Complete, events),
        Some(code) => panic!("exit code {code}: {errors}"),
    }
}

fn check(writing: &Writing, run: u32, expected: &Written) {
    if let Some(difference) = writing.written(run).difference(expected) {
        panic!("run {run}: {difference}");
    }
}

/// Whenever a process is killed, its files and rows equal an undisturbed run's when it has been launched again: each
/// writer writes exactly once.
///
/// Spec: OP-35, CHUNK-LOOP-12, CHUNK-LOOP-16, RESTART-07, REPO-62
#[test]
fn kills_leave_the_files_and_rows_of_an_undisturbed_run() {
    let kills = slow::times(70, 2_000);
    let writing = Writing::new(PROGRAM, STEPS, LOAD);
    let (_, all) = kill(writing.launch(0), EVENT, None);
    let expected = writing.written(0);
    assert_eq!((expected.files().len(), expected.rows()), (15, 240));
    let mut random = Random::new("kills of writers");
    let (mut killed, mut run) = (0, 0);
    while killed < kills {
        run += 1;
        loop {
            // Half of the kills strike while the launch recovers, or soon after.
            let latest = if random.below(2) == 0 { 60 } else { all / 3 };
            let after = (killed < kills).then(|| random.below(latest));
            match kill(writing.launch(run), EVENT, after) {
                (Ended::Killed, _) => killed += 1,
                (Ended::Complete, _) => break,
            }
        }
        check(&writing, run, &expected);
    }
    println!("{killed} kills in {run} instances of {all} events");
}

/// What a killed process has written after its last checkpoint is removed, also if the next one writes less: longer items, and
/// files that it started.
///
/// Spec: OP-35, CHUNK-LOOP-12, CHUNK-LOOP-16, RESTART-07
#[test]
fn nothing_uncommitted_is_left_of_a_killed_process() {
    let writing = Writing::new(PROGRAM, STEPS, LOAD);
    writing.completes(0);
    for Step(step, ..) in STEPS {
        // In the first chunk, in the middle, and after the last row, where a file is full.
        for row in [1, 60, ROWS + 1] {
            let mut launch = writing.launch(1);
            launch.env(WRONG_FROM, format!("{step}:{row}"));
            let (ended, _) = kill(launch, WAITING, Some(1));
            assert!(matches!(ended, Ended::Killed), "{step} {row}");
        }
    }
    writing.completes(1);
    check(&writing, 1, &writing.written(0));
}
