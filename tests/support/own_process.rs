//! Tests that need their own process, because they change the state of the whole process.

use std::path::Path;
use std::process::Command;

use crate::deadline;
use crate::process::text;

/// Names the test that runs alone in this process.
const TEST: &str = "BATCH_TEST_IN_OWN_PROCESS";

/// Runs `body` in a new process of this test binary, in the directory `folder`. `test` is the path of the calling test.
///
/// # Panics
/// If the test fails there.
pub fn run(test: &str, folder: &Path, body: impl FnOnce()) {
    if std::env::var(TEST).is_ok_and(|running| running == test) {
        return body();
    }
    let program = std::env::current_exe().expect("the test's own path");
    let mut command = Command::new(program);
    command
        .args(["--exact", test])
        .current_dir(folder)
        .env(TEST, test);
    let waited_for = test.to_owned();
    deadline::waits_for(move || format!("`{waited_for}` in a process of its own"));
    deadline::of_child(&mut command);
    let output = command.output().expect("the process starts");
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
}
