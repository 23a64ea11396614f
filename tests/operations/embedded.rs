//! Programs with their jobs inside: they run without the files that they were built from.

use std::fs;

use batch_tests::process::{self, run_expecting};

/// Every command that names or reads jobs finds them, in a folder without any file. What is recorded is the name of the embedded file, not
/// a place on the machine that built the program.
///
/// Spec: EMBED-01, EMBED-03
#[test]
fn a_program_needs_no_job_files() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| run_expecting(0, "hello", folder.path(), arguments).0;
    assert_eq!(
        run(&["check", "--deny-warnings"]),
        "hello: ok\n  greet: at-least-once: a restart runs the batchlet again\n"
    );
    assert!(run(&["list"]).contains("\nhello "));
    assert!(run(&["graph", "hello", "--format", "mermaid"]).contains("greet"));
    assert!(run(&["explain", "hello"]).contains("hello/hello.xml"));
    assert!(run(&["config", "show"]).contains("none: the program embeds its jobs"));
    run(&["launch", "hello", "name=Ada"]);
    assert!(run(&["show", "1"]).contains("\ndefinition   hello/hello.xml\n"));
    run(&["start", "--xml", "hello"]);
}

/// The copied program finds its input in the configured folder, and resumes as before.
///
/// Spec: EMBED-01
#[test]
fn a_copied_program_takes_its_input_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flights.csv"), "day,carrier\n").unwrap();
    let mut command = process::command("load", folder.path(), &["launch", "load"]);
    command.env_remove(process::OF_CARGO.0);
    let output = command.output().unwrap();
    let (_, err) = process::ended(1, &output);
    assert!(err.contains("`data/flights.csv`"), "{err}");
    let here = process::command("load", folder.path(), &["-Ddata=.", "launch", "load"]);
    process::ended(0, &{ here }.output().unwrap());
}

/// A file that the user names wins, and the program reports that.
///
/// Spec: EMBED-02
#[test]
fn a_file_of_the_job_path_wins_over_an_embedded_one() {
    let folder = tempfile::tempdir().unwrap();
    let job = r#"<job id="hello"><step id="other"><batchlet ref="Greeter"/></step></job>"#;
    fs::write(folder.path().join("hello.xml"), job).unwrap();
    let warning = "the job path replaces what the program embeds: `hello`";
    let (out, err) = run_expecting(0, "hello", folder.path(), &["start", "hello"]);
    assert!(out.contains("\ngreet ") && !err.contains("WARN"), "{out}{err}");
    for arguments in [
        ["start", "hello", "--job-path", "."],
        ["check", "hello", "-Djavax.jobpath=.", "--log=warn"],
    ] {
        let (_, err) = run_expecting(0, "hello", folder.path(), &arguments);
        assert_eq!(err.matches(warning).count(), 1, "{arguments:?}: {err}");
    }
    let (out, _) = run_expecting(0, "hello", folder.path(), &["show", "2"]);
    assert!(
        out.contains("\ndefinition   ./hello.xml\n") && out.contains("\nother "),
        "{out}"
    );
    // One that is not valid does not run the embedded job in its place.
    fs::write(folder.path().join("hello.xml"), &job[..40]).unwrap();
    let (_, err) = run_expecting(2, "hello", folder.path(), &["start", "hello", "--job-path", "."]);
    assert!(err.contains("--> ./hello.xml:1:"), "{err}");
}
