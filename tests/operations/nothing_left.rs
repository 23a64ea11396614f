//! A command that fails before it starts anything creates no repository, which later commands would take for the repository of the jobs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use batch_tests::deadline;
use batch_tests::process::{self, example, text};
use tempfile::TempDir;

/// What the folder of each case holds.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("broken.xml", "<job id='broken'>\n  <step id='one'></job>"),
        ("wiring.xml", "<job id='wiring'><step id='one'><batchlet ref='NoSuch'/></step></job>"),
        (
            "nowhere.xml",
            "<job id='nowhere'><step id='one'><properties><property name='batch.dispatch' value='nowhere'/></properties>
             <batchlet ref='Greeter'/><partition instances='2'/></step></job>",
        ),
        ("lines.jsonl", "not an instance\n"),
        ("empty.jsonl", "\n"),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The commands, with the exit code and a part of the message of each. `launch` and `start` also run with --remote and --xml.
const FAILING: &[(&str, i32, &str)] = &[
    ("launch unknown", 2, "unknown job `unknown`"),
    ("start unknown", 2, "unknown job `unknown`"),
    ("start --xml unknown", 2, "unknown job `unknown`"),
    ("launch --remote unknown", 2, "unknown job `unknown`"),
    ("launch hello name", 2, "expected NAME=VALUE"),
    ("launch hello name(date)=x", 2, "name"),
    ("launch hello nmame=Ada", 2, "did you mean"),
    (
        "launch hello name(secret)=env:NO_SUCH_VARIABLE",
        2,
        "the environment variable is not set",
    ),
    (
        "launch hello name(secret)=file:no/such/file",
        2,
        "cannot read the secret",
    ),
    ("launch --remote hello --queue=", 2, "1 to 100 characters"),
    ("launch broken", 2, "--> ./broken.xml:2:3"),
    ("start --xml broken", 2, "--> ./broken.xml:2:3"),
    ("launch wiring", 2, "`NoSuch`"),
    ("launch --remote wiring", 2, "`NoSuch`"),
    ("launch nowhere", 2, "`nowhere`"),
    ("restart 1", 2, "does not exist"),
    ("restart 1 name", 2, "expected NAME=VALUE"),
    ("stop 1", 2, "does not exist"),
    ("list", 0, ""),
    ("list hello", 0, ""),
    ("list unknown", 2, "unknown job `unknown`"),
    ("show 1", 2, "does not exist"),
    ("show 1 --report report.html", 2, "does not exist"),
    ("params 1", 2, "does not exist"),
    ("executions", 2, "does not exist"),
    ("recover", 2, "does not exist"),
    ("recover --dry-run", 2, "does not exist"),
    ("abandon 1", 2, "does not exist"),
    ("purge --keep=1", 2, "does not exist"),
    ("export 1", 2, "does not exist"),
    ("import no-such-file", 2, "no-such-file"),
    ("import lines.jsonl", 1, "lines.jsonl:1"),
    ("import empty.jsonl", 1, "empty.jsonl has no instance"),
    ("worker --queue=", 2, "1 to 100 characters"),
    ("worker --slots=0", 2, "without slots"),
    ("worker --dispatch=nats://localhost:1", 2, ""),
    ("workers", 2, "does not exist"),
    ("launches", 2, "does not exist"),
    ("notifications", 2, "does not exist"),
    ("explain unknown", 2, "unknown job `unknown`"),
    ("graph unknown", 2, "unknown job `unknown`"),
    ("check unknown", 2, "unknown job `unknown`"),
    ("db status", 1, ""),
    ("config show", 0, ""),
    ("launch hello --metrics-port=x", 2, "expected a port"),
    (
        "launch hello --dispatch=nowhere",
        2,
        "unknown dispatcher `nowhere`",
    ),
    ("launch hello --repository=oracle://host", 2, "oracle"),
];

/// Spec: CLI-01
#[test]
fn no_repository_is_left_by_a_command_that_started_nothing() {
    let folder = folder();
    let before = files(folder.path());
    for (typed, code, message) in FAILING {
        for repository in [
            &["--job-path=."][..],
            &["--job-path=.", "--repository=sqlite://named.db"],
        ] {
            let is_named = repository.len() > 1;
            // A list of a repository that the user has named fails if it does not exist.
            if is_named && (typed.starts_with("list") || typed.contains("--repository")) {
                continue;
            }
            let arguments: Vec<&str> = typed.split(' ').chain(repository.iter().copied()).collect();
            let output = process::run("hello", folder.path(), &arguments);
            let (out, err) = process::ended(*code, &output);
            assert!(err.contains(message), "{typed}: {out}{err}");
            assert_eq!(files(folder.path()), before, "{typed}");
        }
    }
}

/// A secret that comes through a pipe can be read once: it is not used up by the check.
///
/// Spec: CLI-01
#[test]
#[cfg(unix)]
fn a_secret_in_a_pipe_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    deadline::waits_for(|| "a secret in a pipe".to_owned());
    let script = "mkfifo pipe; (printf Ada > pipe) & \"$0\" launch hello 'name(secret)=file:pipe'";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(example("hello"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let (out, _) = process::ended(0, &output);
    assert!(out.starts_with("Hello, Ada!\n"), "{out}");
}

/// The check of the first launch prints nothing that the launch prints again.
///
/// Spec: CLI-01
#[test]
fn a_warning_is_printed_once() {
    let folder = folder();
    // A short name that nearly matches only warns.
    let arguments = ["launch", "hello", "nmae=Ada", "--job-path=."];
    let err = text(&process::run("hello", folder.path(), &arguments).stderr);
    assert_eq!(err.matches("did you mean `name`?").count(), 1, "{err}");
    assert_eq!(err.matches("invalid Job XML").count(), 1, "{err}");
}
