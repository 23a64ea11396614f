//! `waitForFile`.

use batch_runtime::BatchStatus;

use super::stage::{Stage, log_with, until};

fn stage(more: &[(&str, &str)]) -> Stage {
    let mut properties = vec![("resource", "${folder}/in/*.csv"), ("poll.interval", "10ms")];
    properties.extend(more);
    Stage::new("waitForFile", &properties)
}

#[test]
fn files_that_exist_are_counted() {
    let stage = stage(&[("poll.interval", "1d"), ("minimum.files", "2")][1..]);
    for name in ["in/a.csv", "in/b.csv", "in/c.csv", "in/.d.csv.part"] {
        stage.write(name, name);
    }
    assert_eq!(stage.run().completed(), "3 files");
}

#[test]
fn the_wait_ends_when_enough_files_have_arrived() {
    let stage = stage(&[("minimum.files", "2"), ("stable.for", "20ms")]);
    let execution = stage.start(());
    until(|| !log_with(&stage.name("in")).is_empty());
    stage.write("in/a.csv", "a");
    stage.write("in/b.csv", "b");
    assert_eq!(stage.wait(execution).completed(), "2 files");
}

#[test]
fn the_end_of_the_time_fails_or_is_an_exit_status() {
    let stage = stage(&[("timeout", "30ms"), ("minimum.files", "2")]);
    stage.write("in/a.csv", "a");
    let ended = stage.run();
    let message = ended.failed();
    assert!(message.contains("1 of 2 files match "), "{message}");
    assert!(
        message.contains("/in/*.csv at the end of the `timeout`"),
        "{message}"
    );
    let ended = stage.wait(stage.start([("if.timeout", "continue")]));
    ended.completed_as("TIMEOUT");
    let ended = stage.wait(stage.start([("minimum.files", "1"), ("stable.for", "1d")]));
    let message = ended.failed();
    assert!(message.contains("some still change (`stable.for`)"), "{message}");
    let ended = stage.wait(stage.start([("minimum.files", "1"), ("timeout", "0")]));
    assert_eq!(
        ended.completed(),
        "1 file",
        "the first check is before the end of the time"
    );
}

/// Between two checks there is a day, so only the request can end the wait.
#[test]
fn a_stop_ends_the_wait_and_a_restart_waits_again() {
    let stage = Stage::new(
        "waitForFile",
        &[
            ("resource", "${folder}/in/*.csv"),
            ("poll.interval", "1d"),
            ("timeout", "2d"),
        ],
    );
    let ended = stage.start_and_stop(|| !log_with(&stage.name("in")).is_empty());
    assert_eq!(
        (ended.status, ended.exit_status.as_str()),
        (BatchStatus::Stopped, "STOPPED")
    );
    stage.write("in/a.csv", "a");
    assert_eq!(stage.restart(ended.id, ()).completed(), "1 file");
}
