//! The reader of the library, registered by the program, resumes at its checkpoint.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::{Command, Output};

fn launch(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_csv-reader"))
        .args(["launch", "states"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn first_lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().take(3).map(str::to_owned).collect()
}

/// Spec: READ-03, READ-04, RESTART-08
#[test]
fn a_failed_run_is_resumed_at_the_row_after_the_last_commit() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let undisturbed = launch(whole.path(), &[]);
    assert!(undisturbed.status.success(), "{undisturbed:?}");
    assert_eq!(first_lines(&undisturbed), ["AK 263", "TX 209", "CA 205"]);

    let failed = launch(parts.path(), &["-fails.at=Los Angeles International"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let resumed = launch(parts.path(), &["-fails.at=nowhere"]);
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(first_lines(&resumed), first_lines(&undisturbed));
    let text = String::from_utf8_lossy(&resumed.stdout).into_owned();
    let row = text.lines().find(|line| line.starts_with("count  COMPLETED"));
    assert!(
        row.is_some_and(|row| row.contains("1376") && !row.contains("3376")),
        "it read only what was left: {text}"
    );
}

#[test]
fn the_check_knows_the_alias() {
    let folder = tempfile::tempdir().unwrap();
    let check = Command::new(env!("CARGO_BIN_EXE_csv-reader"))
        .args(["check"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
}
