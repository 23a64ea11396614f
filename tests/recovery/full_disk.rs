//! File writers on a disk that is full, or cannot be written at all.

use std::fs;
use std::process::{Command, Output};

use batch_tests::process;
use batch_tests::writing::{Load, STEPS, Step, Writing, Written};

const PROGRAM: &str = env!("CARGO_BIN_EXE_writing");

/// Two megabytes for each step, more than the database.
const LARGE: Load = Load {
    rows: 1_000,
    width: 2_000,
    interval: 100,
};

/// Half a megabyte for each step.
const SMALL: Load = Load { width: 500, ..LARGE };

/// The steps whose files grow with the items.
fn steps() -> impl Iterator<Item = &'static Step> {
    let wide = ["delimited", "files", "gzip", "lines", "array", "arrays", "xml"];
    STEPS.iter().filter(move |Step(name, ..)| wide.contains(name))
}

/// Returns a folder where run 0 of the step was undisturbed, what it has written, and the path of a file of run 1.
fn prepared(step: &Step, load: Load) -> (Writing, Written, String) {
    let writing = Writing::new(PROGRAM, std::slice::from_ref(step), load);
    writing.completes(0);
    let undisturbed = writing.written(0);
    writing.folder(1);
    let Step(.., properties) = step;
    let output = properties.iter().find(|(name, _)| *name == "output");
    (writing, undisturbed, format!("run-1/{}", output.unwrap().1))
}

/// Runs a script of sh in the folder. `$0` is the program.
fn sh(writing: &Writing, mut shell: Command, script: &str) -> Output {
    let shell = shell.args(["sh", "-c", script, PROGRAM]);
    shell.current_dir(writing.path()).output().unwrap()
}

/// Checks that the launches of run 1 ended like this, and wrote each item once.
fn check(writing: &Writing, undisturbed: &Written, ended: &[&str], context: &str) {
    let executions = writing.outside().rows(
        "SELECT E.STATUS AS text FROM BATCH_JOB_EXECUTION E
         WHERE E.JOB_INSTANCE_ID = (SELECT MAX(JOB_INSTANCE_ID) FROM BATCH_JOB_EXECUTION) ORDER BY E.JOB_EXECUTION_ID",
    );
    assert_eq!(executions, ended, "{context}");
    let written = writing.outside().number(
        "SELECT SUM(S.WRITE_COUNT) FROM BATCH_STEP_EXECUTION S JOIN BATCH_JOB_EXECUTION E USING (JOB_EXECUTION_ID)
         WHERE E.JOB_INSTANCE_ID = (SELECT MAX(JOB_INSTANCE_ID) FROM BATCH_JOB_EXECUTION)",
    );
    assert_eq!(written, i64::from(LARGE.rows), "{context}");
    if let Some(difference) = writing.written(1).difference(undisturbed) {
        panic!(
            "{}\n{context}",
            difference.chars().take(2_000).collect::<String>()
        );
    }
}

/// A file that cannot grow fails the step with its name and the cause, also in the end of the file, which follows the last item.
/// The checkpoint stays: when there is space, a launch resumes.
///
/// Spec: CHUNK-LOOP-13, STATUS-27, REPO-60
#[test]
fn a_file_that_cannot_grow_fails_the_step() {
    for step in steps() {
        let (writing, undisturbed, output) = prepared(step, LARGE);
        let length = undisturbed.files().map(|(_, length)| length).max().unwrap();
        let several = undisturbed.files().len() > 2;
        if several {
            // Each is smaller than the database.
            continue;
        }
        for limit in [length / 2, length - 1] {
            // The signal that would end the process is ignored.
            let script = format!("trap '' XFSZ; exec prlimit --fsize={limit} \"$0\" launch job run=1");
            for _ in 0..2 {
                let ended = sh(&writing, Command::new("env"), &script);
                let printed = process::text(&ended.stdout) + &process::text(&ended.stderr);
                assert_eq!(ended.status.code(), Some(1), "{printed}");
                let expected = format!("cannot write `{output}`: File too large (os error 27)");
                assert!(printed.contains(&expected), "{expected}\n{printed}");
                assert!(!writing.path().join(&output).exists(), "{output}");
            }
        }
        writing.completes(1);
        let ended = ["FAILED", "FAILED", "FAILED", "FAILED", "COMPLETED"];
        check(&writing, &undisturbed, &ended, &output);
    }
}

/// The script of a launch, whose exit code it prints.
const LAUNCH: &str = r#"launch() { "$0" launch job run=1 2>&1 && echo "code 0" || echo "code $?"; }"#;

/// Returns a shell that may mount file systems, which no other process sees; `None` with a warning where that is not allowed.
fn shell_that_mounts() -> Option<Command> {
    let shell = || {
        let mut shell = Command::new("unshare");
        shell.args(["--map-root-user", "--mount"]);
        shell
    };
    let mounts = shell()
        .args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounts {
        eprintln!(
            "NOT TESTED: no file system can be mounted here, so there is no disk that is full or read-only"
        );
    }
    mounts.then(shell)
}

/// Runs a script with the folder of the run on a file system of 256 KiB, and moves the folder back to the disk.
fn run_mounted(writing: &Writing, shell: Command, script: &str) -> String {
    let script = format!(
        r#"{LAUNCH}
        set -e
        cp -r run-1 existing
        mount -t tmpfs -o size=256k tmpfs run-1
        cp -r existing/. run-1
        {script}
        cp -r run-1 kept"#
    );
    let ended = sh(writing, shell, &script);
    let printed = process::text(&ended.stdout) + &process::text(&ended.stderr);
    assert!(ended.status.success(), "{printed}");
    fs::remove_dir_all(writing.path().join("run-1")).unwrap();
    fs::rename(writing.path().join("kept"), writing.path().join("run-1")).unwrap();
    printed
}

/// The same on a disk of a quarter of a megabyte, which becomes larger.
///
/// Spec: CHUNK-LOOP-13, STATUS-27, REPO-60
#[test]
fn a_full_disk_fails_the_step() {
    for step in steps() {
        let Some(shell) = shell_that_mounts() else { return };
        let (writing, undisturbed, output) = prepared(step, SMALL);
        let script = "
            launch
            launch
            mount -o remount,size=64m run-1
            launch";
        let printed = run_mounted(&writing, shell, script);
        let expected = format!("cannot write `{output}`: No space left on device (os error 28)");
        assert!(printed.matches(&expected).count() >= 2, "{expected}\n{printed}");
        assert_eq!(printed.matches("code 1").count(), 2, "{printed}");
        check(
            &writing,
            &undisturbed,
            &["FAILED", "FAILED", "COMPLETED"],
            &printed,
        );
    }
}

/// A folder that cannot be written fails the step, before its first item or at its checkpoint.
///
/// Spec: CHUNK-LOOP-13, STATUS-27
#[test]
fn a_read_only_disk_fails_the_step() {
    for step in steps() {
        let Some(shell) = shell_that_mounts() else { return };
        let (writing, undisturbed, output) = prepared(step, SMALL);
        let script = "
            mount -o remount,ro run-1
            launch
            mount -o remount,rw run-1
            launch
            mount -o remount,ro run-1
            launch
            mount -o remount,rw,size=64m run-1
            launch";
        let printed = run_mounted(&writing, shell, script);
        assert!(
            printed.contains("Read-only file system (os error 30)"),
            "{printed}"
        );
        assert!(printed.contains(&format!("`{output}")), "{printed}");
        check(
            &writing,
            &undisturbed,
            &["FAILED", "FAILED", "FAILED", "COMPLETED"],
            &printed,
        );
    }
}
