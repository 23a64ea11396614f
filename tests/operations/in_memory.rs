//! The commands on the repository `memory:`.

use std::fs;

use batch_tests::process::run_expecting;

const MEMORY: [&str; 2] = ["--repository", "memory:"];

/// Spec: MEM-01, MEM-05
#[test]
fn a_job_runs_without_a_repository_and_says_that_it_cannot_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let run = |code: i32, arguments: &[&str]| {
        run_expecting(code, "hello", folder.path(), &[&MEMORY, arguments].concat())
    };
    let (out, err) = run(0, &["launch", "hello", "name=Ada"]);
    assert!(out.contains("hello:1:1 COMPLETED"), "{out}{err}");
    run(0, &["launch", "hello", "name=Ada"]);
    let failing =
        r#"<job id="again"><step id="greet"><batchlet ref="Greeter"/><fail on="GREETED"/></step></job>"#;
    fs::write(folder.path().join("again.xml"), failing).unwrap();
    let (_, err) = run(1, &["--job-path", ".", "launch", "again"]);
    assert!(
        err.contains("cannot be resumed, because the repository `memory:` ends with this process"),
        "{err}"
    );
    assert!(!err.contains("to resume"), "{err}");
    assert!(!folder.path().join("batch.db").exists());
}

/// Spec: MEM-05
#[test]
fn commands_that_look_at_it_say_that_it_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let run = |code: i32, arguments: &[&str]| {
        run_expecting(code, "hello", folder.path(), &[&MEMORY, arguments].concat())
    };
    let note = "note: the repository `memory:` is empty, because it holds only what this process runs";
    for (code, arguments) in [
        (0, &["list"][..]),
        (0, &["workers"]),
        (0, &["executions"]),
        (2, &["restart", "1"]),
        (2, &["show", "1"]),
    ] {
        let (_, err) = run(code, arguments);
        assert!(err.starts_with(note), "{arguments:?}: {err}");
    }
    for arguments in [
        &["db", "status"][..],
        &["db", "migrate"],
        &["db", "export-schema"],
    ] {
        let (out, err) = run(2, arguments);
        let expected =
            "error: the repository `memory:` has no tables; use `sqlite://PATH`, PostgreSQL or MySQL\n";
        assert_eq!((out.as_str(), err.as_str()), ("", expected), "{arguments:?}");
    }
    let (out, _) = run(0, &["db", "export-schema", "--database", "sqlite"]);
    assert!(out.contains("BATCH_JOB_INSTANCE"), "{out}");
    let (_, err) = run(2, &["worker"]);
    assert!(err.contains("so no other process can see its work"), "{err}");
}
